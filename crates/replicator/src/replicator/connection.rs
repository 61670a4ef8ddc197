//! A connection from connect() to its end: its beginning, the first view, the ways into step and out of it (the group's
//! log begins anew, the majority is lost), and the end. When the node leaves, certified entries are still applied, waiting
//! clients get their answers, and the server gets its last views.

use trireme_group::{Checkpoint, Incarnation, Member, Uuid};
use trireme_mutants::{Mutant, planted};

use super::Replicator;
use crate::action::{Action, Code, GroupAction, HostAction, Level};
use crate::control::Control;
use crate::database::Database;
use crate::event::Connect;
use crate::forks::Forks;
use crate::gtid::Gtid;
use crate::joiner::Begun;
use crate::payload::Payload;
use crate::state_transfer::Place;
use crate::work::{Task, View};

impl Replicator {
    // --- the beginning

    /// Carries out connect(): forgets the whole connection before, except the applied position.
    pub(super) fn connect(&mut self, connect: Connect) {
        if self.lifecycle.has_diverged() && !planted(Mutant::InconsistencyForgotten) {
            // A diverged database does not count until an SST replaces it. That holds for this connection and, if the
            // server refuses an SST, for the next one.
            self.executor.forget_history();
        }
        let applied = Some(self.last_committed()).filter(|gtid| *gtid != Gtid::UNDEFINED);
        let (mut database, line) = Database::of(&connect, applied);
        database.keep_view(self.context.control());
        self.database = database;
        if let Some((level, text)) = line {
            self.out.log(level, text);
        }
        let control = self.first_control(&connect);
        let is_founding = connect.bootstrap.is_some();
        self.context.connect(connect.incarnation, connect.me);
        (self.lifecycle).connect(is_founding, connect.server_running);
        self.counters.connect(self.context.now_ms());
        self.intake.start_over();
        self.retention.start_over();
        self.executor.start_over(!self.context.is_arbitrator());
        self.submissions.start_over();
        self.voting.start_over();
        self.callers.start_over();
        self.out.forget_joined();
        self.flow_control.start_over(self.context.now_ms());
        self.context.set_control(control);
        self.database.note_view(self.context.control());
        self.transfer.start_over();
    }

    /// Returns the control state with which a connection begins; None: it comes from a member.
    fn first_control(&mut self, connect: &Connect) -> Option<Control> {
        if let Some(history) = connect.bootstrap {
            let local = self.database.local();
            let goes_on = local.uuid == history;
            let seqno = if goes_on { local.seqno.max(0) } else { 0 };
            let mut forks = self.database.forks().to_vec();
            // This includes an override at its own position: the database was bootstrapped there before.
            forks.retain(|(_, fork)| goes_on && *fork <= seqno);
            let max_length = self.context.options().cert_max_length;
            return Some(Control::found(history, seqno, forks.into(), max_length));
        }
        match Control::decode(connect.control.clone()?) {
            Ok(control) => Some(control),
            Err(error) => {
                let text = format!("recovered control state cannot be used: {error}");
                self.out.log(Level::Warn, text);
                None
            }
        }
    }

    /// Makes the node the first of this history; its database is the state.
    pub(super) fn found(&mut self, history: Uuid) {
        let max_length = self.context.options().cert_max_length;
        self.lifecycle.found();
        let control = Control::found(history, 0, Forks::default(), max_length);
        self.context.set_control(Some(control));
        // From here on the database counts, even if the process ends.
        let gtid = Gtid {
            uuid: history,
            seqno: 0,
        };
        self.out.push(Action::Host(HostAction::SaveState {
            gtid,
            safe_to_bootstrap: true,
        }));
    }

    // --- into step with the group

    /// Begins a state transfer, when the node is in step with the group. The `sender` of the control state is asked
    /// first for missing entries.
    pub(super) fn begin_transfer(&mut self, sender: Option<Incarnation>) {
        let begun = self.joiner().begin(sender);
        if begun == Some(Begun::Ist) {
            self.outcomes().review_successes();
        }
        self.outcomes().review_disputes();
        let Some(begun) = begun else {
            return;
        };
        self.membership().review_donation();
        if begun == Begun::Sst {
            // This node's outcomes count no more, and the callers may be the threads that the SST needs.
            self.outcomes().abandon_disputes();
            self.joiner().request_snapshot();
        }
    }

    /// Ends the transfer when the database has caught up with the order: deliveries since then follow.
    pub(super) fn finish_transfer(&mut self) {
        let later = self.transfer.finish(self.executor.top());
        self.outcomes().review_presumed();
        self.lifecycle.server_runs(); // by the view of this node's admission, if by none before
        for (task, seqno, payload) in later {
            self.executor.enqueue(task, seqno, payload);
        }
        self.joiner().show_return();
        self.membership().tell_synced();
    }

    // --- out of step

