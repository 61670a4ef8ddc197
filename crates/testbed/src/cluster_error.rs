//! Errors of a cluster.

use std::io;
use std::path::{Path, PathBuf};

use crate::datadir::DatadirError;
use crate::interrupt::Interrupted;
use crate::node_error::NodeError;
use crate::packages::PackageError;
use crate::ports::PortError;

/// The reason why an operation on a cluster failed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// An operation on a node failed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A program or library is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// Ports are taken.
    #[error(transparent)]
    Port(#[from] PortError),
    /// There is no data directory.
    #[error(transparent)]
    Datadir(#[from] DatadirError),
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// Its file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no cluster in the directory.
    #[error("no cluster in {}; start one: trireme cluster up --dir {}", .0.display(), .0.display())]
    NotFound(PathBuf),
    /// There is a cluster in the directory already.
    #[error("a cluster lies in {} already; remove it: trireme cluster down --delete --dir {}", .0.display(), .0.display())]
    Exists(PathBuf),
    /// The cluster file is damaged, or of another format.
    #[error("{} is no cluster file of this version ({reason}); remove the directory or choose another --dir", path.display())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The settings cannot work.
    #[error("{0}")]
    Settings(String),
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Makes an error that names the file and has the system's reason.
pub(crate) fn io_error(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> ClusterError {
    let path = path.to_path_buf();
    move |source| ClusterError::Io {
        action,
        path,
        source,
    }
}
