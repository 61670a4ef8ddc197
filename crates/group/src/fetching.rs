//! Bulk payloads of others: this member fetches them in parts from their origins, at its own pace, so that the
//! connection carries all other messages beside them (rule 8).
//!
//! In: offers, parts, submissions. Out: requests, and complete payloads. A payload that is already ordered comes from
//! the leader's log instead (module `logged`). The module `serving` answers the requests of others.

mod logged;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;

use crate::bulk::BulkOutput;
use crate::fetch::Fetch;
use crate::ids::{BulkId, Incarnation, Position, SubmissionId};
use crate::known::Known;
use crate::message::{BulkPayload, Message, Source};

pub(crate) use logged::{BULK_NUMBER_MAX, Wanted, awaits_large};

/// The longest payload of a submission, in bytes. A longer one must not be submitted, and a message about one is
/// invalid. With its frame, such a payload fits into one record of the log (the engine asserts this).
pub const PAYLOAD_MAX: u32 = (1 << 31) - (64 << 10);
/// The longest valid head, in bytes.
pub(crate) const HEAD_MAX: u32 = 4096;
/// The longest part that a member requests or sends, in bytes.
pub(crate) const PART_MAX: u32 = 1 << 20;
/// Bulk payloads of one origin at a time: those that it may submit, and the next.
const BULK_PAYLOADS_MAX: usize = 64;

/// Bulk payloads on their way to this member.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Fetching {
    /// Payloads from their origins; complete ones wait for their submission.
    bulk_payloads: BTreeMap<BulkId, Fetch>,
    /// Payloads from the leader's log, for the first order records that lack theirs.
    logged: BTreeMap<Position, Fetch>,
}

impl Fetching {
    /// Length of all payloads from origins, the missing bytes included.
    pub fn len_of_all(&self) -> u64 {
        let lengths = self
            .bulk_payloads
            .values()
            .map(|fetch| u64::from(fetch.bulk.len));
        lengths.sum()
    }

    /// The payloads of this origin that come in, or wait for their submission.
    pub fn of_origin(&self, origin: Incarnation) -> impl Iterator<Item = &Fetch> {
        let numbered = |number| BulkId { origin, number };
        let bulk_payloads = self.bulk_payloads.range(numbered(0)..=numbered(u64::MAX));
        bulk_payloads.map(|(_, fetch)| fetch)
    }

    fn of_origin_mut(&mut self, origin: Incarnation) -> impl Iterator<Item = &mut Fetch> {
        let numbered = |number| BulkId { origin, number };
        let bulk_payloads = (self.bulk_payloads).range_mut(numbered(0)..=numbered(u64::MAX));
        bulk_payloads.map(|(_, fetch)| fetch)
    }

    /// The payload that its origin has submitted under this number, and that still comes in.
    pub fn of_submission(&self, id: SubmissionId) -> Option<&Fetch> {
        self.of_origin(id.incarnation).find(|f| {
            f.submitted
                .as_ref()
                .is_some_and(|(number, _)| *number == id.number)
        })
    }

    fn forget(&mut self, which: impl Fn(BulkId, &Fetch) -> bool) -> Vec<BulkOutput> {
        let mut out = Vec::new();
        self.bulk_payloads.retain(|id, fetch| {
            let gone = which(*id, fetch);
            if gone {
                out.push(BulkOutput::Unstage(*id));
            }
            !gone
        });
        out
    }

    /// Only these members submit from now on: drops the payloads of others.
    pub fn keep_origins(&mut self, members: &[Incarnation]) -> Vec<BulkOutput> {
        self.forget(|id, _| !members.contains(&id.origin))
    }

    /// The log is on another branch from now on: drops the payloads that are submitted, because their heads rest on
    /// commits of the former one.
    pub fn leave_branch(&mut self) -> Vec<BulkOutput> {
        let mut out = self.forget(|_, fetch| fetch.submitted.is_some());
        out.extend(self.leave_logged());
        out
    }

    /// Everything of the origin up to this number is in the log: drops those payloads.
    pub fn ordered(&mut self, id: SubmissionId) -> Vec<BulkOutput> {
        if self.bulk_payloads.is_empty() {
            return Vec::new();
        }
        self.forget(|bulk, fetch| {
            let submitted = fetch.submitted.as_ref().map(|(number, _)| *number);
            bulk.origin == id.incarnation && submitted.is_some_and(|number| number <= id.number)
        })
    }

