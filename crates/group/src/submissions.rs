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

    /// True if this payload fits into `most_bytes` with the others of its origin, or is what those wait for. What is not
    /// kept is asked for when it is ordered, or sent again to be ordered.
    pub fn has_room(
        &self,
        origin: Incarnation,
        number: u64,
        payload: Option<&Bytes>,
        most_bytes: usize,
    ) -> bool {
        let len = payload.map_or(0, Bytes::len);
        let queue = self.pending.get(&origin);
        queue.is_none_or(|queue| {
            let is_first = queue.first().is_none_or(|first| number < first);
            is_first || queue.bytes + len <= most_bytes
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
    fn memory_for_what_is_not_ordered_is_bounded_but_for_the_first() {
        let mut submissions = Submissions::default();
        let quarter = Some(Bytes::from(vec![0; 100]));
        let has_room = |submissions: &Submissions, number, payload| {
            submissions.has_room(ORIGIN, number, payload, 400)
        };
        for number in 2..=5 {
            assert!(has_room(&submissions, number, quarter.as_ref()));
            submissions.keep(ORIGIN, number, quarter.clone());
            submissions.keep(ORIGIN, number, quarter.clone());
        }
        assert!(!has_room(&submissions, 6, quarter.as_ref()));
        assert!(has_room(&submissions, 1, quarter.as_ref()));
        assert!(submissions.take_next(ORIGIN, 1).is_some());
        submissions.ordered(SubmissionId {
            incarnation: ORIGIN,
            number: 3,
        });
        assert!(has_room(&submissions, 6, quarter.as_ref()));
        assert!(has_room(&submissions, 7, None));
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
