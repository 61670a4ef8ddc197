//! Reads entries of the log for peers that pull them (IST), and encodes them, beside everything else: on a thread of its own if
//! there is one ([`crate::Start::flushes_apart`]).
//!
//! In come pulls; out go jobs, at most one for each peer at a time, and answers. A peer without an answer pulls again.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use trireme_group::{
    ENTRY_HEAD_BYTES, EntryHead, Incarnation, NotNow, Position, decode_entry_head,
};
use trireme_log::{LogError, Outcome, PartJob, Peek, RunItem, RunJob};
use trireme_replicator::{self as replicator, Pull, RecordedPart, ist_chunk, ist_part};

use crate::engine::Engine;
use crate::host::{Channel, Host};
use crate::reading::{delivery_of, recorded, with_outcome};
use crate::storage::Storage;

/// Number of bytes before the payload in an entry.
const HEAD_BYTES: u32 = ENTRY_HEAD_BYTES as u32;

/// Reads entries that a peer has pulled. Bring its result to [`crate::Engine::served`].
pub struct ServeJob {
    pull: Pull,
    /// Names the log, and its suffix.
    log: Arc<()>,
    part: Option<Part>,
    /// Runs if there is no part, or the entry is no submission.
    run: RunJob,
}

/// A part of a long entry.
struct Part {
    job: PartJob,
    position: Position,
    outcome: Outcome,
}

/// The result of a [`ServeJob`].
pub struct ServeDone {
    pull: Pull,
    log: Arc<()>,
    result: Result<Found, LogError>,
}

enum Found {
    /// No entry that can be decoded.
    Nothing,
    /// Whole entries, encoded for the peer.
    Run(Bytes),
    /// A part of a long entry, encoded for the peer.
    Part {
        head: EntryHead,
        bytes: Bytes,
        /// Length of the part, in bytes.
        len: u32,
        /// CRC-32C of the part.
        crc: u32,
    },
}

/// The answer to a pull.
enum Served {
    /// Send this to the peer.
    Answer(Pull, Bytes),
    /// The entries cannot be read, now or later.
    Lost(Pull),
    /// A lack that passes: the peer pulls again.
    NotNow,
}

/// The peers for which a job is under way. A peer pulls the next entries after it received these, or after a second.
#[derive(Debug, Default)]
pub(crate) struct Serving(BTreeSet<Incarnation>);

impl Serving {
    /// Returns true while a job for the peer of this pull is under way.
    fn has(&self, pull: &Pull) -> bool {
        self.0.contains(&pull.to)
    }

    fn begin(&mut self, pull: &Pull) {
        self.0.insert(pull.to);
    }

    fn end(&mut self, pull: &Pull) {
        self.0.remove(&pull.to);
    }
}

impl ServeJob {
    /// Reads the entries, and encodes them.
    pub fn run(self) -> ServeDone {
        let (pull, log) = (self.pull, self.log.clone());
        ServeDone {
            pull,
            log,
            result: self.read(),
        }
    }

    fn read(self) -> Result<Found, LogError> {
        if let Some(Part {
            job,
            position,
            outcome,
        }) = self.part
        {
            let (peek, bytes) = job.run()?;
            if let Some(found) = part(self.pull, position, outcome, &peek, bytes.into()) {
                return Ok(found);
            }
        }
        Ok(run(self.pull, self.run.run()?))
    }
}

impl Engine {
    /// A peer has pulled entries.
    pub(crate) fn serve(&mut self, now_ms: u64, pull: Pull, host: &mut dyn Host) {
        let Some(link) = self.link.as_mut().filter(|link| !link.serving.has(&pull)) else {
            return;
        };
        let served = match link.storage.begin_serving(pull) {
            Ok(job) if link.flushes.are_apart() => {
                link.serving.begin(&pull);
                return host.serve(job);
            }
            Ok(job) => link.storage.end_serving(job.run()),
            Err(served) => Some(served),
        };
        self.answer_pull(now_ms, served, host);
    }

    /// A job that [`Host::serve`] was given has ended. Its answer is sent by the next [`Engine::pump`].
    pub fn served(&mut self, done: ServeDone) {
        if let Some(link) = &mut self.link {
            link.served.push(done);
        }
    }

    pub(crate) fn answer_pulls(&mut self, now_ms: u64, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        let mut answers = Vec::new();
        for done in std::mem::take(&mut link.served) {
            link.serving.end(&done.pull);
            answers.push(link.storage.end_serving(done));
        }
        for served in answers {
            self.answer_pull(now_ms, served, host);
        }
    }

