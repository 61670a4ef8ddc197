//! What an arbitrator is asked while it runs.

/// What its process has been told, by a signal as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Take leave of the cluster, and end.
    Stop,
    /// Read the files of certificates, or of the secret, again; links that stand stay.
    Reload,
}
