//! Counters of a fuzzing run.

use std::ops::AddAssign;

/// The counters of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Events handed to cores, messages among them.
    pub events: u64,
    /// Messages that a liar made up or changed.
    pub lies: u64,
    /// Lies that were valid messages, from a connected peer.
    pub believed: u64,
    /// Entries committed, on all members.
    pub committed: u64,
    /// Logs that were changed before a process started with them.
    pub damaged: u64,
    /// Changed logs that a process could start with.
    pub opened: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.events += other.events;
        self.lies += other.lies;
        self.believed += other.believed;
        self.committed += other.committed;
        self.damaged += other.damaged;
        self.opened += other.opened;
    }
}
