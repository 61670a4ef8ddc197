//! What comes of the lies, in numbers.

use std::ops::AddAssign;

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Events handed to cores, messages among them.
    pub events: u64,
    /// Messages that a liar had made up or changed.
    pub lies: u64,
    /// Those of them that were plausible, from a peer that is connected.
    pub believed: u64,
    /// Entries committed, on all members.
    pub committed: u64,
    /// Logs changed before a process starts with them.
    pub damaged: u64,
    /// Those of them that a process started with.
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
