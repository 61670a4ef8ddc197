//! What no correct member exceeds. Checked wherever numbers and configurations come in, from the wire (plausible) and from
//! the own log (resume): so counting on from them cannot overflow, nothing is committed that could not be encoded again,
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

/// Positions and numbers of ballots, views and submissions beyond this are not reached by counting.
const COUNT_MAX: u64 = 1 << 62;
/// More elections than a member can have missed: one every 10 ms for a year.
pub(crate) const NUMBER_STEP_MAX: u64 = 1 << 32;
/// More members than any cluster has.
pub(crate) const MEMBERS_MAX: usize = 1024;

/// True for a position, or a number of a ballot, view or submission, that counting reaches.
pub fn is_count(count: u64) -> bool {
    count < COUNT_MAX
}

/// The same, of all of these.
pub(crate) fn are_counts(counts: &[u64]) -> bool {
    counts.iter().all(|count| is_count(*count))
}

impl Configuration {
    /// True if a correct sequencer may have ordered it.
    pub(crate) fn is_sound(&self) -> bool {
        let members = || self.members.iter();
        let replicas: BTreeSet<_> = members().map(|m| m.replica).collect();
        let incarnations: BTreeSet<_> = members().map(|m| m.incarnation).collect();
        are_counts(&[self.number, self.fork_after])
            && self.members.len() <= MEMBERS_MAX
            && replicas.len() == self.members.len()
            && incarnations.len() == self.members.len()
            && self.total_weight() > 0
    }
}

impl Body {
    /// True if a correct sequencer may have ordered it.
    pub(crate) fn is_sound(&self) -> bool {
        match self {
            Body::BallotStart => true,
            Body::Configuration(configuration) => configuration.is_sound(),
            Body::Submission { id, payload } => {
                is_count(id.number) && payload.len() <= PAYLOAD_MAX as usize
            }
            Body::Void { id } => is_count(id.number),
        }
    }
}

impl Checkpoint {
    /// True if the log of a correct member may lead to it.
    pub(crate) fn is_sound(&self) -> bool {
        // A log that begins with the first entry has no configuration before the first one.
        let has_none = self.configuration == Configuration::default();
        are_counts(&[self.position, self.ballot.number])
            && self.overrides.len() <= OVERRIDES_MAX
            && (has_none || self.configuration.is_sound())
            && self.numbers.len() <= NUMBERS_MAX
            && self.numbers.all().all(|counted| is_count(counted.number))
    }
}

impl RecoveredLog {
    /// True if a correct process has written it: with any other a node must not start. Checksums say that bytes are as they were
    /// written, not that they make sense.
    pub fn is_sound(&self) -> bool {
        let mut last = (self.checkpoint.position, self.checkpoint.ballot);
        let mut follows = |entry: &Entry| {
            let follows = entry.position == last.0 + 1 && entry.ballot >= last.1;
            last = (entry.position, entry.ballot);
            follows && entry.body.is_sound() && are_counts(&[last.0, last.1.number])
        };
        let is_override = |entry: &&Entry| matches!(&entry.body, Body::Configuration(c) if c.override_id.is_some());
        let overrides = self.entries.iter().filter(is_override).count();
        let begin = self.checkpoint.position;
        self.checkpoint.is_sound()
            && self.checkpoint.overrides.len() + overrides <= OVERRIDES_MAX
            && self.entries.iter().all(&mut follows)
            && (begin..=self.end()).contains(&self.commit)
    }

    /// Last position, after the checkpoint or with it.
    fn end(&self) -> Position {
        self.checkpoint.position + self.entries.len() as Position
    }
}
