//! Large payloads that others fetch from here: their origin's, or any in the log.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::entry::part_of;
use crate::group::Group;
use crate::ids::{Incarnation, Position, SubmissionId, TimeMs};
use crate::log_reader::{LogReader, NotNow};
use crate::message::{Message, Source};

/// Requests of one peer that wait for an answer.
const REQUESTS_MAX: usize = 256;
/// Own parcels whose places in the log are remembered.
const ORDERED_MAX: usize = 16;

/// Requests of others.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Serving {
    /// Who asks for a part, its offset and length.
    requests: VecDeque<(Incarnation, Source, u32, u32)>,
    /// How many bytes were given in which ms.
    given: (TimeMs, usize),
    /// Where the last of the own parcels stand in the log: who has not all of one yet goes on fetching it.
    ordered: VecDeque<(u64, Position, SubmissionId)>,
}

impl Serving {
    /// None: all are answered, or `most_bytes` were given in this ms.
    fn next_request(&mut self, most_bytes: usize) -> Option<(Incarnation, Source, u32, u32)> {
        match self.given.1 < most_bytes {
            true => self.requests.pop_front(),
            false => None,
        }
    }
}

impl Group {
    /// When those that wait are answered.
    pub(crate) fn serves_at(&self) -> Option<TimeMs> {
        (!self.serving.requests.is_empty()).then_some(self.context.now() + 1)
    }

    /// Answered at the end of the batch, when the log can be read.
    pub(crate) fn fetch_asked(&mut self, from: Incarnation, source: Source, offset: u32, len: u32) {
        let requests = &mut self.serving.requests;
        let of_peer = requests.iter().filter(|request| request.0 == from);
        if of_peer.count() < REQUESTS_MAX {
            requests.push_back((from, source, offset, len));
        }
    }

    /// An own parcel is committed.
    pub(crate) fn note_ordered(&mut self, parcel: u64, position: Position, id: SubmissionId) {
        let ordered = &mut self.serving.ordered;
        if ordered.len() == ORDERED_MAX {
            ordered.pop_front();
        }
        ordered.push_back((parcel, position, id));
    }

    pub(crate) fn serve_fetches(&mut self, log: &dyn LogReader) {
        if self.serving.given.0 < self.context.now() {
            self.serving.given = (self.context.now(), 0);
        }
        let most_bytes = self.context.config().thresholds.given_bytes;
        while let Some((to, source, offset, len)) = self.serving.next_request(most_bytes) {
            let part = match source {
                Source::Offered { parcel } => {
                    self.stage_own(parcel, offset, len);
                    self.part_of_own(parcel, offset, len, log)
                }
                Source::Logged { position, id } => self.logged(position, id, offset, len, log),
            };
            let Ok(bytes) = part else {
                continue; // it is asked for again
            };
            let bytes = bytes.unwrap_or_default();
            self.serving.given.1 += bytes.len();
            let part = Message::Part {
                source,
                offset,
                bytes,
            };
            self.send(to, part);
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
        let mut ordered = self.serving.ordered.iter();
        match ordered.find(|(number, _, _)| *number == parcel) {
            Some((_, position, id)) => self.logged(*position, *id, offset, len, log),
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
