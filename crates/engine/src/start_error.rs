//! Why a connection cannot begin.

use trireme_log::LogError;

/// Why [`crate::Engine::connect`] did not begin a connection.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log cannot be opened or made.
    #[error("the write-set log cannot be used: {0}")]
    Log(#[from] LogError),
    /// The operator's order to bootstrap would be an override, and the history takes no more of them (rule 11).
    #[error("{}", trireme_group::tell_no_more_overrides())]
    NoMoreOverrides,
}
