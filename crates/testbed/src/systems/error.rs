//! Errors of systems: a system is missing, or does not work as it should.

use super::NAMES;
use crate::cluster_error::ClusterError;
use crate::packages::PackageError;
use crate::sql::SqlError;
use crate::verify::VerifyError;

/// The error for an entry of `--systems` that names no available system.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SystemError {
    /// A program or library is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The name is unknown.
    #[error("unknown system {name:?}; give some of {known}, or NAME=PROVIDER_PATH", name = .0, known = NAMES.join(", "))]
    Unknown(String),
    /// The name stands for no known provider.
    #[error("unknown system {0:?}; give trireme, galera, plain or NAME=PROVIDER_PATH")]
    NoProvider(String),
    /// The system is known, but its server is missing; a command of this repository gets it.
    #[error("{name} is not set up here: {source}")]
    OnRequest {
        /// Its name.
        name: String,
        /// The missing package.
        source: PackageError,
    },
    /// The system is known, but cannot be set up.
    #[error(
        "{name} is in none of this machine's package sources, so it cannot be set up; leave it out of --systems"
    )]
    CannotBeHad {
        /// Its name.
        name: String,
    },
}

impl SystemError {
    /// Whether the other systems are measured without it, with a row in the report that says why.
    pub fn leaves_a_row(&self) -> bool {
        matches!(self, Self::OnRequest { .. } | Self::CannotBeHad { .. })
    }
}

/// The reason why a system does not run, or its run does not count.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// An operation on its servers failed.
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
        /// The replica's own reason.
        reason: String,
    },
    /// A server has ended during the load.
    #[error("{node} does not run any more: the run does not count; its log says why")]
    Dead {
        /// The node's name.
        node: String,
    },
    /// A member was lost during the load, and has come back since.
    #[error(
        "{node} is in another view ({now}) than at the start ({before}): a member was lost for a time; the run does not count"
    )]
    ViewChanged {
        /// The node's name.
        node: String,
        /// The number of the view at the start.
        before: String,
        /// The present one.
        now: String,
    },
    /// Commits were not replicated in the way that the system promises.
    #[error(
        "{node}: {commits} commits were acknowledged without a replica; the run does not count"
    )]
    FellBack {
        /// The node's name.
        node: String,
        /// The number of these commits.
        commits: String,
    },
}
