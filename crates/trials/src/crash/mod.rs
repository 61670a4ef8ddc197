//! `trireme crash`: kills servers with -9 under load, starts them again, and checks that every acknowledged commit
//! exists.
//!
//! `docs/crash.md` describes schedules, load and checks.

mod checker;
mod client;
mod durability;
mod history;
mod isolation;
mod journal;
mod load;
mod losses;
mod no_faults;
mod operator;
mod power_loss;
mod random;
mod run;
mod schedule;
mod serving;
mod stage;
mod summary;
mod trial;
mod violation;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use durability::Durability;
pub use run::run;
use schedule::NODES;
use trireme_testbed::ClusterError;
use trireme_testbed::NodeError;
use trireme_testbed::interrupt::Interrupted;
use trireme_testbed::preload::PreloadError;
use trireme_testbed::sql::SqlError;
use trireme_testbed::systems::SystemError;
use trireme_testbed::verify::VerifyError;

/// Kill servers with -9 under load and start them again: no acknowledged commit may be missing
///
/// Each schedule takes a fresh cluster of three nodes on this machine. It kills one, two or all of them at random
/// instants under a load of list appends and bank transfers, and starts them again in random order with their
/// ordinary configuration. It waits until all serve again, and compares the tables with the answers that the clients
/// got. See docs/crash.md.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    /// Number of schedules.
    #[arg(long, default_value_t = 100, value_parser = parse_schedules)]
    pub schedules: usize,
    /// Seed of the first schedule; it fixes the seeds of the others [default: a new one].
    #[arg(long, value_parser = parse_seed)]
    pub seed: Option<u64>,
    /// trireme, galera or NAME=PROVIDER_PATH.
    #[arg(long, default_value = "trireme")]
    pub provider: String,
    /// The repl.durability of the cluster [default: os; with --power-loss: disk].
    #[arg(long, value_enum)]
    pub durability: Option<Durability>,
    /// Kill the nodes at one instant; their disks lose all unflushed writes. Needs gcc. With a durability other than
    /// disk, two or all nodes die, and only commits that a node reports as lost may be missing.
    #[arg(long)]
    pub power_loss: bool,
    /// Flushes keep nothing from the start of the load on; the run must report a loss.
    #[arg(long, requires = "power_loss")]
    pub lying_disk: bool,
    /// Time limit from the start of the last server until all nodes serve again.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub serve_within_s: u64,
    /// Clients on each node.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub clients: u16,
    /// No kills: run the load under three settings, and report stale reads, lost updates and the cost of current
    /// reads.
    #[arg(long, conflicts_with_all = ["power_loss", "schedules"])]
    pub no_faults: bool,
    /// Length of each of the three runs of --no-faults.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Keep the directories of all schedules, not only of those that failed.
    #[arg(long)]
    pub keep: bool,
}

impl Plan {
    /// The durability in force.
    fn durability(&self) -> Durability {
        self.durability.unwrap_or(if self.power_loss {
            Durability::Disk
        } else {
            Durability::Os
        })
    }

    /// The least number of nodes that lose power; None: the nodes are only killed.
    fn fewest_without_power(&self) -> Option<usize> {
        let fewest = match self.durability() {
            Durability::Disk => NODES,
            Durability::Os | Durability::Memory => NODES / 2 + 1,
        };
        self.power_loss.then_some(fewest)
    }
}

/// None at all would pass without a trial.
fn parse_schedules(text: &str) -> Result<usize, String> {
    let parsed = text.parse::<NonZeroUsize>();
    parsed
        .map(NonZeroUsize::get)
        .map_err(|_| "give a number from 1 on".to_string())
}

fn parse_seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "give a number of 64 bits, such as 17 or 0x5eed".to_string())
}

/// The reason why the run ended early or failed.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// A cluster did not do what it should.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A node did not do what it should.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A statement failed.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The nodes could not be compared.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// No such system.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The library that simulates disks could not be loaded.
    #[error(transparent)]
    Preload(#[from] PreloadError),
    /// A file could not be used.
    #[error("cannot use {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another invocation is running.
    #[error("another `trireme crash` runs (it holds {}); wait for it, since this one would kill its servers", .0.display())]
    Busy(PathBuf),
    /// Schedules broke a promise.
    #[error("{failed} of {all} schedules failed")]
    Failed {
        /// Number of failed schedules.
        failed: usize,
        /// Number of all schedules.
        all: usize,
    },
    /// Settings broke a promise without a fault.
    #[error("{0} settings did not show what they promise")]
    Settings(usize),
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Turns the system's reason into an error that names the file.
fn io_error(path: &std::path::Path) -> impl FnOnce(io::Error) -> CrashError {
    let path = path.to_path_buf();
    move |source| CrashError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_schedule() {
        assert_eq!(parse_schedules("1"), Ok(1));
        assert!(parse_schedules("0").is_err());
    }
}
