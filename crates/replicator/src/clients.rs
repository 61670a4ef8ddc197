//! The calls of the server's threads about transactions and total-order actions. They go to the executor and to the
//! order, and the answers come back. `clients/waiting.rs` has the calls that wait for the whole node.

mod waiting;

use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, GroupAction, Level};
use crate::action_queue::ActionQueue;
use crate::callers::Callers;
use crate::context::Context;
use crate::counters::Counters;
use crate::event::{ConnId, Owner, Ticket, TrxId};
use crate::executor::{Entry, Executor, ReplayCause};
use crate::flags;
use crate::flow_control::FlowControl;
use crate::lifecycle::Lifecycle;
use crate::retention::Retention;
use crate::state_transfer::StateTransfer;
use crate::submissions::{Held, Sent, Submissions};
use crate::voting::Voting;
use crate::writeset::WriteSetDraft;

/// The parts that serve the calls of the server's threads.
pub(crate) struct Clients<'a> {
    pub(crate) context: &'a Context,
    pub(crate) lifecycle: &'a Lifecycle,
    pub(crate) transfer: &'a StateTransfer,
    pub(crate) retention: &'a Retention,
    pub(crate) voting: &'a Voting,
    pub(crate) out: &'a mut ActionQueue,
    pub(crate) counters: &'a mut Counters,
    pub(crate) executor: &'a mut Executor,
    pub(crate) submissions: &'a mut Submissions,
    pub(crate) callers: &'a mut Callers,
    pub(crate) flow_control: &'a mut FlowControl,
}

