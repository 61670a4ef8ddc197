//! Submissions on their way: own ones until they are delivered, everybody's until they are ordered.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use trireme_mutants::{Mutant, planted};

use crate::codec::MAX_LIST;
use crate::event::{Action, Fate};
use crate::group::{Group, Role};
use crate::ids::{Ballot, Incarnation, Position, SubmissionId, TimeMs};
use crate::message::{Message, Parcel, Standing};

/// An origin that runs further ahead of the order than this is not believed.
const NUMBERS_AHEAD_MAX: u64 = 1 << 20;
/// What one origin has submitted and is not ordered takes so much memory at most, but for what is first.
const PENDING_BYTES_MAX: usize = 1 << 30;
/// Own submissions unordered for this long are sent to the sequencer again.
pub(crate) const RESEND_AFTER_MS: TimeMs = 1_000;
/// How many at a time.
const RESEND_BATCH: usize = 256;
/// Digests of payloads that are remembered.
const DIGESTS_MAX: usize = 16;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Own {
    /// None: withdrawn, its number is to be used up by a void (rule 9).
    payload: Option<Bytes>,
    /// The others have fetched it, all but its head, or do so: it is not sent as a whole.
    parcel: Option<(Parcel, Bytes)>,
    pub sent_at: TimeMs,
}

impl Own {
    fn message(&self, number: u64) -> Message {
        match &self.parcel {
            Some((parcel, head)) if self.payload.is_some() => Message::SubmitParcel {
                number,
                parcel: *parcel,
                head: head.clone(),
            },
            _ => Message::Submit {
                number,
                payload: self.payload.clone(),
            },
        }
    }
}

/// Payloads of one origin by number; None: void.
#[derive(Clone, Debug, Default, Hash)]
struct Queue {
    payloads: BTreeMap<u64, Option<Bytes>>,
    bytes: usize,
}

impl Queue {
    fn insert(&mut self, number: u64, payload: Option<Bytes>) {
        self.remove(number);
        self.bytes += payload.as_ref().map_or(0, Bytes::len);
        self.payloads.insert(number, payload);
    }

    fn remove(&mut self, number: u64) -> Option<Option<Bytes>> {
        let payload = self.payloads.remove(&number)?;
        self.bytes -= payload.as_ref().map_or(0, Bytes::len);
        Some(payload)
    }

    fn forget_to(&mut self, number: u64) {
        while let Some(first) = self.first().filter(|first| *first <= number) {
            self.remove(first);
        }
    }

    fn first(&self) -> Option<u64> {
        self.payloads.keys().next().copied()
    }
}

/// Submissions not yet delivered.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Submissions {
    last_number: u64,
    pub own: BTreeMap<u64, Own>,
    /// Payloads by origin and number, from their origins, not in the own log yet.
    pending: BTreeMap<Incarnation, Queue>,
    /// CRC-32C of large payloads, lest they be read once more.
    digests: VecDeque<(SubmissionId, u32)>,
}

impl Submissions {
    /// Payload of a submission that an order record refers to.
    pub fn payload(&self, me: Incarnation, id: SubmissionId) -> Option<&Bytes> {
        if id.incarnation == me {
            if let Some(payload) = self
                .own
                .get(&id.number)
                .and_then(|own| own.payload.as_ref())
            {
                return Some(payload);
            }
        }
        let queue = self.pending.get(&id.incarnation)?;
        queue.payloads.get(&id.number)?.as_ref()
    }

    /// The payload of an own parcel that was submitted.
    pub fn own_parcel(&self, number: u64) -> Option<&Bytes> {
        let is_it = |own: &&Own| own.parcel.as_ref().is_some_and(|(p, _)| p.number == number);
        self.own.values().find(is_it)?.payload.as_ref()
    }

    /// The digest of a payload is known.
    pub fn note_digest(&mut self, id: SubmissionId, digest: u32) {
        if self.digests.len() == DIGESTS_MAX {
            self.digests.pop_front();
        }
        self.digests.push_back((id, digest));
    }

