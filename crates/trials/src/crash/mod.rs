//! `trireme crash`: servers killed with -9 under load and started again; is everything there that was acknowledged?
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

/// Servers killed with -9 under load and started again: nothing acknowledged may be missing.
///
/// Each schedule takes a fresh cluster of three nodes on this machine, kills one, two or all of them at random instants
/// under a load of list appends and bank transfers, starts them again in random order with their ordinary configuration,
/// waits until all serve again, and compares the tables with what the clients were told. See docs/crash.md.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    /// Number of schedules.
    #[arg(long, default_value_t = 100)]
    pub schedules: usize,
    /// Seed of the first schedule; it fixes those after it [default: a new one].
    #[arg(long, value_parser = parse_seed)]
    pub seed: Option<u64>,
    /// trireme, galera or NAME=PROVIDER_PATH.
    #[arg(long, default_value = "trireme")]
    pub provider: String,
    /// The repl.durability of the cluster [default: os; with --power-loss: disk].
    #[arg(long, value_enum)]
    pub durability: Option<Durability>,
    /// All die at one instant, and their disks lose whatever was not flushed. Needs gcc. With another durability than disk
    /// two of them or all do, and only what a node tells of may be lost.
    #[arg(long)]
    pub power_loss: bool,
    /// Flushes keep nothing from the begin of the load on, which must show as a loss.
    #[arg(long, requires = "power_loss")]
    pub lying_disk: bool,
    /// Time from the start of the last server to the moment when all serve again.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub serve_within_s: u64,
    /// Clients on each node.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub clients: u16,
    /// No kills: the load under three settings, what it shows of stale reads and lost updates, and what current reads cost.
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

    /// So many nodes at least lose power; None: they are only killed.
    fn fewest_without_power(&self) -> Option<usize> {
        let fewest = match self.durability() {
            Durability::Disk => NODES,
            Durability::Os | Durability::Memory => NODES / 2 + 1,
        };
        self.power_loss.then_some(fewest)
    }
}

fn parse_seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "give a number of 64 bits, such as 17 or 0x5eed".to_string())
}

/// Why the run ended early, or failed.
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
    /// No disks that lose anything.
    #[error(transparent)]
    Preload(#[from] PreloadError),
    /// A file made trouble.
    #[error("cannot use {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Promises were broken.
    #[error("{failed} of {all} schedules failed")]
    Failed {
        /// How many.
        failed: usize,
        /// Of how many.
        all: usize,
    },
    /// Promises were broken without a fault.
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