    /// A member offers a bulk payload. `oldest`: its older ones may be dropped. `of_origin`: bytes of its submissions
    /// that wait to be ordered.
    pub fn offered(
        &mut self,
        known: Known,
        from: Incarnation,
        oldest: u64,
        (bulk, of_origin): (Option<BulkPayload>, usize),
    ) -> Vec<BulkOutput> {
        if known.log.latest().member(from).is_none() {
            return Vec::new();
        }
        let mut out = self.forget(|id, fetch| {
            id.origin == from && id.number < oldest && fetch.submitted.is_none()
        });
        let Some(bulk) = bulk else { return out };
        let fetch = self.bulk_payloads.get(&bulk.id(from));
        if fetch.is_some_and(Fetch::is_complete) {
            let bulk = bulk.number;
            out.push(BulkOutput::Send(vec![from], Message::Held { bulk }));
        } else if fetch.is_none() && self.has_room(known, from, &bulk, of_origin) {
            self.begin(known, from, bulk, None, &mut out);
        }
        out
    }

    /// True if memory has room for this payload. The payload of the least incarnation always has room, because
    /// otherwise all origins could wait for each other. An origin without room offers again. Its submissions that are
    /// not ordered count, too: otherwise it could submit one payload after the other and omit the first.
    fn has_room(
        &self,
        known: Known,
        from: Incarnation,
        bulk: &BulkPayload,
        of_origin: usize,
    ) -> bool {
        let config = known.context.config();
        if of_origin > 0 && of_origin + bulk.len as usize > config.thresholds.pending_bytes {
            return false;
        }
        let all = self.len_of_all() + u64::from(bulk.len);
        let first = self.bulk_payloads.keys().all(|id| id.origin > from);
        self.of_origin(from).count() < BULK_PAYLOADS_MAX && (first || all <= config.bulk_bytes)
    }

    fn begin(
        &mut self,
        known: Known,
        from: Incarnation,
        bulk: BulkPayload,
        submitted: Option<(u64, Bytes)>,
        out: &mut Vec<BulkOutput>,
    ) {
        let source = Source::Offered { bulk: bulk.number };
        let mut fetch = Fetch::new(known, source, from, bulk);
        fetch.submitted = submitted;
        fetch.ask_parts(known, out);
        let id = bulk.id(from);
        if self.bulk_payloads.insert(id, fetch).is_some() {
            // The origin has given the number to another payload: the staged bytes belong to the old one.
            out.push(BulkOutput::Unstage(id));
        }
    }

    /// Takes a part from the payload's origin.
    pub fn offered_part(
        &mut self,
        known: Known,
        from: Incarnation,
        bulk: u64,
        (offset, bytes): (u32, Bytes),
    ) -> Vec<BulkOutput> {
        let id = BulkId {
            origin: from,
            number: bulk,
        };
        let mut fetch = match self.bulk_payloads.entry(id) {
            Entry::Occupied(found) if !found.get().is_received() => found.remove(),
            _ => return Vec::new(), // all is here, or nothing of it is wanted
        };
        // The origin no longer has the payload. If it was submitted, the leader that has ordered it has it.
        if bytes.is_empty() {
            return vec![BulkOutput::Unstage(id)];
        }
        let mut out = Vec::new();
        if fetch.take_part(known, id, (offset, bytes), &mut out) {
            self.put_offered(id, fetch, &mut out);
        } else {
            self.bulk_payloads.insert(id, fetch);
        }
        out
    }

    /// The log has staged a payload up to this byte.
    pub fn offered_staged(&mut self, known: Known, id: BulkId, until: u32) -> Vec<BulkOutput> {
        let mut fetch = match self.bulk_payloads.entry(id) {
            Entry::Occupied(found) if !found.get().is_complete() => found.remove(),
            _ => return Vec::new(),
        };
        let mut out = Vec::new();
        fetch.go_on(known, until, &mut out);
        self.put_offered(id, fetch, &mut out);
        out
    }

    /// One more part of a payload is here, or staged.
    fn put_offered(&mut self, id: BulkId, fetch: Fetch, out: &mut Vec<BulkOutput>) {
        if fetch.is_complete() {
            out.push(BulkOutput::Fetched);
            let bulk = id.number;
            out.push(BulkOutput::Send(vec![id.origin], Message::Held { bulk }));
        }
        self.bulk_payloads.insert(id, fetch);
        self.finish_submitted(id, out);
    }

    /// The origin submits its bulk payload. `is_next`: it is the origin's next submission in the order.
    pub fn submitted(
        &mut self,
        known: Known,
        submission: SubmissionId,
        (bulk, head): (BulkPayload, Bytes),
        (is_next, of_origin): (bool, usize),
    ) -> Vec<BulkOutput> {
        let (from, number) = (submission.incarnation, submission.number);
        let id = bulk.id(from);
        // A submission has one bulk payload. Otherwise a peer could name one after the other for the number that always
        // has room.
        let mut out = self.forget(|other, fetch| {
            let submitted = fetch.submitted.as_ref().map(|(number, _)| *number);
            other.origin == from && other != id && submitted == Some(number)
        });
        let may_begin = is_next || self.has_room(known, from, &bulk, of_origin);
        match self.bulk_payloads.get_mut(&id) {
            Some(fetch) if fetch.bulk == bulk => {
                fetch.submitted.get_or_insert((number, head));
            }
            _ if may_begin => self.begin(known, from, bulk, Some((number, head)), &mut out),
            _ => return out,
        }
        self.finish_submitted(id, &mut out);
        out
    }

