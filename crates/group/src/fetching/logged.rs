//! Bulk payloads that were ordered before they came in from their origin: this member fetches them from the leader's
//! log.

use std::collections::btree_map::Entry;

use bytes::Bytes;

use crate::bulk::BulkOutput;
use crate::fetch::{Fetch, TIMEOUT_MS};
use crate::fetching::Fetching;
use crate::ids::{BulkId, Incarnation, Position, SubmissionId, Term, TimeMs};
use crate::incoming::Incoming;
use crate::known::Known;
use crate::matching::HOLE_TIMEOUT_MS;
use crate::message::{BulkPayload, Source, WireBody, WireEntry};
use crate::submissions::Submissions;

/// Greatest valid number of a bulk payload. Payloads out of a log are staged under greater numbers.
pub(crate) const BULK_NUMBER_MAX: u64 = u64::MAX >> 1;

/// Order records that are looked through for such payloads. Each flush looks, so their number is bounded.
const LOOKED_THROUGH: usize = 1_024;

/// The id under which such a payload is staged.
fn staged_as(id: SubmissionId) -> BulkId {
    BulkId {
        origin: id.incarnation,
        number: !BULK_NUMBER_MAX | id.number,
    }
}

/// The order records that wait for their payloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub incoming: &'a Incoming,
    /// Since when the first of them has waited for its payload.
    pub hole_since: Option<TimeMs>,
    pub submissions: &'a Submissions,
    /// The promised term: payloads are fetched from the log of its leader.
    pub promised: Term,
}

/// True if the first order record waits for a bulk payload: this member fetches it, and needs no catch-up.
pub(crate) fn awaits_large(known: Known, incoming: &Incoming) -> bool {
    let front = incoming.front();
    front.is_some_and(|entry| large_reference(known, entry).is_some())
}

/// The submission that an order record refers to, and its payload, if that is a bulk payload.
fn large_reference(known: Known, entry: &WireEntry) -> Option<(SubmissionId, BulkPayload)> {
    let config = known.context.config();
    match entry.body {
        WireBody::Reference { id, len, digest } if config.is_large(len as usize) => {
            let bulk = BulkPayload {
                len,
                digest,
                ..BulkPayload::default()
            };
            Some((id, bulk))
        }
        _ => None,
    }
}

/// Drops the staged bytes of a fetch from the leader's log.
fn unstage(fetch: Fetch) -> Option<BulkOutput> {
    match fetch.source {
        Source::Logged { id, .. } => Some(BulkOutput::Unstage(staged_as(id))),
        Source::Offered { .. } => None,
    }
}

impl Fetching {
    /// Fetches the payloads of the first order records from the leader's log, unless they are on their way from their
    /// origins.
    pub(crate) fn fetch_logged(&mut self, known: Known, wanted: Wanted) -> Vec<BulkOutput> {
        let mut out = Vec::new();
        // While no record waits, keep what was fetched: the next leader usually orders the same submission there.
        let first = known.log.tail().end() + 1;
        let is_wanted = |position: Position, source: Source| match position.checked_sub(first) {
            None => false,
            Some(_) if wanted.incoming.is_empty() => true,
            Some(index) => {
                let record = wanted.incoming.get(index as usize);
                let named = record.and_then(|entry| large_reference(known, entry));
                named.is_some_and(|(id, _)| Source::Logged { position, id } == source)
            }
        };
        let logged = self
            .logged
            .iter()
            .filter(|(at, fetch)| !is_wanted(**at, fetch.source));
        for position in logged.map(|(at, _)| *at).collect::<Vec<_>>() {
            out.extend(self.logged.remove(&position).and_then(unstage));
        }
        if !awaits_large(known, wanted.incoming) {
            return out;
        }
        let Some(leader) = known.leader_of(wanted.promised) else {
            return out;
        };
        let mut bytes = 0;
        let mut due = Vec::new();
        for entry in wanted.incoming.iter().take(LOOKED_THROUGH) {
            let Some((id, bulk)) = large_reference(known, entry) else {
                continue;
            };
            if wanted.submissions.payload(known.me(), id).is_some() {
                if bytes > 0 {
                    bytes += u64::from(bulk.len); // it waits in memory for an earlier one
                }
                continue;
            }
            if self.comes_from_origin(known, id, &bulk, wanted.hole_since) {
                continue;
            }
            if bytes > 0
                && bytes + u64::from(bulk.len) > known.context.config().thresholds.logged_bytes
            {
                break;
            }
            bytes += u64::from(bulk.len);
            let source = Source::Logged {
                position: entry.position,
                id,
            };
            match self.logged.get_mut(&entry.position) {
                // The leader is another one than before.
                Some(fetch) if fetch.from != leader && !fetch.is_received() => {
                    fetch.from = leader;
                    fetch.ask_again(known, &mut out);
                }
                Some(_) => {}
                None => {
                    let fetch = Fetch::new(known, source, leader, bulk);
                    due.push((entry.position, fetch));
                }
            }
        }
        for (position, mut fetch) in due {
            fetch.ask_parts(known, &mut out);
            self.logged.insert(position, fetch);
        }
        out
    }

