//! Limits that no correct member exceeds.
//!
//! In: numbers, configurations, entries and checkpoints from the wire (validation) or from the local log
//! ([`RecoveredLog::check`]). Out: whether these are sound. So counters cannot overflow, every committed entry can be
//! encoded again, and every configuration has a vote and can commit entries.

use std::collections::BTreeSet;

use crate::branches::OVERRIDES_MAX;
use crate::checkpoint::Checkpoint;
use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::event::RecoveredLog;
use crate::fetching::PAYLOAD_MAX;
use crate::ids::Position;
use crate::numbers::NUMBERS_MAX;

/// More terms than a member can have missed: one every 10 ms for a year.
pub(crate) const NUMBER_STEP_MAX: u64 = 1 << 32;
/// Greatest number of configurations in the log above the commit point: every promise lists all of them.
pub(crate) const PENDING_CONFIGURATIONS_MAX: usize = 256;
/// More members than any cluster has.
pub(crate) const MEMBERS_MAX: usize = 1024;

/// An upper bound for positions, and for numbers of terms, views and submissions.
#[derive(Clone, Copy, Debug)]
pub struct Counting(u64);

impl Counting {
    /// The bound for messages of peers: no correct member counts this far.
    pub const OF_PEERS: Counting = Counting(1 << 62);
    /// The bound for the own files: this member may have counted on from a peer's number.
    pub const OF_OWN_FILES: Counting = Counting(1 << 63);

    /// True if the count is below the bound.
    pub fn reaches(self, count: u64) -> bool {
        count < self.0
    }

    /// True if all of these counts are below the bound.
    pub(crate) fn reaches_all(self, counts: &[u64]) -> bool {
        counts.iter().all(|count| self.reaches(*count))
    }
}

impl Configuration {
    /// True if a correct leader may have ordered it.
    pub(crate) fn is_sound(&self, counting: Counting) -> bool {
        let members = || self.members.iter();
        let replicas: BTreeSet<_> = members().map(|m| m.replica).collect();
        let incarnations: BTreeSet<_> = members().map(|m| m.incarnation).collect();
        counting.reaches_all(&[self.number, self.fork_after])
            && self.members.len() <= MEMBERS_MAX
            && replicas.len() == self.members.len()
            && incarnations.len() == self.members.len()
            && self.total_weight() > 0
    }
}

impl Body {
    /// True if a correct leader may have ordered it.
    pub(crate) fn is_sound(&self, counting: Counting) -> bool {
        match self {
            Body::TermStart => true,
            Body::Configuration(configuration) => configuration.is_sound(counting),
            Body::Submission { id, payload } => {
                counting.reaches(id.number) && payload.len() <= PAYLOAD_MAX as usize
            }
            Body::Voided { id } => counting.reaches(id.number),
        }
    }
}

impl Checkpoint {
    /// True if the log of a correct member may lead to this state.
    pub(crate) fn is_sound(&self, counting: Counting) -> bool {
        // A log that begins with the first entry has no configuration before it.
        let has_none = self.configuration == Configuration::default();
        counting.reaches_all(&[self.position, self.term.number])
            && self.overrides.len() <= OVERRIDES_MAX
            && (has_none || self.configuration.is_sound(counting))
            && self.numbers.len() <= NUMBERS_MAX
            && self
                .numbers
                .all()
                .all(|counted| counting.reaches(counted.number))
    }
}

impl RecoveredLog {
    /// Err: the reason why no correct process can have written this log; no node must start with it. Checksums prove
    /// only that the bytes are the written ones, not that they make sense.
    pub fn check(&self) -> Result<(), &'static str> {
        let counting = Counting::OF_OWN_FILES;
        if !self.checkpoint.is_sound(counting) {
            return Err("its snapshot of the cluster's state makes no sense");
        }
        let mut last = (self.checkpoint.position, self.checkpoint.term);
        for entry in &self.entries {
            if entry.position != last.0 + 1 || entry.term < last.1 {
                return Err("its entries do not follow one another");
            }
            last = (entry.position, entry.term);
            if !entry.body.is_sound(counting) || !counting.reaches_all(&[last.0, last.1.number]) {
                return Err("an entry makes no sense");
            }
        }
        let is_override = |entry: &&Entry| matches!(&entry.body, Body::Configuration(c) if c.override_id.is_some());
        let overrides = self.entries.iter().filter(is_override).count();
        if self.checkpoint.overrides.len() + overrides > OVERRIDES_MAX {
            return Err("it has more overrides than a history may have");
        }
        if !(self.checkpoint.position..=self.end()).contains(&self.commit) {
            return Err("it ends before what is known to be committed");
        }
        Ok(())
    }

    /// Last position of the log; without entries, that of the checkpoint.
    fn end(&self) -> Position {
        self.checkpoint.position + self.entries.len() as Position
    }
}
