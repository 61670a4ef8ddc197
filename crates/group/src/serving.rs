//! Bulk payloads that others fetch from this member: its own ones, or any in its log.
//!
//! In: requests, and the positions of own bulk payloads in the log. Out: the parts to send now. The bytes sent within
//! one ms are bounded, and so are the requests of one peer.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::entry::part_of;
use crate::ids::{Incarnation, Position, SubmissionId, TimeMs};
use crate::known::Known;
use crate::log_reader::{LogReader, NotNow};
use crate::message::{Message, Source};

/// Greatest number of waiting requests of one peer.
const REQUESTS_MAX: usize = 256;
/// Greatest number of own bulk payloads whose positions in the log are remembered.
const ORDERED_MAX: usize = 16;

/// A peer's request for a part of a payload.
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
    /// The last ms in which parts were sent, and the bytes sent in it.
    given: (TimeMs, usize),
    /// Positions of the last own bulk payloads in the log, for members that still fetch one.
    ordered: VecDeque<(u64, Position, SubmissionId)>,
}

impl Request {
    pub(crate) fn from(&self) -> Incarnation {
        self.from
    }

    /// The own bulk payload of this part, the part's offset, and its length.
    pub(crate) fn of_own(&self) -> Option<(u64, u32, u32)> {
        match self.source {
            Source::Offered { bulk } => Some((bulk, self.offset, self.len)),
            Source::Logged { .. } => None,
        }
    }
}

impl Serving {
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.requests.is_empty()
    }

    /// A peer requests a part. It gets nothing if no configuration in force lists its replica, or if it is a duplicate
    /// replica.
    pub(crate) fn asked(
        &mut self,
        known: Known,
        from: Incarnation,
        source: Source,
        (offset, len): (u32, u32),
    ) {
        let replica = known.peers.replica_of(from);
        let seated = replica.filter(|replica| known.log.has_seat(*replica));
        if seated.is_none_or(|replica| known.has_duplicate(replica, from)) {
            return;
        }
        self.ask(Request {
            from,
            source,
            offset,
            len,
        });
    }

    /// Takes the next request to answer; None: all are answered, or enough bytes were sent in this ms.
    pub(crate) fn next(&mut self, known: Known) -> Option<Request> {
        self.next_within(known.now(), known.context.config().thresholds.given_bytes)
    }

    /// Returns the answer; None: the log cannot be read now, and the peer asks again. `own`: returns an own bulk
    /// payload that is in memory.
    pub(crate) fn answer<'a>(
        &mut self,
        known: Known,
        request: Request,
        own: impl FnOnce(u64) -> Option<&'a Bytes>,
        log: &dyn LogReader,
    ) -> Option<Message> {
        let Request {
            source,
            offset,
            len,
            ..
        } = request;
        let piece = (offset, len);
        let part = match source {
            Source::Offered { bulk } => match (own(bulk), self.place_of(bulk)) {
                (Some(payload), _) => Ok(Some(part_of(payload, offset, len))),
                (None, Some((position, id))) => logged(known, position, id, piece, log),
                (None, None) => Ok(None),
            },
            Source::Logged { position, id } => logged(known, position, id, piece, log),
        };
        let bytes = part.ok()?.unwrap_or_default();
        self.gave(bytes.len());
        Some(Message::Part {
            source,
            offset,
            bytes,
        })
    }

    fn ask(&mut self, request: Request) {
        let of_peer = |known: &&Request| known.from == request.from;
        if self.requests.iter().filter(of_peer).count() < REQUESTS_MAX {
            self.requests.push_back(request);
        }
    }

    /// None: all are answered, or `most_bytes` were sent in this ms.
    fn next_within(&mut self, now: TimeMs, most_bytes: usize) -> Option<Request> {
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

    /// Notes the position of an own bulk payload that is committed.
    pub(crate) fn note_ordered(&mut self, bulk: u64, position: Position, id: SubmissionId) {
        if self.ordered.len() == ORDERED_MAX {
            self.ordered.pop_front();
        }
        self.ordered.push_back((bulk, position, id));
    }

    fn place_of(&self, bulk: u64) -> Option<(Position, SubmissionId)> {
        let mut ordered = self.ordered.iter();
        let found = ordered.find(|(number, _, _)| *number == bulk);
        found.map(|(_, position, id)| (*position, *id))
    }
}

/// Reads a part from the log; None: the log does not hold it.
fn logged(
    known: Known,
    position: Position,
    id: SubmissionId,
    (offset, len): (u32, u32),
    log: &dyn LogReader,
) -> Result<Option<Bytes>, NotNow> {
    match known.log.tail().get(position) {
        Some(entry) => Ok(entry.payload_part(id, offset, len)),
        None => log.read_part(position, id, offset, len),
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
            source: Source::Offered { bulk: 1 },
            offset: 0,
            len: 10,
        };
        (0..2 * REQUESTS_MAX).for_each(|_| serving.ask(request));
        assert_eq!(serving.requests.len(), REQUESTS_MAX);
        assert_eq!(serving.next_within(5, 15), Some(request));
        serving.gave(10);
        assert_eq!(serving.next_within(5, 15), Some(request));
        serving.gave(10);
        assert_eq!(serving.next_within(5, 15), None);
        assert_eq!(serving.next_within(6, 15), Some(request));
    }

    #[test]
    fn places_of_the_last_own_bulk_payloads_are_remembered() {
        let mut serving = Serving::default();
        let id = SubmissionId {
            incarnation: Incarnation::default(),
            number: 1,
        };
        let last = ORDERED_MAX as u64;
        (0..=last).for_each(|bulk| serving.note_ordered(bulk, bulk + 100, id));
        assert_eq!(serving.place_of(0), None);
        assert_eq!(serving.place_of(last), Some((last + 100, id)));
    }
}
