//! A connection from connect() to the final view.

use trireme_group::{Fate, Member, SubmissionId, Uuid};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, Level};
use crate::control::Control;
use crate::doubt::Doubt;
use crate::event::Connect;
use crate::gtid::Gtid;
use crate::history::History;
use crate::isolation::Isolation;
use crate::joiner::SnapshotPull;
use crate::member_state::NodeState;
use crate::order::Order;
use crate::payload::Payload;
use crate::replicator::{Replicator, Stage};
use crate::submissions::{Sent, Submissions};
use crate::transactions::Phase;
use crate::work::{Task, View};

/// Pause before a control message that the group refused is submitted again.
const SAY_AGAIN_MS: u64 = 100;

impl Replicator {
    /// connect(): everything of the connection before is forgotten but what was applied.
    pub(crate) fn connect(&mut self, connect: Connect) {
        let applied = if self.inconsistent {
            Gtid::UNDEFINED
        } else {
            self.last_committed()
        };
        self.doubt = Doubt::default();
        self.local = if connect.server_running && applied != Gtid::UNDEFINED {
            applied
        } else {
            self.place(&connect)
        };
        self.me_before = std::mem::replace(&mut self.me, connect.incarnation);
        self.my_member = connect.me;
        self.server_running = connect.server_running;
        self.overrides = connect.overrides;
        self.last_override = None;
        self.founding = connect.bootstrap.is_some();
        (self.connected, self.primary, self.leaving) = (false, false, false);
        self.excluded = false;
        (self.inconsistent, self.synced_told, self.exited) = (false, false, false);
        self.backlog.clear();
        self.positions.clear();
        self.marks.clear();
        self.pins = crate::cut::Pins::default();
        self.works.start_over();
        self.submissions = Submissions::default();
        self.transactions.clear();
        self.isolations.clear();
        self.disputes.clear();
        self.presumed.clear();
        self.dummies.clear();
        self.held.clear();
        self.spreads.clear();
        self.asking.forget(self.now_ms);
        self.held_reads.clear();
        self.lost_rollbacks.clear();
        self.joined_at = -1;
        self.flow.forget(self.now_ms);
        self.patience.forget();
        self.absence = crate::absence::Absence::default();
        self.cuts = crate::cut::CutReports::default();
        (self.pauses, self.desyncs_granted, self.donation_result) = (0, 0, None);
        self.joined_told = None;
        (self.interrupted, self.course) = (None, None);
        self.delivered_to = 0;
        self.home = None;
        self.keep_home();
        self.control = match (connect.bootstrap, connect.control) {
            (Some(history), _) => {
                let goes_on = self.local.uuid == history;
                let seqno = if goes_on { self.local.seqno.max(0) } else { 0 };
                let mut forks = self.overrides.clone();
                // One at its position, too: it was bootstrapped there before.
                forks.retain(|(_, fork)| goes_on && *fork <= seqno);
                let max_length = self.options.cert_max_length;
                Some(Control::found(history, seqno, forks, max_length))
            }
            (None, Some(bytes)) => match Control::decode(bytes) {
                Ok(control) => Some(control),
                Err(error) => {
                    self.log(
                        Level::Warn,
                        format!("recovered control state cannot be used: {error}"),
                    );
                    None
                }
            },
            (None, None) => None,
        };
        self.note_home();
        self.stage = Stage::Admission(SnapshotPull::default());
    }

    /// The node is to be the first of this history, whose state its database is.
    pub(crate) fn found(&mut self, history: Uuid) {
        let max_length = self.options.cert_max_length;
        self.founding = true;
        self.control = Some(Control::found(history, 0, Vec::new(), max_length));
        // From here on the database counts, whenever the process ends.
        let gtid = Gtid {
            uuid: history,
            seqno: 0,
        };
        self.out.push(Action::SaveState {
            gtid,
            safe_to_bootstrap: true,
        });
    }

    /// Where the database stands. One that was to execute a total-order action above its position may
    /// hold that action: executing it and setting the position are two steps, and the second may be lost
    /// (rule 13). Nothing may be applied to it until the order has seen that nobody has a better one.
    fn place(&mut self, connect: &Connect) -> Gtid {
        let (local, last) = (connect.local, connect.last_action);
        let action = last.gtid;
        self.doubt = Doubt::of(local, last);
        let may_hold = local.is_known() && local.precedes(action);
        if connect.bootstrap.is_some() {
            self.doubt = Doubt::default();
            if !may_hold || planted(Mutant::ExecutedActionForgotten) {
                return local;
            }
            let text = format!(
                "the total-order action (DDL) at {action} has been executed on this database, whose position is {local}: \
                 it now counts as being at {action}. What was committed in between is missing unless it was flushed \
                 with the action, and the other nodes take a full snapshot of it"
            );
            self.log(Level::Warn, text);
            return action;
        }
        if last.leaves_in_doubt(local) {
            let text = format!(
                "the total-order action (DDL) at {action} may have been executed on this database, whose position is {local}: \
                 it needs a full state transfer, unless the databases of all members are in doubt"
            );
            self.log(Level::Info, text);
        }
        local
    }

