//! The way in and out of a node. [`Replicator::handle`] hands an event to its part, and then does everything that has
//! become possible. The server's threads take work by [`Replicator::take_work`].

use crate::action::{Action, Code};
use crate::event::Event;
use crate::history::History;
use crate::replicator::Replicator;
use crate::state_transfer::Place;
use crate::work::{Task, Work};

impl Replicator {
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

            Event::Delivered { position, delivery } => self.delivered(position, delivery),
            Event::Passed { position } => self.intake.note_delivered(position),
            Event::NonPrimary { component } => self.non_primary(component),
            Event::Failed { id, fate } => self.failed(id, fate),
            Event::Spread { bulk } => self.is_spread(bulk),
            Event::ReadPoint { token, position } => {
                self.callers.read_point(token, position);
            }
            Event::ReadFailed { token } => {
                if self.callers.read_failed(token) {
                    self.answer_sync_wait(token, Code::TrxFail);
                }
            }
            Event::LogEnds => self.fetch_all(history),
            Event::Reset(checkpoint) => self.reset(&checkpoint),
            Event::Left => self.left(),
            Event::PeerMessage { from, bytes } => self.peer_message(from, bytes, history),
            Event::Unserved { to, seqno } => self.unserved(to, seqno),

            Event::Certify {
                ticket,
                trx,
                conn: _,
                draft,
            } => self.certify(ticket, trx, draft),
            Event::CommitOrderEnter { ticket, owner } => self.commit_order_enter(ticket, owner),
            Event::CommitOrderLeave {
                ticket,
                owner,
                error,
            } => self.commit_order_leave(ticket, owner, error),
            Event::Release { ticket, trx } => self.release(ticket, trx),
            Event::Abort {
                ticket,
                bf_seqno,
                victim,
                executing,
            } => self.abort(ticket, bf_seqno, victim, executing),
            Event::Replay { ticket, trx } => self.replay(ticket, trx),
            Event::Rollback { ticket, trx } => self.rollback(ticket, trx),
            Event::SyncWait { ticket, upto } => self.sync_wait(ticket, upto),
            Event::CancelTicket { ticket } => self.cancel_ticket(ticket),
            Event::ToiStart {
                ticket,
                conn,
                draft,
            } => self.toi_start(ticket, conn, draft),
            Event::ToiEnd {
                ticket,
                conn,
                error,
            } => self.toi_end(ticket, conn, error),
            Event::Pause { ticket } => self.pause(ticket),
            Event::Resume { ticket } => self.resume(ticket),
            Event::Desync { ticket } => self.desync(ticket),
            Event::Resync { ticket } => self.resync(ticket),
            Event::SstSent {
                ticket,
                gtid,
                rcode,
            } => self.sst_sent(ticket, gtid, rcode),
            Event::SstReceived {
                ticket,
                gtid,
                rcode,
            } => self.sst_received(ticket, gtid, rcode),

            Event::WorkDone { work, ok } => self.work_done(work, ok),
            Event::SstRequested { work, request } => self.sst_requested(work, request),
            Event::Donated { work, ok } => self.donated(work, ok),
        }
    }

    /// Does everything that has become possible.
    fn settle(&mut self, history: &dyn History) {
        self.log_reader.watch(self.context.now_ms());
        self.process_intake(history);
        self.pursue_state(history);
        self.pursue_votes();
        self.grant_commit_order();
        self.grant_isolation();
        self.grant_replay();
        self.send_lost_rollbacks();
        self.ask_reads();
        self.grant_reads();
        self.grant_pause();
        self.watch_flow();
        self.report_applied();
        self.tell_joined();
        let is_full = self.log_reader.is_full(self.context.options());
        self.intake.shed(is_full);
        self.fetch_works(history);
        self.tell_state();
        self.announce();
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
        if self.is_held_still() {
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
}
