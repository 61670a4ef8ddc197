//! The group's replicated state at one position.

use std::collections::BTreeMap;

use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::ids::{Ballot, Incarnation, Position, ReplicaId, SubmissionId, Uuid};

/// What a log that begins above `position` must know of everything below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// Last position covered.
    pub position: Position,
    /// Ballot of the entry there.
    pub ballot: Ballot,
    /// Cluster uuid.
    pub history: Uuid,
    /// Ids of the operator's overrides so far, oldest first (rule 11).
    pub overrides: Vec<Uuid>,
    /// Configuration in force.
    pub configuration: Configuration,
    /// Last submission number ordered, per replica and for its latest incarnation (rule 9). Kept
    /// when a member leaves the view: the same incarnation may come back and count on.
    pub numbers: BTreeMap<ReplicaId, (Incarnation, u64)>,
}

impl Checkpoint {
    /// Last number ordered for this submitter; None if another incarnation took its place.
    pub fn last_number(&self, replica: ReplicaId, incarnation: Incarnation) -> Option<u64> {
        match self.numbers.get(&replica) {
            Some((known, number)) if *known == incarnation => Some(*number),
            _ => None,
        }
    }

    /// Accounts for a committed entry that follows this state.
    pub fn apply(&mut self, entry: &Entry) {
        assert_eq!(
            entry.position,
            self.position + 1,
            "entries are committed in order"
        );
        self.position = entry.position;
        self.ballot = entry.ballot;
        match &entry.body {
            Body::BallotStart => {}
            Body::Configuration(configuration) => {
                if let Some(id) = configuration.override_id {
                    if self.overrides.last() != Some(&id) {
                        self.overrides.push(id);
                    }
                }
                self.configuration = configuration.clone();
                seat(&mut self.numbers, configuration);
            }
            Body::Submission { id, .. } | Body::Void { id } => count(&mut self.numbers, *id),
        }
    }
}

/// Last submission number per replica, for its latest incarnation.
pub type Numbers = BTreeMap<ReplicaId, (Incarnation, u64)>;

/// A new incarnation of a replica starts to count anew; the same one counts on.
pub fn seat(numbers: &mut Numbers, configuration: &Configuration) {
    for member in &configuration.members {
        let known = numbers
            .entry(member.replica)
            .or_insert((member.incarnation, 0));
        if known.0 != member.incarnation {
            *known = (member.incarnation, 0);
        }
    }
}

/// Counts an ordered submission.
pub fn count(numbers: &mut Numbers, id: SubmissionId) {
    if let Some(known) = numbers.values_mut().find(|known| known.0 == id.incarnation) {
        known.1 = known.1.max(id.number);
    }
}