    /// Nothing is to be concluded from an action that was noted: the database has diverged, or is replaced.
    pub(crate) fn forget_action(&mut self) {
        self.doubt = Doubt::default();
        self.out.push(Action::NoteAction {
            gtid: Gtid::UNDEFINED,
            ended: true,
        });
    }

    /// The first view of a component that this node founds: its database is the state.
    pub(crate) fn begin_founded(&mut self, seqno: i64) {
        self.stage = Stage::Active;
        self.server_running = true; // before anything is applied: the first view sees to it
        self.order = Order::new(seqno - 1);
        self.applied_history = self
            .control
            .as_ref()
            .map_or(self.applied_history, |c| c.history);
        self.note_overrides();
        self.out.push(Action::Admitted);
        self.show_connected();
    }

    /// connected(), once per connection.
    pub(crate) fn show_connected(&mut self) {
        let view = self.control.as_ref().and_then(|c| c.views.last().cloned());
        if let (false, Some((seqno, configuration))) = (self.connected, view) {
            self.connected = true;
            let view = self.primary_view(seqno, &configuration);
            self.works
                .push(Task::Connected(view), i64::MIN, Payload::None);
        }
    }

    /// A view callback has returned: its seqno is released.
    pub(crate) fn view_shown(&mut self, view: &View, ok: bool) {
        if !ok {
            return self.fatal("the server refused a view");
        }
        if view.primary {
            let seqno = view.gtid.seqno;
            if !self.works.shows_next(seqno) {
                self.shown_low = None;
            }
            if seqno > self.order.low() {
                self.order.pass(seqno);
                self.released(seqno);
            }
            let gtid = Gtid {
                uuid: view.gtid.uuid,
                seqno: -1,
            };
            self.out.push(Action::SaveState {
                gtid,
                safe_to_bootstrap: self.safe_to_bootstrap,
            });
        } else if view.members.is_empty() {
            self.closed();
        }
    }

    /// The final view was delivered.
    fn closed(&mut self) {
        let gtid = self.last_committed();
        if !self.inconsistent && gtid != Gtid::UNDEFINED && !self.is_arbitrator() {
            self.out.push(Action::SaveState {
                gtid,
                safe_to_bootstrap: self.safe_to_bootstrap,
            });
        }
        self.out.push(Action::WakeAppliers { n: usize::MAX });
        self.out.push(Action::Closed);
    }

    /// No majority. Clients in flight are answered by the group's `Failed`, at once, not by the
    /// view: it may have to wait for an applier that waits for them (rule 7).
    pub(crate) fn non_primary(&mut self, component: Vec<Member>) {
        self.primary = false;
        self.synced_told = false;
        self.asking.forget(self.now_ms);
        self.flow.forget(self.now_ms);
        self.patience.forget();
        self.give_up_held();
        for ticket in self.causal.give_up_asked() {
            self.answer_sync_wait(ticket, Code::TrxFail);
        }
        // Nor of what lies before the control state that this node has from a peer: the view in which
        // it is primary again is known already, and would not be shown after this one.
        let behind = (self.control.as_ref()).is_some_and(|c| c.position > self.delivered_to);
        let has_place = matches!(self.stage, Stage::Active | Stage::Transfer(_));
        let is_shown = self.connected && has_place && !self.is_in_snapshot() && !behind;
        let waits = self.pauses > 0 || !self.backlog.is_empty();
        if waits && is_shown && !planted(Mutant::NonPrimaryOvertakesPause) {
            let position = self.delivered_to;
            return self.backlog.push_non_primary(position, component);
        }
        if self.pauses == 0 {
            self.forget_desyncs();
        }
        if is_shown {
            self.push_non_primary_view(component);
        }
    }

    /// Everything before has been processed. Not while the node is held still: how its server lets go goes by the
    /// state in which it was when it came, which this view ends (contract 2.20).
    pub(crate) fn show_non_primary(&mut self, component: Vec<Member>) {
        // An older view may have said so since.
        self.synced_told = false;
        self.forget_desyncs();
        if !self.is_in_snapshot() {
            self.push_non_primary_view(component);
        }
    }

    fn push_non_primary_view(&mut self, component: Vec<Member>) {
        let view = self.non_primary_view(component);
        self.push_task(Task::View(view), None, Payload::None);
    }