impl Clients<'_> {
    fn may_write(&self) -> bool {
        (self.lifecycle).may_write(self.context, self.transfer)
    }

    fn refuse(&mut self, ticket: Ticket, code: Code) {
        self.out.answer(ticket, Answer::unordered(code));
    }

    // --- replication

    /// Carries out certify(): the write-set goes to the order, and its delivery answers the call.
    pub(crate) fn certify(&mut self, ticket: Ticket, trx: TrxId, draft: WriteSetDraft) {
        if !self.may_write() || draft.is_too_long() {
            self.executor.refuse(trx);
            let code = match self.may_write() {
                true => Code::SizeExceeded,
                false => self.lifecycle.refusal(),
            };
            return self.refuse(ticket, code);
        }
        if !self.rollbacks_are_sent() {
            return self.refuse(ticket, Code::ConnFail);
        }
        let waits = self.is_large(&draft) || !self.may_go();
        let commits = draft.flags() & flags::TRX_END != 0;
        if !self.executor.begin(trx, ticket, waits, commits) {
            return self.refuse(ticket, Code::ConnFail);
        }
        self.send_or_hold(Sent::Trx(trx), draft, waits);
        self.counters.send_queue.queued(self.submissions.waiting());
    }

    /// Carries out to_execute_start().
    pub(crate) fn toi_start(&mut self, ticket: Ticket, conn: ConnId, mut draft: WriteSetDraft) {
        if !self.may_write() {
            return self.refuse(ticket, self.lifecycle.refusal());
        }
        if !self.rollbacks_are_sent() {
            return self.refuse(ticket, Code::ConnFail);
        }
        if draft.is_too_long() {
            return self.refuse(ticket, Code::SizeExceeded);
        }
        draft.add_flags(flags::ISOLATION);
        let waits = self.is_large(&draft) || !self.may_go();
        if !self.executor.begin_action(conn, ticket, waits) {
            let text = format!("connection {conn} starts a second total-order action within one");
            self.out.log(Level::Error, text);
            return self.refuse(ticket, Code::ConnFail);
        }
        self.send_or_hold(Sent::Toi(conn), draft, waits);
    }

    fn is_large(&self, draft: &WriteSetDraft) -> bool {
        draft.len_bytes() > self.context.options().large_bytes
    }

    fn send_or_hold(&mut self, sent: Sent, draft: WriteSetDraft, waits: bool) {
        if self.is_large(&draft) {
            self.out.push(self.submissions.spread(sent, draft));
        } else if waits {
            self.submissions.hold(Held { sent, draft })
        } else {
            self.replicate(sent, draft)
        }
    }

    /// Submits a write-set. The transaction holds all its locks.
    fn replicate(&mut self, sent: Sent, mut draft: WriteSetDraft) {
        self.counters.replicated(&draft);
        let previous = match sent {
            Sent::Trx(trx) => self.executor.previous_fragment(trx),
            _ => -1,
        };
        if previous >= 0 && planted(Mutant::FirstFragmentRepeated) {
            draft.add_flags(flags::TRX_START);
        }
        let last_seen = self.executor.last_seen(previous);
        let submit = (self.submissions).write_set(sent, draft, last_seen, previous);
        self.out.push(submit);
    }

    // --- own write-sets that wait to be submitted

    /// Submits the write-set of a bulk payload that a majority holds, as any other write-set. Returns it, if it must be
    /// dropped.
    pub(crate) fn is_spread(&mut self, bulk: u64) -> Option<Held> {
        let held = self.submissions.is_spread(bulk)?;
        if !self.may_write() {
            return Some(held);
        }
        match self.may_go() {
            true => self.let_go(held),
            false => self.submissions.hold(held),
        }
        None
    }

    /// Sends the write-sets that waited here, as far as no peer requests more waiting. Returns one that must be
    /// dropped: call it until None.
    pub(crate) fn send_held(&mut self) -> Option<Held> {
        while self.submissions.is_any_held() && !self.flow_control.is_stopped() {
            let now_ms = self.context.now_ms();
            if self.may_write() && !(self.rollbacks_are_sent() && self.flow_control.admit(now_ms)) {
                return None;
            }
            match self.submissions.next_held() {
                Some(held) if self.may_write() => self.let_go(held),
                dropped => return dropped,
            }
        }
        None
    }

    fn let_go(&mut self, held: Held) {
        // When a held transaction is forgotten, it is taken from the list as well (`abort`).
        let is_sent = match held.sent {
            Sent::Trx(id) => self.executor.send(id),
            Sent::Toi(conn) => self.executor.send_action(conn),
            _ => false, // nothing else is held
        };
        if is_sent {
            self.replicate(held.sent, held.draft);
        }
    }

    /// Returns true if a write-set that comes now may go at once; others that wait go first.
    fn may_go(&mut self) -> bool {
        !self.submissions.is_any_held() && self.flow_control.admit(self.context.now_ms())
    }

    // --- the order

    /// Carries out commit_order_enter(). An applier that has failed may ask when its place is used up: as its thread ends,
    /// it rolls back (server-contract-traps.md#an-appliers-handle-outlasts-its-callback).
    pub(crate) fn commit_order_enter(&mut self, ticket: Ticket, owner: Owner) {
        let is_over = |seqno| self.lifecycle.has_diverged() && self.executor.has_passed(seqno);
        if matches!(owner, Owner::Applied(seqno) if is_over(seqno)) {
            return self.refuse(ticket, Code::NodeFail);
        }
        match self.executor.enter_commit_order(ticket, owner) {
            Entry::Answered(answer) => self.out.answer(ticket, answer),
            Entry::Waits => {}
            Entry::Unknown(id) => {
                let text = format!("commit order asked for unknown transaction {id}");
                self.out.log(Level::Error, text);
                self.out.answer(ticket, Answer::unordered(Code::Ok));
            }
        }
    }

    /// Lets in the waiting callers that are next in commit order.
    pub(crate) fn grant_commit_order(&mut self) {
        while let Some((ticket, answer)) = self.executor.next_granted() {
            self.out.answer(ticket, answer);
        }
    }

    /// Carries out release().
    pub(crate) fn release(&mut self, ticket: Ticket, id: TrxId) {
        self.out.answer(ticket, self.executor.release(id));
    }

    /// Carries out abort_certification().
    pub(crate) fn abort(
        &mut self,
        ticket: Ticket,
        bf_seqno: i64,
        victim: TrxId,
        is_executing: bool,
    ) {
        let aborted = (self.executor).abort(self.context, bf_seqno, victim, is_executing);
        if aborted.is_sent && !planted(Mutant::VictimStaysExempt) {
            // The victim releases its locks, and a write-set that this node sends from now on may take them. Such a
            // write-set is no longer exempt from conflicts with the victim (rule 9d).
            self.submissions.raise_epoch();
        }
        if let Some((waiter, answer)) = aborted.waiter {
            let recalled = self.submissions.recall(Sent::Trx(victim)).into_iter();
            let recalls = recalled.map(|bulk| Action::Group(GroupAction::Recall { bulk }));
            self.out.extend(recalls);
            self.out.answer(waiter, answer);
        }
        self.out.answer(ticket, aborted.answer);
    }

    /// Carries out replay_trx().
    pub(crate) fn replay(&mut self, ticket: Ticket, id: TrxId) {
        match self.executor.await_replay(id, ticket) {
            Some(ReplayCause::Abort) => {} // the abort has raised the epoch
            // As in an abort: its locks are free, and a write-set that this node sends from now on may take them.
            Some(ReplayCause::Failure) => self.submissions.raise_epoch(),
            None => {
                let text = format!("transaction {id} has nothing to replay");
                self.out.log(Level::Error, text);
                self.out.answer(ticket, Answer::unordered(Code::TrxFail));
            }
        }
    }

    /// Lets a transaction replay when all earlier seqnos have left commit order.
    pub(crate) fn grant_replay(&mut self) {
        while let Some((ticket, answer)) = self.executor.next_replay(self.context) {
            self.out.answer(ticket, answer);
        }
    }

    /// Lets the first own total-order action begin when everything before it is released.
    pub(crate) fn grant_isolation(&mut self) {
        let Some(granted) = self.executor.next_action() else {
            return;
        };
        if granted.is_executed {
            self.out.action_begins(granted.answer.gtid);
        }
        self.out.answer(granted.ticket, granted.answer);
    }

    // --- streaming transactions that are rolled back

    /// Carries out rollback(). It never waits, not even for flow control (server-contract.md#rollback). The order keeps
    /// the submissions of a node in sequence, so the rollback fragment comes behind all fragments of its transaction
    /// (rule 9).
    pub(crate) fn rollback(&mut self, ticket: Ticket, trx: TrxId) {
        self.executor.end_stream(trx);
        if self.may_write() {
            let submit = self.submissions.rollback(trx, self.executor.low());
            self.out.extend(submit);
        } else if planted(Mutant::RollbackLeftToServer) {
            return self.refuse(ticket, Code::TrxFail);
        } else {
            // A server that is told TRX_FAIL sends it when it is synced. That is too late for a donor, which may be one
            // before it hears so: a joiner begins to write after the donor's report (rule 7).
            self.submissions.lose_rollback(trx);
        }
        self.out.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// Sends the lost rollback fragments. Returns true if a write-set or total-order action may follow.
    pub(crate) fn rollbacks_are_sent(&mut self) -> bool {
        let may_write = || (self.lifecycle).may_write(self.context, self.transfer);
        let (now_ms, low) = (self.context.now_ms(), self.executor.low());
        (self.submissions).rollbacks_are_sent(now_ms, may_write, low, self.out)
    }
}
