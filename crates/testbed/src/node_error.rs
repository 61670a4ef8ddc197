//! Errors of a node, with the telling lines of its log.

use std::io;
use std::path::PathBuf;

use crate::cpu_share::CpuShareError;
use crate::interrupt::Interrupted;
use crate::packages::PackageError;
use crate::sql::SqlError;

/// The reason why an operation on a node failed.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A program is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// An operation on the process or its files failed.
    #[error("{node}: cannot {action}: {source}")]
    Io {
        /// The node's name.
        node: String,
        /// The action that failed.
        action: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The server ended by itself.
    #[error("{node}: the server ended; the end of {log}:\n{tail}", log = log.display())]
    Ended {
        /// The node's name.
        node: String,
        /// The server's log.
        log: PathBuf,
        /// Its telling lines.
        tail: String,
    },
    /// The node did not reach a state in time.
    #[error("{node}: not {what} after {seconds} s; the end of {log}:\n{tail}", log = log.display())]
    Timeout {
        /// The node's name.
        node: String,
        /// The wanted state.
        what: String,
        /// The time that the node had.
        seconds: u64,
        /// The server's log.
        log: PathBuf,
        /// Its telling lines.
        tail: String,
    },
    /// The position of a stopped node could not be found.
    #[error("{node}: mariadbd --wsrep-recover printed no position; the end of its output:\n{tail}")]
    Recover {
        /// The node's name.
        node: String,
        /// The end of the output.
        tail: String,
    },
    /// The node runs but should not, or does not run but should.
    #[error("{node} is {}", if *running { "running already" } else { "not running" })]
    State {
        /// The node's name.
        node: String,
        /// Whether it runs.
        running: bool,
    },
    /// The processor time cannot be limited.
    #[error("{node}: {source}")]
    CpuShare {
        /// The node's name.
        node: String,
        /// The reason, with the remedy.
        source: Box<CpuShareError>,
    },
    /// A statement failed.
    #[error("{node}: {source}")]
    Sql {
        /// The node's name.
        node: String,
        /// The reason.
        source: SqlError,
    },
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Returns the last error lines of a server's log, or its last lines if there are no errors.
pub(crate) fn telling_lines(lines: &[String]) -> String {
    let errors: Vec<&String> = lines.iter().filter(|l| l.contains("[ERROR]")).collect();
    let chosen: Vec<&str> = match errors.as_slice() {
        [] => lines
            .iter()
            .rev()
            .take(8)
            .rev()
            .map(String::as_str)
            .collect(),
        errors => errors
            .iter()
            .rev()
            .take(8)
            .rev()
            .map(|l| l.as_str())
            .collect(),
    };
    if chosen.is_empty() {
        return "  (empty)".to_string();
    }
    chosen
        .iter()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_what_a_log_tells() {
        let lines: Vec<String> = ["a", "2024 [ERROR] mariadbd: port", "b"]
            .iter()
            .map(|l| l.to_string())
            .collect();
        assert_eq!(telling_lines(&lines), "  2024 [ERROR] mariadbd: port");
        assert_eq!(telling_lines(&lines[..1]), "  a");
        assert_eq!(telling_lines(&[]), "  (empty)");
    }
}
