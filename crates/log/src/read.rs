//! Reads entries back: single ones, and runs from a position or a seqno. Bytes from a file are verified by the record's
//! checksum.

use crate::error::LogError;
use crate::log::Log;
use crate::outcome::Outcome;

/// One entry of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunItem {
    /// Its position.
    pub position: u64,
    /// Its outcome, if it is known already.
    pub outcome: Option<Outcome>,
    /// Its payload.
    pub payload: Vec<u8>,
}

impl Log {
    /// Reads the payload at `position`; `None` if the log does not hold it.
    pub fn read(&self, position: u64) -> Result<Option<Vec<u8>>, LogError> {
        match self.index.place(position) {
            Some(place) => self.read_place(place).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the outcome of `position`, if recorded.
    pub fn outcome(&self, position: u64) -> Option<Outcome> {
        self.index.outcomes.get(position)
    }

    /// Returns the position of the entry with `seqno`.
    pub fn position_of_seqno(&self, seqno: i64) -> Option<u64> {
        self.index.outcomes.position_of(seqno)
    }

    /// Reads entries from `position` on, until their payloads exceed `max_bytes`, but at least one if the log holds it.
    /// The run ends before an entry that cannot be read; if that is the first one, it is an error. The run also
    /// includes entries beyond [`Log::served_from`]: the caller decides whom it serves.
    pub fn read_run(&self, position: u64, max_bytes: u64) -> Result<Vec<RunItem>, LogError> {
        self.read_between(position, u64::MAX, max_bytes)
    }

    /// As [`Log::read_run`], but ends with the entry at `last` at the latest.
    pub fn read_between(
        &self,
        position: u64,
        last: u64,
        max_bytes: u64,
    ) -> Result<Vec<RunItem>, LogError> {
        self.run_job(position..=last, max_bytes, false)?.run()
    }

    /// As [`Log::read_run`], from the entry with `seqno` on. Entries without a seqno between are included. Empty if the
    /// log does not hold the seqno.
    pub fn read_run_from_seqno(
        &self,
        seqno: i64,
        max_bytes: u64,
    ) -> Result<Vec<RunItem>, LogError> {
        match self.position_of_seqno(seqno) {
            Some(position) => self.read_run(position, max_bytes),
            None => Ok(Vec::new()),
        }
    }

    /// Reads the newest log checkpoint of a position of at most `position`, with its position.
    pub fn snapshot_at(&self, position: u64) -> Result<Option<(u64, Vec<u8>)>, LogError> {
        match self.index.snapshot(position) {
            Some((at, place)) => Ok(Some((at, self.read_place(place)?))),
            None => Ok(None),
        }
    }

    /// Returns the position of the oldest entry; `None`: the log is empty.
    pub fn first_position(&self) -> Option<u64> {
        self.index.first_position()
    }

    /// Returns the position of the newest entry; `None`: the log is empty.
    pub fn last_position(&self) -> Option<u64> {
        self.index.last_position()
    }

    /// Returns the position that the next entry must have; `None`: any (a log just created).
    pub fn next_position(&self) -> Option<u64> {
        self.index.next_position
    }
}
