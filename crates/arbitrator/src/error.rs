//! Errors that end an arbitrator.

use trireme_engine::StartError;
use trireme_node::options::OptionError;
use trireme_node::setup::SetupError;
use trireme_node::url::AddressError;

/// The reason why an arbitrator cannot start, or must stop.
#[derive(Debug, thiserror::Error)]
pub enum ArbitratorError {
    /// The address names no nodes.
    #[error(
        "'{0}' names no node: an arbitrator has no database to found a cluster with; give the addresses of the nodes, \
         as in gcomm://192.0.2.1,192.0.2.2"
    )]
    NobodyNamed(String),
    /// The address is malformed.
    #[error("the cluster address '{address}' is not usable: {source}")]
    Address {
        /// The given address.
        address: String,
        /// The reason.
        source: AddressError,
    },
    /// A bad option, in the option string or in the address.
    #[error("{0} (see --options and the cluster address)")]
    Option(#[from] OptionError),
    /// `base_dir` is set in the options.
    #[error(
        "base_dir in --options is refused: an arbitrator keeps its promises beside the lock of its directory; give that \
         directory by --dir instead"
    )]
    BaseDir,
    /// A socket or a file failed.
    #[error("{0}")]
    Setup(#[from] SetupError),
    /// The log of an earlier process cannot be used.
    #[error("{0}")]
    Start(#[from] StartError),
    /// No primary component was found in time.
    #[error(
        "no primary component within {timeout_ms} ms (pc.wait_prim_timeout) at {peers}: check that a node of the \
         cluster runs there, and the cluster's name"
    )]
    NoPrimary {
        /// The time limit.
        timeout_ms: u64,
        /// The addresses that were tried.
        peers: String,
    },
    /// The cluster refuses it, for example because the cluster UUID differs.
    #[error(
        "the cluster refuses this arbitrator: {0}. If its directory holds the log of another cluster, or of a past \
         that was left, give it an empty one (--dir)"
    )]
    Refused(String),
    /// It left the cluster, although nobody asked it to.
    #[error("the cluster has let this arbitrator go")]
    LetGo,
    /// At run time the log, or a note beside it, cannot be written.
    #[error("{0}")]
    Disk(String),
    /// Another failure at run time.
    #[error("{0}")]
    Failed(String),
}
