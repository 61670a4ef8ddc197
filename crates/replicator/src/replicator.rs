//! A node: its parts, and the way in and out. [`Replicator::handle`] hands an event to the parts that it concerns, and
//! then does everything that has become possible. The server's threads take work by [`Replicator::take_work`].
//!
//! A part owns its state. What needs several parts is done by a type that borrows just these: [`Clients`],
//! [`Outcomes`], [`Membership`], [`Joiner`]. Only the delivery of an entry (`replicator/delivery.rs`) and the beginning
//! and end of a connection (`replicator/connection.rs`) reach all of them.

mod connection;
mod delivery;
mod reporting;

use bytes::Bytes;
use trireme_group::{Incarnation, Position};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Code, HostAction, Level, Note};
use crate::action_queue::ActionQueue;
use crate::callers::Callers;
use crate::clients::Clients;
use crate::context::Context;
use crate::counters::Counters;
use crate::database::Database;
use crate::event::Event;
use crate::executor::Executor;
use crate::flow_control::{FlowControl, Request};
use crate::history::History;
use crate::intake::Intake;
use crate::joiner::{Joiner, Step};
use crate::lifecycle::Lifecycle;
use crate::log_reader::LogReader;
use crate::membership::Membership;
use crate::options::Options;
use crate::outcomes::Outcomes;
use crate::peer_message::PeerMessage;
use crate::retention::Retention;
use crate::state_transfer::{Place, StateTransfer};
use crate::submissions::Submissions;
use crate::voting::Voting;
use crate::work::{Task, Work};

/// A node. See the crate's documentation.
pub struct Replicator {
    context: Context,
    /// Actions of this call.
    out: ActionQueue,
    counters: Counters,

    // --- this connection
    transfer: StateTransfer,
    lifecycle: Lifecycle,
    database: Database,

    // --- the order
    intake: Intake,
    log_reader: LogReader,
    retention: Retention,
    executor: Executor,

    // --- own business
    submissions: Submissions,
    voting: Voting,
    callers: Callers,
    flow_control: FlowControl,
}

impl Replicator {
    /// Returns a node that is not connected.
    pub fn new(options: Options) -> Self {
        Replicator {
            context: Context::new(options),
            out: ActionQueue::default(),
            counters: Counters::default(),
            transfer: StateTransfer::closed(),
            lifecycle: Lifecycle::default(),
            database: Database::unknown(),
            intake: Intake::default(),
            log_reader: LogReader::default(),
            retention: Retention::default(),
            executor: Executor::new(),
            submissions: Submissions::default(),
            voting: Voting::default(),
            callers: Callers::default(),
            flow_control: FlowControl::default(),
        }
    }

    /// Takes in one event. `now_ms` never goes back. Appends actions to `out`; the caller must carry them out in order,
    /// before the next call.
    ///
    /// # Panics
    /// If an invariant is broken (for example, a seqno would pass commit order twice): going on would hang or split the
    /// cluster silently.
    pub fn handle(
        &mut self,
        now_ms: u64,
        event: Event,
        history: &dyn History,
        out: &mut Vec<Action>,
    ) {
        self.context.advance(now_ms);
        self.dispatch(event, history);
        self.settle(history);
        self.out.drain_into(out);
    }

