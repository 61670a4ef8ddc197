//! Why the command fails.

use std::io;
use std::path::PathBuf;

use trireme_arbitrator::{ArbitratorError, DirectoryError, LogError};

/// Why there is no arbitrator, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Something is not given.
    #[error("{what} is not given ({how})")]
    Missing {
        /// What.
        what: &'static str,
        /// How it would be.
        how: &'static str,
    },
    /// `--sst` and what goes with it.
    #[error(
        "{0} is not implemented: an arbitrator of Trireme does not ask a node for a dump of its data; take a backup on \
         the node itself (mariadb-backup)"
    )]
    NoDump(&'static str),
    /// The configuration file cannot be read.
    #[error("configuration file '{}': {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line of it makes no sense.
    #[error("configuration file '{}', line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Its log.
    #[error("{0}")]
    Log(#[from] LogError),
    /// Its directory.
    #[error("{0}")]
    Directory(#[from] DirectoryError),
    /// It cannot begin.
    #[error("{0}")]
    Open(#[from] ArbitratorError),
    /// It has begun, and ended with this error, which is in its log.
    #[error("{0}")]
    Ended(#[source] ArbitratorError),
    /// SIGHUP cannot be noticed.
    #[error("no handler for SIGHUP can be installed: {0}")]
    Signal(io::Error),
    /// The process of the daemon.
    #[error("the daemon cannot be started: {0}")]
    Daemon(io::Error),
    /// What the daemon says.
    #[error("{0}")]
    Told(String),
}
