//! Reads back the payloads that were not kept in memory while they waited, and owns the bound of that memory.
//!
//! In: the node's log, and the missing payloads. Out: deliveries, or the reason why there are none.

use trireme_group::{Delivery, Position};
use trireme_mutants::{Mutant, planted};

use crate::action_queue::ActionQueue;
use crate::context::Context;
use crate::executor::Executor;
use crate::history::{History, Unread};
use crate::intake::Intake;
use crate::options::Options;
use crate::payload::{Memory, Missing};

/// Time until the next try if the log is unreadable for a moment.
const RETRY_MS: u64 = 100;

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
    fn room(&self, options: &Options) -> usize {
        (options.queue_bytes).saturating_sub(self.memory.taken_bytes())
    }

    // --- for the apply queue

    /// Reads back the payloads that the appliers need next, a piece ahead of them.
    pub(crate) fn read_next(
        &mut self,
        context: &Context,
        executor: &mut Executor,
        history: &dyn History,
        out: &mut ActionQueue,
    ) {
        let Some(missing) = executor.queue().missing() else {
            return;
        };
        let (room, piece) = (self.room(context.options()), piece_bytes(context.options()));
        let enough = missing.bytes.max(piece);
        if room < enough && !missing.is_next || self.again_ms.is_some() {
            return;
        }
        let memory = self.memory.clone();
        let found = read(missing, piece.min(room), history);
        let restored = found.map(|found| executor.restore(found, &memory));
        self.was_read_back(context, missing.first, restored, out);
    }

    /// Reads back all missing payloads, because the log begins anew, whatever room there is. They do not count as taken
    /// memory: no later payload should have to wait for them.
    pub(crate) fn read_all(
        &mut self,
        context: &Context,
        executor: &mut Executor,
        history: &dyn History,
        out: &mut ActionQueue,
    ) {
        let max_bytes = context.options().thresholds.read_back_bytes;
        while let Some(missing) = executor.queue().missing() {
            let found = read(missing, max_bytes, history);
            let restored = found.map(|found| executor.restore(found, &Memory::default()));
            if !self.was_read_back(context, missing.first, restored, out) {
                break;
            }
        }
        let must_wait = self.again_ms.is_some();
        if let Some(missing) = executor.queue().missing().filter(|_| must_wait) {
            // The log is given up now, so there is no later try.
            let lost = Err(Unread::Lost("the log could not be read in time".to_owned()));
            self.was_read_back(context, missing.first, lost, out);
        }
    }

    // --- for the intake

    /// Reads back the next entries to be processed. Returns false if they cannot be read.
    pub(crate) fn read_entries(
        &mut self,
        context: &Context,
        intake: &mut Intake,
        history: &dyn History,
        out: &mut ActionQueue,
    ) -> bool {
        let must_wait = self.again_ms.is_some();
        let Some(missing) = intake.missing().filter(|_| !must_wait) else {
            return false;
        };
        let max_bytes = piece_bytes(context.options()).min(self.room(context.options()));
        let found = read(missing, max_bytes, history);
        let restored = found.map(|found| intake.restore(found, &self.memory));
        self.was_read_back(context, missing.first, restored, out)
    }

    /// Takes in the result of a read: the number of payloads that were restored from the one at `position` on. Returns
    /// true if there is one. A payload that the log can never give ends the process, which has no other source for it.
    /// The next process takes it from its log, or from other members.
    fn was_read_back(
        &mut self,
        context: &Context,
        position: Position,
        result: Result<usize, Unread>,
        out: &mut ActionQueue,
    ) -> bool {
        let error = match result {
            Ok(restored) if restored > 0 => {
                self.count += restored as u64;
                return true;
            }
            Err(Unread::NotNow) => {
                self.wait(context.now_ms());
                return false;
            }
            Ok(_) => "it is not there".to_owned(),
            Err(Unread::Lost(error)) => error,
        };
        out.fatal(format!(
            "a write-set that waited to be applied cannot be read back from the write-set log, position {position}: {error}. \
             Nothing wrong was applied; check the disk, and restart this node: it gets what it lacks from the others"
        ));
        false
    }
}

/// Reads entries back, from the first missing one on.
fn read(
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

/// Returns the number of bytes that are read back at once.
fn piece_bytes(options: &Options) -> usize {
    let most_bytes = options.thresholds.read_back_bytes;
    most_bytes.min(options.queue_bytes / 4)
}

/// Returns true if this is enough to process in one go.
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
    use crate::action::{Action, HostAction};

    #[test]
    fn a_log_that_cannot_be_read_now_is_tried_again_and_one_that_lacks_an_entry_is_lost() {
        let mut context = Context::new(Options::default());
        context.advance(1_000);
        let mut reader = LogReader::default();
        let mut out = ActionQueue::default();
        let mut read_back =
            |reader: &mut LogReader, result| reader.was_read_back(&context, 7, result, &mut out);
        assert!(read_back(&mut reader, Ok(2)));
        assert_eq!(reader.count(), 2);
        assert!(!read_back(&mut reader, Err(Unread::NotNow)));
        reader.watch(1_099);
        assert_eq!(reader.again_ms(), Some(1_100));
        reader.watch(1_100);
        assert_eq!(reader.again_ms(), None);
        assert!(!read_back(&mut reader, Ok(0)));
        let mut actions = Vec::new();
        out.drain_into(&mut actions);
        assert!(matches!(
            &actions[..],
            [Action::Host(HostAction::Fatal { text })] if text.contains("position 7: it is not there")
        ));
    }
}
