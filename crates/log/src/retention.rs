//! What the log keeps, what it serves, and the removal of the rest (rule 12).

use trireme_mutants::{Mutant, planted};

use crate::config::{Durability, MAX_SEGMENT_BYTES};
use crate::counters::Counters;
use crate::error::LogError;
use crate::format::segment_name;
use crate::log::Log;

impl Log {
    /// The member's own retention: entries at `keep_from` and above stay, whatever their size (undelivered,
    /// unapplied, above the certification floor, too young). Below it the newest `size_bytes` stay, in whole
    /// segments. Until the first call everything stays.
    pub fn set_pins(&mut self, keep_from: u64) -> Result<(), LogError> {
        self.keep_from = keep_from;
        self.drop_old()
    }

    /// The lowest position within the newest `size_bytes`, which is what other members may ask for; whatever is kept
    /// beyond is for this member itself. The next position if nothing is served.
    pub fn served_from(&self) -> u64 {
        self.index
            .first_from(self.index.end().saturating_sub(self.config.size_bytes))
    }

    /// Lowest seqno served to others (`wsrep_local_cached_downto`); `None`: none.
    pub fn first_seqno(&self) -> Option<i64> {
        self.index.outcomes.first_seqno(self.served_from())
    }

    /// Lowest seqno kept at all.
    pub fn first_seqno_kept(&self) -> Option<i64> {
        self.index.outcomes.first_seqno(0)
    }

    /// Highest seqno recorded.
    pub fn last_seqno(&self) -> Option<i64> {
        self.index.outcomes.last_seqno()
    }

    /// What was counted since the log was opened.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Bytes of all segments, the write buffer included.
    pub fn bytes_kept(&self) -> u64 {
        self.index
            .segments
            .front()
            .map_or(0, |oldest| self.index.end() - oldest.start)
    }

    /// Segments grow while pins hold much more than `gcache.size`, lest there be thousands of files.
    pub(crate) fn capacity(&self) -> u64 {
        let grown = (self.bytes_kept() / 8).min(MAX_SEGMENT_BYTES);
        self.config.segment_bytes.max(grown)
    }

    /// Removes the oldest segments that neither the pins nor `size_bytes` hold.
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
            // What stays must be a log by itself after a crash: its last header may be in the buffer still.
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

    /// Removes a file; one that is gone already is fine.
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
