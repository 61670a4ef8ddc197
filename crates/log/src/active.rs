//! The file of the last segment, and the bytes for it that are not written yet. In: records. Out: writes.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::disk::DiskFile;

/// Number of steps in which a segment's file grows ahead of its records; no step is above the limit.
const GROWTH_STEPS: u64 = 16;
const GROWTH_MAX_BYTES: u64 = 1 << 20;

/// The last segment, which grows.
pub(crate) struct Active {
    file: Arc<dyn DiskFile>,
    /// Bytes that are not written yet.
    buffer: Vec<u8>,
    /// Their offset in the file.
    buffer_at: u64,
    /// Length of the file, which has grown ahead of its records.
    grown_to: u64,
}

impl Active {
    /// Returns a file with `written_bytes` of header and records; its length is `file_bytes`.
    pub(crate) fn new(file: Arc<dyn DiskFile>, written_bytes: u64, file_bytes: u64) -> Active {
        Active {
            file,
            buffer: Vec::new(),
            buffer_at: written_bytes,
            grown_to: file_bytes,
        }
    }

    pub(crate) fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }

    /// Ends this segment, whose bytes must be written, and goes on with another file. The buffer keeps its room. Returns
    /// the file of the segment that has ended.
    pub(crate) fn go_on_in(
        &mut self,
        file: Arc<dyn DiskFile>,
        written_bytes: u64,
    ) -> Arc<dyn DiskFile> {
        debug_assert!(self.buffer.is_empty(), "bytes of the last segment are lost");
        (self.buffer_at, self.grown_to) = (written_bytes, written_bytes);
        std::mem::replace(&mut self.file, file)
    }

    /// Returns the offset up to which the file is written.
    pub(crate) fn written_to(&self) -> u64 {
        self.buffer_at
    }

    /// Returns the number of bytes that are not written yet.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Buffers bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Writes the buffered bytes, in one call. After an error they are still there.
    pub(crate) fn write_out(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.buffer, self.buffer_at)?;
        self.buffer_at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes bytes past the buffer, which must be empty.
    pub(crate) fn write_direct(&mut self, bytes: &[u8]) -> io::Result<()> {
        debug_assert!(self.buffer.is_empty(), "it would be overtaken");
        self.file.write_all_at(bytes, self.buffer_at)?;
        self.buffer_at += bytes.len() as u64;
        Ok(())
    }

    /// Grows the file in steps, with zero bytes ahead of the records. A flush within a step then finds no new length to
    /// write, for which a journaling file system needs a transaction of its own (measured: ext4, three nodes on one disk,
    /// 59 us instead of 85). Without room for a step, the file grows with its records, which get the rest of the room.
    pub(crate) fn grow_ahead(&mut self, segment_bytes: u64) {
        if self.buffer_at <= self.grown_to {
            return;
        }
        let step = (segment_bytes / GROWTH_STEPS).min(GROWTH_MAX_BYTES);
        let end = (self.buffer_at + step).min(segment_bytes);
        self.grown_to = end.max(self.buffer_at);
        let zeros = vec![0; (self.grown_to - self.buffer_at) as usize];
        if self.file.write_all_at(&zeros, self.buffer_at).is_err() {
            let _ = self.file.truncate(self.buffer_at);
        }
    }

    /// Returns true if the record at this offset is in the buffer. Records are written out whole: a record is in the
    /// buffer with its header, or not at all.
    pub(crate) fn has_buffered(&self, offset: u64) -> bool {
        offset >= self.buffer_at
    }

    /// Returns a copy of buffered bytes, by their offsets in the file.
    pub(crate) fn buffered(&self, bytes: Range<u64>) -> io::Result<Vec<u8>> {
        let [from, until] = [bytes.start, bytes.end].map(|at| (at - self.buffer_at) as usize);
        let found = self.buffer.get(from..until).map(<[u8]>::to_vec);
        found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
