//! The window: one record for each seqno whose keys the index still has.

use std::collections::VecDeque;

use trireme_mutants::{Mutant, planted};

use crate::{KeySet, Seqno};

/// The origin and the epoch whose row locks serialised a write-set. Write-sets of one source never conflict with each
/// other, because their origin's own locks ordered them. The epoch rises when the origin abandons a submission of
/// unknown fate: the locks of that one are gone (protocol rule 9d).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    /// Incarnation uuid of the origin.
    pub origin: [u8; 16],
    /// The origin's epoch at submission.
    pub epoch: u64,
}

/// The keys and the source of the write-set at one seqno.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    pub source: Source,
    /// True for total-order isolation: it conflicts with all sources, its own included.
    pub isolation: bool,
    /// The encoded key set; empty without keys (views, failed write-sets, ...).
    keys: Box<[u8]>,
}

impl Record {
    /// The record of a seqno without keys in the index.
    pub fn empty() -> Self {
        Record {
            source: Source {
                origin: [0; 16],
                epoch: 0,
            },
            isolation: false,
            keys: Box::default(),
        }
    }

    /// The record of a write-set that passed. Without keys it equals [`Record::empty`], so that equal indexes have
    /// equal records.
    pub fn new(source: Source, isolation: bool, keys: &KeySet<'_>) -> Self {
        if keys.is_empty() {
            return Record::empty();
        }
        Record {
            source,
            isolation,
            keys: keys.as_bytes().into(),
        }
    }

    /// The keys of the record.
    pub fn keys(&self) -> KeySet<'_> {
        if self.keys.is_empty() {
            KeySet::empty()
        } else {
            KeySet::from_valid(&self.keys)
        }
    }

    /// The origin of a write-set or isolated action with keys; None for a seqno without keys.
    pub fn origin(&self) -> Option<[u8; 16]> {
        (!self.keys.is_empty()).then_some(self.source.origin)
    }

    /// As [`Self::origin`], but None for an isolated action.
    pub fn writer(&self) -> Option<[u8; 16]> {
        self.origin().filter(|_| !self.isolation)
    }

    /// True if a write-set of `source` cannot conflict with this one.
    pub fn exempts(&self, source: Source) -> bool {
        let same_origin = self.source.origin == source.origin;
        let same_source =
            self.source == source || (same_origin && planted(Mutant::SameOriginAlwaysExempt));
        same_source && !self.isolation
    }
}

/// The records of consecutive seqnos, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    first: Seqno,
    records: VecDeque<Record>,
}

impl Window {
    /// An empty window, whose first record will be that of `first`.
    pub fn new(first: Seqno) -> Self {
        Window {
            first,
            records: VecDeque::new(),
        }
    }

    /// Adds the record of the next seqno.
    pub fn push(&mut self, record: Record) {
        self.records.push_back(record);
    }

    /// The oldest record and its seqno.
    pub fn front(&self) -> Option<(Seqno, &Record)> {
        self.records.front().map(|record| (self.first, record))
    }

    /// Drops the oldest record.
    pub fn pop_front(&mut self) {
        if self.records.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// The record of `seqno`; None if it was dropped.
    pub fn get(&self, seqno: Seqno) -> Option<&Record> {
        let offset = seqno.checked_sub(self.first)?;
        self.records.get(usize::try_from(offset).ok()?)
    }

    /// The records above `floor`, by ascending seqno.
    pub fn above(&self, floor: Seqno) -> impl Iterator<Item = &Record> {
        let skipped =
            usize::try_from(floor.saturating_add(1).saturating_sub(self.first)).unwrap_or(0);
        self.records.iter().skip(skipped)
    }
}