    /// Handles that the group's log begins anew. Deliveries so far are still applied here, but the next entries are
    /// unknown without a peer's control state.
    pub(super) fn reset(&mut self, checkpoint: &Checkpoint) {
        if self.transfer.is_over() || self.lifecycle.is_founding() && !self.lifecycle.is_connected()
        {
            return;
        }
        self.out.log(
            Level::Debug,
            format!("the log begins anew above position {}", checkpoint.position),
        );
        let is_used = self.lifecycle.is_connected() && !self.executor.history().is_nil();
        let brought_to = is_used.then(|| self.executor.gtid_of(self.executor.top()));
        let in_step = self.transfer.place() == Place::Active;
        let control = self.context.control();
        let queued_upto = self.executor.top();
        let in_step_upto = in_step.then_some(queued_upto);
        // Another branch may have dropped the ballots.
        let is_same_branch = control.is_some_and(|c| c.forks.are_overrides(&checkpoint.overrides));
        let decided_upto = if is_same_branch { queued_upto } else { -1 };
        let has_passed = |seqno| self.executor.has_passed(seqno);
        (self.voting).log_begins_anew(&self.context, in_step_upto, decided_upto, has_passed);
        // The database may hold entries that only a forced view has committed, which still waits here.
        let waiting = self.intake.configurations();
        let forks = waiting
            .filter_map(|(_, waiting)| control?.fork_of(waiting))
            .collect();
        (self.database).log_begins_anew(control, brought_to, &checkpoint.overrides);
        if let Some(forks) = self.database.adds_forks(forks) {
            self.out.note_forks(forks);
        }
        self.outcomes().give_up_all_sent();
        self.outcomes().give_up_reads();
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

    /// Handles the loss of the majority. The group's `Failed` answers clients in flight at once. The view does not: it
    /// may have to wait for an applier that waits for these clients (rule 7).
    pub(super) fn non_primary(&mut self, component: Vec<Member>) {
        self.lifecycle.group_is_primary(false);
        self.lifecycle.lose_primary();
        if let Some(ist) = self.transfer.ist_mut() {
            ist.lose_primary();
        }
        self.joiner().majority_lost_in_transfer();
        self.lifecycle.forget_synced();
        self.flow_control.forget(self.context.now_ms());
        self.outcomes().give_up_unsent();
        for ticket in self.callers.give_up_asked() {
            let gtid = self.executor.last_committed();
            self.out.answer_read(ticket, Code::TrxFail, gtid);
        }
        // The loss is not shown if it lies before the control state (see `delivered`). The view in which the node is
        // primary again is known already, and would not be shown after this one.
        let behind =
            (self.context.control()).is_some_and(|c| c.position > self.intake.delivered_to());
        let has_place = matches!(self.transfer.place(), Place::Active | Place::Transfer);
        // A log that was replaced in place is no reason for clients: the server has to refuse them now, not when it is in
        // step with the group again.
        let serves = self.lifecycle.has_been_synced() && !self.executor.queue().is_told_of_loss();
        if serves && self.transfer.place() != Place::Active && !self.callers.is_any_pause() {
            let view = self.non_primary_view(component.clone());
            self.executor.push_last(Task::View(view));
        }
        let is_shown = self.lifecycle.is_connected()
            && has_place
            && !self.transfer.is_with_scripts()
            && !behind;
        let waits = self.callers.is_any_pause() || !self.intake.is_empty();
        if waits && is_shown && !planted(Mutant::NonPrimaryOvertakesPause) {
            return self.intake.push_non_primary(component);
        }
        if !self.callers.is_any_pause() {
            self.membership().forget_desyncs();
        }
        if is_shown {
            self.queue_non_primary_view(component);
        }
    }

    /// Shows the non-primary view, when everything before has been processed. Not while the node is held still: the
    /// server ends its pause by the state that it had at the pause's start, and this view ends that state
    /// (server-contract.md#pause).
    pub(super) fn show_non_primary(&mut self, component: Vec<Member>) {
        // Older entries may have been processed since then.
        if !planted(Mutant::OldViewIsPrimary) {
            self.lifecycle.lose_primary();
        }
        self.lifecycle.forget_synced();
        self.membership().forget_desyncs();
        if !self.transfer.is_with_scripts() {
            self.queue_non_primary_view(component);
        }
    }

    fn queue_non_primary_view(&mut self, component: Vec<Member>) {
        let view = self.non_primary_view(component);
        (self.transfer).queue((Task::View(view), None, Payload::None), &mut self.executor);
    }

    fn non_primary_view(&self, members: Vec<Member>) -> View {
        let gtid = self.executor.gtid_of(self.executor.top());
        View::non_primary(gtid, members, &self.context)
    }

    // --- the end

    /// Carries out disconnect().
    pub(super) fn disconnect(&mut self) {
        let leaves_now = self.transfer.place() != Place::Closed && self.lifecycle.disconnect();
        if self.transfer.is_over() {
            if self.executor.queue().is_idle() {
                self.out.push(Action::Host(HostAction::Closed));
            }
            return;
        }
        if leaves_now {
            self.out.push(Action::Group(GroupAction::Leave));
        }
        // The server disconnects: it could neither send nor receive a state.
        self.executor.server_disconnects();
        self.outcomes().wake_clients(false);
    }

    /// Handles that the group has let the node go: certified entries are still applied, then come the last views.
    pub(super) fn left(&mut self) {
        if self.transfer.is_over() {
            return;
        }
        if self.transfer.is_with_scripts() && !self.lifecycle.is_leaving() {
            // The server waits only for this transfer, and has no database yet to go on with.
            let text = "the node has to leave while its server waits for a state transfer";
            return self.out.fatal(text);
        }
        self.lifecycle.leave();
        self.lifecycle.lose_primary();
        // Until now the cluster could still decide the votes.
        self.outcomes().abandon_disputes();
        self.outcomes().wake_clients(true);
        self.intake.clear();
        self.executor.group_lets_go();
        if self.context.is_arbitrator() {
            self.transfer.end();
            return self.outcomes().closed(); // there is no server to be told
        }
        if self.lifecycle.is_connected() {
            let alone = self.non_primary_view(vec![self.context.my_member().clone()]);
            self.executor.push_last(Task::View(alone));
        }
        let last = self.non_primary_view(Vec::new());
        self.executor.push_last(Task::View(last));
        self.transfer.end();
    }
}
