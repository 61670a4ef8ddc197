//! The open files of segments that are no longer written. They stay open, so that flushes and most reads do not depend
//! on a free descriptor, which the server may lack at any moment.

use std::io;
use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::LogError;
use crate::format::segment_name;
use crate::log::Log;

impl Log {
    /// Returns the file of segment `number`.
    pub(crate) fn segment_file(&self, number: u64) -> io::Result<Arc<dyn DiskFile>> {
        if number == self.active_number() {
            return Ok(self.active.clone());
        }
        match self.closed.get(&number) {
            Some(file) => Ok(file.clone()),
            None => self.disk.open(&segment_name(number)).map(Arc::from),
        }
    }

    /// Makes `next` the file that is written; the previous file stays open.
    pub(crate) fn close_active(&mut self, next: Arc<dyn DiskFile>) {
        let number = self.active_number();
        let before = std::mem::replace(&mut self.active, next);
        self.closed.insert(number, before);
    }

    /// Closes the oldest files beyond the bound. They must be flushed.
    pub(crate) fn limit_closed(&mut self) -> Result<(), LogError> {
        if self.closed.len() <= self.config.thresholds.open_files {
            return Ok(());
        }
        let oldest = self.closed.first_key_value().map(|(number, _)| *number);
        let end = oldest.map_or(0, |number| self.index.segment_end(number));
        if end > self.flushed {
            self.flush()?;
        }
        while self.closed.len() > self.config.thresholds.open_files {
            self.closed.pop_first();
        }
        Ok(())
    }

    /// Opens the files that a log just read must keep open: all files that are not flushed, and as many others as can
    /// be opened.
    pub(crate) fn open_closed(&mut self) -> Result<(), LogError> {
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
}
