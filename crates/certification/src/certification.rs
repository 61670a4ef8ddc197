//! The certification state machine: one call per seqno, in order.
//!
//! In: ordered write-sets, views, applied watermarks. Out: the verdict on each write-set, and the seqno after which it
//! may be applied. Everything is a function of the order, so that all nodes have equal indexes at equal positions.

use std::fmt;
use std::hash::{Hash, Hasher};

use trireme_mutants::{Mutant, planted};

use crate::index::{Findings, Index};
use crate::window::{Record, Source, Window};
use crate::{KeySet, KeyType, Seqno};

/// An ordered write-set, total-order-isolation action or rollback fragment, as certification sees it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its place in the order.
    pub seqno: Seqno,
    /// All seqnos up to this one were visible at the origin when it sent the transaction, which held all its locks. Too
    /// high a value loses conflicts; too low a value only makes failures more frequent.
    pub last_seen: Seqno,
    /// Incarnation uuid of the origin.
    pub origin: [u8; 16],
    /// The origin's epoch (protocol rule 9d): write-sets of one origin are exempt from conflicts with each other only
    /// within one epoch.
    pub epoch: u64,
    /// True for total-order isolation: it never conflicts with an earlier write-set, and nothing else is applied beside
    /// it. Its keys come as [`crate::KeyType::Exclusive`].
    pub isolation: bool,
    /// True if it must not be applied in parallel with anything before or after it. If it fails, the same holds for its
    /// replacement (the rollback of a streaming transaction, for example).
    pub pa_unsafe: bool,
    /// True for the rollback fragment of a streaming transaction: it bypasses certification, and its keys are ignored.
    pub rollback: bool,
    /// Its keys.
    pub keys: KeySet<'a>,
}

impl Request<'_> {
    fn source(&self) -> Source {
        Source {
            origin: self.origin,
            epoch: self.epoch,
        }
    }
}

/// The verdict on a write-set, the same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It commits everywhere.
    Pass,
    /// It fails: another write-set that its origin had not seen came first.
    Conflict {
        /// The last such write-set.
        with: Seqno,
    },
    /// It fails: its `last_seen` is below the floor, so the index may have forgotten a conflict.
    TooOld,
    /// It fails: `seqno - last_seen` exceeds the maximal length (option `cert.max_length`).
    TooWide,
}

/// The result of certification for a write-set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the write-set commits.
    pub verdict: Verdict,
    /// The write-set is applied only after all seqnos up to this one, which is below its own. A failed write-set has
    /// one, too: a dummy takes its place in the order. A local transaction does not wait, because its locks order it.
    pub depends_on: Seqno,
}

/// The certification index and its position in the order.
///
/// Call exactly one of [`certify`](Self::certify), [`view`](Self::view) and [`skip`](Self::skip) per seqno, in order.
/// Call [`cut`](Self::cut) at the place where the applied watermark was ordered. Then all nodes have equal indexes at
/// equal positions.
#[derive(Clone)]
pub struct Certification {
    pub(crate) position: Seqno,
    pub(crate) max_length: Seqno,
    /// The index does not know write-sets up to this seqno: the greatest of the last ordered watermark,
    /// `position - max_length`, and the last reset.
    pub(crate) floor: Seqno,
    /// The last seqno that no later one may overtake: a view, PA-unsafe write-set or isolated action. Not below the
    /// floor.
    pub(crate) barrier: Seqno,
    /// The records above the floor, and those at or below it that are still to be purged.
    pub(crate) window: Window,
    index: Index,
    /// Number of keys of the oldest record that are purged already.
    purged_keys: usize,
}

impl Certification {
    /// Makes an empty index that has accounted for all seqnos up to `position`. `max_length` (seqnos) must be equal on
    /// all nodes; see [`crate::DEFAULT_MAX_LENGTH`].
    ///
    /// # Panics
    /// If `max_length` is below 1.
    pub fn new(position: Seqno, max_length: Seqno) -> Self {
        assert!(
            max_length >= 1,
            "cert.max_length must be at least 1, not {max_length}"
        );
        Certification {
            position,
            max_length,
            floor: position,
            barrier: position,
            window: Window::new(position.saturating_add(1)),
            index: Index::default(),
            purged_keys: 0,
        }
    }

    /// Certifies the next write-set, and enters its keys if it passes.
    ///
    /// # Panics
    /// If `request.seqno` is not `position() + 1`: otherwise this node's verdicts would differ from those of the
    /// others.
    pub fn certify(&mut self, request: &Request<'_>) -> Outcome {
        self.advance(request.seqno);
        let outcome = if request.rollback {
            Outcome {
                verdict: Verdict::Pass,
                depends_on: match planted(Mutant::RollbackOvertakes) {
                    true => self.barrier,
                    false => request.seqno - 1,
                },
            }
        } else {
            self.test(request)
        };
        if outcome.verdict == Verdict::Pass && !request.rollback {
            self.enter(Record::new(
                request.source(),
                request.isolation,
                &request.keys,
            ));
        } else {
            self.enter(Record::empty());
        }
        if request.isolation || request.pa_unsafe {
            self.barrier = request.seqno;
        }
        self.purge(2 * request.keys.len());
        outcome
    }

    /// Accounts for a view at `seqno`. No later seqno is applied before it.
    ///
    /// # Panics
    /// If `seqno` is not `position() + 1`.
    pub fn view(&mut self, seqno: Seqno) {
        self.skip(seqno);
        if !planted(Mutant::ViewIsNoBarrier) {
            self.barrier = seqno;
        }
    }

