//! The figures of a node for `SHOW STATUS LIKE 'wsrep%'` (server-contract-reference.md#status-variables).

use std::fmt;

use trireme_certification::Seqno;
use trireme_group::Uuid;

use crate::executor::ConflictCounts;
use crate::state_transfer::Progress;

/// `wsrep_local_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum LocalState {
    /// Not in a primary component.
    Initialized = 0,
    /// Getting its state.
    Joiner = 1,
    /// Sending its state, or desynced by the user.
    Donor = 2,
    /// Has its state, catches up.
    Joined = 3,
    /// Caught up.
    Synced = 4,
    /// Diverged; left.
    Inconsistent = 5,
}

/// Galera's names in the log: operators and tools look for these words.
impl fmt::Display for LocalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LocalState::Initialized => "OPEN",
            LocalState::Joiner => "JOINER",
            LocalState::Donor => "DONOR/DESYNCED",
            LocalState::Joined => "JOINED",
            LocalState::Synced => "SYNCED",
            LocalState::Inconsistent => "INCONSISTENT",
        })
    }
}

/// The next thing that a node waits for, after the group has admitted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeWait {
    /// The control state, from another member.
    Admission,
    /// A member that gives its database.
    Donor,
    /// The database of another member.
    StateTransfer {
        /// Name of the donor, if known.
        donor: Option<String>,
    },
    /// The script before the write-sets that it missed.
    Script {
        /// Name of the donor, if one was chosen.
        donor: Option<String>,
    },
    /// The write-sets that it missed.
    IncrementalTransfer,
    /// The write-sets that were ordered meanwhile.
    CatchUp,
}

/// A queue's length over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueLength {
    /// Now.
    pub now: u64,
    /// Greatest since the last reset.
    pub max: u64,
    /// Least since the last reset.
    pub min: u64,
    /// Average, taken at every insertion, since the last reset.
    pub avg: f64,
}

/// The node's counters at one moment, in the order of the server's list.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // each field is the status variable of the same name
pub struct Status {
    /// Nil before the first view.
    pub local_state_uuid: Uuid,
    /// -1 before the first view.
    pub protocol_application: i64,
    pub last_committed: Seqno,
    pub replicated: u64,
    pub replicated_bytes: u64,
    pub repl_keys: u64,
    pub repl_keys_bytes: u64,
    pub repl_data_bytes: u64,
    pub repl_other_bytes: u64,
    pub received: u64,
    pub received_bytes: u64,
    pub local_commits: u64,
    pub local_cert_failures: u64,
    pub local_replays: u64,
    pub local_send_queue: QueueLength,
    pub local_recv_queue: QueueLength,
    pub local_cached_downto: Seqno,
    pub flow_control_paused_ns: u64,
    /// Fraction of the time since the last reset.
    pub flow_control_paused: f64,
    pub flow_control_sent: u64,
    pub flow_control_recv: u64,
    /// True while this node's writers wait.
    pub flow_control_active: bool,
    /// True while this node requests that the others wait.
    pub flow_control_requested: bool,
    pub cert_deps_distance: f64,
    pub apply_oooe: f64,
    pub apply_oool: f64,
    pub apply_window: f64,
    pub apply_waits: u64,
    pub commit_oooe: f64,
    pub commit_oool: f64,
    pub commit_window: f64,
    pub local_state: LocalState,
    pub local_state_comment: &'static str,
    pub cert_index_size: u64,
    pub causal_reads: u64,
    pub cert_interval: f64,
    /// Own transactions that the node knows: sent, certified, or marked for abort.
    pub open_transactions: u64,
    /// In member order, separated by commas.
    pub incoming_addresses: String,
    /// Sum of the weights of the configuration in force.
    pub cluster_weight: u64,
    pub desync_count: u64,
    /// The catch-up progress, while there is one.
    pub progress: Option<Progress>,
    /// Names of the members that the group has left out of flow control.
    pub left_out: Vec<String>,
    /// Time that own writers waited for a pace, without the time that they were stopped.
    pub paced_ns: u64,
    /// Write-sets that this node knows to be ordered and has not committed.
    pub lag_seqnos: u64,
    /// Age of the oldest of them here.
    pub lag_ms: u64,
    pub conflicts: ConflictCounts,
}
