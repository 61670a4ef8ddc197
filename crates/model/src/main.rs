//! `trireme-model`: explores the group core within bounds; exits 1 with the path to a violation.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use trireme_model::{LARGE, SMALL, Search, explore};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Size {
    Small,
    Large,
}

/// Exhaustive check of the group core within small bounds.
#[derive(Parser)]
struct Options {
    /// Which set of bounds to explore
    #[arg(long, value_enum, default_value = "small")]
    bound: Size,
    /// Explore only the bound of this name
    #[arg(long)]
    only: Option<String>,
    /// Maximum number of actions from the start [default: all that the bound allows]
    #[arg(long)]
    depth: Option<usize>,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Search breadth-first: finds short paths to violations, needs much more memory
    #[arg(long)]
    breadth_first: bool,
    /// Explore every order of events, also of independent events
    #[arg(long)]
    full: bool,
    /// Time limit for each bound, in seconds
    #[arg(long)]
    timeout: Option<u64>,
    /// Plant this mistake in the core
    #[cfg(feature = "mutants")]
    #[arg(long)]
    mutant: Option<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let search = Search {
        threads: options.threads,
        depth: options.depth,
        breadth_first: options.breadth_first,
        reduced: !options.full,
        timeout: options.timeout.map(Duration::from_secs),
    };
    #[cfg(not(feature = "mutants"))]
    let mutant = None;
    #[cfg(feature = "mutants")]
    let mutant = options.mutant.as_ref().map(|name| {
        let all = trireme_mutants::Mutant::ALL.iter();
        let found = all
            .map(|(mutant, _)| *mutant)
            .find(|m| format!("{m:?}") == *name);
        found.unwrap_or_else(|| panic!("no mutant {name}"))
    });
    let bounds = match options.bound {
        Size::Small => SMALL,
        Size::Large => LARGE,
    };
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| only == name);
    let (mut explored, mut states, mut violations) = (0, 0, 0);
    let began = Instant::now();
    for bound in bounds.iter().filter(|bound| wanted(bound.name)) {
        println!("{}: {}", bound.name, bound.about);
        let report = match explore(bound, mutant, &search) {
            Ok(report) => report,
            Err(error) => {
                println!("    {error}");
                return ExitCode::FAILURE;
            }
        };
        println!("    {report}");
        for seen in &report.seen {
            println!("    seen: {seen}");
        }
        if let Some((property, path)) = &report.violation {
            println!("    violated: {property}\n{path}");
            violations += 1;
        }
        explored += 1;
        states += report.states;
    }
    let took_s = began.elapsed().as_secs();
    println!("{explored} bounds, {states} states, {violations} violations, {took_s} s");
    if violations > 0 || explored == 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
