//! What no correct member exceeds. Checked wherever numbers and configurations come in, from the wire (validation) and from
//! the own log (log): so counting on from them cannot overflow, nothing is committed that could not be encoded again,
//! and every configuration can commit something.

use std::collections::BTreeSet;

use crate::branches::OVERRIDES_MAX;
use crate::checkpoint::Checkpoint;
use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::event::RecoveredLog;
use crate::fetching::PAYLOAD_MAX;
use crate::ids::Position;
use crate::numbers::NUMBERS_MAX;

/// More elections than a member can have missed: one every 10 ms for a year.
pub(crate) const NUMBER_STEP_MAX: u64 = 1 << 32;
/// More members than any cluster has.
pub(crate) const MEMBERS_MAX: usize = 1024;

/// How far positions, and numbers of ballots, views and submissions, may have been counted.
#[derive(Clone, Copy, Debug)]
pub struct Counting(u64);

impl Counting {
    /// What a peer may say: nobody gets further by counting.
    pub const OF_PEERS: Counting = Counting(1 << 62);
    /// What the own files may hold: this member may have counted on from there.
    pub const OF_OWN_FILES: Counting = Counting(1 << 63);

    /// True if counting gets there.
    pub fn reaches(self, count: u64) -> bool {
        count < self.0
    }

    /// The same, of all of these.
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
            Body::BallotStart => true,
            Body::Configuration(configuration) => configuration.is_sound(counting),
            Body::Submission { id, payload } => {
                counting.reaches(id.number) && payload.len() <= PAYLOAD_MAX as usize
            }
            Body::Void { id } => counting.reaches(id.number),
        }
    }
}

impl Checkpoint {
    /// True if the log of a correct member may lead to it.
    pub(crate) fn is_sound(&self, counting: Counting) -> bool {
        // A log that begins with the first entry has no configuration before the first one.
        let has_none = self.configuration == Configuration::default();
        counting.reaches_all(&[self.position, self.ballot.number])
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
    /// Err: why no correct process can have written it, so that no node must start with it. Checksums say that bytes are as they were
    /// written, not that they make sense.
    pub fn check(&self) -> Result<(), &'static str> {
        let counting = Counting::OF_OWN_FILES;
        if !self.checkpoint.is_sound(counting) {
            return Err("its snapshot of the cluster's state makes no sense");
        }
        let mut last = (self.checkpoint.position, self.checkpoint.ballot);
        for entry in &self.entries {
            if entry.position != last.0 + 1 || entry.ballot < last.1 {
                return Err("its entries do not follow one another");
            }
            last = (entry.position, entry.ballot);
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

    /// Last position, after the checkpoint or with it.
    fn end(&self) -> Position {
        self.checkpoint.position + self.entries.len() as Position
    }
}