    /// The digest of a payload.
    pub fn digest(&self, id: SubmissionId, payload: &[u8]) -> u32 {
        let known = self.digests.iter().find(|(known, _)| *known == id);
        known.map_or_else(|| crc32c::crc32c(payload), |(_, digest)| *digest)
    }

    /// Keeps a payload that came in from its origin, or its word that this and all before it are withdrawn.
    pub fn keep(&mut self, origin: Incarnation, number: u64, payload: Option<Bytes>) {
        let queue = self.pending.entry(origin).or_default();
        if payload.is_none() {
            queue.forget_to(number);
        }
        queue.insert(number, payload);
    }

    /// True if memory is left for this payload, or it is what the others wait for. What is not kept is asked for when it
    /// is ordered, or sent again to be ordered.
    fn has_room(&self, origin: Incarnation, number: u64, payload: Option<&Bytes>) -> bool {
        let len = payload.map_or(0, Bytes::len);
        let queue = self.pending.get(&origin);
        queue.is_none_or(|queue| {
            let is_first = queue.first().is_none_or(|first| number < first);
            is_first || queue.bytes + len <= PENDING_BYTES_MAX
        })
    }

    /// The next submission of `origin` after `last`, removed: the one that follows, or a void that covers it.
    pub fn take_next(&mut self, origin: Incarnation, last: u64) -> Option<(u64, Option<Bytes>)> {
        let queue = self.pending.get_mut(&origin)?;
        let (&number, payload) = queue.payloads.range(last + 1..).next()?;
        if payload.is_some() && number != last + 1 {
            return None;
        }
        queue.remove(number).map(|payload| (number, payload))
    }

    /// Forgets everything at or below `number`, which is in the log.
    pub fn ordered(&mut self, id: SubmissionId) {
        if let Some(queue) = self.pending.get_mut(&id.incarnation) {
            queue.forget_to(id.number);
        }
    }

    /// An own submission was delivered, or a void of its number and of those before it.
    pub fn delivered(&mut self, number: u64) {
        while (self.own.first_key_value()).is_some_and(|(first, _)| *first <= number) {
            self.own.pop_first();
        }
    }

    /// Drops what comes from processes outside `members`.
    pub fn retain_origins(&mut self, is_member: impl Fn(Incarnation) -> bool) {
        self.pending.retain(|origin, _| is_member(*origin));
    }

    /// Numbers of own submissions that were reported as failed: the oldest, down to the first that lives. One
    /// behind that is told of when its turn comes, since a void covers what is before it.
    fn failed(&self) -> impl Iterator<Item = u64> {
        let failed = self.own.iter().take_while(|(_, own)| own.payload.is_none());
        failed.map(|(number, _)| *number)
    }

    /// Own submissions that were reported as failed, for a promise: the newest, of more than a message holds. Older ones are
    /// but the numbers of what was delivered on another branch (`fail_covered`).
    pub fn withdrawn(&self, me: Incarnation) -> Vec<SubmissionId> {
        let id = |number| SubmissionId {
            incarnation: me,
            number,
        };
        let failed: Vec<_> = self.failed().map(id).collect();
        failed[failed.len().saturating_sub(MAX_LIST)..].to_vec()
    }
}

impl Group {
    /// Submits `payload` as this member's submission `number` (1, 2, 3, ... per incarnation). It
    /// comes back as a delivery or as [`Action::Failed`].
    pub fn submit(&mut self, now: TimeMs, number: u64, payload: Bytes) {
        self.submit_own(now, number, Some(payload), None);
    }

