//! The counters of a log.

/// How often a log worked in an unusual way, for the simulator's coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Entries appended whose payloads had been staged.
    pub staged: u64,
    /// Records written straight from the caller's memory.
    pub direct: u64,
    /// Times that the buffer was written out because it was full.
    pub full_buffers: u64,
    /// Segments dropped for want of room.
    pub dropped: u64,
    /// Flushes that the owner made itself, so that everything else of it waited.
    pub flushes_awaited: u64,
}

impl Counters {
    /// Adds the counters of another log.
    pub fn add(&mut self, other: Counters) {
        self.staged += other.staged;
        self.direct += other.direct;
        self.full_buffers += other.full_buffers;
        self.dropped += other.dropped;
        self.flushes_awaited += other.flushes_awaited;
    }
}
