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
    /// True for a forced view that gives way to a component without it.
    pub yields: bool,
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
            yields: false,
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

    /// True if this is a forced view at or above `position` whose members did not know the entry there as committed.
    pub fn may_leave_below(&self, id: EntryId, position: Position) -> bool {
        let entry = &self[id];
        let forks_after = entry.forks_after.filter(|_| entry.position >= position);
        forks_after.is_some_and(|after| after < position)
    }

    /// The entries from this one down to the root of its path.
    pub fn path(&self, from: EntryId) -> impl Iterator<Item = EntryId> + '_ {
        let above_root = |id: &EntryId| self[*id].position > 0;
        std::iter::successors(Some(from), move |id| {
            Some(*id).filter(above_root).map(|id| self[id].parent)
        })
    }

    /// The last entry on both of the paths that end with these entries; None if the paths have two roots.
    pub fn meeting(&self, a: EntryId, b: EntryId) -> Option<EntryId> {
        let upto = self[a].position.min(self[b].position);
        let [a, b] = [a, b].map(|end| self.path(end).skip_while(|id| self[*id].position > upto));
        a.zip(b).find(|(a, b)| a == b).map(|(both, _)| both)
    }

    /// True if a history that ends with `now` may lack entries that one which ends with `before` has: a forced view
    /// left that one, or that one holds a forced view that gives way.
    pub fn may_lack(&self, now: EntryId, before: EntryId) -> bool {
        let Some(meeting) = self.meeting(now, before) else {
            return true; // an operator has founded the cluster anew
        };
        let above = |end: EntryId| self.path(end).take_while(move |id| *id != meeting);
        let first = self[meeting].position + 1;
        above(now).any(|id| self.may_leave_below(id, first))
            || above(before).any(|id| self[id].yields)
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