    fn dispatch(&mut self, event: Event, history: &dyn History) {
        match event {
            Event::Connect(connect) => self.connect(*connect),
            Event::Found { history } => self.found(history),
            Event::Disconnect => self.disconnect(),
            Event::SetOptions(options) => self.context.set_options(options),
            // settle() does everything that is due.
            Event::Tick => {}

            Event::Delivered {
                position,
                delivery,
                in_primary,
            } => {
                self.lifecycle.group_is_primary(in_primary);
                self.delivered(position, delivery);
            }
            Event::Passed { position } => self.intake.note_delivered(position),
            Event::NonPrimary { component } => self.non_primary(component),
            Event::Failed { id, fate } => self.outcomes().failed(id, fate),
            Event::Connected(connected) => self.context.set_connected(connected),
            Event::Spread { bulk } => {
                if let Some(held) = self.clients().is_spread(bulk) {
                    self.outcomes().drop_held(&held);
                }
            }
            Event::ReadPoint { token, position } => {
                self.callers.read_point(token, position);
            }
            Event::ReadFailed { token } => self.clients().read_failed(token),
            Event::LogEnds => self.read_back_all(history),
            Event::Reset(checkpoint) => self.reset(&checkpoint),
            Event::Left => self.left(),
            Event::PeerMessage {
                from,
                bytes,
                of_own_branch,
            } => self.peer_message(from, bytes, of_own_branch, history),
            Event::Unserved { to, seqno } => self.membership().unserved(to, seqno),

            Event::Certify {
                ticket, trx, draft, ..
            } => self.clients().certify(ticket, trx, draft),
            Event::CommitOrderEnter { ticket, owner } => {
                self.clients().commit_order_enter(ticket, owner)
            }
            Event::CommitOrderLeave {
                ticket,
                owner,
                error,
            } => self.outcomes().commit_order_leave(ticket, owner, error),
            Event::Release { ticket, trx } => self.clients().release(ticket, trx),
            Event::Abort {
                ticket,
                bf_seqno,
                victim,
                executing,
            } => self.clients().abort(ticket, bf_seqno, victim, executing),
            Event::Replay { ticket, trx } => self.clients().replay(ticket, trx),
            Event::ReplayFailed { ticket, trx } => self.outcomes().replay_failed(ticket, trx),
            Event::Rollback { ticket, trx } => self.clients().rollback(ticket, trx),
            Event::SyncWait { ticket, upto } => self.clients().sync_wait(ticket, upto),
            Event::CancelTicket { ticket } => self.clients().cancel_ticket(ticket),
            Event::ToiStart {
                ticket,
                conn,
                draft,
            } => self.clients().toi_start(ticket, conn, draft),
            Event::ToiEnd {
                ticket,
                conn,
                error,
            } => self.outcomes().toi_end(ticket, conn, error),
            Event::Pause { ticket } => self.clients().pause(ticket),
            Event::Resume { ticket } => self.clients().resume(ticket),
            Event::Desync { ticket } => self.membership().desync(ticket),
            Event::Resync { ticket } => self.membership().resync(ticket),
            Event::SstSent {
                ticket,
                gtid,
                rcode,
            } => self.membership().sst_sent(ticket, gtid, rcode),
            Event::SstReceived {
                ticket,
                gtid,
                rcode,
            } => self.joiner().sst_received(ticket, gtid, rcode),

            Event::WorkDone { work, ok } => self.outcomes().work_done(work, ok),
            Event::SstRequested { work, request } => self.joiner().sst_requested(work, request),
            Event::Donated { work, ok } => self.membership().donated(work, ok),
        }
    }

