//! The segments' files: the open ones, the removal of old ones (rule 12), and staged payloads, whose file becomes the
//! next segment.
//!
//! Files of segments that are no longer written stay open, so that flushes and most reads do not depend on a free
//! descriptor, which the server may lack at any moment.

use std::io;
use std::sync::Arc;

use trireme_mutants::{Mutant, planted};

use crate::MAX_PAYLOAD_BYTES;
use crate::config::{Durability, MAX_SEGMENT_BYTES};
use crate::disk::DiskFile;
use crate::error::LogError;
use crate::format::{self, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use crate::index::Segment;
use crate::log::Log;
use crate::staged::Staged;

impl Log {
    // ---- open files ----

    /// Returns the file of segment `number`.
    pub(super) fn segment_file(&self, number: u64) -> io::Result<Arc<dyn DiskFile>> {
        if number == self.active_number() {
            return Ok(self.active.file().clone());
        }
        match self.closed.get(&number) {
            Some(file) => Ok(file.clone()),
            None => self.disk.open(&segment_name(number)).map(Arc::from),
        }
    }

    /// Makes `next`, which has so many bytes, the file that is written; the previous file stays open.
    pub(super) fn close_active(&mut self, next: Arc<dyn DiskFile>, written_bytes: u64) {
        let number = self.active_number();
        let before = self.active.go_on_in(next, written_bytes);
        self.closed.insert(number, before);
    }

    /// Closes the oldest files beyond the bound. They must be flushed. While a flush is under way, the others stay open:
    /// a second flush would wait for it, and the disk may hang.
    pub(super) fn limit_closed(&mut self) -> Result<(), LogError> {
        while self.closed.len() > self.config.thresholds.open_files {
            let oldest = self.closed.first_key_value().map(|(number, _)| *number);
            let end = oldest.map_or(0, |number| self.index.segment_end(number));
            if end > self.flushed {
                if self.is_flushing() {
                    return Ok(());
                }
                self.flush()?;
            }
            self.closed.pop_first();
        }
        Ok(())
    }

    /// Opens the files that a log just read must keep open: all files that are not flushed, and as many others as can
    /// be opened.
    pub(super) fn open_closed(&mut self) -> Result<(), LogError> {
        let closed = self.index.segments.iter().rev().skip(1);
        let closed: Vec<(u64, bool)> = closed
            .map(|segment| (segment.number, segment.end() > self.flushed))
            .collect();
        for (nth, (number, is_needed)) in closed.into_iter().enumerate() {
            let name = segment_name(number);
            match self.disk.open(&name) {
                _ if nth >= self.config.thresholds.open_files && !is_needed => break,
                Ok(file) => drop(self.closed.insert(number, file.into())),
                Err(e) if is_needed => {
                    return Err(LogError::io("open", self.disk.path(&name), 0, e));
                }
                Err(_) => break,
            }
        }
        Ok(())
    }

    // ---- retention ----

    /// Sets the first position that must stay: for this node, for a member that lacks it, or for a joiner that pulls
    /// it. Entries at `keep_from` and above stay, whatever their size, and so does everything that a restart needs.
    /// Below it the newest `size_bytes` stay, in whole segments. Until the first call everything stays.
    pub fn set_pins(&mut self, keep_from: u64) -> Result<(), LogError> {
        self.keep_from = keep_from;
        self.drop_old()
    }

    /// Returns the capacity of a segment. It grows while pins hold much more than `gcache.size`, to avoid thousands of
    /// files.
    pub(super) fn capacity(&self) -> u64 {
        let grown = (self.bytes_kept() / 8).min(MAX_SEGMENT_BYTES);
        self.config.segment_bytes.max(grown)
    }

    /// Returns true if a restart needs the oldest segment: for the log checkpoint from which it goes on, or for an
    /// entry above that checkpoint. A power loss may take a checkpoint that is not flushed: then the one before counts.
    fn restart_needs_oldest(&self, oldest: &Segment, second: &Segment) -> bool {
        let snapshot = self.index.lasting_snapshot(self.flushed);
        snapshot.is_some_and(|(position, place)| {
            place.segment == oldest.number || second.first_position > position.saturating_add(1)
        })
    }

    /// Removes the oldest segments, up to the first that the pins, a restart or `size_bytes` hold.
    pub(super) fn drop_old(&mut self) -> Result<(), LogError> {
        while let (Some(oldest), Some(second)) =
            (self.index.segments.front(), self.index.segments.get(1))
        {
            let pinned = (second.first_position > self.keep_from
                || self.restart_needs_oldest(oldest, second))
                && !planted(Mutant::PinnedPurged);
            let within_size = self.index.end() - second.start < self.config.size_bytes;
            if pinned || within_size {
                break;
            }
            let number = oldest.number;
            // The remaining segments must be a complete log after a crash: the last header may still be in the buffer.
            match self.config.durability {
                Durability::Disk if planted(Mutant::PurgeAwaitsFlush) => self.flush()?,
                // No flush here: it could wait for one that hangs. The next roll or pin goes on.
                Durability::Disk if !self.is_last_header_flushed() => break,
                Durability::Disk => {}
                Durability::Os | Durability::Memory => self.write_out()?,
            }
            self.remove_segments(&[number])?;
            self.index.drop_oldest();
            self.counters.dropped += 1;
        }
        Ok(())
    }

    /// Returns true if the last segment's name and header are on stable storage, and so is everything before them.
    fn is_last_header_flushed(&self) -> bool {
        let header_end =
            (self.index.segments.back()).map_or(0, |last| last.start + SEGMENT_HEADER_BYTES);
        header_end <= self.flushed && self.name_changes == self.name_changes_flushed
    }

    pub(super) fn remove_segments(&mut self, numbers: &[u64]) -> Result<(), LogError> {
        for number in numbers {
            self.remove_file(&segment_name(*number))?;
            self.closed.remove(number);
        }
        Ok(())
    }

    /// Removes a file, if it exists.
    pub(super) fn remove_file(&mut self, name: &str) -> Result<(), LogError> {
        match self.disk.remove(name) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(LogError::io("remove", self.disk.path(name), 0, e))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the file begins as a segment of another history.
    pub(super) fn is_of_another(&self, name: &str) -> bool {
        let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
        let opened = self.disk.open(name);
        let read = opened.and_then(|file| file.read_exact_at(&mut bytes, 0));
        let header = read.ok().and_then(|()| SegmentHeader::decode(&bytes).ok());
        header.is_some_and(|header| header.identity != self.config.identity)
    }

    pub(super) fn directory_error(&self, action: &'static str, e: std::io::Error) -> LogError {
        LogError::io(action, self.disk.path(""), 0, e)
    }

    // ---- staged payloads ----

    /// Begins to stage the payload of an entry; `head_bytes` will precede the payload in the body of its record.
    pub fn stage(&mut self, head_bytes: usize) -> Result<Staged, LogError> {
        self.check()?;
        self.staged += 1;
        let name = format::staged_name(self.staged);
        Staged::create(self.disk.clone(), name, head_bytes)
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
        let is_whole = staged.is_whole(head.len(), payload.len());
        // A segment is closed only if it holds a record, and only in a published log.
        let closes = self.active_len() > SEGMENT_HEADER_BYTES && self.is_published();
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
        let crc = format::crc_before(crc32c::crc32c(head), payload.len()) ^ payload_crc;
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
        let result = staged.complete(&segment_name(number), &front, padding);
        self.name_changes += 1;
        self.poison_on_error("write", number, 0, result)?;
        self.counters.staged += 1;
        let bytes = SEGMENT_HEADER_BYTES + record.record_bytes();
        self.close_active(staged.file().clone(), bytes);
        self.index.begin_segment(number, start);
        self.index.push_entry(&record, SEGMENT_HEADER_BYTES);
        if let Some(last) = self.index.segments.back_mut() {
            last.len += record.record_bytes();
        }
        Ok(())
    }

    /// Removes the staged payloads of an earlier process, which are of no use.
    pub(super) fn remove_staged(&mut self) -> Result<(), LogError> {
        let names = self.disk.list();
        let names = names.map_err(|e| self.directory_error("list", e))?;
        for name in names.iter().filter(|name| format::is_staged_name(name)) {
            self.remove_file(name)?;
        }
        Ok(())
    }
}