    /// None: a parcel that was forgotten with the majority.
    pub(crate) fn submit_own(
        &mut self,
        now: TimeMs,
        number: u64,
        payload: Option<Bytes>,
        parcel: Option<(Parcel, Bytes)>,
    ) {
        self.now = self.now.max(now);
        assert_eq!(
            number,
            self.submissions.last_number + 1,
            "submissions are numbered without gaps"
        );
        self.submissions.last_number = number;
        let id = SubmissionId {
            incarnation: self.me(),
            number,
        };
        let payload = payload.filter(|_| self.standing == Standing::Primary);
        let own = Own {
            payload: payload.clone(),
            parcel,
            sent_at: self.now,
        };
        let message = own.message(number);
        let is_parcel = own.parcel.is_some();
        self.submissions.own.insert(number, own);
        let Some(payload) = payload else {
            self.out.push(Action::Failed {
                id,
                fate: Fate::Withdrawn,
            });
            return;
        };
        let orders = matches!(self.role, Role::Sequencer(_));
        if orders {
            // Travels with its order record.
            self.submissions.keep(id.incarnation, number, Some(payload));
        }
        if !orders || is_parcel {
            self.send_all(self.others(), message);
        }
    }

    pub(crate) fn take_submission(
        &mut self,
        from: Incarnation,
        number: u64,
        payload: Option<Bytes>,
    ) {
        let has_room = (self.submissions).has_room(from, number, payload.as_ref());
        if self.is_expected(from, number) && has_room {
            self.submissions.keep(from, number, payload);
        }
    }

    /// True for a submission of a member that is not ordered yet, as far as is known.
    pub(crate) fn is_expected(&self, from: Incarnation, number: u64) -> bool {
        let Some(replica) = self.peers.get(&from).map(|peer| peer.replica) else {
            return false; // `message` has looked it up
        };
        let ordered = self.committed.last_number(replica, from).unwrap_or(0);
        let believable = number > ordered && number <= ordered + NUMBERS_AHEAD_MAX;
        let seated = self.latest().member(from).is_some();
        believable && (seated || planted(Mutant::EvictedDelivered))
    }

    /// True for what is ordered before everything else of its origin.
    pub(crate) fn is_next_of(&self, from: Incarnation, number: u64) -> bool {
        let replica = self.peers.get(&from).map(|peer| peer.replica);
        let committed = replica.and_then(|replica| self.committed.last_number(replica, from));
        number <= committed.unwrap_or(0).max(self.tail_number(from)) + 1
    }

    /// Sends the sequencer what it may not have: after a new ballot, a broken connection, or when
    /// something has been on its way for too long. Of what was withdrawn only the last, whose void covers
    /// all: voided one by one, an early one could be while the sequencer orders a later one that it has.
    pub(crate) fn resend_own(&mut self, older_than_ms: TimeMs) {
        let me = self.me();
        let now = self.now;
        let in_log = self.tail_number(me);
        let void = self.submissions.failed().last();
        let lives = |number: u64, own: &Own| {
            own.payload.is_some() || Some(number) == void || planted(Mutant::VoidedOneByOne)
        };
        let due: Vec<(u64, Own)> = self
            .submissions
            .own
            .iter_mut()
            .filter(|(number, own)| **number > in_log && now - own.sent_at >= older_than_ms)
            .filter(|(number, own)| lives(**number, own))
            .take(if older_than_ms == 0 {
                usize::MAX
            } else {
                RESEND_BATCH
            })
            .map(|(number, own)| {
                own.sent_at = now;
                (*number, own.clone())
            })
            .collect();
        if due.is_empty() {
            return;
        }
        if matches!(self.role, Role::Sequencer(_)) {
            for (number, own) in due {
                self.submissions.keep(me, number, own.payload);
            }
        } else if let Some(sequencer) = self.sequencer() {
            for (number, own) in due {
                self.send(sequencer, own.message(number));
            }
        }
    }

    pub(crate) fn resend_overdue(&mut self) {
        self.resend_own(RESEND_AFTER_MS);
    }

    /// The last of `origin`'s numbers in the own log.
    pub(crate) fn tail_number(&self, origin: Incarnation) -> u64 {
        let committed = self
            .committed
            .last_number(self.my_replica(), origin)
            .unwrap_or(0);
        let in_tail = self
            .tail
            .above(self.committed.position)
            .filter_map(|entry| entry.submission());
        in_tail
            .filter(|id| id.incarnation == origin)
            .map(|id| id.number)
            .fold(committed, u64::max)
    }