    /// A desync does not outlast the primary component, as with Galera (MTR: GAL-401): the server is not ready before it
    /// is Synced again. That of a paused node (FLUSH TABLES WITH READ LOCK) ends with the pause: it could not become Synced.
    /// One that is under way is not granted any more: FLUSH TABLES WITH READ LOCK, which asks a Synced server, takes it back
    /// from a Synced one only (simulator, seed 907987).
    fn forget_desyncs(&mut self) {
        for ticket in self.submissions.abandon_desyncs() {
            self.answer(ticket, Answer::unordered(Code::TrxFail));
        }
        if std::mem::take(&mut self.desyncs_granted) > 0 {
            self.log(
                Level::Info,
                "the desync of this node ends with the primary component; if it is to be desynced when it is back, \
                 SET GLOBAL wsrep_desync=OFF and ON again",
            );
        }
    }

    /// Between sst_request and sst_received: no view callback (rule 19).
    fn is_in_snapshot(&self) -> bool {
        self.interrupted.is_some()
            || matches!(&self.stage, Stage::Transfer(t) if t.awaits_snapshot())
    }

    /// A submission will not be answered by a delivery.
    pub(crate) fn failed(&mut self, id: SubmissionId, fate: Fate) {
        if id.incarnation != self.me {
            return;
        }
        if let Some(sent) = self.submissions.take(id.number) {
            if fate == Fate::Unknown && self.must_be_decided(sent) {
                return self.submissions.keep_undecided(id.number, sent);
            }
            // The group takes nothing at the moment: saying it again at once would go on for ever.
            self.say_again_at_ms = self.now_ms + SAY_AGAIN_MS;
            self.give_up(sent, fate == Fate::Unknown);
        }
    }

    /// Answers whoever waits for a submission that has failed, or may have (rule 7).
    pub(crate) fn give_up(&mut self, sent: Sent, unknown: bool) {
        self.submissions.epoch += u64::from(unknown && !planted(Mutant::EpochNotRaised));
        let definite = if self.inconsistent {
            Code::NodeFail
        } else {
            Code::ConnFail
        };
        match sent {
            Sent::Trx(id) => {
                let commits_stream = self.transactions.commits_stream(id);
                let Some(trx) = self.transactions.forget(id) else {
                    return; // what is in flight is in the table
                };
                if let Phase::Held { ticket } | Phase::Replicating { ticket, .. } = trx.phase {
                    let code = match unknown && !planted(Mutant::UnknownIsFailure) {
                        true if trx.commits => Code::NodeFail,
                        // Only this makes the server send a rollback fragment, whatever came of it.
                        true => Code::TrxFail,
                        false => definite,
                    };
                    self.answer(ticket, Answer::unordered(code));
                }
                if unknown && commits_stream && !self.leaving {
                    self.become_inconsistent(&format!(
                        "whether streaming transaction {id} was committed cannot be known any more"
                    ));
                }
            }
            Sent::Toi(conn) => {
                if let Some(Isolation::Held { ticket } | Isolation::Replicating { ticket }) =
                    self.isolations.remove(&conn)
                {
                    self.answer(ticket, Answer::unordered(definite));
                }
            }
            Sent::Rollback(trx) => self.lost_rollbacks.push(trx),
            Sent::Desync { ticket, .. } => self.answer(ticket, Answer::unordered(Code::TrxFail)),
            // Said again when the time comes.
            Sent::StateRequest => self.state_request_failed(true),
            Sent::Doubt
            | Sent::Donated
            | Sent::Joined
            | Sent::Synced
            | Sent::Cut
            | Sent::UnheardDesync
            | Sent::Resync
            | Sent::LeaveOut(_)
            | Sent::CaughtUp
            | Sent::Vote(_) => {}
        }
    }

    /// disconnect()
    pub(crate) fn disconnect(&mut self) {
        if matches!(self.stage, Stage::Closed | Stage::Final) {
            if self.is_at_rest() {
                self.out.push(Action::Closed);
            }
            return;
        }
        if !std::mem::replace(&mut self.leaving, true) {
            self.out.push(Action::Leave);
        }
        // Its server is on its way out: it could neither send nor receive.
        let dropped = self
            .works
            .remove(|task| matches!(task, Task::SstRequest | Task::Donate { .. }));
        for task in dropped {
            if matches!(task, Task::Donate { .. }) {
                self.order.unhold_last();
            }
        }
        self.wake_clients(false);
    }

    fn is_at_rest(&self) -> bool {
        self.works.is_idle()
    }