    fn peer_message(
        &mut self,
        from: Incarnation,
        bytes: Bytes,
        of_own_branch: bool,
        history: &dyn History,
    ) {
        let now_ms = self.context.now_ms();
        let message = match PeerMessage::decode(bytes) {
            Ok(message) => message,
            Err(error) => {
                let text = || format!("message of {from} cannot be read: {error}");
                return self.out.complain(Level::Warn, from, now_ms, text);
            }
        };
        if message.is_of_members() && !self.context.is_member(from) {
            // A joiner that this node does not know yet asks another member, or asks again.
            if let PeerMessage::SnapshotRequest { round, .. } = message {
                self.membership().refuse_control_state(from, round);
            }
            return;
        }
        let of_own_branch = of_own_branch || planted(Mutant::OtherBranchsEntriesTaken);
        if message.has_entries() && !of_own_branch {
            // It asks another member, or this one again: this one may be about to commit the override, or to yield.
            let text =
                || format!("{from} is on a branch without an override: its entries do not count");
            return self.out.complain(Level::Info, from, now_ms, text);
        }
        match message {
            PeerMessage::SnapshotRequest { round, at_least } => {
                (self.membership()).serve_control_state(from, round, at_least);
            }
            PeerMessage::SnapshotChunk(chunk) => self.joiner().control_state_part(from, &chunk),
            PeerMessage::SnapshotRefused { round } => {
                self.joiner().control_state_refused(from, round);
            }
            PeerMessage::IstPull { from: seqno } => {
                self.membership().pulled(from, seqno, 0, history);
            }
            PeerMessage::IstPullPart {
                from: seqno,
                offset,
            } => self.membership().pulled(from, seqno, offset, history),
            PeerMessage::IstChunk {
                from: seqno,
                records,
            } => self.joiner().ist_chunk(from, seqno, &records),
            PeerMessage::IstPart(part) => self.joiner().ist_part(from, &part),
            PeerMessage::FlowStop => self.flow_control.requested(from, Request::Stop, now_ms),
            PeerMessage::FlowPace { per_second } => {
                let pace = Request::Pace { per_second };
                self.flow_control.requested(from, pace, now_ms);
            }
            PeerMessage::FlowContinue => self.flow_control.continued(from),
        }
    }

    /// Does everything that has become possible.
    fn settle(&mut self, history: &dyn History) {
        self.log_reader.watch(self.context.now_ms());
        self.process_intake(history);
        self.pursue_transfer(history);
        self.outcomes().pursue_votes();
        let mut clients = self.clients();
        clients.grant_commit_order();
        clients.grant_isolation();
        clients.grant_replay();
        clients.rollbacks_are_sent();
        clients.ask_reads();
        clients.grant_reads();
        clients.grant_pause();
        self.membership().watch_flow();
        while let Some(held) = self.clients().send_held() {
            self.outcomes().drop_held(&held);
        }
        let mut membership = self.membership();
        membership.charge_flow();
        membership.report_applied();
        self.tell_joined();
        let is_full = self.log_reader.is_full(self.context.options());
        self.intake.shed(is_full);
        self.read_back_next(history);
        self.tell_state();
        self.announce();
    }

    /// Advances the running transfer, and this node's state in the order.
    fn pursue_transfer(&mut self, history: &dyn History) {
        let mut joiner = self.joiner();
        joiner.tell_progress();
        joiner.pull_control_state();
        if let Some(sender) = joiner.use_control_state() {
            self.begin_transfer(Some(sender));
            self.process_intake(history);
        }
        let mut joiner = self.joiner();
        joiner.review_donors();
        joiner.retry_state_request();
        let mut step = Step::Taken;
        while step == Step::Taken {
            step = joiner.step(history);
        }
        self.outcomes().review_given_up_commit();
        if step == Step::Over {
            self.finish_transfer();
        }
        self.membership().pursue(history);
    }

    /// Tells the group the members with a vote, when they have changed (rule 3).
    fn tell_joined(&mut self) {
        if let Some(control) = self.context.control().filter(|_| !self.transfer.is_over()) {
            self.out.tell_joined(control);
        }
    }

    /// Tells the host the callbacks that have become ready for the server's threads.
    fn announce(&mut self) {
        if self.holds_server_still() {
            return self.executor.hold_still();
        }
        let announced = self.executor.announce();
        if announced.begins_to_apply {
            self.out.push(Action::Note(Note::Applying));
        }
        if let Some(gtid) = announced.action {
            self.out.action_begins(gtid);
        }
        if announced.wake > 0 {
            self.out
                .push(Action::Host(HostAction::WakeAppliers { n: announced.wake }));
        }
    }

    /// Reads back the payloads that the appliers need next.
    fn read_back_next(&mut self, history: &dyn History) {
        (self.log_reader).read_next(&self.context, &mut self.executor, history, &mut self.out);
    }