    /// The log is on another branch from now on: drops these payloads, because they rest on commits of the former one.
    pub(super) fn leave_logged(&mut self) -> Vec<BulkOutput> {
        let logged = std::mem::take(&mut self.logged).into_values();
        logged.filter_map(unstage).collect()
    }

    /// True if this member gets the payload from its origin: the origin goes on sending it, or a payload that may be
    /// this one is complete and about to be submitted. A payload that its origin does not submit delays one record:
    /// otherwise it would delay each record of its length that this member lacks.
    fn comes_from_origin(
        &mut self,
        known: Known,
        id: SubmissionId,
        payload: &BulkPayload,
        hole_since: Option<TimeMs>,
    ) -> bool {
        let timeout_ms = match self.of_submission(id) {
            Some(_) => TIMEOUT_MS,
            None => HOLE_TIMEOUT_MS,
        };
        let (mut comes, now) = (false, known.now());
        let of_length = |fetch: &&mut Fetch| fetch.bulk.len == payload.len;
        for fetch in self.of_origin_mut(id.incarnation).filter(of_length) {
            let submitted = fetch.submitted.as_ref().map(|(number, _)| *number);
            let may_be = submitted.map_or(!fetch.awaited, |number| number == id.number);
            let since = match (submitted, hole_since) {
                (None, Some(since)) => since.max(fetch.progress_at),
                _ => fetch.progress_at,
            };
            let is_silent = now >= since + timeout_ms && !fetch.awaits_disk();
            fetch.awaited |= may_be && is_silent;
            comes |= may_be && !is_silent;
        }
        comes && known.peers.is_up(id.incarnation)
    }

    /// Takes a part out of the leader's log.
    pub(crate) fn logged_part(
        &mut self,
        known: Known,
        from: Incarnation,
        (position, id): (Position, SubmissionId),
        (offset, bytes): (u32, Bytes),
    ) -> Vec<BulkOutput> {
        let source = Source::Logged { position, id };
        let expected =
            |fetch: &Fetch| fetch.source == source && fetch.from == from && !fetch.is_received();
        let mut fetch = match self.logged.entry(position) {
            Entry::Occupied(found) if expected(found.get()) => found.remove(),
            _ => return Vec::new(), // it is late, or comes from a process that was asked before
        };
        let mut out = Vec::new();
        if bytes.is_empty() {
            out.extend(unstage(fetch));
            out.push(BulkOutput::AskAnew(from));
            return out;
        }
        fetch.take_part(known, staged_as(id), (offset, bytes), &mut out);
        self.put_logged(position, id, fetch, &mut out);
        out
    }

    /// The local log has staged such a payload up to this byte.
    pub(crate) fn logged_staged(
        &mut self,
        known: Known,
        bulk: BulkId,
        until: u32,
    ) -> Vec<BulkOutput> {
        let id_of = |fetch: &Fetch| match fetch.source {
            Source::Logged { id, .. } => Some(id).filter(|id| staged_as(*id) == bulk),
            Source::Offered { .. } => None,
        };
        let mut logged = self.logged.iter();
        let found = logged.find_map(|(position, fetch)| Some((*position, id_of(fetch)?)));
        let mut out = Vec::new();
        let Some((position, id)) = found else {
            return out;
        };
        if let Some(mut fetch) = self.logged.remove(&position) {
            fetch.go_on(known, until, &mut out);
            self.put_logged(position, id, fetch, &mut out);
        }
        out
    }

    /// One more part of the payload is here, or staged.
    fn put_logged(
        &mut self,
        position: Position,
        id: SubmissionId,
        fetch: Fetch,
        out: &mut Vec<BulkOutput>,
    ) {
        if !fetch.is_complete() {
            self.logged.insert(position, fetch);
            return;
        }
        out.push(BulkOutput::ReadyFromLog {
            bulk: staged_as(id),
            id,
            digest: fetch.digest,
            payload: fetch.bytes.freeze(),
        });
    }
}
