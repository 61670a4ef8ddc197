//! Writes records to files, changes segments, and flushes. A failed write or flush poisons the log.

use std::io;
use std::sync::Arc;

use trireme_mutants::{Mutant, planted};

use crate::MAX_PAYLOAD_BYTES;
use crate::config::Durability;
use crate::disk::DiskFile;
use crate::error::{LogError, is_shortage};
use crate::flush::{FlushDone, FlushJob};
use crate::format::{self, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::log::{Log, SEGMENT_LIMIT_BYTES};

/// Size of the pieces in which bytes that an earlier process left unflushed are written again.
const REWRITE_BYTES: u64 = 1 << 20;

impl Log {
    /// Writes everything appended to the operating system, in one call: it then survives the death of the process.
    pub fn write_out(&mut self) -> Result<(), LogError> {
        self.check()?;
        if self.active.buffered_bytes() == 0 {
            return Ok(());
        }
        let at = self.active.written_to();
        let result = self.active.write_out();
        self.poison_on_error("write", self.active_number(), at, result)?;
        if self.config.durability == Durability::Disk {
            self.active.grow_ahead(self.config.segment_bytes);
        }
        Ok(())
    }

    /// Writes out and flushes to stable storage everything appended: it then survives power loss.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.counters.flushes_awaited += 1;
        let done = self.begin_flush()?.run();
        self.end_flush(done).map(|_| ())
    }

    /// Writes everything appended to the operating system, and returns the rest of a [`Log::flush`]: another thread may
    /// run it while the owner appends to this log.
    pub fn begin_flush(&mut self) -> Result<FlushJob, LogError> {
        self.write_out()?;
        let numbers = self.unflushed_segments();
        let mut files = Vec::with_capacity(numbers.len());
        for number in numbers {
            let file = self.segment_file(number);
            let file = self.poison_on_error("flush", number, 0, file)?;
            files.push((number, file));
        }
        Ok(self.flush_job(files, true))
    }

    /// As [`Log::flush`], for a log that an earlier process has written. If a flush of that process failed, the
    /// operating system's cache still shows its entries, and counts them as written. So bytes that no flush is known to
    /// cover are written again first.
    pub fn flush_anew(&mut self) -> Result<(), LogError> {
        let segments = self.index.segments.iter();
        let places = segments.map(|segment| (segment.number, segment.start, segment.end()));
        let unflushed = places.filter(|(_, _, end)| *end > self.flushed);
        for (number, start, end) in unflushed.collect::<Vec<_>>() {
            let result = self.write_again(number, self.flushed.max(start) - start, end - start);
            self.poison_on_error("write again", number, 0, result)?;
        }
        self.flush()
    }

    fn write_again(&self, number: u64, from: u64, end: u64) -> io::Result<()> {
        let file = self.segment_file(number)?;
        let mut piece = vec![0; REWRITE_BYTES.min(end - from) as usize];
        let mut at = from;
        while at < end {
            piece.truncate((end - at) as usize);
            file.read_exact_at(&mut piece, at)?;
            file.write_all_at(&piece, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Flushes bytes that were written before, and nothing else: also after a failed write, which has poisoned the log.
    /// After a failed flush it fails.
    pub fn flush_written(&mut self) -> Result<(), LogError> {
        let mut files = Vec::new();
        for number in self.unflushed_segments() {
            let file = self.segment_file(number);
            let path = || self.disk.path(&format::segment_name(number));
            files.push((
                number,
                file.map_err(|e| LogError::io("flush", path(), 0, e))?,
            ));
        }
        self.name_changes += 1;
        self.flush_job(files, true).run().result
    }

    /// Returns the address up to which the log was handed to the operating system. It never falls while the log is
    /// open.
    pub fn written_end(&self) -> u64 {
        self.index
            .end()
            .saturating_sub(self.active.buffered_bytes() as u64)
    }

    /// Returns the number of bytes that no flush covers.
    pub fn unflushed_bytes(&self) -> u64 {
        self.index.end().saturating_sub(self.flushed)
    }

    /// Begins a flush of everything written that nothing waits for, so that later flushes are short. Another thread may
    /// run it, with other flushes beside it. `None`: it cannot be made now.
    ///
    /// It has its own handles on the files, because an operating system reports an error once per handle.
    pub fn begin_write_back(&mut self) -> Result<Option<FlushJob>, LogError> {
        self.write_out()?;
        let opened = self.unflushed_segments().into_iter().map(|number| {
            let file = self.disk.open(&format::segment_name(number)).ok()?;
            Some((number, file.into()))
        });
        let files: Option<Vec<(u64, Arc<dyn DiskFile>)>> = opened.collect();
        Ok(files.map(|files| self.flush_job(files, false)))
    }

    /// Returns true if a flush was handed out whose end was not taken in.
    pub(super) fn is_flushing(&self) -> bool {
        // Each job, and each result, shares the turns.
        Arc::strong_count(&self.turns) > 1
    }

    fn unflushed_segments(&self) -> Vec<u64> {
        let segments = &self.index.segments;
        let first = segments.partition_point(|segment| segment.end() <= self.flushed);
        let unflushed = segments.range(first..);
        unflushed.map(|segment| segment.number).collect()
    }

    fn flush_job(&mut self, files: Vec<(u64, Arc<dyn DiskFile>)>, awaited: bool) -> FlushJob {
        FlushJob {
            disk: self.disk.clone(),
            files,
            name_changes: Some(self.name_changes).filter(|changes| {
                *changes > self.name_changes_flushed && !planted(Mutant::NamesNotFlushed)
            }),
            upto: self.index.end(),
            bytes: self.unflushed_bytes(),
            turns: self.turns.clone(),
            awaited,
        }
    }

    /// As [`Log::begin_flush`], in place of a flush that was handed out and not run, to cover later entries. `None`:
    /// that flush was one of another log, and is useless.
    pub fn renew_flush(&mut self, job: FlushJob) -> Result<Option<FlushJob>, LogError> {
        if !Arc::ptr_eq(&self.turns, &job.turns) {
            return Ok(None);
        }
        self.begin_flush().map(Some)
    }

    /// Takes in the result of a flush. Returns false if it was one of another log.
    pub fn end_flush(&mut self, done: FlushDone) -> Result<bool, LogError> {
        if !Arc::ptr_eq(&self.turns, &done.turns) {
            return Ok(false);
        }
        if let Err(error) = done.result {
            self.poisoned.get_or_insert_with(|| error.to_string());
            return Err(error);
        }
        let upto = match planted(Mutant::FlushCoversLater) {
            true => self.index.end(),
            false => done.upto,
        };
        self.flushed = self.flushed.max(upto);
        self.name_changes_flushed = self
            .name_changes_flushed
            .max(done.name_changes.unwrap_or(0));
        Ok(true)
    }

    /// Puts a record into the last segment (a new one if it is full). Returns its header and offset.
    pub(super) fn put(
        &mut self,
        kind: u8,
        tag: u8,
        position: u64,
        body: &[&[u8]],
    ) -> Result<(RecordHeader, u64), LogError> {
        self.check()?;
        let bytes: u64 = body.iter().map(|part| part.len() as u64).sum();
        if bytes > MAX_PAYLOAD_BYTES {
            return Err(LogError::TooLarge {
                what: "payload",
                bytes,
                limit: MAX_PAYLOAD_BYTES,
            });
        }
        let body_crc = format::body_crc(body);
        let mut header = RecordHeader {
            kind,
            tag,
            body_len: bytes as u32,
            body_crc,
            position,
            flushed: self.flushed,
        };
        let record_bytes = header.record_bytes();
        let offset = self.active_len();
        if offset > SEGMENT_HEADER_BYTES && offset + record_bytes > self.capacity() {
            self.roll()?;
        }
        let offset = self.active_len();
        header.flushed = self.flushed;
        let head = header.encode(self.index.end());
        let pad = [format::padding(bytes)];
        let parts = || {
            std::iter::once(head.as_slice())
                .chain(body.iter().copied())
                .chain(pad)
        };
        if record_bytes > self.config.thresholds.direct_bytes {
            self.write_out()?;
            self.counters.direct += 1;
            for part in parts() {
                let at = self.active.written_to();
                let result = self.active.write_direct(part);
                self.poison_on_error("write", self.active_number(), at, result)?;
            }
        } else {
            parts().for_each(|part| self.active.push(part));
        }
        if let Some(last) = self.index.segments.back_mut() {
            last.len += record_bytes;
        }
        if self.active.buffered_bytes() >= self.config.thresholds.buffer_bytes {
            self.counters.full_buffers += 1;
            self.write_out()?;
        }
        Ok((header, offset))
    }

    /// Closes the last segment and begins the next. Without a free descriptor, or before the log is published, the last
    /// segment continues for now: its capacity is no part of the format.
    fn roll(&mut self) -> Result<(), LogError> {
        if !self.is_published() {
            return Ok(());
        }
        self.write_out()?;
        self.drop_old()?;
        self.limit_closed()?;
        let (number, start) = (self.active_number() + 1, self.index.end());
        let created = self.disk.create(&format::segment_name(number));
        if created.as_ref().is_err_and(is_shortage) && self.active_len() < SEGMENT_LIMIT_BYTES {
            return Ok(());
        }
        self.name_changes += 1;
        let created = self.poison_on_error("create", number, 0, created)?;
        self.close_active(created.into(), 0);
        self.begin_segment(number, start);
        Ok(())
    }

    pub(super) fn create_segment(&mut self, number: u64) -> Result<Arc<dyn DiskFile>, LogError> {
        let result = self
            .disk
            .create(&format::segment_name(number))
            .map(Arc::from);
        self.name_changes += 1;
        self.poison_on_error("create", number, 0, result)
    }

    /// Puts the header of a new last segment into the buffer.
    pub(super) fn begin_segment(&mut self, number: u64, start: u64) {
        let header = self.segment_header(number, start);
        self.active.push(&header.encode());
        self.index.begin_segment(number, start);
    }

    /// Returns the header of the segment that follows those in the index.
    pub(super) fn segment_header(&self, number: u64, start: u64) -> SegmentHeader {
        let oldest = self.index.segments.front();
        SegmentHeader {
            identity: self.config.identity,
            number,
            base: oldest.map_or(number, |oldest| oldest.number),
            start,
            flushed: self.flushed,
            next_position: self.index.next_position,
            durability: self.config.durability,
        }
    }

    pub(super) fn active_number(&self) -> u64 {
        self.index.segments.back().map_or(0, |last| last.number)
    }

    pub(super) fn active_len(&self) -> u64 {
        self.index.segments.back().map_or(0, |last| last.len)
    }

    pub(super) fn check(&self) -> Result<(), LogError> {
        match &self.poisoned {
            Some(cause) => Err(LogError::Poisoned {
                cause: cause.clone(),
            }),
            None => Ok(()),
        }
    }

    pub(super) fn poison_on_error<T>(
        &mut self,
        action: &'static str,
        number: u64,
        offset: u64,
        result: io::Result<T>,
    ) -> Result<T, LogError> {
        result.map_err(|e| {
            let file = self.disk.path(&format::segment_name(number));
            let error = LogError::io(action, file, offset, e);
            self.poisoned = Some(error.to_string());
            error
        })
    }
}
