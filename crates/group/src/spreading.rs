//! Large payloads of this member, until the others have them: ordered before that, one would hold up
//! everything behind it (rule 8). One is offered at a time; the others fetch it at their own pace.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use crc32c::{crc32c, crc32c_combine};
use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::event::Action;
use crate::group::{Group, Role};
use crate::ids::{Incarnation, ParcelId, SubmissionId, TimeMs};
use crate::message::{Message, Parcel};

/// An offer is repeated after this time to those who have not fetched everything.
const OFFER_AGAIN_MS: TimeMs = 1_000;

/// A parcel that is not submitted yet.
#[derive(Clone, Debug, Hash)]
struct Spread {
    parcel: Parcel,
    payload: Bytes,
    held_by: BTreeSet<Incarnation>,
    /// When it was offered last; None: its turn has not come.
    offered_at: Option<TimeMs>,
    /// What the log was given of it.
    staged: u32,
    /// So much of that is written; u32::MAX: it is not to be given any.
    kept: u32,
    /// The replicator knows that it may be submitted.
    told: bool,
}

/// Own parcels, in the order in which they were handed in.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Spreading {
    queue: VecDeque<Spread>,
    last_number: u64,
}

impl Spreading {
    pub fn payload(&self, parcel: u64) -> Option<&Bytes> {
        let spread = self.queue.iter().find(|s| s.parcel.number == parcel)?;
        Some(&spread.payload)
    }

    /// True if there ever was one.
    pub fn has_spread(&self) -> bool {
        self.last_number > 0
    }

    /// Forgets all; gives their numbers, and whether they may be submitted already.
    fn give_up(&mut self) -> Vec<(u64, bool)> {
        let queue = std::mem::take(&mut self.queue).into_iter();
        queue
            .map(|spread| (spread.parcel.number, spread.told))
            .collect()
    }

    fn take(&mut self, number: u64) -> Option<Spread> {
        let index = (self.queue.iter()).position(|s| s.parcel.number == number)?;
        self.queue.remove(index)
    }
}

impl Group {
    /// Hands in a large payload, which the others are to hold before it is submitted: this member's
    /// parcel `number` (ascending). Its first `head` bytes come with the submission; `digest` is the
    /// CRC-32C of the rest. [`Action::Spread`] says that it may be submitted: also if the majority is
    /// lost; then it is forgotten, and its submission fails.
    pub fn spread(&mut self, now: TimeMs, number: u64, payload: Bytes, head: u32, digest: u32) {
        self.context.advance(now);
        assert!(
            number > self.spreading.last_number,
            "parcels are numbered in ascending order"
        );
        self.spreading.last_number = number;
        if !self.component.is_primary() {
            self.out.push(Action::Spread { parcel: number });
            return;
        }
        let parcel = Parcel {
            number,
            len: u32::try_from(payload.len()).expect("wsrep bounds a write-set at 2 GiB"),
            head,
            digest,
        };
        self.spreading.queue.push_back(Spread {
            parcel,
            payload,
            held_by: BTreeSet::new(),
            offered_at: None,
            staged: 0,
            kept: 0,
            told: false,
        });
    }

    /// A parcel is not to be submitted any more.
    pub fn recall(&mut self, number: u64) {
        if self.spreading.take(number).is_some() {
            self.unstage_own(number);
            self.offer_to(self.known().others());
        }
    }

    /// Submits a parcel as this member's submission `number` (see [`Group::submit`]). `head` is what
    /// was missing of it.
    pub fn submit_parcel(&mut self, now: TimeMs, number: u64, parcel: u64, head: Bytes) {
        let Some(Spread {
            parcel,
            payload,
            staged,
            ..
        }) = self.spreading.take(parcel)
        else {
            // Forgotten with the majority.
            return self.submit_own(now, number, None, None);
        };
        if staged < parcel.len {
            self.unstage_own(parcel.number);
        }
        let id = SubmissionId {
            incarnation: self.me(),
            number,
        };
        let payload = self.fill_in(parcel, payload, id, &head);
        self.submit_own(now, number, Some(payload), Some((parcel, head)));
    }

    /// A parcel becomes the payload of this submission, with the bytes that were missing at its begin.
    pub(crate) fn fill_in(
        &mut self,
        parcel: Parcel,
        payload: Bytes,
        id: SubmissionId,
        head: &[u8],
    ) -> Bytes {
        let rest = payload.len() - head.len();
        let digest = crc32c_combine(crc32c(head), parcel.digest, rest);
        self.submissions.note_digest(id, digest);
        self.out.push(Action::Staged {
            parcel: parcel.id(id.incarnation),
            id,
            head: parcel.head,
            digest,
        });
        with_head(payload, head)
    }

    fn own_parcel_id(&self, number: u64) -> ParcelId {
        ParcelId {
            origin: self.me(),
            number,
        }
    }

    fn unstage_own(&mut self, number: u64) {
        let parcel = self.own_parcel_id(number);
        self.out.push(Action::Unstage { parcel });
    }

