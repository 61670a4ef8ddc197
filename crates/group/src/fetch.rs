//! One large payload on its way here.

use bytes::{Bytes, BytesMut};
use crc32c::crc32c_append;
use trireme_mutants::{Mutant, planted};

use crate::bulk::BulkOutput;
use crate::ids::{Incarnation, ParcelId, TimeMs};
use crate::known::Known;
use crate::message::{Message, Parcel, Source};

/// Parts asked for ahead of what has come, or is staged, if that is to be: few, since what comes behind them waits; one more for each ms
/// of the round trip, or a far origin would be fetched from slowly.
const PARTS_AHEAD: u32 = 4;
const PARTS_AHEAD_MAX: u32 = 64;
/// What does not come within this time is asked for again.
pub(crate) const PATIENCE_MS: TimeMs = 1_000;

/// A payload that comes in.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Fetch {
    pub source: Source,
    pub from: Incarnation,
    pub parcel: Parcel,
    pub bytes: BytesMut,
    /// CRC-32C of what has come of the bytes after the head.
    pub digest: u32,
    pub asked: u32,
    /// So much of what has come is staged, if that is to be: else all.
    kept: u32,
    /// It is staged as it comes.
    stages: bool,
    pub progress_at: TimeMs,
    /// The number, and the head, under which its origin has submitted it.
    pub submitted: Option<(u64, Bytes)>,
}

impl Fetch {
    pub fn received(&self) -> u32 {
        self.bytes.len() as u32 // at most `parcel.len`
    }

    /// True if all is here, and staged.
    pub fn is_complete(&self) -> bool {
        self.kept == self.parcel.len
    }

    /// True if all that was asked for is here: how it goes on is this node's own affair.
    pub fn awaits_disk(&self) -> bool {
        self.asked <= self.received() && !self.is_complete()
    }

    /// True if all is here.
    pub fn is_received(&self) -> bool {
        self.received() == self.parcel.len
    }

    /// So much of it is staged; u32::MAX: it will not be.
    fn staged_up_to(&mut self, until: u32, now: TimeMs) {
        self.stages &= until != u32::MAX;
        self.kept = self.kept.max(until.min(self.received()));
        self.progress_at = now;
    }

    /// Takes the next bytes; false: they are not the next that were asked for.
    fn take(&mut self, offset: u32, bytes: &[u8]) -> bool {
        let asked = self.asked.saturating_sub(self.received()) as usize;
        if offset != self.received() || bytes.len() > asked {
            return false;
        }
        let head = (self.parcel.head.saturating_sub(offset) as usize).min(bytes.len());
        self.digest = crc32c_append(self.digest, &bytes[head..]);
        self.bytes.extend_from_slice(bytes);
        if !self.stages {
            self.kept = self.received();
        }
        true
    }

    /// True if what has come is not what was offered.
    fn is_damaged(&self) -> bool {
        self.is_received() && self.digest != self.parcel.digest
    }

    /// True if the rest is overdue.
    pub fn is_stuck(&self, now: TimeMs) -> bool {
        self.asked > self.received() && now >= self.progress_at + PATIENCE_MS
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
    /// One of which nothing was asked for yet.
    pub fn new(known: Known, source: Source, from: Incarnation, parcel: Parcel) -> Fetch {
        Fetch {
            source,
            from,
            parcel,
            bytes: BytesMut::new(),
            digest: 0,
            asked: 0,
            kept: 0,
            stages: parcel.len >= known.context.config().staged_bytes,
            progress_at: known.now(),
            submitted: None,
        }
    }

    pub fn ask_parts(&mut self, known: Known, out: &mut Vec<BulkOutput>) {
        let part = known.context.config().part_bytes;
        let peer = known.peers.get(self.from);
        let trip_us = peer.and_then(|peer| peer.round_trips.mean_us(known.now()));
        let ahead = parts_ahead(trip_us.unwrap_or_default());
        let until = self.kept.saturating_add(ahead * part);
        while self.asked < until.min(self.parcel.len) {
            let len = part.min(self.parcel.len - self.asked);
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

    /// So much of it is staged: the next bytes may be asked for.
    pub fn go_on(&mut self, known: Known, until: u32, out: &mut Vec<BulkOutput>) {
        self.staged_up_to(until, known.now());
        self.ask_parts(known, out);
    }

    /// True if these were the next bytes, which are staged as this parcel's if they are to be. A payload with a wrong
    /// digest is fetched anew.
    pub fn take_part(
        &mut self,
        known: Known,
        parcel: ParcelId,
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
                parcel,
                offset,
                bytes,
            });
        }
        true
    }

    pub fn ask_again(&mut self, known: Known, out: &mut Vec<BulkOutput>) {
        self.progress_at = known.now();
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
