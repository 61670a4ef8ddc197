//! What goes in and out of the process: one JSON value per line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::sequence::Digest;

/// What the process is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Load a library and say what it is: [`Reply::Identity`].
    Probe(PathBuf),
    /// Join a cluster, once: [`Reply::Ready`].
    Start(Start),
    /// Forget the sequence of write-sets so far: [`Reply::Begun`]. Nobody commits meanwhile.
    Begin,
    /// Commit write-sets: [`Reply::Loaded`].
    Load(LoadPlan),
    /// Wait until everything up to this seqno has committed here: [`Reply::Settled`].
    Settle(i64),
    /// Leave the cluster and end: [`Reply::Left`].
    Leave,
}

/// How a node is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The provider; none for the stand-in that answers at once.
    pub library: Option<PathBuf>,
    /// Name of the node.
    pub name: String,
    /// Its address, with a port.
    pub address: String,
    /// Addresses of nodes to join; without any it founds the cluster.
    pub peers: Vec<String>,
    /// Directory for the provider's files.
    pub data_dir: PathBuf,
    /// Provider options.
    pub options: String,
    /// Threads that apply.
    pub appliers: usize,
}

/// A load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// Clients that commit one write-set after the other.
    pub clients: u64,
    /// Number of the first one; those of all nodes differ.
    pub first_client: u64,
    /// Load that is not counted.
    pub warmup_ms: u64,
    /// Load that is.
    pub measured_ms: u64,
    /// Write-sets out of a hundred that take a key which all nodes use.
    pub hot_percent: f64,
    /// Size of what others apply.
    pub payload_bytes: usize,
    /// Time from one write-set of a client to its next; none: at once.
    pub interval_us: Option<u64>,
}

/// What a load gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Write-sets committed within the measured time.
    pub write_sets: u64,
    /// Write-sets that lost against another one within that time.
    pub conflicts: u64,
    /// From the first `append_key` of a write-set (or when it was due) until `release` has returned: buckets of an
    /// HdrHistogram, in nanoseconds, with their counts.
    pub latency_ns: Vec<(u64, u64)>,
    /// Write-sets committed in each second.
    pub per_second: Vec<u64>,
    /// User and system time of this process within the measured time.
    pub cpu_us: u64,
    /// Times that a thread of this process gave up its processor to wait.
    pub voluntary_switches: u64,
    /// The last seqno that has passed commit order here: none of this node's clients got a later one.
    pub last_seqno: i64,
}

/// What the process answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// What the library says of itself.
    Identity {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// The node is in step with its group.
    Ready,
    /// The sequence is empty.
    Begun,
    /// The load has ended.
    Loaded(LoadResult),
    /// What has committed since [`Command::Begin`].
    Settled(Digest),
    /// The node has left.
    Left,
    /// It could not be done.
    Failed {
        /// Why: one line.
        reason: String,
    },
}
