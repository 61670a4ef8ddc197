//! The write-set log, as group and replicator read it. Of a large entry, one read takes only the part that was
//! requested. A read of the whole entry would block everything else for seconds (measured: 0.7 to 2 s per GiB), and
//! members replace a leader that is silent for so long.

use bytes::Bytes;
use trireme_group::{
    Body, Delivery, ENTRY_HEAD_BYTES, Entry, EntryHead, LogReader, NotNow, Position, SubmissionId,
    decode_entry, decode_entry_head,
};
use trireme_log::{Log, LogError, Outcome, RunItem};
use trireme_replicator::{History, Recorded, Seqno, Unread};

use crate::findings::Findings;
use crate::storage::Storage;

/// Length of the entry's head, which precedes the payload.
const HEAD_BYTES: u32 = ENTRY_HEAD_BYTES as u32;

impl Storage {
    /// Returns the open log, if there is one.
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// Returns the findings of the log's reads.
    pub(crate) fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Returns the read error that was noted since the last call, if any.
    pub fn take_read_error(&mut self) -> Option<LogError> {
        self.findings.take_error()
    }

    /// Takes in a part of a large entry ([`Findings::is_intact`]).
    pub(crate) fn is_intact(&self, head: &EntryHead, offset: u32, part: (u32, u32)) -> bool {
        let damage = || self.log.as_ref()?.damage_at(head.entry.position);
        self.findings.is_intact(head, offset, part, damage)
    }

    /// Notes that nothing is served up to `seqno`, if the log has it: it cannot be read. The replicator sees it by
    /// `first_seqno`.
    pub(crate) fn note_unreadable(&self, seqno: Seqno) {
        if self.position_of(seqno).is_some() {
            self.findings.note_unreadable(seqno);
        }
    }

    /// Returns the lowest seqno that is served, of a log that begins at `first`.
    fn readable_from(&self, first: Seqno) -> Seqno {
        first.max(self.findings.unreadable() + 1)
    }

    /// Returns the log, if it holds a large entry at `position`.
    fn log_with_large(&self, position: Position) -> Option<&Log> {
        let log = self.log.as_ref()?;
        (log.len_at(position)? >= self.thresholds.large_read_bytes).then_some(log)
    }
}

/// The length of a part, and its CRC-32C.
fn summed(part: &[u8]) -> (u32, u32) {
    (part.len() as u32, crc32c::crc32c(part))
}

impl LogReader for Storage {
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow> {
        let Some(log) = &self.log else {
            return Ok(None);
        };
        if self.findings.is_damaged(position) {
            return Ok(None);
        }
        let bytes = self.findings.unless_short(log.read(position))?;
        let bytes = bytes.ok().flatten().map(Bytes::from);
        Ok(bytes.and_then(|bytes| decode_entry(bytes).ok()))
    }

    fn len_bytes(&self, position: Position) -> Option<usize> {
        Some(self.log.as_ref()?.len_at(position)? as usize)
    }

    fn head(&self, position: Position) -> Result<Option<EntryHead>, NotNow> {
        if self.findings.is_damaged(position) {
            return Ok(None);
        }
        let large = match self.log_with_large(position) {
            Some(log) => self.findings.unless_short(log.peek(position, HEAD_BYTES))?,
            None => Ok(None),
        };
        let Ok(large) = large else {
            return Ok(None);
        };
        let head = large.and_then(|peek| {
            let entry = decode_entry_head(&peek.head).ok()?;
            (entry.position == position).then_some(EntryHead {
                entry,
                len: peek.len - HEAD_BYTES,
                digest: peek.rest_crc,
            })
        });
        if head.is_some() {
            return Ok(head);
        }
        let entry = LogReader::read(self, position)?;
        if entry.is_none() && self.log_with_large(position).is_some() {
            // Do not read the whole entry again at the next request.
            self.findings.note_damaged(position);
        }
        Ok(entry.map(EntryHead::from))
    }

