//! Sizes that switch the engine to another way of working, and counts of how often it did.

/// The thresholds. Deployed nodes have the defaults. The simulator draws smaller ones, so that ordinary schedules cross
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Entries of this size and above are read from the log in parts.
    pub large_read_bytes: u32,
    /// Maximum of unflushed bytes where acknowledgements wait for no flush. A view change flushes its entry in every
    /// mode; without this bound it would wait for everything that was written within half a minute (measured: 100 ms at
    /// 8,000 commits/s).
    pub write_back_bytes: u64,
    /// Bytes of a large payload that are flushed at a time while it is written ahead. One flush of the whole payload,
    /// when its entry is appended, would take a second per GiB, and other commits would wait for the disk.
    pub stage_flush_bytes: u64,
    /// Bytes that are read at once of entries that a restart has left in the log.
    pub read_back_bytes: usize,
    /// Bytes that are delivered in one go: meanwhile the lock is held, and other members wait for a sign of life.
    pub slice_bytes: usize,
    /// Bytes that recovery reads from the log at once.
    pub recovery_bytes: u64,
    /// Bytes of a peer's send queue that parts of a control state may fill. In deployed nodes: 10 ms at 400 MB/s, and far
    /// below the queue's bound of 64 MiB.
    pub control_queue_bytes: usize,
    /// Excess of the log over `gcache.size` at which it is reported first; then it is reported when it has doubled.
    pub excess_bytes: u64,
    /// Maximum size of a log checkpoint. In deployed nodes that of a record.
    pub checkpoint_bytes_max: u64,
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
            control_queue_bytes: 4 << 20,
            excess_bytes: 64 << 20,
            checkpoint_bytes_max: trireme_log::MAX_PAYLOAD_BYTES,
        }
    }
}

/// How often a connection worked in an unusual way, for the simulator's coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Parts of large entries read from the log.
    pub parts_read: u64,
    /// The log's own counters.
    pub log: trireme_log::Counters,
}
