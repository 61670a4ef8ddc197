//! Staging: large payloads are written before their place in the log is known, a piece at a time, so that nothing else
//! waits for the write of a whole payload. The file of a staged payload becomes the next segment.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::LogError;
use crate::format::{RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES};

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
    /// Creates the file; `head_bytes` will precede the payload in the body of its record.
    pub(crate) fn create(
        disk: Arc<dyn Disk>,
        name: String,
        head_bytes: usize,
    ) -> Result<Staged, LogError> {
        let file = disk.create(&name);
        let file = file.map_err(|e| LogError::io("create", disk.path(&name), 0, e))?;
        Ok(Staged {
            disk,
            name,
            file: file.into(),
            payload_at: payload_at(head_bytes),
            written_bytes: 0,
            used: false,
        })
    }

    /// Returns true if the whole payload was staged, for a head of this length.
    pub(crate) fn is_whole(&self, head_bytes: usize, payload_bytes: usize) -> bool {
        self.payload_at == payload_at(head_bytes) && self.written_bytes == payload_bytes as u64
    }

    /// Makes the file a segment of this name. `front`: the bytes up to the head, and the first bytes of the payload.
    /// `padding` follows the payload.
    pub(crate) fn complete(&mut self, name: &str, front: &[u8], padding: &[u8]) -> io::Result<()> {
        self.file.write_all_at(front, 0)?;
        let end = self.payload_at + self.written_bytes;
        self.file.write_all_at(padding, end)?;
        self.disk.rename(&self.name, name)?;
        self.used = true;
        Ok(())
    }

    pub(crate) fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }

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

/// Returns the offset of the payload in the file.
fn payload_at(head_bytes: usize) -> u64 {
    SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES + head_bytes as u64
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.used {
            // If this fails, the next process removes the file.
            let _ = self.disk.remove(&self.name);
        }
    }
}
