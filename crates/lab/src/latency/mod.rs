//! `trireme bench latency`: how long commits take, and for how long none come, when a member is lost, far or slow.
//!
//! Every trial runs on a fresh cluster; those of the systems take turns (A B A B ...), so that a slow minute of the machine
//! hits all of them.

mod away;
mod distance;
mod durability;
mod failover;
mod fault;
mod figures;
mod large;
mod load;
mod namespace;
mod network;
mod report;
mod router;
mod run;
mod site;
mod slow;
mod slow_disk;
mod strace;
mod trace;
mod windows;

use std::io;
use std::path::PathBuf;

use clap::ValueEnum;

use super::oltp::OltpError;
use failover::Victim;
use fault::Fault;
use network::NetworkError;
pub use run::run;
use trireme_testbed::ClusterError;
use trireme_testbed::NodeError;
use trireme_testbed::cpu_share::CpuShareError;
use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::packages::PackageError;
use trireme_testbed::preload::PreloadError;
use trireme_testbed::sql::SqlError;
use trireme_testbed::systems::SystemError;
use trireme_testbed::verify::VerifyError;

/// A part of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Longest gap in the commits of two nodes when something happens to the third. Needs root.
    Failover,
    /// Commit latency with the third of three nodes 100 ms (round trip) away. Needs root.
    Far,
    /// Commit latency in three regions, 40 ms (round trip) apart. Needs root.
    Regions,
    /// Two nodes at half of their maximum beside one with a tenth of a CPU or a slow disk. Needs root, and cc.
    Slow,
    /// A node that was away for a minute comes back under load.
    Away,
    /// Commits on stable storage before they are acknowledged: what they cost (sysbench). Needs sysbench.
    Durability,
    /// Whether they are there before: flushes seen by strace. Needs strace, and the right to trace: root.
    Trace,
    /// Conflicts per commit of four nodes on 10,000 rows (sysbench oltp_read_write). Needs sysbench.
    Windows,
    /// Small commits beside one large transaction.
    Large,
}

/// Lost, far, slow and returning members: longest gap in the commits, commit latency, conflicts; what durability costs.
///
/// Each node of the parts failover, far and regions runs in a network namespace of its own; this program carries the
/// packets between them, late or not at all. The namespaces have no names and vanish with the processes in them. A full run
/// of ten trials takes about seven hours; choose with --part, --faults and --victims.
///
/// Table and CSV name the limits of the project's goals; "gap" is the longest time between two commits of one client, the
/// worse of the two clients; "both silent" is the longest without a commit of either.
#[derive(Debug, Clone, clap::Args)]
pub struct Plan {
    /// Which parts.
    #[arg(
        long = "part",
        value_enum,
        value_delimiter = ',',
        default_value = "failover,far,regions,slow,away,durability,trace,windows,large"
    )]
    pub parts: Vec<Part>,
    /// What to compare: trireme, galera or NAME=PROVIDER_PATH.
    #[arg(long, value_delimiter = ',', default_value = "trireme,galera")]
    pub systems: Vec<String>,
    /// Trials of each system in each case.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub trials: u16,
    /// Faults of part failover.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "kill,pause,cut,lock,backup"
    )]
    pub faults: Vec<Fault>,
    /// Whom the fault or the slowness strikes, or who commits the large transaction; Galera has no sequencer and runs only the first of these.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "other,sequencer"
    )]
    pub victims: Vec<Victim>,
    /// Length of the measured stretches of the parts far, regions, slow, away (usual), durability, trace and windows.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// For how long the node of part away is away.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub away_seconds: u64,
    /// Sizes of the large transaction of part large, in MiB.
    #[arg(long, value_delimiter = ',', default_value = "1024", value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub large_mib: Vec<u32>,
    /// Provider option NAME=VALUE set on the sequencer before part failover strikes it, to keep the office there.
    #[arg(long, value_name = "OPTION")]
    pub office_option: Option<String>,
    /// Write each figure to this CSV file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// The provider called trireme [default: libtrireme.so beside this program].
    #[arg(long, value_name = "PATH")]
    pub provider: Option<PathBuf>,
}

/// Why the experiment, or a trial, ended early.
#[derive(Debug, thiserror::Error)]
pub enum LatencyError {
    /// A cluster did not do what it should.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A node did not do what it should.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A statement failed.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// No such system.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A program is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// No network of our own.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// No slow processor.
    #[error(transparent)]
    CpuShare(#[from] CpuShareError),
    /// No slow disk.
    #[error(transparent)]
    SlowDisk(#[from] PreloadError),
    /// sysbench's part failed.
    #[error(transparent)]
    Sysbench(#[from] OltpError),
    /// mariabackup failed.
    #[error("mariabackup failed: {0}")]
    Backup(String),
    /// Nodes differ at the end.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// A server cannot be traced.
    #[error(
        "strace cannot follow a server ({0}); needs root: sudo trireme bench latency --part trace"
    )]
    Strace(String),
    /// A client had nothing committed.
    #[error("no commits on node{0}")]
    NoCommits(usize),
    /// A file made trouble.
    #[error("cannot write {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another invocation is at work.
    #[error("another `trireme bench latency` runs (it holds {}); wait for it, or set TMPDIR to another directory", .0.display())]
    Busy(PathBuf),
    /// Some trials gave nothing.
    #[error("{failed} of {all} trials failed; they are left out of the figures")]
    Failed {
        /// How many.
        failed: usize,
        /// Of how many.
        all: usize,
    },
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl LatencyError {
    /// Whether no further trial would fare better, so that the whole run ends.
    fn ends_all(&self) -> bool {
        let something_is_missing = matches!(
            self,
            Self::Package(_)
                | Self::Network(_)
                | Self::CpuShare(_)
                | Self::SlowDisk(_)
                | Self::Strace(_)
                | Self::Io { .. }
                | Self::Cluster(ClusterError::Package(_) | ClusterError::Io { .. })
        );
        something_is_missing || interrupt::check().is_err()
    }
}
