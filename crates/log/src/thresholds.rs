//! Sizes at which the log goes about things otherwise.

/// Deployed nodes have the defaults. The simulator draws smaller ones, so that ordinary schedules cross them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Larger records are written straight from the caller's memory, not by way of the buffer.
    pub direct_bytes: u64,
    /// A buffer of this size is written out unasked.
    pub buffer_bytes: usize,
    /// So much of a file is read at once where a run of entries is wanted.
    pub ahead_bytes: u64,
    /// So many files of closed segments are kept open, and all that are not flushed. With ordinary segments the log has no
    /// more; large entries have one each, and older ones are opened for each read.
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
