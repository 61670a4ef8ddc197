//! A joiner's state transfer from its start to its end: the coordinator of [`crate::state_transfer::StateTransfer`].

use trireme_group::{Checkpoint, Incarnation};

use crate::action::{Action, Code, HostAction, Level};
use crate::history::History;
use crate::replicator::Replicator;
use crate::state_transfer::Ist;

impl Replicator {
    /// Handles that the group's log begins anew. Deliveries so far are still applied here, but the next entries are
    /// unknown without a peer's control state.
    pub(crate) fn reset(&mut self, checkpoint: &Checkpoint) {
        if self.transfer.is_over() || self.lifecycle.is_founding() && !self.lifecycle.is_connected()
        {
            return;
        }
        self.log(
            Level::Debug,
            format!("the log begins anew above position {}", checkpoint.position),
        );
        let is_used = self.lifecycle.is_connected() && !self.executor.history().is_nil();
        let brought_to = is_used.then(|| self.gtid_of(self.executor.top()));
        let control = self.context.control();
        (self.database).log_begins_anew(control, brought_to, &checkpoint.overrides);
        for (_, sent) in self.submissions.take_all() {
            self.give_up(sent, true);
        }
        for ticket in self
            .callers
            .give_up_reads_from(self.executor.next_to_pass())
        {
            self.answer_sync_wait(ticket, Code::TrxFail);
        }
        self.lifecycle.give_up_founding();
        self.lifecycle.lose_primary();
        self.out.forget_joined();
        self.lifecycle.forget_synced();
        self.context.set_control(None);
        // The entries behind the loss are no longer known, but the server has to hear of it.
        if let Some(component) = self.intake.take_non_primary() {
            self.show_non_primary(component);
        }
        self.intake.begin_above(checkpoint.position);
        self.retention.forget_log();
        self.executor.log_begins_anew();
        self.transfer.log_begins_anew();
    }

    /// Decides how the database follows, when the node is in step with the group. The `sender` of the control state is
    /// asked first for missing entries.
    pub(crate) fn begin_transfer(&mut self, sender: Option<Incarnation>) {
        if self.context.is_arbitrator() {
            return self.begin_arbitration(sender.is_some());
        }
        if self.transfer.is_interrupted() {
            return self.resume_snapshot();
        }
        let Some(control) = self.context.control() else {
            return;
        };
        let (history, upto) = (control.history, control.seqno());
        let is_resumed = self.lifecycle.is_connected();
        let fitness = self.database.fitness(control);
        let (local, usable) = (self.database.local(), fitness.is_usable);
        let sources = self.ist_sources(sender);
        self.lifecycle.enter_primary();
        self.out.push(Action::Host(HostAction::Admitted));
        if let Some(fork) = fitness.fork.filter(|_| fitness.is_forked) {
            let text = format!(
                "Gap in state sequence. Need state transfer. The database, at {local}, and the cluster have gone on without each \
                 other after seqno {fork}: what it holds above that is dropped"
            );
            self.log(Level::Warn, text);
        }
        if fitness.is_here && !usable {
            let text = format!(
                "the database at {local} is more views behind than the cluster remembers: it needs a full state transfer"
            );
            self.log(Level::Info, text);
        }
        self.voting.forget_dummies();
        if usable {
            if !is_resumed {
                self.executor.begin_at(history, local.seqno);
            }
            let now_ms = self.context.now_ms();
            // Entries that were read back from the local log are on this branch.
            let own_log = fitness.fork.is_none() || sender.is_none();
            let begun = is_resumed && self.lifecycle.is_server_running();
            let entries = (local.seqno + 1, upto);
            let ist = Ist::of_database(entries, sources, own_log, begun, now_ms);
            self.transfer.begin_ist(upto, ist);
            self.transfer.follow_from(local.seqno, now_ms);
            self.note_overrides();
        } else {
            self.transfer.begin_sst(upto);
        }
        self.show_connected();
        self.review_disputes();
        self.review_donation();
        if !usable {
            self.request_snapshot();
        }
    }

    /// Begins without a database, when the node is in step with the group. `anew`: the log has nothing of the entries
    /// before.
    fn begin_arbitration(&mut self, anew: bool) {
        let Some(control) = self.context.control() else {
            return;
        };
        let (history, seqno) = (control.history, control.seqno());
        if anew {
            let text = format!(
                "this arbitrator's log begins at seqno {}: it gets its vote when all nodes that serve have applied what \
                 comes before",
                seqno + 1
            );
            self.log(Level::Info, text);
        }
        self.executor.begin_at(history, seqno);
        self.transfer.arbitrate(seqno);
        self.lifecycle.enter_primary();
        self.out.push(Action::Host(HostAction::Admitted));
    }

    /// Advances the running transfer.
    pub(crate) fn pursue_state(&mut self, history: &dyn History) {
        self.tell_progress();
        self.pursue_snapshot();
        self.process_intake(history);
        self.retry_state_request();
        while self.pursue_ist(history) {}
        self.pursue_membership(history);
    }

    /// Ends the transfer when the database has caught up with the order: deliveries since then follow.
    pub(crate) fn finish_transfer(&mut self) {
        let later = self.transfer.finish(self.executor.top());
        self.review_presumed();
        self.lifecycle.server_runs(); // by the view of this node's admission, if by none before
        for (task, seqno, payload) in later {
            self.enqueue(task, seqno, payload);
        }
        self.tell_synced();
    }

    /// Reports the catch-up progress.
    fn tell_progress(&mut self) {
        let Some(end) = self.context.seqno() else {
            return;
        };
        let (now_ms, low) = (self.context.now_ms(), self.executor.low());
        if let Some(text) = self.transfer.progress_line(now_ms, low, end) {
            self.log(Level::Info, text);
        }
    }
}
