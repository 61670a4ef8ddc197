//! Why a trial ended early.

use std::io;
use std::path::PathBuf;

use trireme_testbed::cpu_share::CpuShareError;
use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::packages::PackageError;
use trireme_testbed::preload::PreloadError;
use trireme_testbed::sql::SqlError;
use trireme_testbed::verify::VerifyError;
use trireme_testbed::{ClusterError, NodeError};

use super::network::NetworkError;
use crate::frame::LabError;
use crate::oltp::OltpError;

/// Why a trial ended early.
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
    /// What a client had the answer for is not there.
    #[error(
        "of the {acknowledged} inserts that client {client} had acknowledged, the table has {found}"
    )]
    Lost {
        /// The client's number.
        client: usize,
        /// Rows whose commit was acknowledged.
        acknowledged: u64,
        /// Rows found of these.
        found: u64,
    },
    /// A file made trouble.
    #[error("cannot write {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Its part slow has shares of its own.
    #[error("bench latency has no --cpu-per-node; leave it out")]
    NoShares,
    /// The frame's.
    #[error(transparent)]
    Frame(Box<LabError>),
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl LatencyError {
    /// Whether no further trial would fare better, so that the whole run ends.
    pub fn ends_all(&self) -> bool {
        let something_is_missing = matches!(
            self,
            Self::Package(_)
                | Self::Network(_)
                | Self::CpuShare(_)
                | Self::SlowDisk(_)
                | Self::Strace(_)
                | Self::Io { .. }
                | Self::Frame(_)
                | Self::Cluster(ClusterError::Package(_) | ClusterError::Io { .. })
        );
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

/// The error of a trial that the frame has kept.
pub fn of_trial(error: &LabError) -> Option<&LatencyError> {
    match error {
        LabError::Own(own) => own.downcast_ref(),
        _ => None,
    }
}
