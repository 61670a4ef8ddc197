//! Paths of committed entries.

use std::collections::HashMap;

use trireme_group::{Incarnation, Position, SubmissionId};

use super::logs::LineId;
use super::tree::EntryId;

/// A configuration that was committed.
#[derive(Clone)]
pub struct InForce {
    /// Where.
    pub from: Position,
    /// Digest of it.
    pub content: u64,
    /// Whose submissions count.
    pub members: Vec<Incarnation>,
}

/// A path of committed entries, from its first position on.
pub struct Line {
    /// The line that it forks off.
    pub parent: Option<LineId>,
    /// Its first own position.
    pub first: Position,
    /// From there on.
    pub entries: Vec<EntryId>,
    /// The one in force where it begins, and all committed on it.
    pub configurations: Vec<InForce>,
    /// The overrides on it.
    pub overrides: Vec<EntryId>,
    /// Last submission number ordered, per incarnation.
    numbers: HashMap<Incarnation, u64>,
}

impl Line {
    /// A component of one begins.
    pub fn founded(root: EntryId) -> Line {
        Line {
            parent: None,
            first: 0,
            entries: vec![root],
            configurations: Vec::new(),
            overrides: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// An override's line leaves another one.
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

    /// True if submissions of this process count at the line's end.
    pub fn is_member(&self, incarnation: Incarnation) -> bool {
        let in_force = self.configurations.last();
        in_force.is_some_and(|c| c.members.contains(&incarnation))
    }

    /// Counts a submission, or a void, which uses up all numbers up to its own. Err: the number before, if
    /// it is not the one that comes next.
    pub fn count(&mut self, id: SubmissionId, is_void: bool) -> Result<(), u64> {
        let last = self.numbers.entry(id.incarnation).or_insert(0);
        if id.number <= *last || id.number != *last + 1 && !is_void {
            return Err(*last);
        }
        *last = id.number;
        Ok(())
    }
}
