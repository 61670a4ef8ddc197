//! Bulk payloads of this member, until they are submitted (rule 8). If one were ordered before the others hold it, all
//! later entries would wait. This member offers one at a time; the others fetch it at their own pace.
//!
//! In: payloads, and `Held` messages. Out: offers, and the payloads that may be submitted now. A payload may be
//! submitted when a majority and the leader hold it, or when the majority is lost.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use crc32c::{crc32c, crc32c_append, crc32c_combine};
use trireme_mutants::{Mutant, planted};

use crate::bulk::BulkOutput;
use crate::configuration::{Configuration, Member};
use crate::ids::{BulkId, Incarnation, TimeMs};
use crate::known::Known;
use crate::message::{BulkPayload, Message};

/// An offer is repeated after this time to the members that do not hold the payload.
const OFFER_AGAIN_MS: TimeMs = 1_000;

/// A bulk payload that is not submitted yet.
#[derive(Clone, Debug, Hash)]
struct Spread {
    bulk: BulkPayload,
    payload: Bytes,
    held_by: BTreeSet<Incarnation>,
    /// Time of the last offer; None: its turn has not come.
    offered_at: Option<TimeMs>,
    /// Number of its bytes that the log was given.
    staged: u32,
    /// Number of these bytes that are written; u32::MAX: the log takes none.
    kept: u32,
    /// True once the replicator was told that it may be submitted.
    told: bool,
}

/// Own bulk payloads, in the order in which they were handed in.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct OwnBulk {
    queue: VecDeque<Spread>,
    last_number: u64,
}

impl OwnBulk {
    pub(crate) fn payload(&self, bulk: u64) -> Option<&Bytes> {
        let spread = self.queue.iter().find(|s| s.bulk.number == bulk)?;
        Some(&spread.payload)
    }

    /// True if this member ever had a bulk payload.
    pub(crate) fn has_any(&self) -> bool {
        self.last_number > 0
    }

