//! Sizes and times at which the replicator goes about things otherwise.

/// Deployed nodes have the defaults. The simulator draws smaller ones, so that ordinary schedules cross them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// What a database has committed may still be lost for so long in a crash, if it flushes its own log every second only
    /// (innodb_flush_log_at_trx_commit 0 and 2): it is replayed from ours, be that larger than gcache.size for it.
    pub unflushed_ms: u64,
    /// What this node has applied is reported after so many write-sets
    /// (server-contract-traps.md#reports-of-what-is-applied) ...
    pub report_write_sets: u32,
    /// ... or after so long, if there is anything new.
    pub report_ms: u64,
    /// So much of what waits in the log is read back at once ...
    pub read_back_bytes: usize,
    /// ... and no more than this in one go to be processed: the lock is held, and others wait for a sign of life.
    pub slice_bytes: usize,
    /// A control state travels in chunks of so many bytes.
    pub chunk_bytes: usize,
    /// So many pulled entries wait to be applied before the next are pulled.
    pub pulled_entries: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            unflushed_ms: 10_000,
            report_write_sets: 128,
            report_ms: 1_000,
            read_back_bytes: 1 << 20,
            slice_bytes: 4 << 20,
            chunk_bytes: 256 << 10,
            pulled_entries: 256,
        }
    }
}
