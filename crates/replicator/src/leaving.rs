//! The end of a connection: the server disconnects, the group lets go, or the node must not go on.

use crate::action::{Action, GroupAction, HostAction, Level};
use crate::gtid::Gtid;
use crate::replicator::Replicator;
use crate::state_transfer::Place;
use crate::work::Task;

impl Replicator {
    /// disconnect()
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
        // Its server is on its way out: it could neither send nor receive.
        self.executor.server_disconnects();
        self.wake_clients(false);
    }

    fn is_at_rest(&self) -> bool {
        self.executor.queue().is_idle()
    }

    /// The group has let go: what was certified is still applied, then the last views.
    pub(crate) fn left(&mut self) {
        if self.transfer.is_over() {
            return;
        }
        if self.transfer.is_with_scripts() && !self.lifecycle.is_leaving() {
            // The server waits for nothing else, and has no database yet to go on with.
            return self.fatal("the node has to leave while its server waits for a state transfer");
        }
        self.lifecycle.leave();
        self.lifecycle.lose_primary();
        // Until now the cluster could still decide.
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

    /// The final view was delivered.
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

    /// This node's data differ from the others': it applies nothing more and leaves.
    pub(crate) fn become_inconsistent(&mut self, why: &str) {
        self.leave_inconsistent(&format!("Inconsistency detected: {why}"));
    }

    /// The same, with a text of its own in the log.
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