    /// Nobody may be left waiting for what will not come.
    fn wake_clients(&mut self, last_call: bool) {
        self.give_up_held();
        for (number, sent) in self.submissions.take_all() {
            // What is ordered before the group lets go is still applied here.
            if !last_call && self.must_be_decided(sent) {
                self.submissions.keep_undecided(number, sent);
            } else {
                self.give_up(sent, true);
            }
        }
        for ticket in self.causal.give_up_from(self.order.next_to_pass()) {
            self.answer_sync_wait(ticket, Code::TrxFail);
        }
        for ticket in std::mem::take(&mut self.pausing) {
            self.pauses = self.pauses.saturating_sub(1);
            self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
    }

    /// The group has let go: what was certified is still applied, then the last views.
    pub(crate) fn left(&mut self) {
        if matches!(self.stage, Stage::Closed | Stage::Final) {
            return;
        }
        if self.is_in_snapshot() && !self.leaving {
            // The server waits for nothing else, and has no database yet to go on with.
            return self.fatal("the node has to leave while its server waits for a state transfer");
        }
        self.leaving = true;
        self.primary = false;
        // Until now the cluster could still decide.
        self.abandon_disputes();
        self.wake_clients(true);
        self.backlog.clear();
        self.order.unhold_all();
        if self.is_arbitrator() {
            self.stage = Stage::Final;
            return self.closed(); // there is no server to be told
        }
        self.works
            .remove(|task| matches!(task, Task::SstRequest | Task::Donate { .. } | Task::Synced));
        if self.connected {
            let alone = self.non_primary_view(vec![self.my_member.clone()]);
            self.works
                .push(Task::View(alone), self.order.top(), Payload::None);
        }
        let last = self.non_primary_view(Vec::new());
        self.works
            .push(Task::View(last), self.order.top(), Payload::None);
        self.stage = Stage::Final;
    }

    /// This node's data differ from the others': it applies nothing more and leaves.
    pub(crate) fn become_inconsistent(&mut self, why: &str) {
        self.leave_inconsistent(&format!("Inconsistency detected: {why}"));
    }

    /// The same, with a text of its own in the log.
    pub(crate) fn leave_inconsistent(&mut self, text: &str) {
        if std::mem::replace(&mut self.inconsistent, true) {
            return;
        }
        self.log(Level::Error, text);
        self.forget_action();
        self.out.push(Action::MarkCorrupt);
        let skipped = self.works.remove(|task| match task {
            // Nobody is to be given these data.
            Task::Apply(_) | Task::Donate { .. } => true,
            Task::View(view) => view.primary,
            _ => false,
        });
        for task in &skipped {
            self.skip(task);
        }
        if !std::mem::replace(&mut self.leaving, true) {
            self.out.push(Action::Leave);
        }
        self.abandon_disputes();
        self.wake_clients(true);
    }

    /// Tells the group who may vote, when that has changed (rule 3).
    pub(crate) fn tell_joined(&mut self) {
        let Some(control) = &self.control else { return };
        let told = self.joined_told.iter().flatten().copied();
        let is_known = self.joined_told.is_some() && control.joined().eq(told);
        if !is_known && !matches!(self.stage, Stage::Closed | Stage::Final) {
            let members: Vec<_> = control.joined().collect();
            let position = control.position;
            self.joined_told = Some(members.clone());
            self.out.push(Action::SetJoined { position, members });
        }
    }

    /// Says what the order must know of this node: Joined, Synced, its desyncs.
    pub(crate) fn pursue_membership(&mut self, history: &dyn History) {
        if !self.primary || self.leaving || !matches!(self.stage, Stage::Active) || !self.may_say()
        {
            return;
        }
        self.settle_desyncs();
        self.settle_undecided();
        self.owed_donation();
        match self.my_state() {
            Some(NodeState::Joiner) if self.has_joined() && self.log_is_deep_enough(history) => {
                self.end_doubt();
                self.submit_once(Sent::Joined, &crate::message::Message::Joined);
            }
            Some(NodeState::Joined)
                if !self.abstains() && self.has_caught_up() && self.has_sent() =>
            {
                self.submit_once(Sent::Synced, &crate::message::Message::Synced);
            }
            Some(NodeState::Donor) if self.may_come_back() => {
                self.submit_once(Sent::CaughtUp, &crate::message::Message::CaughtUp);
            }
            _ => {}
        }
    }

    /// False for a while after the group has refused a submission.
    pub(crate) fn may_say(&self) -> bool {
        self.now_ms >= self.say_again_at_ms
    }

    pub(crate) fn submit_once(&mut self, sent: Sent, message: &crate::message::Message) {
        if self.may_say() && !self.submissions.is_in_flight(sent) {
            self.submit(sent, message);
        }
    }
}