    /// Reads back all missing payloads, because the log begins anew.
    fn read_back_all(&mut self, history: &dyn History) {
        (self.log_reader).read_all(&self.context, &mut self.executor, history, &mut self.out);
    }

    /// Returns the next callback for a recv() thread; None if there is none now (wait for
    /// [`HostAction::WakeAppliers`]).
    pub fn take_work(&mut self) -> Option<Work> {
        if self.is_closed() {
            let code = if !self.lifecycle.exit() {
                Code::ConnFail
            } else {
                Code::Ok
            };
            return Some(Work {
                id: 0,
                task: Task::Exit { code },
            });
        }
        if self.holds_server_still() {
            return None;
        }
        self.executor.take()
    }

    /// Returns true if no more callbacks will come for the server: recv() threads get Exit.
    fn is_closed(&self) -> bool {
        match self.transfer.place() {
            Place::Closed => true,
            Place::Final => self.executor.queue().is_idle(),
            _ => false,
        }
    }

    fn holds_server_still(&self) -> bool {
        let place = self.transfer.place();
        self.callers.holds_server_still(place, &self.lifecycle)
    }

    /// Notes the group's commit point; None: the group does not know it. It may be beyond the last delivery here, if
    /// this node's log lacks entries, or if they are still being read from the log. Returns true if it is known again:
    /// then the node must check its state.
    pub fn note_commit(&mut self, position: Option<Position>) -> bool {
        self.intake.note_commit(position)
    }

    // --- the parts, as they are lent

    fn clients(&mut self) -> Clients<'_> {
        Clients {
            context: &self.context,
            lifecycle: &self.lifecycle,
            transfer: &self.transfer,
            retention: &self.retention,
            voting: &self.voting,
            out: &mut self.out,
            counters: &mut self.counters,
            executor: &mut self.executor,
            submissions: &mut self.submissions,
            callers: &mut self.callers,
            flow_control: &mut self.flow_control,
        }
    }

    fn outcomes(&mut self) -> Outcomes<'_> {
        Outcomes {
            context: &self.context,
            retention: &self.retention,
            out: &mut self.out,
            lifecycle: &mut self.lifecycle,
            transfer: &mut self.transfer,
            database: &mut self.database,
            executor: &mut self.executor,
            submissions: &mut self.submissions,
            voting: &mut self.voting,
            callers: &mut self.callers,
            flow_control: &mut self.flow_control,
        }
    }

    fn membership(&mut self) -> Membership<'_> {
        Membership {
            context: &self.context,
            intake: &self.intake,
            out: &mut self.out,
            lifecycle: &mut self.lifecycle,
            transfer: &mut self.transfer,
            database: &mut self.database,
            executor: &mut self.executor,
            submissions: &mut self.submissions,
            retention: &mut self.retention,
            flow_control: &mut self.flow_control,
        }
    }

    fn joiner(&mut self) -> Joiner<'_> {
        Joiner {
            callers: &self.callers,
            context: &mut self.context,
            out: &mut self.out,
            counters: &mut self.counters,
            lifecycle: &mut self.lifecycle,
            transfer: &mut self.transfer,
            database: &mut self.database,
            intake: &mut self.intake,
            log_reader: &mut self.log_reader,
            executor: &mut self.executor,
            submissions: &mut self.submissions,
            voting: &mut self.voting,
        }
    }

    // --- for scenarios

    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    #[cfg(test)]
    pub(crate) fn context_mut(&mut self) -> &mut Context {
        &mut self.context
    }

    /// Makes all that members have told this node its own knowledge: an override may fork the history below.
    #[cfg(test)]
    pub(crate) fn borrow_nothing(&mut self) {
        self.database.borrow_nothing();
    }

    #[cfg(test)]
    pub(crate) fn become_inconsistent(&mut self, why: &str) {
        self.outcomes().become_inconsistent(why);
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn transfer(&self) -> &StateTransfer {
        &self.transfer
    }
}
