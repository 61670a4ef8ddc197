//! What the own log takes in, drops, and no longer keeps in memory.

use crate::entry::Entry;
use crate::event::Action;
use crate::group::{Group, Role};
use crate::ids::Position;
use crate::log_reader::LogReader;

/// Entries dropped from memory at a time: the rest can wait for the next event.
const TRIMMED_AT_ONCE: Position = 4096;

impl Group {
    /// Appends to the own log.
    pub(crate) fn append(&mut self, entry: Entry) {
        let position = entry.position;
        self.tail.push(entry.clone());
        self.out.push(Action::Append { entry });
        if self.context.config().append_is_durable {
            self.durable = position;
        }
    }

    /// Drops the suffix above `after`, which conflicts with the sequencer's log.
    pub(crate) fn truncate(&mut self, after: Position) -> Vec<Entry> {
        assert!(
            after >= self.committed.position,
            "a committed entry is never dropped (rule 1)"
        );
        assert!(
            after >= self.agreed.min(self.tail.end()),
            "what was acknowledged in a ballot is never dropped within it (rule 1)"
        );
        let dropped = self.tail.truncate(after);
        self.durable = self.durable.min(after);
        if !dropped.is_empty() {
            self.counters.truncations += 1;
            // A view that was never committed was not left.
            self.left_number = self.left_number.min(self.latest().number);
            self.out.push(Action::Truncate { after });
        }
        dropped
    }

    /// Drops committed entries from memory; a sequencer keeps what connected members lack, within
    /// bounds.
    pub(crate) fn trim(&mut self) {
        self.tail.trim_left(self.committed.position);
        let held = self.tail.end() + 1 - self.tail.first();
        let bytes = self.tail.size_bytes();
        if held <= 4096 && bytes <= self.context.config().tail_bytes {
            return;
        }
        let lacking = match &self.role {
            Role::Sequencer(office) if bytes <= 4 * self.context.config().tail_bytes => {
                office.least_acked()
            }
            _ => None,
        };
        let committed = self.committed.position;
        let upto = lacking.map_or(committed, |acked| acked.min(committed));
        self.tail
            .trim(upto.min(self.tail.first() + TRIMMED_AT_ONCE));
    }

    /// What is voided, and all that stands above it, is appended again: payloads of it that are in the log only are read
    /// first.
    pub(crate) fn read_left(&mut self, log: &dyn LogReader) {
        let Some(from) = self.read_left_from.take() else {
            return;
        };
        if !matches!(self.role, Role::Candidate(_)) {
            return;
        }
        let (left, mut next, mut found) = (self.tail.left(), from, Vec::new());
        while next <= left {
            let Ok(run) =
                log.read_run(next, left, self.context.config().thresholds.read_left_bytes)
            else {
                return self.read_left_from = Some(from); // it is tried again
            };
            let Some(last) = run.last() else {
                return; // it cannot be read: the attempt fails
            };
            next = last.position + 1;
            found.extend(run);
        }
        if self.tail.restore(found) {
            self.count_promises();
        }
    }
}
