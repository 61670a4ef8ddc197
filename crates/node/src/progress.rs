//! How far a connection has come.

use std::time::Duration;

/// A leave that the cluster does not answer is given up after this time (MariaDB's suites kill a
/// server that takes more than 10 s to stop).
pub const LEAVE_PATIENCE: Duration = Duration::from_secs(2);

/// How far joining or leaving has come.
#[derive(Debug, Default)]
pub struct Progress {
    /// In a view.
    pub admitted: bool,
    /// The cluster will not have this node, and why.
    pub refused: Option<String>,
    /// The node has left, and its server, if it has one, was told so.
    pub closed: bool,
    /// The node cannot go on, and why.
    pub failed: Option<String>,
}
