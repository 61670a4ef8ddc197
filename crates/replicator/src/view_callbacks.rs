//! The view callbacks: the calls that tell the server of views. A primary view takes its seqno in commit order. A
//! non-primary view has no seqno, and is shown when everything before it was processed.

use trireme_certification::Seqno;
use trireme_group::{Configuration, Member};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, HostAction, Level};
use crate::gtid::Gtid;
use crate::payload::Payload;
use crate::replicator::Replicator;
use crate::state_transfer::Place;
use crate::work::{Task, View};

impl Replicator {
    /// Makes the connected() callback, once per connection.
    pub(crate) fn show_connected(&mut self) {
        let view = self.context.control().and_then(|c| c.views.last().cloned());
        let Some((seqno, configuration)) = view else {
            return;
        };
        if self.lifecycle.show_connected() {
            let view = self.primary_view(seqno, &configuration);
            self.executor.push_at_once(Task::Connected(view));
        }
    }

    /// Handles the end of a view callback: its seqno is released.
    pub(crate) fn view_shown(&mut self, view: &View, ok: bool) {
        if !ok {
            return self.fatal("the server refused a view");
        }
        if view.primary {
            self.executor.view_shown(view.gtid.seqno);
            let gtid = Gtid {
                uuid: view.gtid.uuid,
                seqno: -1,
            };
            self.out.push(Action::Host(HostAction::SaveState {
                gtid,
                safe_to_bootstrap: self.lifecycle.is_safe_to_bootstrap(),
            }));
        } else if view.members.is_empty() {
            self.closed();
        }
    }

    /// Returns a primary view as the server sees it.
    pub(crate) fn primary_view(&self, seqno: Seqno, configuration: &Configuration) -> View {
        View {
            gtid: self.ordered_gtid(seqno),
            number: i64::try_from(configuration.number).unwrap_or(i64::MAX),
            primary: true,
            my_index: configuration.index_of(self.context.me()),
            members: configuration.members.clone(),
            app_protocol: configuration.app_protocol(),
        }
    }

    /// Returns the view of a component without a majority.
    pub(crate) fn non_primary_view(&self, members: Vec<Member>) -> View {
        View {
            gtid: self.gtid_of(self.executor.top()),
            number: -1,
            primary: false,
            my_index: members
                .iter()
                .position(|m| m.incarnation == self.context.me()),
            app_protocol: self.context.my_member().app_protocol,
            members,
        }
    }

    /// Handles the loss of the majority. The group's `Failed` answers clients in flight at once. The view does not: it
    /// may have to wait for an applier that waits for these clients (rule 7).
    pub(crate) fn non_primary(&mut self, component: Vec<Member>) {
        self.lifecycle.lose_primary();
        self.lifecycle.forget_synced();
        self.flow_control.forget(self.context.now_ms());
        self.give_up_unsent();
        for ticket in self.callers.give_up_asked() {
            self.answer_sync_wait(ticket, Code::TrxFail);
        }
        // The loss is not shown if it lies before the control state that this node has from a peer. The view in which
        // the node is primary again is known already, and would not be shown after this one.
        let behind =
            (self.context.control()).is_some_and(|c| c.position > self.intake.delivered_to());
        let has_place = matches!(self.transfer.place(), Place::Active | Place::Transfer);
        let is_shown = self.lifecycle.is_connected()
            && has_place
            && !self.transfer.is_with_scripts()
            && !behind;
        let waits = self.callers.is_any_pause() || !self.intake.is_empty();
        if waits && is_shown && !planted(Mutant::NonPrimaryOvertakesPause) {
            return self.intake.push_non_primary(component);
        }
        if !self.callers.is_any_pause() {
            self.forget_desyncs();
        }
        if is_shown {
            self.push_non_primary_view(component);
        }
    }

    /// Shows the non-primary view, when everything before has been processed. Not while the node is held still: the
    /// server ends its pause by the state that it had at the pause's start, and this view ends that state
    /// (server-contract.md#pause).
    pub(crate) fn show_non_primary(&mut self, component: Vec<Member>) {
        // An older view may have told the server that it is synced since then.
        self.lifecycle.forget_synced();
        self.forget_desyncs();
        if !self.transfer.is_with_scripts() {
            self.push_non_primary_view(component);
        }
    }

    fn push_non_primary_view(&mut self, component: Vec<Member>) {
        let view = self.non_primary_view(component);
        self.push_task(Task::View(view), None, Payload::None);
    }

    /// Forgets the desyncs, which do not outlast the primary component, as with Galera (MTR: GAL-401): the server is
    /// not ready before it is Synced again. The desync of a paused node (FLUSH TABLES WITH READ LOCK) ends with the
    /// pause: the node could not become Synced. A desync that is in flight is not granted any more. FLUSH TABLES WITH
    /// READ LOCK requests it from a Synced server, and takes it back from a Synced one only (simulator, seed 907987).
    fn forget_desyncs(&mut self) {
        for ticket in self.submissions.abandon_desyncs() {
            self.answer(ticket, Answer::unordered(Code::TrxFail));
        }
        if self.submissions.take_back_desyncs() {
            self.log(
                Level::Info,
                "the desync of this node ends with the primary component; if it is to be desynced when it is back, \
                 SET GLOBAL wsrep_desync=OFF and ON again",
            );
        }
    }
}
