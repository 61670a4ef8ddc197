//! A tree of log entries, with the name (position, term) of each.

use std::ops::{Index, IndexMut};

use trireme_group::{Position, SubmissionId, Term};

use super::logs::LineId;

/// The id of an entry of the tree.
pub type EntryId = u32;

/// One entry, which may be in many logs.
pub struct Known {
    /// Its position.
    pub position: Position,
    /// The term in which its leader ordered it.
    pub term: Term,
    /// The entry before it; a root is its own parent.
    pub parent: EntryId,
    /// The digest of its content.
    pub content: u64,
    /// The submission that it holds, if it holds one.
    pub submission: Option<SubmissionId>,
    /// True if that submission, and all earlier ones of the same origin, are voided.
    pub is_void: bool,
    /// Set for a forced view: its members knew all entries up to this position as committed.
    pub forks_after: Option<Position>,
    /// The line of committed entries that it is on; None: not committed.
    pub line: Option<LineId>,
    /// True if the group delivers it to the replicator; decided when it is committed.
    pub is_delivered: bool,
}

/// All known entries.
#[derive(Default)]
pub struct Tree {
    entries: Vec<Known>,
    /// For each entry an earlier known one at the same position.
    before: Vec<Option<EntryId>>,
    /// The last known entry at each position.
    here: Vec<Option<EntryId>>,
}

impl Tree {
    /// Adds an entry without a predecessor.
    pub fn add_root(&mut self, line: LineId) -> EntryId {
        self.add(Known {
            position: 0,
            term: Term::default(),
            parent: self.entries.len() as EntryId,
            content: 0,
            submission: None,
            is_void: false,
            forks_after: None,
            line: Some(line),
            is_delivered: false,
        })
    }

    /// Adds an entry.
    pub fn add(&mut self, entry: Known) -> EntryId {
        let (id, at) = (self.entries.len() as EntryId, entry.position as usize);
        if self.here.len() <= at {
            self.here.resize(at + 1, None);
        }
        self.before.push(self.here[at].replace(id));
        self.entries.push(entry);
        id
    }

    /// The entry with this name.
    pub fn find(&self, position: Position, term: Term) -> Option<EntryId> {
        let mut next = *self.here.get(position as usize)?;
        while let Some(id) = next.filter(|id| self[*id].term != term) {
            next = self.before[id as usize];
        }
        next
    }
}

impl Index<EntryId> for Tree {
    type Output = Known;

    fn index(&self, id: EntryId) -> &Known {
        &self.entries[id as usize]
    }
}

impl IndexMut<EntryId> for Tree {
    fn index_mut(&mut self, id: EntryId) -> &mut Known {
        &mut self.entries[id as usize]
    }
}
