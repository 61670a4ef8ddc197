//! One bulk payload on its way to this member.

use bytes::{Bytes, BytesMut};
use crc32c::crc32c_append;
use trireme_mutants::{Mutant, planted};

use crate::bulk::BulkOutput;
use crate::ids::{BulkId, Incarnation, TimeMs};
use crate::known::Known;
use crate::message::{BulkPayload, Message, Source};

/// Parts requested ahead of the received bytes, or of the staged ones if the payload is staged. They are few, because
/// other messages wait behind them. Each ms of round trip adds one, because a fetch from a far origin would be slow
/// otherwise.
const PARTS_AHEAD: u32 = 4;
const PARTS_AHEAD_MAX: u32 = 64;
/// A part that has not come within this time is requested again.
pub(crate) const TIMEOUT_MS: TimeMs = 1_000;

/// A bulk payload that this member fetches.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Fetch {
    pub source: Source,
    pub from: Incarnation,
    pub bulk: BulkPayload,
    pub bytes: BytesMut,
    /// CRC-32C of the received bytes after the head.
    pub digest: u32,
    pub asked: u32,
    /// Number of received bytes that are staged; if the payload is not staged, all received bytes.
    kept: u32,
    /// True if the log stages the payload while it comes in.
    stages: bool,
    /// When the last bytes came, or were staged.
    pub progress_at: TimeMs,
    /// When overdue parts were last requested again, or the origin was last told again that all are here.
    asked_at: TimeMs,
    /// The submission number and the head, once its origin has submitted the payload.
    pub submitted: Option<(u64, Bytes)>,
    /// True if an order record has waited in vain for the submission of this payload. No other record waits for it.
    pub awaited: bool,
}

impl Fetch {
    pub fn received(&self) -> u32 {
        self.bytes.len() as u32 // at most `bulk.len`
    }

    /// True if all bytes are here, and staged if they must be.
    pub fn is_complete(&self) -> bool {
        self.kept == self.bulk.len
    }

    /// True if all requested bytes are here, and only this node's disk delays the next request.
    pub fn awaits_disk(&self) -> bool {
        self.asked <= self.received() && !self.is_complete()
    }

    /// True if all bytes are here.
    pub fn is_received(&self) -> bool {
        self.received() == self.bulk.len
    }

    /// The log has staged this many bytes; u32::MAX: it will not stage the payload.
    fn staged_up_to(&mut self, until: u32, now: TimeMs) {
        self.stages &= until != u32::MAX;
        self.kept = self.kept.max(until.min(self.received()));
        self.progress_at = now;
    }

    /// Takes the next bytes; false if these are not the next requested ones.
    fn take(&mut self, offset: u32, bytes: &[u8]) -> bool {
        let asked = self.asked.saturating_sub(self.received()) as usize;
        if offset != self.received() || bytes.len() > asked {
            return false;
        }
        let head = (self.bulk.head.saturating_sub(offset) as usize).min(bytes.len());
        self.digest = crc32c_append(self.digest, &bytes[head..]);
        self.bytes.extend_from_slice(bytes);
        if !self.stages {
            self.kept = self.received();
        }
        true
    }

    /// True if the digest of the received payload is not the offered one.
    fn is_damaged(&self) -> bool {
        self.is_received() && self.digest != self.bulk.digest
    }

    /// True if the rest is overdue.
    pub fn is_stuck(&self, now: TimeMs) -> bool {
        self.asked > self.received() && self.is_overdue(now)
    }

    /// True if the payload is complete, and its origin has neither submitted it nor been told of that for a while.
    pub fn is_due_to_tell(&self, now: TimeMs) -> bool {
        self.is_complete() && self.submitted.is_none() && self.is_overdue(now)
    }

    fn is_overdue(&self, now: TimeMs) -> bool {
        now >= self.progress_at.max(self.asked_at) + TIMEOUT_MS
    }

    /// The origin is told again that the payload is complete.
    pub fn note_told(&mut self, now: TimeMs) {
        self.asked_at = now;
    }

    fn begin_anew(&mut self) {
        (self.bytes, self.digest) = (BytesMut::new(), 0);
        (self.asked, self.kept) = (0, 0);
    }
}

fn parts_ahead(round_trip_us: u32) -> u32 {
    (PARTS_AHEAD + round_trip_us / 1_000).min(PARTS_AHEAD_MAX)
}

impl Fetch {
    /// Begins a fetch, with no part requested yet.
    pub fn new(known: Known, source: Source, from: Incarnation, bulk: BulkPayload) -> Fetch {
        Fetch {
            source,
            from,
            bulk,
            bytes: BytesMut::new(),
            digest: 0,
            asked: 0,
            kept: 0,
            stages: bulk.len >= known.context.config().staged_bytes,
            progress_at: known.now(),
            asked_at: 0,
            submitted: None,
            awaited: false,
        }
    }

    pub fn ask_parts(&mut self, known: Known, out: &mut Vec<BulkOutput>) {
        let part = known.context.config().part_bytes;
        let peer = known.peers.get(self.from);
        let trip_us = peer.and_then(|peer| peer.round_trips.mean_us(known.now()));
        let ahead = parts_ahead(trip_us.unwrap_or_default());
        let until = self.kept.saturating_add(ahead * part);
        while self.asked < until.min(self.bulk.len) {
            let len = part.min(self.bulk.len - self.asked);
            let (source, offset) = (self.source, self.asked);
            let message = Message::Fetch {
                source,
                offset,
                len,
            };
            out.push(BulkOutput::Send(vec![self.from], message));
            self.asked += len;
        }
    }

    /// The log has staged this many bytes: requests the next ones.
    pub fn go_on(&mut self, known: Known, until: u32, out: &mut Vec<BulkOutput>) {
        self.staged_up_to(until, known.now());
        self.ask_parts(known, out);
    }

    /// Takes a part, and stages it under `bulk` if the payload is staged. Returns false if it is not the next part. A
    /// payload with a wrong digest is fetched anew.
    pub fn take_part(
        &mut self,
        known: Known,
        bulk: BulkId,
        (offset, bytes): (u32, Bytes),
        out: &mut Vec<BulkOutput>,
    ) -> bool {
        if !self.take(offset, &bytes) {
            return false;
        }
        self.progress_at = known.now();
        if self.is_damaged() {
            self.begin_anew();
        }
        self.ask_parts(known, out);
        if self.stages {
            out.push(BulkOutput::Stage {
                bulk,
                offset,
                bytes,
            });
        }
        true
    }

    /// Requests overdue parts again. That is no progress: without any, another source is asked.
    pub fn ask_again(&mut self, known: Known, out: &mut Vec<BulkOutput>) {
        self.asked_at = known.now();
        if !planted(Mutant::LostPartNotAskedAgain) {
            self.asked = self.received();
        }
        self.ask_parts(known, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_asked_for_ahead_from_afar() {
        let ahead = [0, 900, 10_000, 60_000, u32::MAX].map(parts_ahead);
        assert_eq!(ahead, [4, 4, 14, 64, 64]);
    }
}
