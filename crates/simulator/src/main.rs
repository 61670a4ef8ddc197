//! The simulator's command line.

use std::ops::Range;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use simulator::edit::Edit;
use simulator::sweep::Sweep;
use simulator::{regressions, replay, shrink};

/// Whole clusters of real nodes on simulated time, network and disks, with faults.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs many schedules; fails if something is violated.
    Run {
        /// These, e.g. 0..1000.
        #[arg(long, value_parser = seeds)]
        seeds: Range<u64>,
        /// Of this profile only; else all take turns.
        #[arg(long)]
        profile: Option<String>,
        /// Goes on after a violation.
        #[arg(long)]
        keep_going: bool,
        /// On so many threads.
        #[arg(long, default_value_t = 1)]
        jobs: usize,
    },
    /// Tells one schedule as a story.
    Replay {
        #[command(flatten)]
        edit: Edit,
        /// Everyday business too: entries, transactions.
        #[arg(long)]
        all: bool,
    },
    /// Finds the least of a schedule that violates the same.
    Shrink {
        #[command(flatten)]
        edit: Edit,
    },
    /// Plants mistakes and reports in how many schedules each is found.
    #[cfg(feature = "mutants")]
    Mutants {
        /// Only this one.
        name: Option<String>,
        /// Gives up after so many schedules.
        #[arg(long, default_value_t = 20_000)]
        limit: u64,
        /// Schedules of this profile only.
        #[arg(long)]
        profile: Option<String>,
    },
    /// Runs the schedules that once found a mistake (regressions.txt).
    Regressions,
    /// Lists the profiles.
    Profiles,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let parsed = text.split_once("..").and_then(|(from, to)| {
        let range: Range<u64> = from.parse().ok()?..to.parse().ok()?;
        Some(range)
    });
    parsed.ok_or_else(|| format!("'{text}' is not like 0..1000"))
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run {
            seeds,
            profile,
            keep_going,
            jobs,
        } => Sweep {
            seeds,
            profile,
            keep_going,
            jobs,
        }
        .run(),
        Command::Replay { edit, all } => {
            replay::replay(&edit, all).map(|outcome| outcome.violation.is_none())
        }
        Command::Shrink { edit } => shrink::shrink(edit).and_then(|(edit, violation)| {
            println!("{}: {}", violation.what, violation.text);
            replay::describe(&edit.plan()?);
            println!("simulator replay {}", edit.arguments());
            Ok(false)
        }),
        #[cfg(feature = "mutants")]
        Command::Mutants {
            name,
            limit,
            profile,
        } => {
            let (name, profile) = (name.as_deref(), profile.as_deref());
            Ok(simulator::mutants::hunt_all(limit, name, profile))
        }
        Command::Regressions => regressions::run_all(regressions::LIST),
        Command::Profiles => {
            for profile in simulator::profile::ALL {
                println!("{:12} {} nodes", profile.name, profile.sizes_text());
            }
            Ok(true)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(text) => {
            eprintln!("simulator: {text}");
            ExitCode::from(2)
        }
    }
}
