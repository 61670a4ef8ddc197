//! Submissions on their way: own ones until they are delivered, everybody's until they are ordered.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::codec::MAX_LIST;
use crate::ids::{Incarnation, SubmissionId, TimeMs};
use crate::message::{Message, Parcel};

/// Digests of payloads that are remembered.
const DIGESTS_MAX: usize = 16;

/// A submission of this member.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Own {
    /// None: withdrawn, its number is to be used up by a void (rule 9).
    pub payload: Option<Bytes>,
    /// The others have fetched it, all but its head, or do so: it is not sent as a whole.
    pub parcel: Option<(Parcel, Bytes)>,
    pub sent_at: TimeMs,
    /// Its client was told for certain that it has failed (rule 7).
    pub certain: bool,
}

impl Own {
    pub fn message(&self, number: u64) -> Message {
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
    pub last_number: u64,
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
    pub fn failed(&self) -> impl Iterator<Item = u64> {
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
