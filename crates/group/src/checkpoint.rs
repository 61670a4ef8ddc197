//! The group's replicated state at one position: the group's half of a log checkpoint.

use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::ids::{Incarnation, Position, ReplicaId, Term, Uuid};
use crate::numbers::Numbers;

/// The group's replicated state at `position`. A log that begins above it needs no more of the entries below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// Last position covered.
    pub position: Position,
    /// Term of the entry there.
    pub term: Term,
    /// Cluster uuid.
    pub history: Uuid,
    /// Ids of all forced views so far, oldest first (rule 11).
    pub overrides: Vec<Uuid>,
    /// Configuration in force.
    pub configuration: Configuration,
    /// Last submission numbers ordered (rule 9).
    pub numbers: Numbers,
}

impl Checkpoint {
    /// Last number ordered for this origin; None if another incarnation took its place.
    pub fn last_number(&self, replica: ReplicaId, incarnation: Incarnation) -> Option<u64> {
        self.numbers.last(replica, incarnation)
    }

    /// Accounts for a committed entry that follows this state.
    pub fn apply(&mut self, entry: &Entry) {
        // `Group::commit_to` takes the next entry of its own log, whose positions are checked where they come in.
        assert_eq!(
            entry.position,
            self.position + 1,
            "entries are committed in order"
        );
        self.position = entry.position;
        self.term = entry.term;
        self.numbers.apply(entry);
        if let Body::Configuration(configuration) = &entry.body {
            if let Some(id) = configuration.override_id {
                if self.overrides.last() != Some(&id) {
                    self.overrides.push(id);
                }
            }
            self.configuration = configuration.clone();
        }
    }
}
