//! Settings of a node.

use crate::thresholds::Thresholds;

/// The settings that the node uses. Those marked (group) must be equal on all members.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `gcs.fc_limit`: length of the apply queue at which the others' writers are slowed down, or stopped if nothing is
    /// applied. At twice this length they are stopped in any case.
    pub fc_limit: u64,
    /// `gcs.fc_factor`: writers may go on when the queue is below this fraction of the limit.
    pub fc_factor: f64,
    /// `gcs.fc_single_primary`: do not scale the limit with the number of members.
    pub fc_single_primary: bool,
    /// `repl.fc_desync_after_ms`: time for which a single member may keep own writers waiting before it is left out of
    /// flow control; 0: for ever.
    pub fc_desync_after_ms: u64,
    /// `repl.fc_desync_state`: a node that was left out like this, and that nothing else desyncs, shows as Synced.
    pub left_out_shows_synced: bool,
    /// `gcs.vote_policy`: the number of members that applied a write-set and so decide a vote on its errors at once; 0:
    /// the most frequent outcome wins. The setting of the member that opens a vote counts.
    pub vote_policy: u8,
    /// `cert.max_length` (group): how far a write-set's last_seen may lie behind, in seqnos.
    pub cert_max_length: u64,
    /// `wsrep_sst_donor`: names in order of preference; a trailing comma means "or anyone".
    pub sst_donor: String,
    /// `evs.suspect_timeout`: the group removes a member that is silent for so long.
    pub suspect_timeout_ms: u64,
    /// Whether the script of a state transfer runs before an IST, too.
    pub script_before_ist: ScriptBeforeIst,
    /// A write-set above this size is a bulk payload: a majority gets it before it is submitted (rule 8).
    pub large_bytes: usize,
    /// Bytes of entries in one IST chunk.
    pub ist_chunk_bytes: usize,
    /// An entry with a longer payload goes to a joiner in parts of this size, in bytes.
    pub ist_part_bytes: u32,
    /// Maximum of memory for the payloads of entries that were delivered and wait to be applied. Beyond it, later
    /// payloads are read back from the log.
    pub queue_bytes: usize,
    /// Sizes and times that switch the replicator to another way of working.
    pub thresholds: Thresholds,
}

/// Whether the script of a state transfer runs before an IST. Galera always runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptBeforeIst {
    /// `repl.ist_script=no`.
    Never,
    /// `repl.ist_script=yes`: the IST goes on without it if every possible donor is busy.
    IfDonorIsFree,
    /// The server needs something from the script that no write-set contains: its GTID domain (`wsrep_gtid_mode=ON`).
    Always,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            fc_limit: 16,
            fc_factor: 1.0,
            fc_single_primary: false,
            fc_desync_after_ms: 60,
            left_out_shows_synced: false,
            vote_policy: 0,
            cert_max_length: 16384,
            sst_donor: String::new(),
            suspect_timeout_ms: 5_000,
            script_before_ist: ScriptBeforeIst::Never,
            large_bytes: 1 << 20,
            ist_chunk_bytes: 1 << 20,
            ist_part_bytes: 1 << 20,
            queue_bytes: 64 << 20,
            thresholds: Thresholds::default(),
        }
    }
}
