//! Sizes at which the engine goes about things otherwise.

/// Deployed nodes have the defaults. The simulator draws smaller ones, so that ordinary schedules cross them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Entries from this size on are read from the log in parts.
    pub large_read_bytes: u32,
    /// Where acknowledgements wait for no flush, so much is left to the operating system at most: else a view change, whose
    /// entry is flushed in every mode, would wait for all that was written within half a minute (measured: 100 ms at 8,000
    /// commits/s).
    pub write_back_bytes: u64,
    /// Of a large payload that is written ahead, so much is flushed at a time: the whole would take a second per GiB when it
    /// is appended, and what others commit would wait for the disk.
    pub stage_flush_bytes: u64,
    /// So much of what a restart has left in the log is read at once ...
    pub read_back_bytes: usize,
    /// ... and so much is delivered in one go: the lock is held, and others wait for a sign of life.
    pub slice_bytes: usize,
    /// So much of the log is read at once when it is taken up again.
    pub recovery_bytes: u64,
    /// The log may be so much larger than `gcache.size` before anything is said of it; then it is said when it has doubled.
    pub excess_bytes: u64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            large_read_bytes: 64 << 10,
            write_back_bytes: 4 << 20,
            stage_flush_bytes: 8 << 20,
            read_back_bytes: 1 << 20,
            slice_bytes: 4 << 20,
            recovery_bytes: 4 << 20,
            excess_bytes: 64 << 20,
        }
    }
}

/// How often a connection went about things otherwise than usual, for the simulator's coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Parts of large entries read from the log.
    pub parts_read: u64,
    /// The log's own.
    pub log: trireme_log::Counters,
}