    fn read_part(
        &self,
        position: Position,
        id: SubmissionId,
        offset: u32,
        len: u32,
    ) -> Result<Option<Bytes>, NotNow> {
        let Some(log) = self.log_with_large(position) else {
            let entry = LogReader::read(self, position)?;
            return Ok(entry.and_then(|entry| entry.payload_part(id, offset, len)));
        };
        let head = self.head(position)?;
        let Some(head) = head.filter(|head| head.entry.submission() == Some(id)) else {
            return Ok(None);
        };
        let from = HEAD_BYTES.saturating_add(offset);
        let part = log.read_part(position, from..from.saturating_add(len));
        let part = self.findings.unless_short(part)?;
        let Ok(part) = part else {
            // The head may still be readable; without this note the same reader would be sent here again and again.
            self.findings.note_damaged(position);
            return Ok(None);
        };
        let is_intact = |part: &Vec<u8>| self.is_intact(&head, offset, summed(part));
        Ok(part.filter(is_intact).map(Bytes::from))
    }

    fn read_run(
        &self,
        from: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, NotNow> {
        let Some(log) = &self.log else {
            return Ok(Vec::new());
        };
        if self.findings.is_damaged(from) {
            return Ok(Vec::new());
        }
        let run = self
            .findings
            .unless_short(log.read_between(from, last, max_bytes as u64))?;
        let entries = run.into_iter().flatten();
        let entries = entries.map(|item| decode_entry(Bytes::from(item.payload)).ok());
        Ok(entries.map_while(|entry| entry).collect())
    }
}

impl History for Storage {
    fn first_seqno(&self) -> Option<Seqno> {
        Some(self.readable_from(self.log.as_ref()?.first_seqno()?))
    }

    fn first_seqno_kept(&self) -> Option<Seqno> {
        Some(self.readable_from(self.log.as_ref()?.first_seqno_kept()?))
    }

    fn last_seqno(&self) -> Option<Seqno> {
        self.log.as_ref()?.last_seqno()
    }

    fn position_of(&self, seqno: Seqno) -> Option<Position> {
        self.log.as_ref()?.position_of_seqno(seqno)
    }

    fn read(&self, from: Seqno, max_bytes: usize) -> Result<Vec<Recorded>, NotNow> {
        let Some(log) = &self.log else {
            return Ok(Vec::new());
        };
        let run = self
            .findings
            .unless_short(log.read_run_from_seqno(from, max_bytes as u64))?;
        let Ok(run) = run else {
            self.note_unreadable(from);
            return Ok(Vec::new());
        };
        Ok(recorded(run))
    }

    fn read_back(
        &self,
        first: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<(Position, Delivery)>, Unread> {
        let log = (self.log.as_ref()).ok_or_else(|| Unread::Lost("there is no log".into()))?;
        let run = self
            .findings
            .unless_short(log.read_between(first, last, max_bytes as u64));
        let run = run
            .map_err(|NotNow| Unread::NotNow)?
            .map_err(Unread::Lost)?;
        let mut found = Vec::with_capacity(run.len());
        for item in run {
            let entry = decode_entry(Bytes::from(item.payload))
                .map_err(|error| Unread::Lost(error.to_string()))?;
            found.extend(delivery_of(entry.body).map(|delivery| (item.position, delivery)));
        }
        Ok(found)
    }
}

/// Returns the entries of a run that have a seqno, as the replicator takes them in.
pub(crate) fn recorded(run: Vec<RunItem>) -> Vec<Recorded> {
    let record = |item: RunItem| {
        let outcome = item.outcome.filter(|outcome| outcome.seqno > 0)?;
        let entry = decode_entry(Bytes::from(item.payload)).ok()?;
        let delivery = delivery_of(entry.body)?;
        Some(with_outcome(item.position, outcome, delivery))
    };
    run.into_iter().filter_map(record).collect()
}

pub(crate) fn with_outcome(position: Position, outcome: Outcome, delivery: Delivery) -> Recorded {
    Recorded {
        position,
        seqno: outcome.seqno,
        depends_on: outcome.depends_on,
        failed: outcome.flags & (Outcome::FAILED | Outcome::SKIPPED) != 0,
        delivery,
    }
}

/// Returns the delivery that an entry becomes; None for an entry that is not delivered.
pub(crate) fn delivery_of(body: Body) -> Option<Delivery> {
    match body {
        Body::Submission { id, payload } => Some(Delivery::Submission { id, payload }),
        Body::Configuration(configuration) => Some(Delivery::Configuration(configuration)),
        Body::TermStart | Body::Voided { .. } => None,
    }
}
