//! Submissions on their way: own ones until they are delivered, those of all origins until they are ordered.
//!
//! In: payloads, and word of ordered and delivered entries. Out: messages to resend, withdrawals, and the payloads that
//! order records refer to. Numbers have no gaps; one void covers all withdrawn numbers before it (rule 9).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use trireme_mutants::{Mutant, planted};

use crate::codec::MAX_LIST;
use crate::ids::{Incarnation, SubmissionId, TimeMs, Uuid};
use crate::message::{BulkPayload, Message};

/// Greatest number of own submissions that are sent again at a time.
const RESEND_BATCH: usize = 256;
/// Greatest number of payload digests that are remembered.
const DIGESTS_MAX: usize = 16;

/// A submission of this member.
#[derive(Clone, Debug, Hash)]
struct Own {
    /// None: the submission is withdrawn, and a void must use up its number (rule 9).
    payload: Option<Bytes>,
    /// The bulk payload and its head. The others fetch the payload, so only the head is sent.
    bulk: Option<(BulkPayload, Bytes)>,
    sent_at: TimeMs,
    /// The last forced view in the log when it was submitted: its branch of the history (rule 11).
    branch: Option<Uuid>,
    /// True if its client was told that it has failed for certain (rule 7).
    certain: bool,
}

/// A submission that is sent to the leader again. If this member leads, it keeps the payload itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resent {
    pub number: u64,
    pub payload: Option<Bytes>,
    pub message: Message,
}

impl Own {
    fn message(&self, number: u64) -> Message {
        match &self.bulk {
            Some((bulk, head)) if self.payload.is_some() => Message::SubmitBulk {
                number,
                bulk: *bulk,
                head: head.clone(),
            },
            _ => Message::Submit {
                number,
                payload: self.payload.clone(),
            },
        }
    }
}

/// Payloads of one origin by number.
#[derive(Clone, Debug, Default, Hash)]
struct Queue {
    payloads: BTreeMap<u64, Bytes>,
    bytes: usize,
    /// The origin has withdrawn this number and all before it. The payload of one may still come in, because a log
    /// already has it, or its last part was on its way. The leader orders the void all the same (rule 7).
    void: Option<u64>,
}

impl Queue {
    fn insert(&mut self, number: u64, payload: Bytes) {
        self.remove(number);
        self.bytes += payload.len();
        self.payloads.insert(number, payload);
    }

    fn remove(&mut self, number: u64) -> Option<Bytes> {
        let payload = self.payloads.remove(&number)?;
        self.bytes -= payload.len();
        Some(payload)
    }

    fn withdraw_to(&mut self, number: u64) {
        self.forget_to(number);
        self.void = self.void.max(Some(number));
    }

    fn forget_to(&mut self, number: u64) {
        self.void = self.void.filter(|void| *void > number);
        while let Some(first) = self.first().filter(|first| *first <= number) {
            self.remove(first);
        }
    }

    /// Drops the last payloads until the rest takes at most `most_bytes`.
    fn shorten(&mut self, most_bytes: usize) {
        while self.bytes > most_bytes {
            let Some((_, payload)) = self.payloads.pop_last() else {
                break; // `bytes` is their sum
            };
            self.bytes -= payload.len();
        }
    }

    fn first(&self) -> Option<u64> {
        self.payloads.keys().next().copied()
    }
}

/// Submissions that are not delivered yet.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Submissions {
    last_number: u64,
    own: BTreeMap<u64, Own>,
    /// Withdrawals of earlier connections of this process, until a view lists the present incarnation (rule 7).
    withdrawn_before: BTreeSet<SubmissionId>,
    /// Payloads from their origins that are not in the local log yet, by origin and number.
    pending: BTreeMap<Incarnation, Queue>,
    /// CRC-32C of bulk payloads, so that nobody need read these once more.
    digests: VecDeque<(SubmissionId, u32)>,
}

