//! The interface through which the core reads its log back.

use bytes::Bytes;

use crate::entry::{Body, Entry};
use crate::ids::{Position, SubmissionId};

/// The log cannot be read at the moment, for a reason that passes: the caller tries again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNow;

/// An entry without its submission's payload, which may be large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHead {
    /// The entry; a submission's payload is empty here.
    pub entry: Entry,
    /// Length of the payload in bytes.
    pub len: u32,
    /// CRC-32C of the payload, which is not checked against it here.
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
    /// Reads the entry at `position`; None if the log does not reach back to it.
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow>;

    /// Approximate size of the entry at `position` in bytes, payload included; None if the log does not reach back to
    /// it. An implementation that knows the size reads nothing.
    fn len_bytes(&self, position: Position) -> Option<usize> {
        let entry = self.read(position).ok()??;
        Some(entry.size_bytes())
    }

    /// Reads the entry at `position` without its payload; an implementation need not read a large payload.
    fn head(&self, position: Position) -> Result<Option<EntryHead>, NotNow> {
        Ok(self.read(position)?.map(EntryHead::from))
    }

    /// Reads these bytes of this submission's payload, as far as they exist. None if the log does not hold an intact
    /// entry of it at `position`: then [`Self::head`] finds none either. An implementation need not read a large
    /// payload as a whole.
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

    /// Reads entries from `from` to at most `last`, in order, up to `max_bytes`; at least one if the log reaches back
    /// to `from`.
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
