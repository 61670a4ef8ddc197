//! The end of a connection: the server disconnects, the group lets the node go, or the node has diverged. Certified
//! entries are still applied, waiting clients get their answers, and the server gets its last views.

use crate::action::{Action, GroupAction, HostAction, Level};
use crate::gtid::Gtid;
use crate::replicator::Replicator;
use crate::state_transfer::Place;
use crate::work::Task;

impl Replicator {
    /// Carries out disconnect().
    pub(crate) fn disconnect(&mut self) {
        let leaves_now = self.transfer.place() != Place::Closed && self.lifecycle.disconnect();
        if self.transfer.is_over() {
            if self.is_at_rest() {
                self.out.push(Action::Host(HostAction::Closed));
            }
            return;
        }
        if leaves_now {
            self.out.push(Action::Group(GroupAction::Leave));
        }
        // The server disconnects: it could neither send nor receive a state.
        self.executor.server_disconnects();
        self.wake_clients(false);
    }

    fn is_at_rest(&self) -> bool {
        self.executor.queue().is_idle()
    }

    /// Handles that the group has let the node go: certified entries are still applied, then come the last views.
    pub(crate) fn left(&mut self) {
        if self.transfer.is_over() {
            return;
        }
        if self.transfer.is_with_scripts() && !self.lifecycle.is_leaving() {
            // The server waits only for this transfer, and has no database yet to go on with.
            return self.fatal("the node has to leave while its server waits for a state transfer");
        }
        self.lifecycle.leave();
        self.lifecycle.lose_primary();
        // Until now the cluster could still decide the votes.
        self.abandon_disputes();
        self.wake_clients(true);
        self.intake.clear();
        self.executor.group_lets_go();
        if self.context.is_arbitrator() {
            self.transfer.end();
            return self.closed(); // there is no server to be told
        }
        if self.lifecycle.is_connected() {
            let alone = self.non_primary_view(vec![self.context.my_member().clone()]);
            self.executor.push_last(Task::View(alone));
        }
        let last = self.non_primary_view(Vec::new());
        self.executor.push_last(Task::View(last));
        self.transfer.end();
    }

    /// Handles that the final view was delivered.
    pub(crate) fn closed(&mut self) {
        let gtid = self.last_committed();
        if !self.lifecycle.has_diverged()
            && gtid != Gtid::UNDEFINED
            && !self.context.is_arbitrator()
        {
            self.out.push(Action::Host(HostAction::SaveState {
                gtid,
                safe_to_bootstrap: self.lifecycle.is_safe_to_bootstrap(),
            }));
        }
        self.out
            .push(Action::Host(HostAction::WakeAppliers { n: usize::MAX }));
        self.out.push(Action::Host(HostAction::Closed));
    }

    /// Leaves because this node's data differ from the others': it applies nothing more.
    pub(crate) fn become_inconsistent(&mut self, why: &str) {
        self.leave_inconsistent(&format!("Inconsistency detected: {why}"));
    }

    /// As [`Self::become_inconsistent`], with its own text in the log.
    pub(crate) fn leave_inconsistent(&mut self, text: &str) {
        if self.lifecycle.has_diverged() {
            return;
        }
        let leaves_now = self.lifecycle.leave();
        self.lifecycle.diverge();
        self.log(Level::Error, text);
        self.forget_action();
        self.out.push(Action::Host(HostAction::MarkCorrupt));
        self.executor.diverge();
        if leaves_now {
            self.out.push(Action::Group(GroupAction::Leave));
        }
        self.abandon_disputes();
        self.wake_clients(true);
    }
}
