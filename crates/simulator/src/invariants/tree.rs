//! Entries by name: (position, ballot).

use std::ops::{Index, IndexMut};

use trireme_group::{Ballot, Position, SubmissionId};

use super::logs::LineId;

/// Names an entry of the tree.
pub type EntryId = u32;

/// One entry, in however many logs.
pub struct Known {
    /// Where it stands.
    pub position: Position,
    /// Who put it there.
    pub ballot: Ballot,
    /// What it follows; a root follows itself.
    pub parent: EntryId,
    /// Digest of it.
    pub content: u64,
    /// Whose it is.
    pub submission: Option<SubmissionId>,
    /// That, and all before it of the same origin, was withdrawn.
    pub is_void: bool,
    /// It is an operator's override: up to here its members knew everything to be committed.
    pub forks_after: Option<Position>,
    /// The path of committed entries that it is on; None: not committed.
    pub line: Option<LineId>,
    /// The group hands it to the replicator; settled when it is committed.
    pub is_delivered: bool,
}

/// All entries that are known.
#[derive(Default)]
pub struct Tree {
    entries: Vec<Known>,
    /// For each entry another one at the same position, known before.
    before: Vec<Option<EntryId>>,
    /// Last known entry per position.
    here: Vec<Option<EntryId>>,
}

impl Tree {
    /// Where nothing is before.
    pub fn add_root(&mut self, line: LineId) -> EntryId {
        self.add(Known {
            position: 0,
            ballot: Ballot::default(),
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

    /// The entry of this name.
    pub fn find(&self, position: Position, ballot: Ballot) -> Option<EntryId> {
        let mut next = *self.here.get(position as usize)?;
        while let Some(id) = next.filter(|id| self[*id].ballot != ballot) {
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
