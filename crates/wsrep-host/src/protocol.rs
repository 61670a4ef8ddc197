//! Input and output of the process: one JSON value per line. [`Command`] comes in, [`Reply`] goes out.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::sequence::Digest;

/// A command to the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Load a library and tell its name and version: [`Reply::Identity`].
    Probe(PathBuf),
    /// Join a cluster, once: [`Reply::Ready`].
    Start(Start),
    /// Clear the sequence of write-sets: [`Reply::Begun`]. Nobody commits meanwhile.
    Begin,
    /// Commit write-sets: [`Reply::Loaded`].
    Load(LoadPlan),
    /// Wait until everything up to this seqno has committed here: [`Reply::Settled`].
    Settle(i64),
    /// Leave the cluster and end: [`Reply::Left`].
    Leave,
}

/// The settings of a node's start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The provider; `None`: the stand-in that answers at once.
    pub library: Option<PathBuf>,
    /// Name of the node.
    pub name: String,
    /// Its address, with a port.
    pub address: String,
    /// Addresses of nodes to join; if empty, the node founds the cluster.
    pub peers: Vec<String>,
    /// Directory for the provider's files.
    pub data_dir: PathBuf,
    /// Provider options.
    pub options: String,
    /// Number of applier threads.
    pub appliers: usize,
}

/// A load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// Clients that commit one write-set after the other.
    pub clients: u64,
    /// Number of the first client. Client numbers differ between all nodes.
    pub first_client: u64,
    /// Time of load that is not counted, in milliseconds.
    pub warmup_ms: u64,
    /// Time of load that is counted, in milliseconds.
    pub measured_ms: u64,
    /// Percentage of write-sets with a key that all nodes use.
    pub hot_percent: f64,
    /// Size of the payload that the other nodes apply, in bytes.
    pub payload_bytes: usize,
    /// Time between two write-sets of a client, in microseconds; `None`: no pause.
    pub interval_us: Option<u64>,
}

/// The result of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Write-sets committed within the measured time.
    pub write_sets: u64,
    /// Write-sets that lost a conflict within the measured time.
    pub conflicts: u64,
    /// Latency from the first `append_key` of a write-set (or from the moment when it was due) until `release` has
    /// returned: buckets of an HdrHistogram, in nanoseconds, with their counts.
    pub latency_ns: Vec<(u64, u64)>,
    /// Write-sets committed in each second.
    pub per_second: Vec<u64>,
    /// User and system time of this process within the measured time.
    pub cpu_us: u64,
    /// Times that a thread of this process gave up its processor to wait.
    pub voluntary_switches: u64,
    /// The last seqno that has passed commit order here. No write-set of this node's clients has a later one.
    pub last_seqno: i64,
}

/// A reply of the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The library's name and version.
    Identity {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// The node is in step with its group.
    Ready,
    /// The sequence was cleared.
    Begun,
    /// The load has ended.
    Loaded(LoadResult),
    /// The digest of the write-sets that have committed since [`Command::Begin`].
    Settled(Digest),
    /// The node has left.
    Left,
    /// The command failed.
    Failed {
        /// The reason: one line.
        reason: String,
    },
}
