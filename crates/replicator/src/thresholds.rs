//! Sizes and times that switch the replicator to another way of working.

/// The thresholds. Deployed nodes have the defaults. The simulator draws smaller ones, so that ordinary schedules cross
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Time for which a crash may still take a database's commits, if the database flushes its own log only every
    /// second (innodb_flush_log_at_trx_commit 0 and 2). Our log keeps the entries of that time for a replay, even if
    /// our log grows above gcache.size.
    pub unflushed_ms: u64,
    /// Number of write-sets after which this node reports its applied watermark
    /// (server-contract-traps.md#reports-of-what-is-applied).
    pub report_write_sets: u32,
    /// Time after which it reports in any case, if the watermark has risen.
    pub report_ms: u64,
    /// Bytes of waiting payloads that are read back from the log at once.
    pub read_back_bytes: usize,
    /// Bytes of entries that have waited and are processed in one go: meanwhile the lock is held, and other members wait
    /// for a sign of life.
    pub slice_bytes: usize,
    /// Size of the chunks of a control state, in bytes.
    pub chunk_bytes: usize,
    /// Maximum of pulled entries that wait to be applied before more are pulled.
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
