//! Large payloads that others fetch from here: their origin's, or any in the log.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::entry::Body;
use crate::group::Group;
use crate::ids::{Incarnation, Position, SubmissionId, TimeMs};
use crate::log_reader::{LogReader, NotNow};
use crate::message::{Message, Source};

/// Requests that wait for an answer, of all peers together.
const REQUESTS_MAX: usize = 1024;
/// A payload read back from the log is kept for so long after the last request for it.
const KEPT_MS: TimeMs = 5_000;

/// Requests of others.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Serving {
    /// Who asks for a part, its offset and length.
    requests: VecDeque<(Incarnation, Source, u32, u32)>,
    /// The entry of the log that was read last, and when it was asked for.
    read: Option<(Position, SubmissionId, Bytes, TimeMs)>,
}

impl Group {
    /// Answered at the end of the batch, when the log can be read.
    pub(crate) fn fetch_asked(&mut self, from: Incarnation, source: Source, offset: u32, len: u32) {
        let requests = &mut self.serving.requests;
        if requests.len() < REQUESTS_MAX {
            requests.push_back((from, source, offset, len));
        }
    }

    pub(crate) fn serve_fetches(&mut self, log: &dyn LogReader) {
        while let Some((to, source, offset, len)) = self.serving.requests.pop_front() {
            if let Source::Offered { parcel } = source {
                self.stage_own(parcel, offset, len);
            }
            let payload = match source {
                Source::Offered { parcel } => self.own_parcel(parcel),
                Source::Logged { position, id } => match self.logged_payload(position, id, log) {
                    Ok(payload) => payload,
                    Err(NotNow) => continue, // it is asked for again
                },
            };
            let bytes = payload.map_or(Bytes::new(), |payload| {
                let from = (offset as usize).min(payload.len());
                let until = (from + len as usize).min(payload.len());
                payload.slice(from..until)
            });
            let part = Message::Part {
                source,
                offset,
                bytes,
            };
            self.send(to, part);
        }
    }

    fn own_parcel(&self, parcel: u64) -> Option<Bytes> {
        let submitted = || self.submissions.own_parcel(parcel);
        (self.spreading.payload(parcel)).or_else(submitted).cloned()
    }

    fn logged_payload(
        &mut self,
        position: Position,
        id: SubmissionId,
        log: &dyn LogReader,
    ) -> Result<Option<Bytes>, NotNow> {
        let of_entry = |body: &Body| match body {
            Body::Submission { id: found, payload } if *found == id => Some(payload.clone()),
            _ => None,
        };
        if let Some(entry) = self.tail.get(position) {
            return Ok(of_entry(&entry.body));
        }
        if let Some((at, of, payload, used_at)) = &mut self.serving.read {
            if (*at, *of) == (position, id) {
                *used_at = self.now;
                return Ok(Some(payload.clone()));
            }
        }
        let payload = (log.read(position)?).and_then(|entry| of_entry(&entry.body));
        if let Some(payload) = &payload {
            self.serving.read = Some((position, id, payload.clone(), self.now));
        }
        Ok(payload)
    }

    /// With every heartbeat.
    pub(crate) fn forget_read(&mut self) {
        let now = self.now;
        (self.serving.read).take_if(|(_, _, _, used_at)| now >= *used_at + KEPT_MS);
    }
}
