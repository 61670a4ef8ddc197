//! What can go wrong with a system: it is not there, or it does not do what it should.

use super::NAMES;
use crate::cluster_error::ClusterError;
use crate::packages::PackageError;
use crate::sql::SqlError;
use crate::verify::VerifyError;

/// A `--systems` entry that names no system at hand.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SystemError {
    /// A program or library is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// Not a name that we know.
    #[error("unknown system {name:?}; give some of {known}, or NAME=PROVIDER_PATH", name = .0, known = NAMES.join(", "))]
    Unknown(String),
    /// Not a provider that we know.
    #[error("unknown system {0:?}; give trireme, galera, plain or NAME=PROVIDER_PATH")]
    NoProvider(String),
    /// We know it, but its server is not here; a command of this repository gets it.
    #[error("{name} is not set up here: {source}")]
    OnRequest {
        /// Its name.
        name: String,
        /// What is missing.
        source: PackageError,
    },
    /// We know it, but cannot set it up.
    #[error(
        "{name} is in none of this machine's package sources, so it cannot be set up; leave it out of --systems"
    )]
    CannotBeHad {
        /// Its name.
        name: String,
    },
}

impl SystemError {
    /// Whether others are measured without the system, and a row of the report says why.
    pub fn leaves_a_row(&self) -> bool {
        matches!(self, Self::OnRequest { .. } | Self::CannotBeHad { .. })
    }
}

/// Why a system does not run, or may not count.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// Its servers made trouble.
    #[error(transparent)]
    Cluster(Box<ClusterError>),
    /// A statement failed.
    #[error("{node}: {source}")]
    Sql {
        /// The node's name.
        node: String,
        /// The reason.
        source: SqlError,
    },
    /// The nodes do not hold the same rows.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// A replica does not replicate.
    #[error("{node} does not replicate: {reason}")]
    Replica {
        /// The node's name.
        node: String,
        /// What it says.
        reason: String,
    },
    /// Commits were not replicated in the way that the system stands for.
    #[error(
        "{node}: {commits} commits were acknowledged without a replica; the run does not count"
    )]
    FellBack {
        /// The node's name.
        node: String,
        /// How many.
        commits: String,
    },
}
