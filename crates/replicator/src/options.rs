//! Settings of a node.

use crate::thresholds::Thresholds;

/// Settings that the node heeds. Those marked (group) must be equal on all members.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `gcs.fc_limit`: length of the apply queue at which the others' writers are slowed down, or
    /// stopped if nothing is applied; at twice of it they are stopped in any case.
    pub fc_limit: u64,
    /// `gcs.fc_factor`: they may go on at this fraction of the limit.
    pub fc_factor: f64,
    /// `gcs.fc_single_primary`: do not scale the limit with the number of members.
    pub fc_single_primary: bool,
    /// `repl.fc_desync_after_ms`: a member that alone has kept own writers waiting for so long is left
    /// out of flow control; 0: never.
    pub fc_desync_after_ms: u64,
    /// `repl.fc_desync_state`: a node that was left out so, and that nothing else desyncs, shows as Synced.
    pub left_out_shows_synced: bool,
    /// `gcs.vote_policy`: so many members that applied a write-set decide a vote on its errors at once; 0: the outcome
    /// that most members had wins. That of the member that opens a vote counts.
    pub vote_policy: u8,
    /// `cert.max_length` (group): how far a write-set's last_seen may lie behind.
    pub cert_max_length: u64,
    /// `wsrep_sst_donor`: names in order of preference; a trailing comma means "or anyone".
    pub sst_donor: String,
    /// The server learns from the script of a state transfer what no write-set tells it (its GTID domain, with
    /// `wsrep_gtid_mode`): the script runs before an IST, too.
    pub script_before_ist: bool,
    /// A write-set above this size is handed to a majority before it is submitted (rule 8): what the group
    /// calls large.
    pub large_bytes: usize,
    /// How many bytes of entries go into one IST chunk.
    pub ist_chunk_bytes: usize,
    /// An entry with a longer payload goes to a joiner in parts of so many bytes.
    pub ist_part_bytes: u32,
    /// Once the payloads of what was delivered and waits to be applied take so much memory, those of what comes later are
    /// read back from the log.
    pub queue_bytes: usize,
    /// Sizes and times at which the replicator goes about things otherwise.
    pub thresholds: Thresholds,
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
            script_before_ist: false,
            large_bytes: 1 << 20,
            ist_chunk_bytes: 1 << 20,
            ist_part_bytes: 1 << 20,
            queue_bytes: 64 << 20,
            thresholds: Thresholds::default(),
        }
    }
}
