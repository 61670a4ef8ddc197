//! A flush that runs apart from the log, so that the owner can append meanwhile.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::{Disk, DiskFile};
use crate::error::LogError;
use crate::format;

/// The flushes of one log through its own handles: one runs at a time. An operating system reports an error once per
/// handle, so after a failed flush the next one could succeed, although the bytes are lost.
#[derive(Default)]
pub(crate) struct Turns {
    /// The error of the first failed flush.
    failed: Mutex<Option<String>>,
}

/// The rest of a flush, which [`Log::begin_flush`](crate::Log::begin_flush) hands out.
pub struct FlushJob {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) files: Vec<(u64, Arc<dyn DiskFile>)>,
    /// The last change of a file name, if one is not flushed.
    pub(crate) name_changes: Option<u64>,
    /// Address of the log's end when the flush began.
    pub(crate) upto: u64,
    /// Number of unflushed bytes up to there.
    pub(crate) bytes: u64,
    /// The turns of its log; also tells it from another log.
    pub(crate) turns: Arc<Turns>,
    /// True if an acknowledgement or a caller waits for it.
    pub(crate) awaited: bool,
}

/// The result of a flush, for [`Log::end_flush`](crate::Log::end_flush).
pub struct FlushDone {
    pub(crate) upto: u64,
    pub(crate) name_changes: Option<u64>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) result: Result<(), LogError>,
}

impl FlushJob {
    /// Returns false for a flush that only shortens later ones
    /// ([`Log::begin_write_back`](crate::Log::begin_write_back)).
    pub fn is_awaited(&self) -> bool {
        self.awaited
    }

    /// Returns the number of bytes that it flushes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Runs the flush. Waits for the disk, and for another flush of this log; a matter of milliseconds.
    pub fn run(self) -> FlushDone {
        // One that nothing waits for has its own handles.
        let result = match self.awaited {
            true => self.flush_in_turn(),
            false => self.flush(),
        };
        FlushDone {
            upto: self.upto,
            name_changes: self.name_changes,
            result,
            turns: self.turns,
        }
    }

    fn flush_in_turn(&self) -> Result<(), LogError> {
        let mut failed = (self.turns.failed.lock()).unwrap_or_else(PoisonError::into_inner);
        if let Some(cause) = failed.clone() {
            return Err(LogError::Poisoned { cause });
        }
        let result = self.flush();
        *failed = result.as_ref().err().map(LogError::to_string);
        result
    }

    fn flush(&self) -> Result<(), LogError> {
        let mut last = 0;
        for (number, file) in &self.files {
            last = *number;
            let result = file.sync_data();
            result.map_err(|e| self.error("flush", *number, e))?;
        }
        match self.name_changes {
            Some(_) => (self.disk.sync_directory())
                .map_err(|e| self.error("flush the directory of", last, e)),
            None => Ok(()),
        }
    }

    fn error(&self, action: &'static str, number: u64, source: std::io::Error) -> LogError {
        let path = self.disk.path(&format::segment_name(number));
        LogError::io(action, path, 0, source)
    }
}

impl fmt::Debug for FlushJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlushJob up to {}", self.upto)
    }
}

impl fmt::Debug for FlushDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlushDone up to {}: {:?}", self.upto, self.result)
    }
}