impl Submissions {
    pub fn new(withdrawn_before: BTreeSet<SubmissionId>) -> Submissions {
        Submissions {
            withdrawn_before,
            ..Submissions::default()
        }
    }

    /// Takes this member's next submission; without a payload it is withdrawn from the start. `branch`: the last forced
    /// view in the log. Returns the message for the others.
    pub fn submit(
        &mut self,
        number: u64,
        payload: Option<Bytes>,
        bulk: Option<(BulkPayload, Bytes)>,
        branch: Option<Uuid>,
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
            bulk,
            sent_at: now,
            branch,
            certain: false,
        };
        let message = own.message(number);
        self.own.insert(number, own);
        message
    }

    /// Returns the submissions above `in_log` that the leader may not have, if they were sent at least `older_than_ms`
    /// ago. Of the withdrawn ones it returns only the last, whose void covers all. If the leader voided them one by
    /// one, it could void an early one and still order a later one that it has.
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

    /// Own submissions up to `number` lie below a log checkpoint: they are ordered, but never delivered here one by
    /// one. The fate of those above is unknown. They may have been ordered on another branch of the history (rule 11),
    /// or so long ago that their number was forgotten ([`crate::Numbers`]). A void of the last number uses up all of
    /// them: otherwise the next submission would wait for them. Returns the numbers whose clients wait.
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
                bulk: None,
                sent_at: now,
                branch: None,
                certain: false,
            };
            self.own.entry(self.last_number).or_insert(void);
        }
        failed
    }

    /// The majority is lost: withdraws all own submissions, and returns each with whether it failed for certain.
    /// `needed`: nothing was committed on this branch of the history without this member. `in_order`: the last number that
    /// may have been ordered on it. The branch that a forced view left may have committed earlier submissions (rule 11;
    /// simulator, seed 6000001763 of `mistakes`).
    pub fn withdraw(
        &mut self,
        branch: Option<Uuid>,
        needed: bool,
        in_order: u64,
    ) -> Vec<(u64, bool)> {
        let mut withdrawn = Vec::new();
        for (number, own) in &mut self.own {
            if own.payload.take().is_some() {
                let is_of_branch = own.branch == branch || planted(Mutant::OtherBranchForgotten);
                own.certain = needed && is_of_branch && *number > in_order;
                withdrawn.push((*number, own.certain));
            }
        }
        withdrawn
    }

    /// A view lists this process: entries above it under earlier incarnations are void (rule 9).
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

    /// The withdrawals that clients were told for certain, in this connection and in earlier ones.
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

    /// The time stamps, for the model check.
    #[cfg(feature = "model")]
    pub fn sent_at(&mut self) -> impl Iterator<Item = &mut TimeMs> {
        self.own.values_mut().map(|own| &mut own.sent_at)
    }

    /// The payload of a submission that an order record refers to, if it is here.
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
        queue.payloads.get(&id.number)
    }

    /// The payload of an own bulk payload that was submitted.
    pub fn own_bulk(&self, number: u64) -> Option<&Bytes> {
        let is_it = |own: &&Own| own.bulk.as_ref().is_some_and(|(p, _)| p.number == number);
        self.own.values().find(is_it)?.payload.as_ref()
    }

    /// The number of the bulk payload that this own submission was before.
    pub fn bulk_of(&self, number: u64) -> Option<u64> {
        let (bulk, _) = self.own.get(&number)?.bulk.as_ref()?;
        Some(bulk.number)
    }

    /// Remembers the digest of a payload.
    pub fn note_digest(&mut self, id: SubmissionId, digest: u32) {
        if self.digests.len() == DIGESTS_MAX {
            self.digests.pop_front();
        }
        self.digests.push_back((id, digest));
    }

    /// Returns the digest of a payload, remembered or computed.
    pub fn digest(&self, id: SubmissionId, payload: &[u8]) -> u32 {
        let known = self.digests.iter().find(|(known, _)| *known == id);
        known.map_or_else(|| crc32c::crc32c(payload), |(_, digest)| *digest)
    }

    /// Keeps a payload from its origin. Without a payload: the origin has withdrawn this number and all before it.
    pub fn keep(&mut self, origin: Incarnation, number: u64, payload: Option<Bytes>) {
        let queue = self.pending.entry(origin).or_default();
        match payload {
            Some(payload) => queue.insert(number, payload),
            None => queue.withdraw_to(number),
        }
    }

    /// Keeps a payload if it takes at most `most_bytes` together with the others of its origin. All of these wait for
    /// the first one, so a new first payload displaces the last ones. For a payload that is not kept, this member
    /// requests a catch-up when it is ordered, or its origin sends it again. A withdrawal needs no room.
    pub fn keep_within(
        &mut self,
        most_bytes: usize,
        origin: Incarnation,
        number: u64,
        payload: Option<Bytes>,
    ) {
        let Some(len) = payload.as_ref().map(Bytes::len) else {
            return self.keep(origin, number, None);
        };
        let queue = self.pending.entry(origin).or_default();
        let is_first = queue.first().is_none_or(|first| number < first);
        if is_first {
            queue.shorten(most_bytes.saturating_sub(len));
        }
        if is_first || queue.bytes + len <= most_bytes {
            self.keep(origin, number, payload);
        }
    }

    /// Bytes of this origin's payloads that wait to be ordered.
    pub fn bytes_of(&self, origin: Incarnation) -> usize {
        self.pending.get(&origin).map_or(0, |queue| queue.bytes)
    }

    /// Removes and returns the number up to which `origin` has withdrawn its submissions, if it is above `last`.
    pub fn take_void(&mut self, origin: Incarnation, last: u64) -> Option<u64> {
        let queue = self.pending.get_mut(&origin)?;
        queue.void.take_if(|void| *void > last)
    }

    /// Removes and returns the next submission of `origin` after `last`: a void that covers it, or else the one that
    /// follows.
    pub fn take_next(&mut self, origin: Incarnation, last: u64) -> Option<(u64, Option<Bytes>)> {
        if let Some(void) = self.take_void(origin, last) {
            return Some((void, None));
        }
        let queue = self.pending.get_mut(&origin)?;
        let number = last + 1;
        let payload = queue.remove(number)?;
        Some((number, Some(payload)))
    }

    /// Drops the payloads and the void of this origin up to this number, which are in the log.
    pub fn ordered(&mut self, id: SubmissionId) {
        if let Some(queue) = self.pending.get_mut(&id.incarnation) {
            queue.forget_to(id.number);
        }
    }

    /// An own submission was delivered, or a void that covers its number and those before it.
    pub fn delivered(&mut self, number: u64) {
        while (self.own.first_key_value()).is_some_and(|(first, _)| *first <= number) {
            self.own.pop_first();
        }
    }

    /// The log is on another branch from now on: drops the payloads, which rest on commits of the former one. Withdrawals
    /// stay.
    pub fn leave_branch(&mut self) {
        for queue in self.pending.values_mut() {
            queue.shorten(0);
        }
    }

    /// Drops the payloads of origins that are no members.
    pub fn retain_origins(&mut self, is_member: impl Fn(Incarnation) -> bool) {
        self.pending.retain(|origin, _| is_member(*origin));
    }

    /// The own submissions that were reported as failed, from the oldest up to the first that is not. A later failed
    /// one is told when its turn comes, because its void covers all numbers before it.
    fn failed(&self) -> impl Iterator<Item = u64> {
        let failed = self.own.iter().take_while(|(_, own)| own.payload.is_none());
        failed.map(|(number, _)| *number)
    }

    /// The own submissions that were reported as failed, for a promise: only the newest, if a message cannot hold all.
    /// The older ones are only numbers of submissions that were delivered on another branch (`fail_covered`).
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
mod tests;
