//! Reads back the payloads that were not kept in memory while they waited, and owns the bound of that memory.
//!
//! In: the node's log, and the missing payloads. Out: deliveries, or the reason why there are none.

use trireme_group::{Delivery, Position};
use trireme_mutants::{Mutant, planted};

use crate::context::Context;
use crate::history::{History, Unread};
use crate::options::Options;
use crate::payload::{Memory, Missing};

/// Time until the next try if the log is unreadable for a moment.
const RETRY_MS: u64 = 100;

/// The result of an attempt to read back.
#[derive(Debug, PartialEq)]
pub(crate) enum ReadBack {
    /// So many payloads were restored.
    Restored(usize),
    /// The log is unreadable for a moment.
    Later,
    /// The log can never be read; the text is for the operator. This process has no other source for the payload. The
    /// next process takes it from its log, or from other members.
    Lost(String),
}

#[derive(Debug, Default)]
pub(crate) struct LogReader {
    /// The memory that the payloads in all queues take.
    memory: Memory,
    /// Payloads read back since the process began.
    count: u64,
    /// The time of the next try, after a read that failed.
    again_ms: Option<u64>,
}

impl LogReader {
    /// Returns the memory of the payloads that wait.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the number of payloads read back since the process began.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the time of the next try; None: the log can be read now.
    pub(crate) fn again_ms(&self) -> Option<u64> {
        self.again_ms
    }

    /// Notes that the log is unreadable for a moment.
    pub(crate) fn wait(&mut self, now_ms: u64) {
        self.again_ms = Some(now_ms + RETRY_MS);
    }

    /// Permits the next try when its time has come.
    pub(crate) fn watch(&mut self, now_ms: u64) {
        self.again_ms = self.again_ms.filter(|at| *at > now_ms);
    }

    /// Returns true if one more payload may be kept, whatever its size: a payload that is read back later blocks
    /// everything meanwhile.
    pub(crate) fn has_room(&self, options: &Options) -> bool {
        self.memory.taken_bytes() < options.queue_bytes || planted(Mutant::QueueKeepsAll)
    }

    /// Returns true if the last payload must not be kept.
    pub(crate) fn is_full(&self, options: &Options) -> bool {
        let is_full = self.memory.taken_bytes() > options.queue_bytes;
        is_full && !planted(Mutant::QueueKeepsAll)
    }

    /// Returns the number of bytes that more payloads may take.
    pub(crate) fn room(&self, options: &Options) -> usize {
        (options.queue_bytes).saturating_sub(self.memory.taken_bytes())
    }

    /// Reads entries back, from the first missing one on.
    pub(crate) fn read(
        &self,
        missing: Missing,
        max_bytes: usize,
        history: &dyn History,
    ) -> Result<Vec<(Position, Delivery)>, Unread> {
        let Missing { first, last, .. } = missing;
        if planted(Mutant::AnotherReadBack) {
            return history.read_back(first, last, 1 << 20).map(swap_first);
        }
        history.read_back(first, last, max_bytes)
    }

    /// Takes in the result of a read. `result`: the number of payloads that were restored from the one at `position`
    /// on.
    pub(crate) fn read_back(
        &mut self,
        context: &Context,
        position: Position,
        result: Result<usize, Unread>,
    ) -> ReadBack {
        let error = match result {
            Ok(restored) if restored > 0 => {
                self.count += restored as u64;
                return ReadBack::Restored(restored);
            }
            Err(Unread::NotNow) => {
                self.wait(context.now_ms());
                return ReadBack::Later;
            }
            Ok(_) => "it is not there".to_owned(),
            Err(Unread::Lost(error)) => error,
        };
        ReadBack::Lost(format!(
            "a write-set that waited to be applied cannot be read back from the write-set log, position {position}: {error}. \
             Nothing wrong was applied; check the disk, and restart this node: it gets what it lacks from the others"
        ))
    }
}

/// Returns the number of bytes that are read back at once.
pub(crate) fn piece_bytes(options: &Options) -> usize {
    let most_bytes = options.thresholds.read_back_bytes;
    most_bytes.min(options.queue_bytes / 4)
}

/// Returns true if enough was read back in one go.
pub(crate) fn is_a_slice(options: &Options, bytes: usize) -> bool {
    let slice_bytes = options.thresholds.slice_bytes;
    bytes >= slice_bytes.min(options.queue_bytes).max(1)
}

/// The mistake of [`Mutant::AnotherReadBack`].
fn swap_first(mut found: Vec<(Position, Delivery)>) -> Vec<(Position, Delivery)> {
    if let [(_, first), (_, second), ..] = found.as_mut_slice() {
        std::mem::swap(first, second);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_cannot_be_read_now_is_tried_again_and_one_that_lacks_an_entry_is_lost() {
        let mut context = Context::new(Options::default());
        context.advance(1_000);
        let mut reader = LogReader::default();
        let restored = reader.read_back(&context, 7, Ok(2));
        assert_eq!((restored, reader.count()), (ReadBack::Restored(2), 2));
        let later = reader.read_back(&context, 7, Err(Unread::NotNow));
        assert_eq!(later, ReadBack::Later);
        reader.watch(1_099);
        assert_eq!(reader.again_ms(), Some(1_100));
        reader.watch(1_100);
        assert_eq!(reader.again_ms(), None);
        let lost = reader.read_back(&context, 7, Ok(0));
        assert!(
            matches!(lost, ReadBack::Lost(text) if text.contains("position 7: it is not there"))
        );
    }
}
