//! The write-sets that the index still knows, one record per seqno.

use std::collections::VecDeque;

use trireme_mutants::{Mutant, planted};

use crate::{KeySet, Seqno};

/// Whose row locks serialised a write-set. Write-sets of one source never conflict with each other: their origin's own
/// locks ordered them. The epoch goes up when the origin abandoned a submission of unknown fate, whose locks are gone
/// (protocol rule 9d).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    /// Incarnation uuid of the origin.
    pub origin: [u8; 16],
    /// The origin's epoch at submission.
    pub epoch: u64,
}

/// What was certified at one seqno.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    pub source: Source,
    /// Total-order isolation: conflicts with everybody, its own source too.
    pub isolation: bool,
    /// The encoded key set; nothing if it has no keys (views, failed write-sets, ...).
    keys: Box<[u8]>,
}

impl Record {
    /// A seqno that put no keys into the index.
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

    /// A write-set that passed. Without keys it is the same as [`Record::empty`], so that equal indexes have equal records.
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

    /// Its keys.
    pub fn keys(&self) -> KeySet<'_> {
        if self.keys.is_empty() {
            KeySet::empty()
        } else {
            KeySet::from_valid(&self.keys)
        }
    }

    /// The origin of a write-set with keys; None for an isolated action, and for a seqno without keys.
    pub fn writer(&self) -> Option<[u8; 16]> {
        let is_write_set = !self.isolation && !self.keys.is_empty();
        is_write_set.then_some(self.source.origin)
    }

    /// Whether a write-set of `source` cannot conflict with this one.
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
    /// No records; the first will be that of `first`.
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

    /// The record of `seqno`, unless it was dropped.
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
