//! Retention: the entries that the log keeps, the entries that it serves to others, and the removal of old segments
//! (rule 12).

use trireme_mutants::{Mutant, planted};

use crate::config::{Durability, MAX_SEGMENT_BYTES};
use crate::counters::Counters;
use crate::error::LogError;
use crate::format::segment_name;
use crate::log::Log;

impl Log {
    /// Sets the member's own retention. Entries at `keep_from` and above stay, whatever their size (undelivered,
    /// unapplied, above the certification floor, too young). Below it the newest `size_bytes` stay, in whole segments.
    /// Until the first call everything stays.
    pub fn set_pins(&mut self, keep_from: u64) -> Result<(), LogError> {
        self.keep_from = keep_from;
        self.drop_old()
    }

    /// Returns the lowest position within the newest `size_bytes`, which other members may request; entries kept beyond
    /// are for this member itself. Returns the next position if nothing is served.
    pub fn served_from(&self) -> u64 {
        self.index
            .first_from(self.index.end().saturating_sub(self.config.size_bytes))
    }

    /// Returns the lowest seqno served to others (`wsrep_local_cached_downto`); `None`: none.
    pub fn first_seqno(&self) -> Option<i64> {
        self.index.outcomes.first_seqno(self.served_from())
    }

    /// Returns the lowest seqno kept.
    pub fn first_seqno_kept(&self) -> Option<i64> {
        self.index.outcomes.first_seqno(0)
    }

    /// Returns the highest seqno recorded.
    pub fn last_seqno(&self) -> Option<i64> {
        self.index.outcomes.last_seqno()
    }

    /// Returns the counters since the log was opened.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the bytes of all segments, the write buffer included.
    pub fn bytes_kept(&self) -> u64 {
        self.index
            .segments
            .front()
            .map_or(0, |oldest| self.index.end() - oldest.start)
    }

    /// Returns the capacity of a segment. It grows while pins hold much more than `gcache.size`, to avoid thousands of
    /// files.
    pub(crate) fn capacity(&self) -> u64 {
        let grown = (self.bytes_kept() / 8).min(MAX_SEGMENT_BYTES);
        self.config.segment_bytes.max(grown)
    }

    /// Removes the oldest segments, up to the first that the pins or `size_bytes` hold.
    pub(crate) fn drop_old(&mut self) -> Result<(), LogError> {
        while let (Some(oldest), Some(second)) =
            (self.index.segments.front(), self.index.segments.get(1))
        {
            let pinned = second.first_position > self.keep_from && !planted(Mutant::PinnedPurged);
            let within_size = self.index.end() - second.start < self.config.size_bytes;
            if pinned || within_size {
                break;
            }
            let number = oldest.number;
            // The remaining segments must be a complete log after a crash: the last header may still be in the buffer.
            match self.config.durability {
                Durability::Disk => self.flush()?,
                Durability::Os | Durability::Memory => self.write_out()?,
            }
            self.remove_segments(&[number])?;
            self.index.drop_oldest();
            self.counters.dropped += 1;
        }
        Ok(())
    }

    pub(crate) fn remove_segments(&mut self, numbers: &[u64]) -> Result<(), LogError> {
        for number in numbers {
            self.remove_file(&segment_name(*number))?;
            self.closed.remove(number);
        }
        Ok(())
    }

    /// Removes a file, if it exists.
    pub(crate) fn remove_file(&mut self, name: &str) -> Result<(), LogError> {
        match self.disk.remove(name) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(LogError::io("remove", self.disk.path(name), 0, e))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn directory_error(&self, action: &'static str, e: std::io::Error) -> LogError {
        LogError::io(action, self.disk.path(""), 0, e)
    }
}