    /// The majority is lost. The others are told: what they hold of it would take up their room until
    /// the next offer, and keep other origins waiting (seed 16021361).
    pub(crate) fn give_up_spreading(&mut self) {
        let given_up = self.spreading.give_up();
        if !given_up.is_empty() {
            self.offer_to(self.known().others());
        }
        for (parcel, told) in given_up {
            self.unstage_own(parcel);
            if !told {
                self.out.push(Action::Spread { parcel });
            }
        }
    }

    /// Gives the log a piece of an own parcel when it is fetched for the first time: a piece at a time.
    pub(crate) fn stage_own(&mut self, number: u64, offset: u32, len: u32) {
        let mut queue = self.spreading.queue.iter_mut();
        let spread = queue.find(|spread| spread.parcel.number == number);
        let least = self.context.config().staged_bytes;
        let is_next =
            |s: &&mut Spread| s.parcel.len >= least && s.staged == offset && s.kept != u32::MAX;
        let Some(spread) = spread.filter(is_next) else {
            return;
        };
        let until = offset.saturating_add(len).min(spread.parcel.len);
        spread.staged = until;
        let bytes = spread.payload.slice(offset as usize..until as usize);
        let parcel = self.own_parcel_id(number);
        self.out.push(Action::Stage {
            parcel,
            offset,
            bytes,
        });
    }

    pub(crate) fn own_staged(&mut self, number: u64, until: u32) {
        let mut queue = self.spreading.queue.iter_mut();
        if let Some(spread) = queue.find(|spread| spread.parcel.number == number) {
            spread.kept = spread.kept.max(until);
        }
    }

    /// Says what may be submitted, and offers the next.
    pub(crate) fn pursue_spreading(&mut self) {
        loop {
            let waiting = (self.spreading.queue.iter()).position(|spread| !spread.told);
            let Some(index) = waiting else {
                return;
            };
            let spread = &self.spreading.queue[index];
            // What is not written yet would have to be when it is appended, at once.
            let is_written = spread.kept >= spread.staged;
            let is_held = self.is_held(&spread.held_by) && is_written;
            if is_held || planted(Mutant::LargeNotAwaited) {
                let spread = &mut self.spreading.queue[index];
                spread.told = true;
                let parcel = spread.parcel.number;
                self.out.push(Action::Spread { parcel });
                continue;
            }
            if spread.offered_at.is_none() {
                self.spreading.queue[index].offered_at = Some(self.context.now());
                self.offer_to(self.known().others());
            }
            return;
        }
    }

    /// More than half of the votes, and the sequencer, who would have to wait for it.
    fn is_held(&self, held_by: &BTreeSet<Incarnation>) -> bool {
        let me = self.me();
        let holds = |m: &Member| m.incarnation == me || held_by.contains(&m.incarnation);
        let is_majority = |configuration: &Configuration| {
            configuration.is_majority(configuration.weight_of(holds))
        };
        let sequencer = match self.role {
            Role::Sequencer(_) => true,
            _ => (self.sequencer_in_office()).is_some_and(|office| held_by.contains(&office)),
        };
        sequencer && self.log.in_every_configuration(is_majority)
    }

    /// Called by the tick: offers and what came of them may be lost.
    pub(crate) fn offer_again(&mut self) {
        let now = self.context.now();
        let due =
            |s: &&mut Spread| !s.told && s.offered_at.is_some_and(|at| now >= at + OFFER_AGAIN_MS);
        let Some(spread) = self.spreading.queue.iter_mut().find(due) else {
            return;
        };
        spread.offered_at = Some(now);
        let held_by = spread.held_by.clone();
        let others = self.known().others().into_iter();
        self.offer_to(others.filter(|m| !held_by.contains(m)).collect());
    }

    /// A connection is new, or lost something.
    pub(crate) fn offer_anew(&mut self, peer: Incarnation) {
        if self.spreading.last_number > 0 && self.log.latest().member(peer).is_some() {
            self.offer_to(vec![peer]);
        }
    }

    fn offer_to(&mut self, to: Vec<Incarnation>) {
        let queue = &self.spreading.queue;
        let oldest = queue.front().map(|spread| spread.parcel.number);
        let offered = queue
            .iter()
            .find(|s| s.offered_at.is_some() && !s.told)
            .map(|s| s.parcel);
        let message = Message::Offer {
            oldest: oldest.unwrap_or(self.spreading.last_number + 1),
            parcel: offered,
        };
        self.send_all(to, message);
    }

    /// A member has all of a parcel.
    pub(crate) fn held(&mut self, from: Incarnation, parcel: u64) {
        let mut queue = self.spreading.queue.iter_mut();
        if let Some(spread) = queue.find(|spread| spread.parcel.number == parcel) {
            spread.held_by.insert(from);
        }
    }
}

/// The payload with its first bytes. Copies it only if a part of it is still about to be sent.
fn with_head(payload: Bytes, head: &[u8]) -> Bytes {
    let mut bytes = payload
        .try_into_mut()
        .unwrap_or_else(|shared| shared[..].into());
    bytes[..head.len()].copy_from_slice(head);
    bytes.freeze()
}