    /// True if a payload may not be submitted yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.queue.iter().any(|spread| !spread.told)
    }

    /// Takes a payload. On a non-primary member it may be submitted at once, and that submission fails.
    pub(crate) fn spread(
        &mut self,
        bulk: BulkPayload,
        payload: Bytes,
        is_primary: bool,
    ) -> Vec<BulkOutput> {
        assert!(
            bulk.number > self.last_number,
            "bulk payloads are numbered in ascending order"
        );
        self.last_number = bulk.number;
        if !is_primary {
            return vec![BulkOutput::MaySubmit(bulk.number)];
        }
        self.queue.push_back(Spread {
            bulk,
            payload,
            held_by: BTreeSet::new(),
            offered_at: None,
            staged: 0,
            kept: 0,
            told: false,
        });
        Vec::new()
    }

    /// Drops a bulk payload that will not be submitted.
    pub(crate) fn recall(&mut self, known: Known, number: u64) -> Vec<BulkOutput> {
        match self.take(number) {
            Some(_) => vec![
                BulkOutput::Unstage(bulk_id(known.me(), number)),
                self.offer_to(known.others()),
            ],
            None => Vec::new(),
        }
    }

    /// A bulk payload is submitted: returns it; None if this member forgot it when it lost the majority.
    pub(crate) fn submit(
        &mut self,
        me: Incarnation,
        number: u64,
    ) -> (Option<(BulkPayload, Bytes)>, Vec<BulkOutput>) {
        let Some(spread) = self.take(number) else {
            return (None, Vec::new());
        };
        let outputs = match spread.staged < spread.bulk.len {
            true => vec![BulkOutput::Unstage(bulk_id(me, number))],
            false => Vec::new(),
        };
        (Some((spread.bulk, spread.payload)), outputs)
    }

    /// The majority is lost: drops all payloads, and tells the others. Otherwise the parts that they hold would occupy
    /// their room until the next offer, and other origins would wait (seed 16021361).
    pub(crate) fn give_up(&mut self, known: Known) -> Vec<BulkOutput> {
        let given_up = std::mem::take(&mut self.queue);
        let mut outputs = Vec::new();
        if !given_up.is_empty() {
            outputs.push(self.offer_to(known.others()));
        }
        for spread in given_up {
            let number = spread.bulk.number;
            outputs.push(BulkOutput::Unstage(bulk_id(known.me(), number)));
            if !spread.told {
                outputs.push(BulkOutput::MaySubmit(number));
            }
        }
        outputs
    }

    /// Gives a part of an own bulk payload to the log when a member fetches that part for the first time.
    pub(crate) fn stage(
        &mut self,
        known: Known,
        number: u64,
        offset: u32,
        len: u32,
    ) -> Option<BulkOutput> {
        let mut queue = self.queue.iter_mut();
        let spread = queue.find(|spread| spread.bulk.number == number);
        let least = known.context.config().staged_bytes;
        let is_next =
            |s: &&mut Spread| s.bulk.len >= least && s.staged == offset && s.kept != u32::MAX;
        let spread = spread.filter(is_next)?;
        let until = offset.saturating_add(len).min(spread.bulk.len);
        spread.staged = until;
        Some(BulkOutput::Stage {
            bulk: bulk_id(known.me(), number),
            offset,
            bytes: spread.payload.slice(offset as usize..until as usize),
        })
    }

    /// The log has written this many bytes of an own bulk payload.
    pub(crate) fn staged(&mut self, number: u64, until: u32) {
        let mut queue = self.queue.iter_mut();
        if let Some(spread) = queue.find(|spread| spread.bulk.number == number) {
            spread.kept = spread.kept.max(until);
        }
    }

    /// Reports the payloads that may be submitted, and offers the next.
    pub(crate) fn pursue(&mut self, known: Known, leader: Option<Incarnation>) -> Vec<BulkOutput> {
        let mut outputs = Vec::new();
        while let Some(spread) = self.queue.iter_mut().find(|spread| !spread.told) {
            // Bytes that the log has taken and not written yet would delay the append.
            let is_written = spread.kept >= spread.staged;
            let is_held = is_held(known, leader, &spread.held_by) && is_written;
            if is_held || planted(Mutant::LargeNotAwaited) {
                spread.told = true;
                outputs.push(BulkOutput::MaySubmit(spread.bulk.number));
                continue;
            }
            if spread.offered_at.is_none() {
                spread.offered_at = Some(known.now());
                outputs.push(self.offer_to(known.others()));
            }
            break;
        }
        outputs
    }

    /// With every heartbeat: repeats an offer, because the offer or the answers may be lost.
    pub(crate) fn offer_again(&mut self, known: Known) -> Vec<BulkOutput> {
        let now = known.now();
        let due =
            |s: &&mut Spread| !s.told && s.offered_at.is_some_and(|at| now >= at + OFFER_AGAIN_MS);
        let Some(spread) = self.queue.iter_mut().find(due) else {
            return Vec::new();
        };
        spread.offered_at = Some(now);
        let mut to = known.others();
        to.retain(|member| !spread.held_by.contains(member));
        vec![self.offer_to(to)]
    }

    /// A connection is new, or has lost messages: repeats the offer to this peer.
    pub(crate) fn offer_anew(&self, known: Known, peer: Incarnation) -> Option<BulkOutput> {
        let is_member = known.log.latest().member(peer).is_some();
        (self.has_any() && is_member).then(|| self.offer_to(vec![peer]))
    }

    /// A member holds a bulk payload completely. If that is submitted already, the member may have fetched it once more,
    /// for an offer that came twice: it is told to drop it, because its room is needed (simulator, seed 3600048447 of
    /// `bulk-payloads`).
    pub(crate) fn held(&mut self, from: Incarnation, bulk: u64) -> Vec<BulkOutput> {
        let mut queue = self.queue.iter_mut();
        match queue.find(|spread| spread.bulk.number == bulk) {
            Some(spread) => {
                spread.held_by.insert(from);
                Vec::new()
            }
            None => vec![self.offer_to(vec![from])],
        }
    }

    fn offer_to(&self, to: Vec<Incarnation>) -> BulkOutput {
        let oldest = self.queue.front().map(|spread| spread.bulk.number);
        let mut queue = self.queue.iter();
        let offered = queue.find(|s| s.offered_at.is_some() && !s.told);
        let message = Message::Offer {
            oldest: oldest.unwrap_or(self.last_number + 1),
            bulk: offered.map(|s| s.bulk),
        };
        BulkOutput::Send(to, message)
    }

    fn take(&mut self, number: u64) -> Option<Spread> {
        let index = (self.queue.iter()).position(|s| s.bulk.number == number)?;
        self.queue.remove(index)
    }
}

impl BulkPayload {
    /// Returns the payload of a submission, with its final first bytes, and its digest.
    pub(crate) fn filled_in(&self, payload: Bytes, head: &[u8]) -> (Bytes, u32) {
        let rest = payload.len() - head.len();
        let digest = joined(crc32c(head), self.digest, rest);
        (with_head(payload, head), digest)
    }
}

