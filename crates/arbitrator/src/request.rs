//! Requests to a running arbitrator.

/// A request to the process; as a rule a signal brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Leave the cluster, and end.
    Stop,
    /// Read the certificate files or the secret again. Existing links stay.
    Reload,
}
