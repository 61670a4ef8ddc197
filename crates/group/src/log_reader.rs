//! The log as the core reads it back.

use bytes::Bytes;

use crate::entry::{Body, Entry};
use crate::ids::{Position, SubmissionId};

/// The log cannot be read at the moment, by a lack that passes: the same is to be asked again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNow;

/// An entry without the payload of a submission, which may be large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHead {
    /// The payload of a submission is empty here.
    pub entry: Entry,
    /// Bytes of the payload.
    pub len: u32,
    /// CRC-32C of the payload; it is not looked at here whether that is intact.
    pub digest: u32,
}

impl From<Entry> for EntryHead {
    fn from(mut entry: Entry) -> EntryHead {
        let (len, digest) = match &entry.body {
            Body::Submission { payload, .. } => (payload.len() as u32, crc32c::crc32c(payload)),
            _ => (0, 0),
        };
        entry.drop_payload();
        EntryHead { entry, len, digest }
    }
}

/// The part of the log that the core does not hold in memory.
pub trait LogReader {
    /// The entry at `position`, None if the log does not reach back to it.
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow>;

    /// What the entry at `position` takes, its payload and some more; None if the log does not reach back to it. Nothing is
    /// read where the log knows it.
    fn len_bytes(&self, position: Position) -> Option<usize> {
        let entry = self.read(position).ok()??;
        Some(entry.size_bytes())
    }

    /// The same without its payload: that of a large one is not read.
    fn head(&self, position: Position) -> Result<Option<EntryHead>, NotNow> {
        Ok(self.read(position)?.map(EntryHead::from))
    }

    /// These bytes of the payload of this submission, as far as there are any; None if the log does not hold it at
    /// `position`, intact: then it has no head any more either. A large payload is not read as a whole.
    fn read_part(
        &self,
        position: Position,
        id: SubmissionId,
        offset: u32,
        len: u32,
    ) -> Result<Option<Bytes>, NotNow> {
        let entry = self.read(position)?;
        Ok(entry.and_then(|entry| entry.payload_part(id, offset, len)))
    }

    /// Entries from `from` to `last` at most, in order, until they exceed `max_bytes`; at least one if the log
    /// reaches back to `from`.
    fn read_run(
        &self,
        from: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, NotNow> {
        let (mut run, mut bytes) = (Vec::new(), 0);
        for position in from..=last {
            let entry = match self.read(position) {
                Ok(Some(entry)) => entry,
                Err(NotNow) if run.is_empty() => return Err(NotNow),
                _ => break,
            };
            bytes += entry.size_bytes();
            if bytes > max_bytes && !run.is_empty() {
                break;
            }
            run.push(entry);
        }
        Ok(run)
    }
}
