//! What the own log takes in, drops, and no longer keeps in memory.

use crate::entry::Entry;
use crate::event::Action;
use crate::group::Group;
use crate::ids::Position;
use crate::log_reader::LogReader;

impl Group {
    /// Appends to the own log.
    pub(crate) fn append(&mut self, entry: Entry) {
        let is_durable = self.context.config().append_is_durable;
        self.log.append(entry.clone(), is_durable);
        self.out.push(Action::Append { entry });
    }

    /// Drops the suffix above `after`, which conflicts with the sequencer's log.
    pub(crate) fn truncate(&mut self, after: Position) -> Vec<Entry> {
        assert!(
            after >= self.matching.agreed().min(self.log.tail().end()),
            "what was acknowledged in a ballot is never dropped within it (rule 1)"
        );
        let dropped = self.log.truncate(after);
        if !dropped.is_empty() {
            self.out.count(|c| c.truncations += 1);
            self.component.left_at_most_in(self.log.latest().number);
            self.out.push(Action::Truncate { after });
        }
        dropped
    }

    /// Drops committed entries from memory; a sequencer keeps what connected members lack, within
    /// bounds.
    pub(crate) fn trim(&mut self) {
        let leader = self.role.leader();
        let lacking = leader.and_then(|leader| leader.replication.least_acked());
        let tail_bytes = self.context.config().tail_bytes;
        self.log.trim(tail_bytes, lacking);
    }

    /// What is voided, and all that stands above it, is appended again: payloads of it that are in the log only are read
    /// first.
    pub(crate) fn read_left(&mut self, log: &dyn LogReader) {
        let Some(from) = self.log.take_wanted() else {
            return;
        };
        if !self.role.is_candidate() {
            return;
        }
        let (left, mut next, mut found) = (self.log.tail().left(), from, Vec::new());
        while next <= left {
            let Ok(run) =
                log.read_run(next, left, self.context.config().thresholds.read_left_bytes)
            else {
                return self.log.want_from(from); // it is tried again
            };
            let Some(last) = run.last() else {
                return; // it cannot be read: the attempt fails
            };
            next = last.position + 1;
            found.extend(run);
        }
        if self.log.restore(found) {
            self.count_promises();
        }
    }
}