    fn answer_pull(&mut self, now_ms: u64, served: Option<Served>, host: &mut dyn Host) {
        match served {
            Some(Served::Answer(pull, bytes)) => host.send(&[pull.to], Channel::Replicator, bytes),
            Some(Served::Lost(Pull { to, seqno, .. })) => {
                self.node(now_ms, replicator::Event::Unserved { to, seqno })
            }
            Some(Served::NotNow) | None => {}
        }
    }
}

/// Returns None if the entry is no submission.
fn part(
    pull: Pull,
    position: Position,
    outcome: Outcome,
    peek: &Peek,
    bytes: Bytes,
) -> Option<Found> {
    let entry = decode_entry_head(&peek.head).ok()?;
    entry.submission().filter(|_| entry.position == position)?;
    let head = EntryHead {
        len: peek.len - HEAD_BYTES,
        digest: peek.rest_crc,
        entry,
    };
    let delivery = delivery_of(head.entry.body.clone())?;
    let (len, crc) = (bytes.len() as u32, crc32c::crc32c(&bytes));
    let bytes = ist_part(RecordedPart {
        record: with_outcome(position, outcome, delivery),
        len: head.len,
        digest: head.digest,
        offset: pull.offset,
        bytes,
    });
    Some(Found::Part {
        head,
        bytes,
        len,
        crc,
    })
}

fn run(pull: Pull, items: Vec<RunItem>) -> Found {
    let records = recorded(items);
    match records.is_empty() {
        true => Found::Nothing,
        false => Found::Run(ist_chunk(pull.seqno, records)),
    }
}

impl Storage {
    /// Makes the job for a pull.
    fn begin_serving(&self, pull: Pull) -> Result<ServeJob, Served> {
        let lost = || self.cannot_serve(pull);
        let log = self.log.as_ref().ok_or_else(lost)?;
        let position = log.position_of_seqno(pull.seqno).ok_or_else(lost)?;
        if self.is_damaged(position) {
            return Err(lost());
        }
        let is_long = |len: u32| len > pull.part_bytes.saturating_add(HEAD_BYTES);
        let part = match log.outcome(position) {
            Some(outcome) if log.len_at(position).is_some_and(is_long) => {
                let from = HEAD_BYTES.saturating_add(pull.offset);
                let range = from..from.saturating_add(pull.part_bytes);
                let job = log.part_job(position, HEAD_BYTES, range);
                let job = self.or_unserved(pull, job)?;
                job.map(|job| Part {
                    job,
                    position,
                    outcome,
                })
            }
            _ => None,
        };
        let run = log.run_job_from_seqno(pull.seqno, pull.chunk_bytes as u64);
        Ok(ServeJob {
            pull,
            log: self.log_token.clone(),
            part,
            run: self.or_unserved(pull, run)?,
        })
    }

    /// Returns the answer that a job gives; None for a job of an earlier log or suffix.
    fn end_serving(&self, done: ServeDone) -> Option<Served> {
        let ServeDone { pull, log, result } = done;
        if !Arc::ptr_eq(&log, &self.log_token) {
            return None;
        }
        Some(match self.or_unserved(pull, result) {
            Ok(Found::Run(bytes)) => Served::Answer(pull, bytes),
            Ok(Found::Nothing) => self.cannot_serve(pull),
            Ok(Found::Part {
                head,
                bytes,
                len,
                crc,
            }) => {
                self.parts_read.set(self.parts_read.get() + 1);
                match self.is_intact(&head, pull.offset, (len, crc)) {
                    true => Served::Answer(pull, bytes),
                    false => self.cannot_serve(pull),
                }
            }
            Err(served) => served,
        })
    }

    fn or_unserved<T>(&self, pull: Pull, read: Result<T, LogError>) -> Result<T, Served> {
        match self.unless_short(read) {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(_)) => Err(self.cannot_serve(pull)), // the error is noted
            Err(NotNow) => Err(Served::NotNow),
        }
    }

    fn cannot_serve(&self, pull: Pull) -> Served {
        self.note_unreadable(pull.seqno);
        Served::Lost(pull)
    }
}

impl fmt::Debug for ServeJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServeJob of {:?}", self.pull)
    }
}

impl fmt::Debug for ServeDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.result.as_ref().map(|_| "read");
        write!(f, "ServeDone of {:?}: {outcome:?}", self.pull)
    }
}

#[cfg(test)]
mod tests;
