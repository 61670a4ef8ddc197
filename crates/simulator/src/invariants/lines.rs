//! Paths of committed entries.

use trireme_group::{Incarnation, Position, SubmissionId};

use super::HashMap;
use super::logs::LineId;
use super::tree::EntryId;

/// A committed configuration.
#[derive(Clone)]
pub struct InForce {
    /// Its position.
    pub from: Position,
    /// Its digest.
    pub content: u64,
    /// The members, whose submissions count.
    pub members: Vec<Incarnation>,
}

/// A path of committed entries, from its first own position on.
pub struct Line {
    /// The line from which it forks.
    pub parent: Option<LineId>,
    /// Its first own position.
    pub first: Position,
    /// Its entries, from the first own position on.
    pub entries: Vec<EntryId>,
    /// The configuration in force where it begins, and all later ones on it.
    pub configurations: Vec<InForce>,
    /// The forced views on it.
    pub overrides: Vec<EntryId>,
    /// Last ordered submission number of each incarnation.
    numbers: HashMap<Incarnation, u64>,
}

impl Line {
    /// The line of a component of one node, which begins here.
    pub fn founded(root: EntryId) -> Line {
        Line {
            parent: None,
            first: 0,
            entries: vec![root],
            configurations: Vec::new(),
            overrides: Vec::new(),
            numbers: HashMap::default(),
        }
    }

    /// The line of a forced view, which leaves another line.
    pub fn forked(
        parent: LineId,
        first: Position,
        in_force: Option<InForce>,
        numbers: HashMap<Incarnation, u64>,
    ) -> Line {
        Line {
            parent: Some(parent),
            first,
            entries: Vec::new(),
            configurations: in_force.into_iter().collect(),
            overrides: Vec::new(),
            numbers,
        }
    }

    /// True if submissions of this process count at the end of the line.
    pub fn is_member(&self, incarnation: Incarnation) -> bool {
        let in_force = self.configurations.last();
        in_force.is_some_and(|c| c.members.contains(&incarnation))
    }

    /// Counts a submission, or a voided one, which uses up all numbers up to its own. Err: the last number, if this
    /// one does not come next.
    pub fn count(&mut self, id: SubmissionId, is_void: bool) -> Result<(), u64> {
        let last = self.numbers.entry(id.incarnation).or_insert(0);
        if id.number <= *last || id.number != *last + 1 && !is_void {
            return Err(*last);
        }
        *last = id.number;
        Ok(())
    }
}
