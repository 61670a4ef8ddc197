//! Why an arbitrator ends.

use trireme_engine::StartError;
use trireme_node::options::OptionError;
use trireme_node::setup::SetupError;
use trireme_node::url::AddressError;

/// Why it cannot begin, or go on.
#[derive(Debug, thiserror::Error)]
pub enum ArbitratorError {
    /// No nodes are named.
    #[error(
        "'{0}' names no node: an arbitrator has no database to found a cluster with; give the addresses of the nodes, \
         as in gcomm://192.0.2.1,192.0.2.2"
    )]
    NobodyNamed(String),
    /// The address is malformed.
    #[error("the cluster address '{address}' is not usable: {source}")]
    Address {
        /// What was given.
        address: String,
        /// Why.
        source: AddressError,
    },
    /// An option, by itself or in the address.
    #[error("{0} (see --options and the cluster address)")]
    Option(#[from] OptionError),
    /// Sockets, files.
    #[error("{0}")]
    Setup(#[from] SetupError),
    /// The log of an earlier process.
    #[error("{0}")]
    Start(#[from] StartError),
    /// Nobody answers.
    #[error(
        "no primary component within {timeout_ms} ms (pc.wait_prim_timeout) at {peers}: check that a node of the \
         cluster runs there, and the cluster's name"
    )]
    NoPrimary {
        /// So long.
        timeout_ms: u64,
        /// Who was asked.
        peers: String,
    },
    /// The cluster has another history, say.
    #[error(
        "the cluster refuses this arbitrator: {0}. If its directory holds the log of another cluster, or of a past \
         that was left, give it an empty one (--dir)"
    )]
    Refused(String),
    /// It has left though nobody asked it to.
    #[error("the cluster has let this arbitrator go")]
    LetGo,
    /// The disk, mostly.
    #[error("{0}")]
    Failed(String),
}
