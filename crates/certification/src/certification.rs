//! The state machine: one call per seqno, in order.

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
    /// All up to this were visible at the origin when the transaction was sent, holding all its locks. Too high a value
    /// loses conflicts, too low a value only fails more often.
    pub last_seen: Seqno,
    /// Incarnation uuid of the origin.
    pub origin: [u8; 16],
    /// The origin's epoch (protocol rule 9d): write-sets of one origin are exempt from conflicts with each other only
    /// within one epoch.
    pub epoch: u64,
    /// Total-order isolation: never conflicts with what came before it, and nothing else is applied beside it. Its keys
    /// come as [`crate::KeyType::Exclusive`].
    pub isolation: bool,
    /// Must not be applied in parallel with anything before or after it; nor, if it fails, what takes its place (the
    /// rollback of a streaming transaction, for example).
    pub pa_unsafe: bool,
    /// Rollback fragment of a streaming transaction: bypasses certification; its keys are ignored.
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

/// Whether a write-set may commit. The same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It commits everywhere.
    Pass,
    /// It fails: another write-set that its origin had not seen came first.
    Conflict {
        /// The last such write-set.
        with: Seqno,
    },
    /// It fails: its `last_seen` is below the floor, so the index cannot tell any more.
    TooOld,
    /// It fails: `seqno - last_seen` exceeds the maximal length (option `cert.max_length`).
    TooWide,
}

/// What certification says of a write-set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it commits.
    pub verdict: Verdict,
    /// It is to be applied only after all up to this seqno; always below its own. Also given for a write-set that failed,
    /// whose place in the order is taken by a dummy. A local transaction does not wait for it: its locks order it.
    pub depends_on: Seqno,
}

/// The certification index and its position in the order.
///
/// Call exactly one of [`certify`](Self::certify), [`view`](Self::view) and [`skip`](Self::skip) per seqno, in order, and
/// [`cut`](Self::cut) at the place where the cut was ordered: then all nodes have equal indexes at equal positions.
#[derive(Clone)]
pub struct Certification {
    pub(crate) position: Seqno,
    pub(crate) max_length: Seqno,
    /// Nothing is known of write-sets up to here: the last ordered cut, `position - max_length`, or the last reset.
    pub(crate) floor: Seqno,
    /// The last seqno that nothing may overtake: a view, PA-unsafe write-set or isolated action. Not below the floor.
    pub(crate) barrier: Seqno,
    /// The records above the floor, and those at or below it that are still to be purged.
    pub(crate) window: Window,
    index: Index,
    /// How many keys of the oldest record have been purged.
    purged_keys: usize,
}

impl Certification {
    /// An empty index that has accounted for all up to `position`. `max_length` (seqnos) must be equal on all nodes; see
    /// [`crate::DEFAULT_MAX_LENGTH`].
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
    /// If `request.seqno` is not `position() + 1`: going on would make this node's verdicts differ from the others'.
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

    /// A view took `seqno`. Nothing after it is applied before it.
    ///
    /// # Panics
    /// If `seqno` is not `position() + 1`.
    pub fn view(&mut self, seqno: Seqno) {
        self.skip(seqno);
        if !planted(Mutant::ViewIsNoBarrier) {
            self.barrier = seqno;
        }
    }

    /// Something without keys took `seqno`.
    ///
    /// # Panics
    /// If `seqno` is not `position() + 1`.
    pub fn skip(&mut self, seqno: Seqno) {
        self.advance(seqno);
        self.enter(Record::empty());
        self.purge(0);
    }

    /// A commit cut was ordered here: no write-set that is ordered from now on is expected to come from an origin that had
    /// seen less than `cut`. Such a one fails. A cut above the position counts as the position, one below the floor not.
    pub fn cut(&mut self, cut: Seqno) {
        self.raise_floor(cut.min(self.position));
        self.purge(0);
    }

    /// Starts afresh with an empty index at `seqno`: after a state transfer, or a change of history.
    pub fn reset(&mut self, seqno: Seqno) {
        *self = Certification::new(seqno, self.max_length);
    }

    /// What a write-set's origin must at least have seen; a function of the order only.
    pub fn floor(&self) -> Seqno {
        self.floor
    }

    /// The last seqno accounted for.
    pub fn position(&self) -> Seqno {
        self.position
    }

    /// Who sent the write-set of `seqno`, as [`Request::origin`] said. None for anything else, for one
    /// that failed, and for all at or below the floor.
    pub fn origin(&self, seqno: Seqno) -> Option<[u8; 16]> {
        let record = self.window.get(seqno).filter(|_| seqno > self.floor)?;
        record.writer()
    }

    /// The keys of the write-set of `seqno`, ascending; none for anything that entered no keys, nor below what is kept.
    pub fn keys_of(&self, seqno: Seqno) -> impl Iterator<Item = (u64, KeyType)> + '_ {
        let record = self.window.get(seqno).into_iter();
        record.flat_map(|record| record.keys().iter())
    }

    /// Hashes the part of the state that is small: the numbers, and what was entered at the position. For checking
    /// invariants.
    pub fn hash_head(&self, hasher: &mut impl Hasher) {
        let numbers = [self.max_length, self.position, self.floor, self.barrier];
        let last = Some(self.position).filter(|at| *at > self.floor);
        let record = last.and_then(|at| self.window.get(at));
        (numbers, record).hash(hasher);
    }

    /// Number of keys in memory. Keys that have fallen below the floor are purged a few per call and count until then.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no keys are in memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next seqno.
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
        // The floor and the barrier stand for all that the index has forgotten or never held.
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

    /// Enters what was decided for the position.
    pub(crate) fn enter(&mut self, record: Record) {
        self.index.make_room(record.keys().len());
        for key in record.keys().iter() {
            self.index
                .insert(key, self.position, record.source, &self.window);
        }
        self.window.push(record);
    }

    /// Forgets some of what is at or below the floor. It changes no result, so the work is spread: at least twice as many
    /// keys as the call brought (`extra_keys`), so that the backlog shrinks, but never a whole cut's worth in one call.
    fn purge(&mut self, extra_keys: usize) {
        const KEYS_PER_CALL: usize = 32;
        let mut budget = KEYS_PER_CALL + extra_keys;
        while let Some((seqno, record)) = self.window.front() {
            if seqno > self.floor || budget == 0 {
                break;
            }
            let keys = record.keys();
            let count = budget.min(keys.len() - self.purged_keys);
            for hash in keys.hashes().skip(self.purged_keys).take(count) {
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
                // Records without keys cost something too.
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
