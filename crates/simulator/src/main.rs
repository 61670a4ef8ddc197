//! The simulator's command line.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use simulator::digest::Digests;
use simulator::edit::Edit;
use simulator::sweep::Sweep;
use simulator::{directed, regressions, replay, shrink};

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
        /// Compares what leaves each core with the digests in this file; if there is none, writes it.
        #[arg(long)]
        digest: Option<PathBuf>,
    },
    /// Tells one schedule as a story.
    Replay {
        #[command(flatten)]
        edit: Edit,
        /// Everyday business too: entries, transactions.
        #[arg(long)]
        all: bool,
    },
    /// Plays schedules written by hand, as a story if it is one; fails if something is violated or a
    /// situation is not reached.
    Directed {
        /// Only this one.
        name: Option<String>,
        /// With this seed; without a name, with all seeds below it.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Everyday business too: entries, transactions.
        #[arg(long)]
        all: bool,
        /// As in `run`; without a name.
        #[arg(long)]
        digest: Option<PathBuf>,
        /// With this mistake planted.
        #[cfg(feature = "mutants")]
        #[arg(long)]
        mutant: Option<String>,
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
        /// Gives up after so many random schedules ...
        #[arg(long, default_value_t = 20_000)]
        limit: u64,
        /// ... and after so many if a directed one has caught it already.
        #[arg(long, default_value_t = 500)]
        limit_caught: u64,
        /// Random schedules of this profile only.
        #[arg(long)]
        profile: Option<String>,
        /// On so many threads.
        #[arg(long, default_value_t = 1)]
        jobs: usize,
    },
    /// Runs the schedules that once found a mistake (regressions.txt).
    Regressions {
        /// As in `run`.
        #[arg(long)]
        digest: Option<PathBuf>,
    },
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

/// Runs schedules; true if all went well, and their digests are those in the file.
fn compared(
    file: Option<PathBuf>,
    run: impl FnOnce(Option<&Digests>) -> Result<bool, String>,
) -> Result<bool, String> {
    let digests = file.as_deref().map(Digests::new);
    let clean = run(digests.as_ref())?;
    Ok(digests.map_or(Ok(true), Digests::end)? && clean)
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run {
            seeds,
            profile,
            keep_going,
            jobs,
            digest,
        } => compared(digest, |digests| {
            let sweep = Sweep {
                seeds,
                profile,
                keep_going,
                jobs,
            };
            sweep.run(digests)
        }),
        Command::Replay { edit, all } => {
            replay::replay(&edit, all).map(|outcome| outcome.violation.is_none())
        }
        Command::Directed {
            name,
            seed,
            all,
            digest,
            #[cfg(feature = "mutants")]
            mutant,
        } => {
            #[cfg(feature = "mutants")]
            let planted = simulator::mutants::plant(mutant.as_deref());
            #[cfg(not(feature = "mutants"))]
            let planted = Ok(());
            planted.and_then(|()| match name {
                Some(name) => replay::replay_directed(&name, seed, all),
                None => compared(digest, |digests| Ok(directed::play_all(seed, digests))),
            })
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
            limit_caught,
            profile,
            jobs,
        } => simulator::mutants::Hunt {
            name,
            limit,
            limit_caught,
            profile,
            jobs,
        }
        .run(),
        Command::Regressions { digest } => compared(digest, |digests| {
            regressions::run_all(regressions::LIST, digests)
        }),
        Command::Profiles => {
            for profile in simulator::profiles::all() {
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
