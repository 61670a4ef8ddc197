//! Errors of the command.

use std::io;
use std::path::PathBuf;

use trireme_arbitrator::{ArbitratorError, DirectoryError, LogError};

/// The exit status after a failure of the log's disk: EX_IOERR of sysexits.h.
const DISK_FAILED: u8 = 74;

/// The reason why the arbitrator does not start, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A required setting is missing.
    #[error("{what} is not given ({how})")]
    Missing {
        /// The setting.
        what: &'static str,
        /// The way to give it.
        how: &'static str,
    },
    /// `--sst` or one of its companions was given.
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
        /// The reason.
        source: io::Error,
    },
    /// A line of the configuration file makes no sense.
    #[error("configuration file '{}', line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The fault of the line.
        reason: String,
    },
    /// The log cannot be opened.
    #[error("{0}")]
    Log(#[from] LogError),
    /// The directory cannot be used.
    #[error("{0}")]
    Directory(#[from] DirectoryError),
    /// The arbitrator cannot start.
    #[error("{0}")]
    Open(#[from] ArbitratorError),
    /// The arbitrator started and has ended with this error, which is in its log.
    #[error("{0}")]
    Ended(#[source] ArbitratorError),
    /// The handler for SIGHUP cannot be installed.
    #[error("no handler for SIGHUP can be installed: {0}")]
    Signal(io::Error),
    /// The background process cannot be started.
    #[error("the daemon cannot be started: {0}")]
    Daemon(io::Error),
    /// The background process has reported this error.
    #[error("{0}")]
    Told(String),
}

impl CommandError {
    /// Returns the exit status. A failed disk has its own: a service that started the arbitrator again at once would
    /// only make it join and leave, again and again.
    pub fn exit_status(&self) -> u8 {
        match self {
            CommandError::Ended(ArbitratorError::Disk(_)) => DISK_FAILED,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_does_not_start_an_arbitrator_again_whose_disk_failed() {
        let ended = |error| CommandError::Ended(error).exit_status();
        let status = ended(ArbitratorError::Disk("no room".into()));
        assert_ne!(status, ended(ArbitratorError::LetGo));
        let unit = include_str!("../../../../packaging/debian/trireme-arbitrator.service");
        let line = format!("RestartPreventExitStatus={status}");
        assert!(unit.lines().any(|of_unit| of_unit == line), "{line}");
    }
}
