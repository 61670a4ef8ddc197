//! Reads a segment from end to end: its valid records, and a search for records behind an invalid place.

use std::io;

use crate::disk::DiskFile;
use crate::format::{RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, padded};

const CHUNK_BYTES: u64 = 1 << 20;

/// A segment's file, read in large pieces.
pub(crate) struct SegmentReader {
    file: Box<dyn DiskFile>,
    length: u64,
    chunk: Vec<u8>,
    chunk_at: u64,
}

/// The end of a walk over a segment's records.
pub(crate) enum End {
    /// At the end of the file, or before only zero bytes.
    Clean,
    /// At bytes that are no valid record, or at a record that the visitor refused.
    Bad(String),
}

impl SegmentReader {
    pub(crate) fn new(file: Box<dyn DiskFile>) -> io::Result<Self> {
        let length = file.length()?;
        Ok(SegmentReader {
            file,
            length,
            chunk: Vec::new(),
            chunk_at: 0,
        })
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the file, for further writes.
    pub(crate) fn into_file(self) -> Box<dyn DiskFile> {
        self.file
    }

    /// Returns `len` bytes (at most a chunk) at `offset`; fewer where the file ends.
    pub(crate) fn bytes(&mut self, offset: u64, len: u64) -> io::Result<&[u8]> {
        let len = len.min(CHUNK_BYTES).min(self.length.saturating_sub(offset));
        let held = self.chunk_at..self.chunk_at + self.chunk.len() as u64;
        if offset < held.start || offset + len > held.end {
            let wanted = CHUNK_BYTES.min(self.length.saturating_sub(offset));
            self.chunk.resize(wanted as usize, 0);
            self.chunk_at = offset;
            self.file.read_exact_at(&mut self.chunk, offset)?;
        }
        let start = (offset - self.chunk_at) as usize;
        Ok(&self.chunk[start..start + len as usize])
    }

    /// Walks the records of a segment that starts at address `start`, and calls `visit` with each header, its offset
    /// and the body's first bytes. Returns the offset reached and the end of the walk. Errors are those of reading.
    pub(crate) fn walk(
        &mut self,
        start: u64,
        mut visit: impl FnMut(&RecordHeader, u64, &[u8]) -> Result<(), String>,
    ) -> io::Result<(u64, End)> {
        let mut offset = SEGMENT_HEADER_BYTES;
        loop {
            let bytes = self.bytes(offset, RECORD_HEADER_BYTES)?;
            let Some(header) = RecordHeader::decode(bytes, start.saturating_add(offset)) else {
                let end = match self.used_from(offset)? {
                    0 => End::Clean,
                    _ => End::Bad("no valid record header".into()),
                };
                return Ok((offset, end));
            };
            let body_at = offset + RECORD_HEADER_BYTES;
            if header.record_bytes() > self.length - offset {
                return Ok((offset, End::Bad("a record ends beyond the file".into())));
            }
            if self.crc(body_at, padded(header.body_len.into()))? != header.body_crc {
                return Ok((
                    offset,
                    End::Bad("a record's body has a wrong checksum".into()),
                ));
            }
            let body = self.bytes(body_at, u64::from(header.body_len).min(64))?;
            if let Err(reason) = visit(&header, offset, body) {
                return Ok((offset, End::Bad(reason)));
            }
            offset += header.record_bytes();
        }
    }

    /// Searches for valid record headers at every multiple of 8 from `offset` on. Returns the highest flushed address
    /// among them; `None`: there is no header.
    pub(crate) fn search(&mut self, start: u64, offset: u64) -> io::Result<Option<u64>> {
        let mut found = None;
        let mut offset = offset.max(SEGMENT_HEADER_BYTES).next_multiple_of(8);
        while offset + RECORD_HEADER_BYTES <= self.length {
            let bytes = self.bytes(offset, RECORD_HEADER_BYTES)?;
            if let Some(header) = RecordHeader::decode(bytes, start.saturating_add(offset)) {
                found = found.max(Some(header.flushed));
            }
            offset += 8;
        }
        Ok(found)
    }

    /// Returns the number of bytes from `offset` to the last one that is not zero.
    pub(crate) fn used_from(&mut self, offset: u64) -> io::Result<u64> {
        let (mut at, mut used) = (offset, 0);
        while at < self.length {
            let bytes = self.bytes(at, CHUNK_BYTES)?;
            if let Some(last) = bytes.iter().rposition(|b| *b != 0) {
                used = at + last as u64 + 1 - offset;
            }
            at += bytes.len() as u64;
        }
        Ok(used)
    }

    fn crc(&mut self, mut offset: u64, len: u64) -> io::Result<u32> {
        let (end, mut crc) = (offset + len, 0);
        while offset < end {
            let bytes = self.bytes(offset, end - offset)?;
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            crc = crc32c::crc32c_append(crc, bytes);
            offset += bytes.len() as u64;
        }
        Ok(crc)
    }
}