    /// Turns a bulk payload that is both complete and submitted into a submission like any other.
    fn finish_submitted(&mut self, id: BulkId, out: &mut Vec<BulkOutput>) {
        let ready = |fetch: &Fetch| fetch.is_complete() && fetch.submitted.is_some();
        if !self.bulk_payloads.get(&id).is_some_and(ready) {
            return;
        }
        let Some(fetch) = self.bulk_payloads.remove(&id) else {
            return;
        };
        if let Some((number, head)) = fetch.submitted {
            let (payload, digest) = fetch.bulk.filled_in(fetch.bytes.freeze(), &head);
            let incarnation = id.origin;
            out.push(BulkOutput::Ready {
                bulk: id,
                id: SubmissionId {
                    incarnation,
                    number,
                },
                head: fetch.bulk.head,
                digest,
                payload,
            });
        }
    }

    /// With every heartbeat: requests overdue parts again. Tells origins again which payloads are complete: an origin
    /// that has submitted one while this member was away answers that it may be dropped.
    pub fn ask_again(&mut self, known: Known, leader: Option<Incarnation>) -> Vec<BulkOutput> {
        let (now, mut out) = (known.now(), Vec::new());
        for (id, fetch) in &mut self.bulk_payloads {
            if fetch.is_stuck(now) {
                fetch.ask_again(known, &mut out);
            } else if fetch.is_due_to_tell(now) {
                fetch.note_told(now);
                let bulk = id.number;
                out.push(BulkOutput::Send(vec![id.origin], Message::Held { bulk }));
            }
        }
        for fetch in self.logged.values_mut().filter(|f| f.is_stuck(now)) {
            fetch.from = leader.unwrap_or(fetch.from);
            fetch.ask_again(known, &mut out);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, member};

    #[test]
    fn a_bulk_that_is_complete_and_submitted_is_a_payload() {
        let fixture = Fixture::of(2);
        let known = fixture.known();
        let origin = member(2).incarnation;
        let bulk = BulkPayload {
            number: 1,
            len: 4,
            head: 2,
            digest: crc32c::crc32c(b"cd"),
        };
        let mut fetching = Fetching::default();
        let stranger = member(3).incarnation;
        assert_eq!(fetching.offered(known, stranger, 1, (Some(bulk), 0)), []);
        let source = Source::Offered { bulk: 1 };
        let (offset, len) = (0, 4);
        let fetch = Message::Fetch {
            source,
            offset,
            len,
        };
        let asked = fetching.offered(known, origin, 1, (Some(bulk), 0));
        assert_eq!(asked, [BulkOutput::Send(vec![origin], fetch)]);
        let bytes = Bytes::from_static(b"..cd");
        let held = BulkOutput::Send(vec![origin], Message::Held { bulk: 1 });
        let outputs = fetching.offered_part(known, origin, 1, (0, bytes));
        assert_eq!(outputs, [BulkOutput::Fetched, held]);
        let id = SubmissionId {
            incarnation: origin,
            number: 1,
        };
        let head = Bytes::from_static(b"ab");
        let outputs = fetching.submitted(known, id, (bulk, head), (true, 0));
        let payload = Bytes::from_static(b"abcd");
        let ready = BulkOutput::Ready {
            bulk: bulk.id(origin),
            id,
            head: 2,
            digest: crc32c::crc32c(b"abcd"),
            payload,
        };
        assert_eq!(outputs, [ready]);
        assert_eq!(fetching.len_of_all(), 0);
    }

    #[test]
    fn what_is_in_the_log_is_not_fetched_any_more() {
        let (mut fetching, fixture) = (Fetching::default(), Fixture::of(2));
        let known = fixture.known();
        let id = SubmissionId {
            incarnation: member(2).incarnation,
            number: 7,
        };
        let bulk = BulkPayload {
            number: 1,
            len: 4,
            ..BulkPayload::default()
        };
        fetching.submitted(known, id, (bulk, Bytes::new()), (true, 0));
        let before = SubmissionId { number: 6, ..id };
        assert_eq!(fetching.ordered(before), []);
        let unstaged = BulkOutput::Unstage(bulk.id(id.incarnation));
        assert_eq!(fetching.ordered(id), [unstaged]);
    }
}
