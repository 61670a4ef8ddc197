//! The open files of segments that are not written any more: neither a flush nor, mostly, a read has to wait for a free
//! descriptor, which the server may lack at any moment.

use std::io;
use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::LogError;
use crate::format::segment_name;
use crate::log::Log;

impl Log {
    /// The file of segment `number`.
    pub(crate) fn segment_file(&self, number: u64) -> io::Result<Arc<dyn DiskFile>> {
        if number == self.active_number() {
            return Ok(self.active.clone());
        }
        match self.closed.get(&number) {
            Some(file) => Ok(file.clone()),
            None => self.disk.open(&segment_name(number)).map(Arc::from),
        }
    }

    /// Makes `next` the file that is written; the one before stays open.
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

    /// Opens what a log that was just read is to keep open: all that is not flushed, and of the others what can be opened.
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
