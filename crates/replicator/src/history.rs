//! The node's own log, as far as it can be read back for IST.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Delivery, NotNow, Position};

/// Reads the log. Given to every [`crate::Replicator::handle`].
pub trait History {
    /// Returns the first seqno from which this node can serve others without a gap; None if the log is empty.
    fn first_seqno(&self) -> Option<Seqno>;
    /// Returns the first seqno that can be read, also if this node keeps it for itself; None if the log is empty.
    fn first_seqno_kept(&self) -> Option<Seqno>;
    /// Returns the last seqno with an outcome, which says that its entry is committed; None if there is no outcome.
    fn last_seqno(&self) -> Option<Seqno>;
    /// Returns the position of the entry with this seqno, if it is here; reading it may still fail.
    fn position_of(&self, seqno: Seqno) -> Option<Position>;
    /// Returns true if the entry with this seqno is here; reading it may still fail.
    fn has(&self, seqno: Seqno) -> bool {
        self.position_of(seqno).is_some()
    }
    /// Reads entries with a seqno, from `from` on, in order, until `max_bytes` are filled (at least one if there is
    /// one). Empty if `from` is not there.
    fn read(&self, from: Seqno, max_bytes: usize) -> Result<Vec<Recorded>, NotNow>;
    /// Reads deliveries from position `first` on, up to `last`, until `max_bytes` are filled (at least one if there is
    /// one). Ends before the first that cannot be read.
    ///
    /// # Errors
    /// If the first one cannot be read: the error says whether to try again, or what is wrong.
    fn read_back(
        &self,
        first: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<(Position, Delivery)>, Unread>;
}

/// The reason why the log was not read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// A shortage that passes: ask again later.
    NotNow,
    /// The log is damaged: the text says how, for the operator.
    Lost(String),
}

/// An entry with a seqno, and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Its position.
    pub position: Position,
    /// Its seqno.
    pub seqno: Seqno,
    /// The seqno that it depends on.
    pub depends_on: Seqno,
    /// True if it failed certification.
    pub failed: bool,
    /// The entry.
    pub delivery: Delivery,
}

/// A part of a long entry.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedPart {
    /// The entry, without its payload.
    pub record: Recorded,
    /// Bytes of the whole payload.
    pub len: u32,
    /// CRC-32C of the whole payload.
    pub digest: u32,
    /// Offset of the part.
    pub offset: u32,
    /// The part; empty behind the end.
    pub bytes: Bytes,
}

/// A log that holds nothing.
pub struct NoHistory;

impl History for NoHistory {
    fn first_seqno(&self) -> Option<Seqno> {
        None
    }

    fn first_seqno_kept(&self) -> Option<Seqno> {
        None
    }

    fn last_seqno(&self) -> Option<Seqno> {
        None
    }

    fn position_of(&self, _seqno: Seqno) -> Option<Position> {
        None
    }

    fn read(&self, _from: Seqno, _max_bytes: usize) -> Result<Vec<Recorded>, NotNow> {
        Ok(Vec::new())
    }

    fn read_back(
        &self,
        _first: Position,
        _last: Position,
        _max_bytes: usize,
    ) -> Result<Vec<(Position, Delivery)>, Unread> {
        Err(Unread::Lost("there is no log".to_owned()))
    }
}
