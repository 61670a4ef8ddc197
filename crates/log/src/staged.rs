//! Staging: large payloads are written before their place in the log is known, a piece at a time, so that nothing else
//! waits for the write of a whole payload. The file of a staged payload becomes the next segment.

use std::path::PathBuf;
use std::sync::Arc;

use crate::MAX_PAYLOAD_BYTES;
use crate::disk::{Disk, DiskFile};
use crate::error::LogError;
use crate::format::{self, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES};
use crate::log::Log;

/// A file that may become the next segment. Removed when it is dropped unused.
pub struct Staged {
    disk: Arc<dyn Disk>,
    name: String,
    file: Arc<dyn DiskFile>,
    /// Offset of the payload in the file.
    payload_at: u64,
    written_bytes: u64,
    used: bool,
}

/// Writes the payload of a [`Staged`], on any thread.
#[derive(Clone)]
pub struct StagedWriter {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    payload_at: u64,
}

impl StagedWriter {
    /// Writes bytes of the payload from `offset` on.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), LogError> {
        let at = self.payload_at + offset;
        let result = self.file.write_all_at(bytes, at);
        result.map_err(|e| LogError::io("write", self.path.clone(), at, e))
    }

    /// Flushes the written bytes. After an error the staged payload must not be used: the file reports the error only
    /// once.
    pub fn flush(&self) -> Result<(), LogError> {
        let result = self.file.sync_data();
        result.map_err(|e| LogError::io("flush", self.path.clone(), 0, e))
    }
}

impl Staged {
    /// Returns the writer of the payload. The caller must report its progress to [`Staged::wrote`].
    pub fn writer(&self) -> StagedWriter {
        StagedWriter {
            path: self.disk.path(&self.name),
            file: self.file.clone(),
            payload_at: self.payload_at,
        }
    }

    /// Notes that the next `bytes` bytes of the payload were written.
    pub fn wrote(&mut self, bytes: u64) {
        self.written_bytes += bytes;
    }

    /// Returns the number of payload bytes that were written.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.used {
            // If this fails, the next process removes the file.
            let _ = self.disk.remove(&self.name);
        }
    }
}

impl Log {
    /// Begins to stage the payload of an entry; `head_bytes` will precede the payload in the body of its record.
    pub fn stage(&mut self, head_bytes: usize) -> Result<Staged, LogError> {
        self.check()?;
        self.staged += 1;
        let name = format::staged_name(self.staged);
        let file = self.disk.create(&name);
        let file = file.map_err(|e| LogError::io("create", self.disk.path(&name), 0, e))?;
        Ok(Staged {
            disk: self.disk.clone(),
            name,
            file: file.into(),
            payload_at: SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES + head_bytes as u64,
            written_bytes: 0,
            used: false,
        })
    }

    /// As [`Log::append`], for an entry with a staged payload, except its first bytes, which were not known then.
    /// `payload_crc` is the CRC-32C of the final payload. It is written out on return.
    ///
    /// A payload that was not staged whole, or not for this head, is appended as usual.
    pub fn append_staged(
        &mut self,
        position: u64,
        head: &[u8],
        first: usize,
        payload: &[u8],
        payload_crc: u32,
        mut staged: Staged,
    ) -> Result<(), LogError> {
        let bytes = (head.len() + payload.len()) as u64;
        let at = SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES + head.len() as u64;
        let is_whole = staged.payload_at == at && staged.written_bytes == payload.len() as u64;
        // A segment is closed only if it holds a record.
        let closes = self.active_len() > SEGMENT_HEADER_BYTES;
        let expected = self.index.next_position.unwrap_or(position);
        let is_next = position == expected && position < u64::MAX && bytes <= MAX_PAYLOAD_BYTES;
        if !is_whole || !closes || !is_next {
            return self.append(position, &[head, payload]);
        }
        self.check()?;
        self.write_out()?;
        self.drop_old()?;
        self.limit_closed()?;
        let (number, start) = (self.active_number() + 1, self.index.end());
        let segment = self.segment_header(number, start).encode();
        let padding = format::padding(bytes);
        let crc = crc32c::crc32c_combine(crc32c::crc32c(head), payload_crc, payload.len());
        let record = RecordHeader {
            kind: format::KIND_ENTRY,
            tag: 0,
            body_len: bytes as u32,
            body_crc: crc32c::crc32c_append(crc, padding),
            position,
            flushed: self.flushed,
        };
        let address = start + SEGMENT_HEADER_BYTES;
        let front = [
            &segment[..],
            &record.encode(address)[..],
            head,
            &payload[..first],
        ]
        .concat();
        let name = format::segment_name(number);
        let result = (staged.file.write_all_at(&front, 0))
            .and_then(|()| staged.file.write_all_at(padding, at + payload.len() as u64))
            .and_then(|()| self.disk.rename(&staged.name, &name));
        self.directory_changed = true;
        self.poison_on_error("write", number, 0, result)?;
        staged.used = true;
        self.counters.staged += 1;
        self.close_active(staged.file.clone());
        self.index.begin_segment(number, start);
        self.index.push_entry(&record, SEGMENT_HEADER_BYTES);
        if let Some(last) = self.index.segments.back_mut() {
            last.len += record.record_bytes();
        }
        self.buffer_at = self.active_len();
        self.grown_to = self.buffer_at;
        Ok(())
    }

    /// Removes the staged payloads of an earlier process, which are of no use.
    pub(crate) fn remove_staged(&mut self) -> Result<(), LogError> {
        let names = self.disk.list();
        let names = names.map_err(|e| self.directory_error("list", e))?;
        for name in names.iter().filter(|name| format::is_staged_name(name)) {
            self.remove_file(name)?;
        }
        Ok(())
    }
}
