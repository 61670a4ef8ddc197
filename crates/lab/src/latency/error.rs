//! Errors that end a trial early.

use std::io;
use std::path::PathBuf;

use trireme_testbed::cpu_share::CpuShareError;
use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::network::NetworkError;
use trireme_testbed::packages::PackageError;
use trireme_testbed::preload::PreloadError;
use trireme_testbed::sql::SqlError;
use trireme_testbed::sysbench::SysbenchError;
use trireme_testbed::verify::VerifyError;
use trireme_testbed::{ClusterError, NodeError};

use crate::frame::LabError;
use crate::oltp::OltpError;

/// The reason why a trial ended early.
#[derive(Debug, thiserror::Error)]
pub enum LatencyError {
    /// A cluster did not work as it should.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A node did not work as it should.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A statement failed.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A program is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The private network cannot be made.
    #[error("{0}; or leave these parts out: --part windows")]
    Network(#[from] NetworkError),
    /// The processor cannot be limited.
    #[error(transparent)]
    CpuShare(#[from] CpuShareError),
    /// The disk cannot be made slow.
    #[error(transparent)]
    SlowDisk(#[from] PreloadError),
    /// sysbench failed.
    #[error(transparent)]
    Sysbench(#[from] OltpError),
    /// mariabackup failed.
    #[error("mariabackup failed: {0}")]
    Backup(String),
    /// The nodes differ at the end.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// A server cannot be traced.
    #[error(
        "strace cannot follow a server ({0}); needs root: sudo trireme bench latency --part trace"
    )]
    Strace(String),
    /// A client committed nothing.
    #[error("no commits on node{0}")]
    NoCommits(usize),
    /// An acknowledged insert is missing.
    #[error(
        "of the {acknowledged} inserts that client {client} had acknowledged, the table has {found}"
    )]
    Lost {
        /// The client's number.
        client: usize,
        /// The rows that were acknowledged.
        acknowledged: u64,
        /// The number of these rows in the table.
        found: u64,
    },
    /// A file operation failed.
    #[error("cannot write {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// `--cpu-per-node` was given, but part slow sets shares itself.
    #[error("bench latency has no --cpu-per-node; leave it out")]
    NoShares,
    /// An error of the frame.
    #[error(transparent)]
    Frame(Box<LabError>),
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl LatencyError {
    /// Whether every further trial would fail in the same way, so that the whole run ends.
    pub fn ends_all(&self) -> bool {
        let something_is_missing = match self {
            Self::Package(_)
            | Self::Network(_)
            | Self::CpuShare(_)
            | Self::SlowDisk(_)
            | Self::Strace(_)
            | Self::Io { .. }
            | Self::Frame(_) => true,
            Self::Cluster(error) | Self::Sysbench(OltpError::Cluster(error)) => {
                matches!(error, ClusterError::Package(_) | ClusterError::Io { .. })
            }
            Self::Sysbench(OltpError::Sysbench(error)) => {
                matches!(error, SysbenchError::Package(_) | SysbenchError::Io(_))
            }
            _ => false,
        };
        something_is_missing || interrupt::check().is_err()
    }
}

impl From<LabError> for LatencyError {
    fn from(error: LabError) -> Self {
        Self::Frame(Box::new(error))
    }
}

impl From<LatencyError> for LabError {
    fn from(error: LatencyError) -> Self {
        match error {
            LatencyError::Frame(error) => *error,
            LatencyError::Interrupted(interrupted) => interrupted.into(),
            error => Self::Own(Box::new(error)),
        }
    }
}

/// The error of a trial, if the frame holds one.
pub fn of_trial(error: &LabError) -> Option<&LatencyError> {
    match error {
        LabError::Own(own) => own.downcast_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_sysbench_ends_the_run_and_a_failed_load_only_its_trial() {
        let missing = PackageError::Program {
            program: "sysbench",
            package: "sysbench",
        };
        let failed = SysbenchError::Failed {
            node: "node1".to_string(),
            reason: String::new(),
        };
        for (error, ends_all) in [(missing.into(), true), (failed, false)] {
            let error = LatencyError::from(OltpError::from(error));
            assert_eq!(error.ends_all(), ends_all, "{error}");
        }
    }
}
