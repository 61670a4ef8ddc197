//! The write-set log, as the replicator reads it. The group's reads are in `group_reads`.

use bytes::Bytes;
use trireme_group::{Body, Delivery, NotNow, Position, decode_entry};
use trireme_log::{Log, LogError, Outcome, RunItem};
use trireme_replicator::{History, Recorded, Seqno, Unread};

use crate::storage::Storage;

impl Storage {
    /// Returns the read error that was noted since the last call, if any.
    pub fn take_read_error(&mut self) -> Option<LogError> {
        self.read_error.take()
    }

    /// Notes that nothing is served up to the log's end, or up to `seqno` if the log has no seqno. The replicator sees it
    /// by `first_seqno`.
    pub(crate) fn note_unreadable(&self, seqno: Seqno) {
        let last = self.log.as_ref().and_then(Log::last_seqno);
        self.unreadable.set(last.unwrap_or(seqno));
    }

    /// Notes a read error. Err: it may go away. Inner Err: the entry cannot be read, now or later.
    pub(crate) fn unless_short<T>(
        &self,
        read: Result<T, LogError>,
    ) -> Result<Result<T, String>, NotNow> {
        let error = match read {
            Ok(read) => return Ok(Ok(read)),
            Err(error) => error,
        };
        let (is_short, text) = (error.is_shortage(), error.to_string());
        let mut noted = self.read_error.borrow_mut();
        // A lost entry must be reported: a shortage does not replace it.
        if noted.as_ref().is_none_or(LogError::is_shortage) {
            *noted = Some(error);
        }
        match is_short {
            true => Err(NotNow),
            false => Ok(Err(text)),
        }
    }
}

impl History for Storage {
    fn first_seqno(&self) -> Option<Seqno> {
        let first = self.log.as_ref()?.first_seqno()?;
        Some(first.max(self.unreadable.get() + 1))
    }

    fn has(&self, seqno: Seqno) -> bool {
        let log = self.log.as_ref();
        log.is_some_and(|log| log.position_of_seqno(seqno).is_some())
    }

    fn read(&self, from: Seqno, max_bytes: usize) -> Result<Vec<Recorded>, NotNow> {
        let Some(log) = &self.log else {
            return Ok(Vec::new());
        };
        let run = self.unless_short(log.read_run_from_seqno(from, max_bytes as u64))?;
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
        let run = self.unless_short(log.read_between(first, last, max_bytes as u64));
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
