//! One large payload on its way here.

use bytes::{Bytes, BytesMut};
use crc32c::crc32c_append;
use trireme_mutants::{Mutant, planted};

use crate::event::Action;
use crate::group::Group;
use crate::ids::{Incarnation, ParcelId, TimeMs};
use crate::logged::PARCEL_NUMBER_MAX;
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

impl Group {
    /// A fetch of which nothing was asked for yet.
    pub(crate) fn new_fetch(&self, source: Source, from: Incarnation, parcel: Parcel) -> Fetch {
        Fetch {
            source,
            from,
            parcel,
            bytes: BytesMut::new(),
            digest: 0,
            asked: 0,
            kept: 0,
            stages: parcel.len >= self.context.config().staged_bytes,
            progress_at: self.context.now(),
            submitted: None,
        }
    }

    pub(crate) fn ask_parts(&mut self, fetch: &mut Fetch) {
        let part = self.context.config().part_bytes;
        let peer = self.peers.get(fetch.from);
        let trip_us = peer.and_then(|peer| peer.round_trips.mean_us(self.context.now()));
        let ahead = parts_ahead(trip_us.unwrap_or_default());
        let until = fetch.kept.saturating_add(ahead * part);
        while fetch.asked < until.min(fetch.parcel.len) {
            let len = part.min(fetch.parcel.len - fetch.asked);
            let (source, offset) = (fetch.source, fetch.asked);
            self.send(
                fetch.from,
                Message::Fetch {
                    source,
                    offset,
                    len,
                },
            );
            fetch.asked += len;
        }
    }

    /// A piece of a payload that was asked for.
    pub(crate) fn part(&mut self, from: Incarnation, source: Source, offset: u32, bytes: Bytes) {
        match source {
            Source::Offered { parcel } => self.offered_part(from, parcel, offset, bytes),
            Source::Logged { position, id } => self.logged_part(from, position, id, offset, bytes),
        }
    }

    /// Pieces of a payload were staged.
    pub(crate) fn staged_up_to(&mut self, parcel: ParcelId, until: u32) {
        if parcel.number > PARCEL_NUMBER_MAX {
            self.logged_staged(parcel, until)
        } else if parcel.origin == self.me() {
            self.own_staged(parcel.number, until)
        } else {
            self.offered_staged(parcel, until)
        }
    }

    /// The next bytes may be asked for.
    pub(crate) fn go_on(&mut self, fetch: &mut Fetch, until: u32) {
        fetch.staged_up_to(until, self.context.now());
        self.ask_parts(fetch);
    }

    /// True if these were the next bytes, which are staged as this parcel's if they are to be. A payload with a wrong
    /// digest is fetched anew.
    pub(crate) fn take_part(
        &mut self,
        fetch: &mut Fetch,
        parcel: ParcelId,
        offset: u32,
        bytes: Bytes,
    ) -> bool {
        if !fetch.take(offset, &bytes) {
            return false;
        }
        fetch.progress_at = self.context.now();
        if fetch.is_damaged() {
            fetch.begin_anew();
        }
        self.ask_parts(fetch);
        if fetch.stages {
            self.out.push(Action::Stage {
                parcel,
                offset,
                bytes,
            });
        }
        true
    }

    pub(crate) fn ask_again(&mut self, fetch: &mut Fetch) {
        fetch.progress_at = self.context.now();
        if !planted(Mutant::LostPartNotAskedAgain) {
            fetch.asked = fetch.received();
        }
        self.ask_parts(fetch);
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
