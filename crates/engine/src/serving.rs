//! Reads entries of the log for peers that pull them (IST), and encodes them, beside everything else: on a thread of its own if
//! there is one ([`crate::Start::flushes_apart`]).
//!
//! In: pulls, and ended jobs. Out: jobs, at most one for each peer at a time, and answers. A peer without an answer pulls
//! again.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use trireme_group::{
    ENTRY_HEAD_BYTES, EntryHead, Incarnation, NotNow, Position, decode_entry_head,
};
use trireme_log::{LogError, Outcome, PartJob, Peek, RunItem, RunJob};
use trireme_replicator::{Pull, RecordedPart, ist_chunk, ist_part};

use crate::storage::{Storage, delivery_of, recorded, with_outcome};

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

/// The next step for a pull.
pub(crate) enum NextStep {
    /// Run this job beside everything else.
    Job(ServeJob),
    /// The answer is here.
    Served(Served),
}

/// The answer to a pull.
pub(crate) enum Served {
    /// Send this to the peer.
    Answer(Pull, Bytes),
    /// The entries cannot be read, now or later.
    Lost(Pull),
    /// A lack that passes: the peer pulls again.
    NotNow,
}

/// The pulls of peers. A peer pulls the next entries after it received these, or after a second.
#[derive(Debug, Default)]
pub(crate) struct Serving {
    /// The peers for which a job is under way.
    under_way: BTreeSet<Incarnation>,
    /// Ended jobs whose answers are not sent yet.
    ended: Vec<ServeDone>,
}

impl Serving {
    /// Takes in a pull. `apart`: the job runs beside everything else. None: there is nothing to do, since a job for this
    /// peer is under way.
    pub(crate) fn pulled(
        &mut self,
        pull: Pull,
        storage: &Storage,
        apart: bool,
    ) -> Option<NextStep> {
        if self.under_way.contains(&pull.to) {
            return None;
        }
        match begin(storage, pull) {
            Ok(job) if apart => {
                self.under_way.insert(pull.to);
                Some(NextStep::Job(job))
            }
            Ok(job) => end(storage, job.run()).map(NextStep::Served),
            Err(served) => Some(NextStep::Served(served)),
        }
    }

    /// Takes in the end of a job.
    pub(crate) fn job_ended(&mut self, done: ServeDone) {
        self.ended.push(done);
    }

    /// Returns the answers of the jobs that have ended since the last call.
    pub(crate) fn take_answers(&mut self, storage: &Storage) -> Vec<Served> {
        let mut answers = Vec::new();
        for done in std::mem::take(&mut self.ended) {
            self.under_way.remove(&done.pull.to);
            answers.extend(end(storage, done));
        }
        answers
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

/// Makes the job for a pull.
fn begin(storage: &Storage, pull: Pull) -> Result<ServeJob, Served> {
    let lost = || cannot_serve(storage, pull);
    let log = storage.log().ok_or_else(lost)?;
    let position = log.position_of_seqno(pull.seqno).ok_or_else(lost)?;
    if storage.findings().is_damaged(position) {
        return Err(lost());
    }
    let is_long = |len: u32| len > pull.part_bytes.saturating_add(HEAD_BYTES);
    let part = match log.outcome(position) {
        Some(outcome) if log.len_at(position).is_some_and(is_long) => {
            let from = HEAD_BYTES.saturating_add(pull.offset);
            let range = from..from.saturating_add(pull.part_bytes);
            let job = log.part_job(position, HEAD_BYTES, range);
            let job = or_unserved(storage, pull, job)?;
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
        log: storage.findings().token().clone(),
        part,
        run: or_unserved(storage, pull, run)?,
    })
}

/// Returns the answer that a job gives; None for a job of an earlier log or suffix.
fn end(storage: &Storage, done: ServeDone) -> Option<Served> {
    let ServeDone { pull, log, result } = done;
    if !Arc::ptr_eq(&log, storage.findings().token()) {
        return None;
    }
    Some(match or_unserved(storage, pull, result) {
        Ok(Found::Run(bytes)) => Served::Answer(pull, bytes),
        Ok(Found::Nothing) => cannot_serve(storage, pull),
        Ok(Found::Part {
            head,
            bytes,
            len,
            crc,
        }) => match storage.is_intact(&head, pull.offset, (len, crc)) {
            true => Served::Answer(pull, bytes),
            false => cannot_serve(storage, pull),
        },
        Err(served) => served,
    })
}

fn or_unserved<T>(storage: &Storage, pull: Pull, read: Result<T, LogError>) -> Result<T, Served> {
    match storage.findings().unless_short(read) {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(_)) => Err(cannot_serve(storage, pull)), // the error is noted
        Err(NotNow) => Err(Served::NotNow),
    }
}

fn cannot_serve(storage: &Storage, pull: Pull) -> Served {
    storage.note_unreadable(pull.seqno);
    Served::Lost(pull)
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
