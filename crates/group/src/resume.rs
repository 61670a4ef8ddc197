//! A process that starts with the log of an earlier one on its data directory: under a new
//! incarnation, in the seat of its replica (rules 4, 6, 14).

use crate::configuration::Configuration;
use crate::entry::Entry;
use crate::event::RecoveredLog;
use crate::group::Group;

impl Group {
    /// Goes on with the log of an earlier process. What is known to be committed is delivered again.
    pub(crate) fn resume(&mut self, log: RecoveredLog) {
        let ids = log.entries.iter().filter_map(Entry::submission);
        for id in ids {
            let outputs = self.dissemination.ordered(id);
            debug_assert!(outputs.is_empty(), "nothing is fetched yet");
        }
        let commit = self.log.resume(log);
        self.component.resume();
        // Whoever has entries of a ballot follows it, although the promise may not have reached the disk.
        if self.log.tail().end_ballot() > self.vote.promised() {
            self.promise_ballot(self.log.tail().end_ballot());
        }
        self.commit_to(commit);
        // No view seats this incarnation yet: the first that does is its way back, whatever number an uncommitted one in
        // this log has.
        let number = self.log.committed().configuration.number;
        self.component.left_in(number);
    }

    /// The seat that a restarted process has found in its log is gone.
    pub(crate) fn loses_seat(&self, before: &Configuration, now: &Configuration) -> bool {
        let has =
            |configuration: &Configuration| configuration.replica(self.my_replica()).is_some();
        self.component.is_resumed() && has(before) && !has(now)
    }
}
