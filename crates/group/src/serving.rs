//! Large payloads that others fetch from here: their origin's, or any in the log.
//!
//! Comes in: requests, and where own parcels stand in the log. Goes out: whom to answer now. Holds: so much is given in one ms
//! at most, and a peer has a bounded number of requests.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::entry::part_of;
use crate::group::Group;
use crate::ids::{Incarnation, Position, SubmissionId, TimeMs};
use crate::known::known;
use crate::log_reader::{LogReader, NotNow};
use crate::message::{Message, Source};

/// Requests of one peer that wait for an answer.
const REQUESTS_MAX: usize = 256;
/// Own parcels whose places in the log are remembered.
const ORDERED_MAX: usize = 16;

/// A piece of a payload that a peer has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    from: Incarnation,
    source: Source,
    offset: u32,
    len: u32,
}

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Serving {
    requests: VecDeque<Request>,
    /// How many bytes were given in which ms.
    given: (TimeMs, usize),
    /// Where the last of the own parcels stand in the log: who has not all of one yet goes on fetching it.
    ordered: VecDeque<(u64, Position, SubmissionId)>,
}

impl Serving {
    fn is_waited_for(&self) -> bool {
        !self.requests.is_empty()
    }

    fn ask(&mut self, request: Request) {
        let of_peer = |known: &&Request| known.from == request.from;
        if self.requests.iter().filter(of_peer).count() < REQUESTS_MAX {
            self.requests.push_back(request);
        }
    }

    /// None: all are answered, or `most_bytes` were given in this ms.
    fn next(&mut self, now: TimeMs, most_bytes: usize) -> Option<Request> {
        if self.given.0 < now {
            self.given = (now, 0);
        }
        match self.given.1 < most_bytes {
            true => self.requests.pop_front(),
            false => None,
        }
    }

    fn gave(&mut self, bytes: usize) {
        self.given.1 += bytes;
    }

    /// An own parcel is committed.
    pub(crate) fn note_ordered(&mut self, parcel: u64, position: Position, id: SubmissionId) {
        if self.ordered.len() == ORDERED_MAX {
            self.ordered.pop_front();
        }
        self.ordered.push_back((parcel, position, id));
    }

    fn place_of(&self, parcel: u64) -> Option<(Position, SubmissionId)> {
        let mut ordered = self.ordered.iter();
        let found = ordered.find(|(number, _, _)| *number == parcel);
        found.map(|(_, position, id)| (*position, *id))
    }
}

impl Group {
    /// When those that wait are answered.
    pub(crate) fn serves_at(&self) -> Option<TimeMs> {
        (self.serving.is_waited_for()).then_some(self.context.now() + 1)
    }

    /// Answered at the end of the batch, when the log can be read. Whoever is in no view, and no view's replica, gets
    /// nothing.
    pub(crate) fn fetch_asked(&mut self, from: Incarnation, source: Source, offset: u32, len: u32) {
        let replica = self.peers.replica_of(from);
        let seated = replica.filter(|replica| self.log.has_seat(*replica));
        if seated.is_none_or(|replica| self.known().has_twin(replica, from)) {
            return;
        }
        self.serving.ask(Request {
            from,
            source,
            offset,
            len,
        });
    }

    pub(crate) fn serve_fetches(&mut self, log: &dyn LogReader) {
        let (now, thresholds) = (self.context.now(), self.context.config().thresholds);
        while let Some(request) = self.serving.next(now, thresholds.given_bytes) {
            let Request {
                from,
                source,
                offset,
                len,
            } = request;
            let part = match source {
                Source::Offered { parcel } => {
                    let staged = self.spreading.stage(known!(self), parcel, offset, len);
                    self.carry_out_bulk(staged.into_iter().collect());
                    self.part_of_own(parcel, offset, len, log)
                }
                Source::Logged { position, id } => self.logged(position, id, offset, len, log),
            };
            let Ok(bytes) = part else {
                continue; // it is asked for again
            };
            let bytes = bytes.unwrap_or_default();
            self.serving.gave(bytes.len());
            let part = Message::Part {
                source,
                offset,
                bytes,
            };
            self.send(from, part);
        }
    }

    fn part_of_own(
        &self,
        parcel: u64,
        offset: u32,
        len: u32,
        log: &dyn LogReader,
    ) -> Result<Option<Bytes>, NotNow> {
        let submitted = || self.submissions.own_parcel(parcel);
        if let Some(payload) = self.spreading.payload(parcel).or_else(submitted) {
            return Ok(Some(part_of(payload, offset, len)));
        }
        match self.serving.place_of(parcel) {
            Some((position, id)) => self.logged(position, id, offset, len, log),
            None => Ok(None),
        }
    }

    fn logged(
        &self,
        position: Position,
        id: SubmissionId,
        offset: u32,
        len: u32,
        log: &dyn LogReader,
    ) -> Result<Option<Bytes>, NotNow> {
        match self.log.tail().get(position) {
            Some(entry) => Ok(entry.payload_part(id, offset, len)),
            None => log.read_part(position, id, offset, len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_is_given_in_a_ms_and_a_peer_may_ask_so_often() {
        let mut serving = Serving::default();
        let request = Request {
            from: Incarnation::default(),
            source: Source::Offered { parcel: 1 },
            offset: 0,
            len: 10,
        };
        (0..2 * REQUESTS_MAX).for_each(|_| serving.ask(request));
        assert_eq!(serving.requests.len(), REQUESTS_MAX);
        assert_eq!(serving.next(5, 15), Some(request));
        serving.gave(10);
        assert_eq!(serving.next(5, 15), Some(request));
        serving.gave(10);
        assert_eq!(serving.next(5, 15), None);
        assert_eq!(serving.next(6, 15), Some(request));
    }

    #[test]
    fn places_of_the_last_own_parcels_are_remembered() {
        let mut serving = Serving::default();
        let id = SubmissionId {
            incarnation: Incarnation::default(),
            number: 1,
        };
        let last = ORDERED_MAX as u64;
        (0..=last).for_each(|parcel| serving.note_ordered(parcel, parcel + 100, id));
        assert_eq!(serving.place_of(0), None);
        assert_eq!(serving.place_of(last), Some((last + 100, id)));
    }
}
