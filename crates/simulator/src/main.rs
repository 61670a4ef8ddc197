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

/// A schedule makes many small allocations, which cost less here than in the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Simulate clusters of real nodes with faults, on simulated time, network and disks
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run many schedules; fail if an invariant is violated
    Run {
        /// The seeds, e.g. 0..1000
        #[arg(long, value_parser = seeds)]
        seeds: Range<u64>,
        /// Run only this profile; without it all profiles take turns
        #[arg(long)]
        profile: Option<String>,
        /// Go on after a violation
        #[arg(long)]
        keep_going: bool,
        /// Number of threads
        #[arg(long, default_value_t = 1)]
        jobs: usize,
        /// Compare everything that leaves each core with the digests in this file; write the file if there is none
        #[arg(long)]
        digest: Option<PathBuf>,
    },
    /// Print the story of one schedule
    Replay {
        #[command(flatten)]
        edit: Edit,
        /// Print everyday events, too: entries, transactions
        #[arg(long)]
        all: bool,
    },
    /// Play schedules written by hand, and print the story of a single one; fail if an invariant is violated or a
    /// situation is not reached
    Directed {
        /// Play only this schedule
        name: Option<String>,
        /// The seed; without a name, play all seeds below this number
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print everyday events, too: entries, transactions
        #[arg(long)]
        all: bool,
        /// As in `run`; only without a name
        #[arg(long)]
        digest: Option<PathBuf>,
        /// Plant this mistake
        #[cfg(feature = "mutants")]
        #[arg(long)]
        mutant: Option<String>,
    },
    /// Find the smallest part of a schedule with the same violation
    Shrink {
        #[command(flatten)]
        edit: Edit,
    },
    /// Plant mistakes and report how many schedules it takes to find each
    #[cfg(feature = "mutants")]
    Mutants {
        /// Plant only this mistake
        name: Option<String>,
        /// Only those for which there is a directed schedule, and play no random ones
        #[arg(long)]
        directed: bool,
        /// Give up after so many random schedules ...
        #[arg(long, default_value_t = 20_000)]
        limit: u64,
        /// ... or after so many if a directed schedule has caught the mistake already
        #[arg(long, default_value_t = 500)]
        limit_caught: u64,
        /// Play random schedules of this profile only
        #[arg(long)]
        profile: Option<String>,
        /// Number of threads
        #[arg(long, default_value_t = 1)]
        jobs: usize,
    },
    /// Run the schedules that once found a mistake (regressions.txt)
    Regressions {
        /// As in `run`
        #[arg(long)]
        digest: Option<PathBuf>,
    },
    /// List the profiles
    Profiles,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let parsed = text.split_once("..").and_then(|(from, to)| {
        let range: Range<u64> = from.parse().ok()?..to.parse().ok()?;
        Some(range)
    });
    parsed.ok_or_else(|| format!("'{text}' is not like 0..1000"))
}

/// Runs schedules; true if nothing was violated and the digests equal those in the file.
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
            directed,
            limit,
            limit_caught,
            profile,
            jobs,
        } => simulator::mutants::Hunt {
            name,
            directed,
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
