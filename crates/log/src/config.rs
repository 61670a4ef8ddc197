//! The settings with which a log is opened.

use std::path::PathBuf;

use crate::thresholds::Thresholds;

/// How strongly a member holds a write-set when it acknowledges it (`repl.durability`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// As `Os`; but after any unclean end the process counts as one that has forgotten.
    Memory,
    /// In the operating system's page cache: survives the death of the process.
    Os,
    /// On stable storage: survives power loss.
    Disk,
}

/// Smallest and largest segment capacity derived from `gcache.size`, in bytes.
pub(crate) const MIN_SEGMENT_BYTES: u64 = 64 << 10;
pub(crate) const MAX_SEGMENT_BYTES: u64 = 64 << 20;

/// Configuration of a [`Log`](crate::Log).
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// `gcache.dir`; it must exist, and be the data directory itself or lie outside it (see docs/log-format.md).
    pub dir: PathBuf,
    /// `gcache.size`: bytes of the newest entries that are served to others; any value, even 1.
    pub size_bytes: u64,
    /// Capacity of a segment file. A larger record gets a file of its own.
    pub segment_bytes: u64,
    /// The history's UUID; a log of another history is refused.
    pub identity: [u8; 16],
    /// Recorded in each segment header. With `Disk`, the kept segments are flushed before old ones are removed.
    pub durability: Durability,
    /// Sizes that switch the log to another way of working.
    pub thresholds: Thresholds,
}

impl LogConfig {
    /// Returns a configuration with the segment size derived from `size_bytes`: an eighth, within 64 KiB and 64 MiB.
    pub fn new(dir: PathBuf, size_bytes: u64, identity: [u8; 16], durability: Durability) -> Self {
        let segment_bytes = (size_bytes / 8).clamp(MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES);
        LogConfig {
            dir,
            size_bytes,
            segment_bytes,
            identity,
            durability,
            thresholds: Thresholds::default(),
        }
    }
}