/// The CRC-32C of two pieces, from the checksum of each and the length of the second.
fn joined(first: u32, second: u32, bytes: usize) -> u32 {
    static ZEROS: [u8; 4096] = [0; 4096];
    match ZEROS.get(..bytes) {
        // The processor is through these zeros before `crc32c_combine` has made its matrices (as in the log's format).
        Some(zeros) => crc32c_append(first, zeros) ^ crc32c(zeros) ^ second,
        None => crc32c_combine(first, second, bytes),
    }
}

fn bulk_id(origin: Incarnation, number: u64) -> BulkId {
    BulkId { origin, number }
}

/// True if members with more than half of the votes hold it, and also the leader, which could not order it otherwise.
fn is_held(known: Known, leader: Option<Incarnation>, held_by: &BTreeSet<Incarnation>) -> bool {
    let holds = |member| member == known.me() || held_by.contains(&member);
    let counts = |m: &Member| holds(m.incarnation);
    let is_majority =
        |configuration: &Configuration| configuration.is_majority(configuration.weight_of(counts));
    leader.is_some_and(holds) && known.log.in_every_configuration(is_majority)
}

/// Writes the head into the payload. Copies the payload only if a part of it still waits to be sent.
fn with_head(payload: Bytes, head: &[u8]) -> Bytes {
    let mut bytes = payload
        .try_into_mut()
        .unwrap_or_else(|shared| shared[..].into());
    bytes[..head.len()].copy_from_slice(head);
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, member};

    #[test]
    fn checksums_of_two_pieces_are_joined() {
        for bytes in [0, 1, 7, 4095, 4096, 4097, 100_000] {
            let (first, second) = (b"head", vec![7; bytes]);
            let whole = crc32c(&[&first[..], &second].concat());
            assert_eq!(joined(crc32c(first), crc32c(&second), bytes), whole);
        }
    }

    #[test]
    fn it_may_be_submitted_when_a_majority_and_the_leader_hold_it() {
        let fixture = Fixture::of(3);
        let known = fixture.known();
        let [second, third] = [2, 3].map(|n| member(n).incarnation);
        let mut own_bulk = OwnBulk::default();
        let bulk = BulkPayload {
            number: 1,
            len: 3,
            ..BulkPayload::default()
        };
        let payload = Bytes::from_static(b"abc");
        assert_eq!(own_bulk.spread(bulk, payload, true), []);
        let (oldest, bulk) = (1, Some(bulk));
        let offer = Message::Offer { oldest, bulk };
        let offered = BulkOutput::Send(vec![second, third], offer);
        assert_eq!(own_bulk.pursue(known, Some(second)), [offered]);
        assert_eq!(own_bulk.held(third, 1), []);
        assert_eq!(own_bulk.pursue(known, Some(second)), [], "not the leader");
        assert_eq!(own_bulk.held(second, 1), []);
        let outputs = own_bulk.pursue(known, Some(second));
        assert_eq!(outputs, [BulkOutput::MaySubmit(1)]);

        // A member that holds it after that has no use for it.
        own_bulk.submit(known.me(), 1);
        let (oldest, bulk) = (2, None);
        let nothing = Message::Offer { oldest, bulk };
        let told = BulkOutput::Send(vec![third], nothing);
        assert_eq!(own_bulk.held(third, 1), [told]);
    }

    #[test]
    fn without_a_majority_it_may_be_submitted_at_once() {
        let mut own_bulk = OwnBulk::default();
        let number = 1;
        let bulk = BulkPayload {
            number,
            ..BulkPayload::default()
        };
        let outputs = own_bulk.spread(bulk, Bytes::new(), false);
        assert_eq!(outputs, [BulkOutput::MaySubmit(1)]);
        let me = Incarnation::default();
        assert_eq!(own_bulk.submit(me, 1), (None, Vec::new()));
    }

    #[test]
    fn a_head_takes_its_place_and_counts_in_the_digest() {
        let bulk = BulkPayload {
            number: 1,
            len: 4,
            head: 2,
            digest: crc32c(b"cd"),
        };
        let (payload, digest) = bulk.filled_in(Bytes::from_static(b"..cd"), b"ab");
        assert_eq!((&payload[..], digest), (&b"abcd"[..], crc32c(b"abcd")));
    }
}
