//! Sizes that switch the log to another way of working.

/// The thresholds. Deployed nodes have the defaults. The simulator draws smaller ones, so that ordinary schedules cross
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Records above this size are written straight from the caller's memory, and not through the buffer.
    pub direct_bytes: u64,
    /// A buffer of this size is written out at once.
    pub buffer_bytes: usize,
    /// Bytes of a file that are read at once for a run of entries.
    pub ahead_bytes: u64,
    /// Maximum of open files of closed segments, not counting those that are not flushed. With ordinary segments the
    /// log has no more; large entries have one each, and older ones are opened for each read.
    pub open_files: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            direct_bytes: 256 << 10,
            buffer_bytes: 1 << 20,
            ahead_bytes: 256 << 10,
            open_files: 64,
        }
    }
}
