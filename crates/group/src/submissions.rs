//! Submissions on their way: own ones until they are delivered, everybody's until they are ordered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use trireme_mutants::{Mutant, planted};

use crate::codec::MAX_LIST;
use crate::ids::{Incarnation, SubmissionId, TimeMs};
use crate::message::{Message, Parcel};

/// So many own submissions are sent again at a time.
const RESEND_BATCH: usize = 256;
/// Digests of payloads that are remembered.
const DIGESTS_MAX: usize = 16;

/// A submission of this member.
#[derive(Clone, Debug, Hash)]
struct Own {
    /// None: withdrawn, its number is to be used up by a void (rule 9).
    payload: Option<Bytes>,
    /// The others have fetched it, all but its head, or do so: it is not sent as a whole.
    parcel: Option<(Parcel, Bytes)>,
    sent_at: TimeMs,
    /// Its client was told for certain that it has failed (rule 7).
    certain: bool,
}

/// A submission to be sent to the leader again; the leader keeps its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resent {
    pub number: u64,
    pub payload: Option<Bytes>,
    pub message: Message,
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

    /// Forgets the last ones until all take so much at most.
    fn shorten(&mut self, most_bytes: usize) {
        while self.bytes > most_bytes {
            let Some((_, payload)) = self.payloads.pop_last() else {
                break; // `bytes` is their sum
            };
            self.bytes -= payload.map_or(0, |payload| payload.len());
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
    own: BTreeMap<u64, Own>,
    /// Withdrawals of earlier connections of this process, until a view seats this one in their place (rule 7).
    withdrawn_before: BTreeSet<SubmissionId>,
    /// Payloads by origin and number, from their origins, not in the own log yet.
    pending: BTreeMap<Incarnation, Queue>,
    /// CRC-32C of large payloads, lest they be read once more.
    digests: VecDeque<(SubmissionId, u32)>,
}

impl Submissions {
    pub fn new(withdrawn_before: BTreeSet<SubmissionId>) -> Submissions {
        Submissions {
            withdrawn_before,
            ..Submissions::default()
        }
    }

    /// This member's next submission; without a payload it is withdrawn from the start. Gives what the others are to hear.
    pub fn submit(
        &mut self,
        number: u64,
        payload: Option<Bytes>,
        parcel: Option<(Parcel, Bytes)>,
        now: TimeMs,
    ) -> Message {
        assert_eq!(
            number,
            self.last_number + 1,
            "submissions are numbered without gaps"
        );
        self.last_number = number;
        let own = Own {
            payload,
            parcel,
            sent_at: now,
            certain: false,
        };
        let message = own.message(number);
        self.own.insert(number, own);
        message
    }

    /// What the leader may not have, of the numbers above `in_log`, sent so long ago. Of what was withdrawn only the last, whose
    /// void covers all: voided one by one, an early one could be while the leader orders a later one that it has.
    pub fn resend(&mut self, in_log: u64, older_than_ms: TimeMs, now: TimeMs) -> Vec<Resent> {
        let void = self.failed().last();
        let lives = |number: u64, own: &Own| {
            own.payload.is_some() || Some(number) == void || planted(Mutant::VoidedOneByOne)
        };
        let most = match older_than_ms {
            0 => usize::MAX,
            _ => RESEND_BATCH,
        };
        let due = self
            .own
            .iter_mut()
            .filter(|(number, own)| **number > in_log && now - own.sent_at >= older_than_ms)
            .filter(|(number, own)| lives(**number, own));
        let due = due.take(most).map(|(number, own)| {
            own.sent_at = now;
            Resent {
                number: *number,
                payload: own.payload.clone(),
                message: own.message(*number),
            }
        });
        due.collect()
    }

    /// Own submissions up to `number` lie below a checkpoint: ordered, but never to be delivered here one by one. Of those above
    /// it nothing is known for certain any more: they may have been ordered on another branch of the history (rule 11), or so
    /// long ago that their number was forgotten ([`crate::Numbers`]). A void of the last uses up the numbers of all, or
    /// the next submission would wait for them. Gives those whose clients wait.
    pub fn cover(&mut self, number: u64, now: TimeMs) -> Vec<u64> {
        let later = self.own.split_off(&(number + 1));
        let covered = std::mem::replace(&mut self.own, later);
        let later = self.own.iter_mut();
        let live = later.filter_map(|(number, own)| Some((*number, own.payload.take()?)));
        let covered = covered.into_iter();
        let covered = covered.filter_map(|(number, own)| Some((number, own.payload?)));
        let failed: Vec<u64> = covered.chain(live).map(|(number, _)| number).collect();
        if number < self.last_number {
            let void = Own {
                payload: None,
                parcel: None,
                sent_at: now,
                certain: false,
            };
            self.own.entry(self.last_number).or_insert(void);
        }
        failed
    }

    /// No majority: what can be known of each own submission that lives, and whether it failed for certain. `needed`: nothing was
    /// committed without this member; `in_order`: the last number that may have been ordered.
    pub fn withdraw(&mut self, needed: bool, in_order: u64) -> Vec<(u64, bool)> {
        let mut withdrawn = Vec::new();
        for (number, own) in &mut self.own {
            if own.payload.take().is_some() {
                own.certain = needed && *number > in_order;
                withdrawn.push((*number, own.certain));
            }
        }
        withdrawn
    }

    /// A view seats this process: entries above it under the earlier names are void (rule 9).
    pub fn seated(&mut self) {
        self.withdrawn_before.clear();
    }

    /// The withdrawals that a promise lists: those of earlier connections, then those of this one.
    pub fn withdrawals(&self, me: Incarnation) -> Vec<SubmissionId> {
        let mut all: Vec<_> = self.withdrawn_before.iter().copied().collect();
        let own = self.withdrawn(me);
        let room = MAX_LIST.saturating_sub(all.len());
        all.extend_from_slice(&own[own.len().saturating_sub(room)..]);
        all
    }

    /// Those of which clients were told for certain, here and in earlier connections.
    pub fn certain_withdrawals(&self, me: Incarnation) -> BTreeSet<SubmissionId> {
        let certain = self.own.iter().filter(|(_, own)| own.certain);
        let certain = certain.map(|(number, _)| SubmissionId {
            incarnation: me,
            number: *number,
        });
        let before = self.withdrawn_before.iter().copied();
        let all: BTreeSet<_> = before.chain(certain).collect();
        all.into_iter().take(MAX_LIST).collect()
    }

    /// Ages of stamps, for the model check.
    #[cfg(feature = "model")]
    pub fn sent_at(&mut self) -> impl Iterator<Item = &mut TimeMs> {
        self.own.values_mut().map(|own| &mut own.sent_at)
    }

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

    /// The parcel that an own submission was handed in as.
    pub fn parcel_of(&self, number: u64) -> Option<u64> {
        let (parcel, _) = self.own.get(&number)?.parcel.as_ref()?;
        Some(parcel.number)
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

    /// Keeps what came in if it takes `most_bytes` at most together with the others of its origin. They wait for the first
    /// of them, so the last ones give way to a new first one. What is not kept is asked for when it is ordered, or sent again
    /// to be ordered.
    pub fn keep_within(
        &mut self,
        most_bytes: usize,
        origin: Incarnation,
        number: u64,
        payload: Option<Bytes>,
    ) {
        let len = payload.as_ref().map_or(0, Bytes::len);
        let queue = self.pending.entry(origin).or_default();
        let is_first = queue.first().is_none_or(|first| number < first);
        if is_first {
            queue.shorten(most_bytes.saturating_sub(len));
        }
        if is_first || queue.bytes + len <= most_bytes {
            self.keep(origin, number, payload);
        }
    }

    /// Bytes of payloads of this origin that wait to be ordered.
    pub fn bytes_of(&self, origin: Incarnation) -> usize {
        self.pending.get(&origin).map_or(0, |queue| queue.bytes)
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
    fn withdrawn(&self, me: Incarnation) -> Vec<SubmissionId> {
        let id = |number| SubmissionId {
            incarnation: me,
            number,
        };
        let failed: Vec<_> = self.failed().map(id).collect();
        failed[failed.len().saturating_sub(MAX_LIST)..].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Uuid;

    const ORIGIN: Incarnation = Incarnation(Uuid([1; 16]));

    #[test]
    fn memory_for_what_is_not_ordered_is_bounded_and_the_first_is_kept() {
        const MOST_BYTES: usize = 400;
        let mut submissions = Submissions::default();
        let quarter = Some(Bytes::from(vec![0; 100]));
        let come = |submissions: &mut Submissions, number, payload: &Option<Bytes>| {
            submissions.keep_within(MOST_BYTES, ORIGIN, number, payload.clone());
            assert!(submissions.bytes_of(ORIGIN) <= MOST_BYTES);
            let kept = submissions.pending[&ORIGIN].payloads.keys();
            kept.copied().collect::<Vec<u64>>()
        };
        for number in 6..=9 {
            come(&mut submissions, number, &quarter);
        }
        assert_eq!(come(&mut submissions, 10, &quarter), [6, 7, 8, 9]);
        assert_eq!(come(&mut submissions, 5, &quarter), [5, 6, 7, 8]);
        // A peer cannot get past the bound by counting downwards.
        assert_eq!(come(&mut submissions, 4, &quarter), [4, 5, 6, 7]);
        assert!(submissions.take_next(ORIGIN, 3).is_some());
        assert_eq!(come(&mut submissions, 8, &quarter), [5, 6, 7, 8]);
        assert_eq!(come(&mut submissions, 10, &None), [10]);
    }

    #[test]
    fn of_what_was_withdrawn_only_the_last_is_sent_again() {
        let mut submissions = Submissions::default();
        for number in 1..=3 {
            submissions.submit(number, Some(Bytes::from_static(b"x")), None, 5);
        }
        assert_eq!(
            submissions.withdraw(true, 1),
            [(1, false), (2, true), (3, true)]
        );
        submissions.submit(4, Some(Bytes::from_static(b"x")), None, 5);
        let resent = submissions.resend(0, 0, 6).into_iter();
        let resent: Vec<_> = resent.map(|r| (r.number, r.payload.is_some())).collect();
        assert_eq!(resent, [(3, false), (4, true)]);
        let certain = submissions.certain_withdrawals(ORIGIN).into_iter();
        assert_eq!(certain.map(|id| id.number).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn what_a_checkpoint_covers_fails_and_a_void_uses_up_the_rest() {
        let mut submissions = Submissions::default();
        for number in 1..=3 {
            submissions.submit(number, Some(Bytes::from_static(b"x")), None, 5);
        }
        assert_eq!(submissions.cover(1, 6), [1, 2, 3]);
        let resent = submissions.resend(1, 0, 6);
        assert_eq!(resent.len(), 1);
        assert_eq!((resent[0].number, &resent[0].payload), (3, &None));
    }

    #[test]
    fn a_first_payload_beyond_the_bound_is_kept_alone() {
        let mut submissions = Submissions::default();
        submissions.keep_within(400, ORIGIN, 2, Some(Bytes::from(vec![0; 100])));
        submissions.keep_within(400, ORIGIN, 1, Some(Bytes::from(vec![0; 500])));
        assert_eq!(submissions.bytes_of(ORIGIN), 500);
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
                certain: false,
            };
            submissions.own.insert(number, void);
        }
        let withdrawn = submissions.withdrawn(ORIGIN);
        assert_eq!(withdrawn.len(), MAX_LIST);
        assert_eq!(withdrawn.first().map(|id| id.number), Some(11));
        assert_eq!(withdrawn.last().map(|id| id.number), Some(last));
    }
}