    /// Accounts for an entry without keys at `seqno`.
    ///
    /// # Panics
    /// If `seqno` is not `position() + 1`.
    pub fn skip(&mut self, seqno: Seqno) {
        self.advance(seqno);
        self.enter(Record::empty());
        self.purge(0);
    }

    /// An applied watermark was ordered here: no later write-set should come from an origin that had seen less than
    /// `cut`. If one does, it fails. A watermark above the position counts as the position; one below the floor has no
    /// effect.
    pub fn cut(&mut self, cut: Seqno) {
        self.raise_floor(cut.min(self.position));
        self.purge(0);
    }

    /// Starts again with an empty index at `seqno`: after a state transfer, or a change of history.
    pub fn reset(&mut self, seqno: Seqno) {
        *self = Certification::new(seqno, self.max_length);
    }

    /// The least seqno that a write-set's origin must have seen; a function of the order only.
    pub fn floor(&self) -> Seqno {
        self.floor
    }

    /// The last seqno accounted for.
    pub fn position(&self) -> Seqno {
        self.position
    }

    /// The origin of the write-set or isolated action at `seqno`, from [`Request::origin`]. None for other entries, for
    /// a write-set that failed, and at or below the floor.
    pub fn origin(&self, seqno: Seqno) -> Option<[u8; 16]> {
        self.record(seqno)?.origin()
    }

    /// As [`Self::origin`], but None for an isolated action.
    pub fn writer(&self, seqno: Seqno) -> Option<[u8; 16]> {
        self.record(seqno)?.writer()
    }

    fn record(&self, seqno: Seqno) -> Option<&Record> {
        self.window.get(seqno).filter(|_| seqno > self.floor)
    }

    /// The keys of the write-set at `seqno`, ascending. Empty if the entry has put no keys into the index, or is too
    /// old to be kept.
    pub fn keys_of(&self, seqno: Seqno) -> impl Iterator<Item = (u64, KeyType)> + '_ {
        let record = self.window.get(seqno).into_iter();
        record.flat_map(|record| record.keys().iter())
    }

    /// Hashes the small part of the state, for checks of invariants: the numbers, and the record at the position.
    pub fn hash_head(&self, hasher: &mut impl Hasher) {
        let numbers = [self.max_length, self.position, self.floor, self.barrier];
        let last = Some(self.position).filter(|at| *at > self.floor);
        let record = last.and_then(|at| self.window.get(at));
        (numbers, record).hash(hasher);
    }

    /// Number of keys in memory. Each call purges a few keys below the floor; a key counts until then.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no keys are in memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Advances to the next seqno.
    fn advance(&mut self, seqno: Seqno) {
        assert!(
            self.position.checked_add(1) == Some(seqno),
            "certification at {} was given {seqno}: the order has a gap",
            self.position
        );
        self.position = seqno;
        self.raise_floor(seqno.saturating_sub(self.max_length));
    }

    fn raise_floor(&mut self, floor: Seqno) {
        self.floor = self.floor.max(floor);
        self.barrier = self.barrier.max(self.floor);
    }

    /// The verdict on a write-set or isolated action at the position, which is not in the window yet.
    fn test(&self, request: &Request<'_>) -> Outcome {
        // The floor and the barrier stand for all entries that the index has forgotten or never held.
        let mut findings = Findings {
            conflict: None,
            depends_on: self.barrier,
        };
        if !request.isolation {
            let source = request.source();
            for key in request.keys.iter() {
                self.index
                    .test(key, request.last_seen, source, &self.window, &mut findings);
            }
        }
        let verdict = if request.seqno.saturating_sub(request.last_seen) > self.max_length {
            Verdict::TooWide
        } else if request.last_seen < self.floor && !planted(Mutant::FloorNotHeeded) {
            Verdict::TooOld
        } else if let Some(with) = findings.conflict {
            Verdict::Conflict { with }
        } else {
            Verdict::Pass
        };
        let alone = request.isolation || request.pa_unsafe;
        let depends_on = if alone {
            request.seqno - 1
        } else {
            findings.depends_on
        };
        Outcome {
            verdict,
            depends_on,
        }
    }

    /// Enters the record for the position.
    pub(crate) fn enter(&mut self, record: Record) {
        self.index.make_room(record.keys().len());
        for key in record.keys().iter() {
            self.index
                .insert(key, self.position, record.source, &self.window);
        }
        self.window.push(record);
    }

    /// Purges some keys at or below the floor. This changes no result, so the work is spread over calls. Each call
    /// purges at least twice as many keys as it brought (`extra_keys`), so that the backlog shrinks, but never all keys
    /// below a new watermark at once.
    fn purge(&mut self, extra_keys: usize) {
        const KEYS_PER_CALL: usize = 32;
        let mut budget = KEYS_PER_CALL + extra_keys;
        while let Some((seqno, record)) = self.window.front() {
            if seqno > self.floor || budget == 0 {
                break;
            }
            let keys = record.keys();
            let count = budget.min(keys.len() - self.purged_keys);
            for hash in keys.hashes_from(self.purged_keys).take(count) {
                let early = if planted(Mutant::PurgedBeforeFloor) {
                    8
                } else {
                    0
                };
                self.index.purge(hash, self.floor + early);
            }
            self.purged_keys += count;
            budget -= count;
            if self.purged_keys == keys.len() {
                self.window.pop_front();
                self.purged_keys = 0;
                // A record without keys costs time, too.
                budget = budget.saturating_sub(1);
            }
        }
        self.index.shrink();
    }
}

impl fmt::Debug for Certification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certification")
            .field("position", &self.position)
            .field("floor", &self.floor)
            .field("barrier", &self.barrier)
            .field("keys", &self.len())
            .finish_non_exhaustive()
    }
}