    /// Own submissions up to `number` lie below a checkpoint: ordered, but never to be delivered
    /// here one by one. Those above it that were delivered already were so on another branch of the
    /// history (rule 11): their numbers are used up by voids, or the next ones would wait for them.
    pub(crate) fn fail_covered(&mut self, number: u64) {
        let later = self.submissions.own.split_off(&(number + 1));
        for (number, own) in std::mem::replace(&mut self.submissions.own, later) {
            if own.payload.is_some() {
                let id = SubmissionId {
                    incarnation: self.me(),
                    number,
                };
                self.out.push(Action::Failed {
                    id,
                    fate: Fate::Unknown,
                });
            }
        }
        for number in number + 1..=self.submissions.last_number {
            let void = Own {
                payload: None,
                parcel: None,
                sent_at: self.now,
            };
            self.submissions.own.entry(number).or_insert(void);
        }
        self.resend_own(0);
    }

    /// No majority: every waiting client learns what can be known (rule 7).
    pub(crate) fn withdraw_own(&mut self) {
        let me = self.me();
        let in_log = self.tail_number(me);
        let in_order: Position = self
            .incoming
            .iter()
            .filter_map(|entry| entry.submission())
            .filter(|id| id.incarnation == me)
            .map(|id| id.number)
            .fold(in_log, u64::max);
        // Without this member's vote nothing can have been committed, and it gives none any more.
        let needed = self.in_every_configuration(|configuration| {
            let own = configuration
                .member(me)
                .map_or(0, |member| u64::from(member.weight));
            !configuration.is_majority(configuration.total_weight() - own)
        });
        let mut withdrawn = false;
        for (number, own) in &mut self.submissions.own {
            if own.payload.take().is_some() {
                let definite = needed && *number > in_order;
                withdrawn |= definite;
                let fate = if definite {
                    Fate::Withdrawn
                } else {
                    Fate::Unknown
                };
                let id = SubmissionId {
                    incarnation: me,
                    number: *number,
                };
                self.out.push(Action::Failed { id, fate });
            }
        }
        self.submissions.pending.remove(&me);
        self.give_up_spreading();
        if withdrawn {
            // The sequencer may have ordered it all the same: only a new ballot, whose promises
            // tell of the withdrawal, may go on from here.
            let number = self.promised.number.max(self.number_seen) + 1;
            self.promise_ballot(Ballot {
                number,
                replica: self.my_replica(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Uuid;

    const ORIGIN: Incarnation = Incarnation(Uuid([1; 16]));

    #[test]
    fn memory_for_what_is_not_ordered_is_bounded_but_for_the_first() {
        let mut submissions = Submissions::default();
        let quarter = Some(Bytes::from(vec![0; PENDING_BYTES_MAX / 4]));
        for number in 2..=5 {
            assert!(submissions.has_room(ORIGIN, number, quarter.as_ref()));
            submissions.keep(ORIGIN, number, quarter.clone());
            submissions.keep(ORIGIN, number, quarter.clone());
        }
        assert!(!submissions.has_room(ORIGIN, 6, quarter.as_ref()));
        assert!(submissions.has_room(ORIGIN, 1, quarter.as_ref()));
        assert!(submissions.take_next(ORIGIN, 1).is_some());
        submissions.ordered(SubmissionId {
            incarnation: ORIGIN,
            number: 3,
        });
        assert!(submissions.has_room(ORIGIN, 6, quarter.as_ref()));
        assert!(submissions.has_room(ORIGIN, 7, None));
    }

    #[test]
    fn the_newest_withdrawals_are_told_and_no_more_than_fit() {
        let mut submissions = Submissions::default();
        let last = MAX_LIST as u64 + 10;
        for number in 1..=last {
            let void = Own {
                payload: None,
                parcel: None,
                sent_at: 0,
            };
            submissions.own.insert(number, void);
        }
        let withdrawn = submissions.withdrawn(ORIGIN);
        assert_eq!(withdrawn.len(), MAX_LIST);
        assert_eq!(withdrawn.first().map(|id| id.number), Some(11));
        assert_eq!(withdrawn.last().map(|id| id.number), Some(last));
    }
}
