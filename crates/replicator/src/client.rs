//! Calls of client and applier threads about one transaction. They go to the executor and to the order, and the answers
//! come back.

use bytes::Bytes;
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, GroupAction, Level};
use crate::event::{ConnId, Owner, Ticket, TrxId};
use crate::executor::Entry;
use crate::flags;
use crate::replicator::Replicator;
use crate::submissions::{Held, Sent};
use crate::voting::Caller;
use crate::writeset::WriteSetDraft;

impl Replicator {
    /// Carries out certify(): the write-set goes to the order, and its delivery answers the call.
    pub(crate) fn certify(&mut self, ticket: Ticket, trx: TrxId, draft: WriteSetDraft) {
        if !self.may_write() || draft.is_too_long() {
            self.executor.refuse(trx);
            let code = match self.may_write() {
                true => Code::SizeExceeded,
                false => self.refusal(),
            };
            return self.answer(ticket, Answer::unordered(code));
        }
        if !self.rollbacks_are_sent() {
            return self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
        let large = draft.len_bytes() > self.context.options().large_bytes;
        let waits = large || !self.may_go();
        let commits = draft.flags() & flags::TRX_END != 0;
        if !self.executor.begin(trx, ticket, waits, commits) {
            return self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
        self.send_or_hold(Sent::Trx(trx), draft, waits);
        self.counters.send_queue.queued(self.submissions.waiting());
    }

    /// Returns the answer to a call that has certainly failed.
    pub(crate) fn refusal(&self) -> Code {
        match self.lifecycle.has_diverged() {
            true => Code::NodeFail,
            false => Code::ConnFail,
        }
    }

    fn send_or_hold(&mut self, sent: Sent, draft: WriteSetDraft, waits: bool) {
        if draft.len_bytes() > self.context.options().large_bytes {
            let spread = self.submissions.spread(sent, draft);
            self.out.push(spread);
        } else if waits {
            self.submissions.hold(Held { sent, draft })
        } else {
            self.replicate(sent, draft)
        }
    }

    /// Submits a write-set. The transaction holds all its locks.
    pub(crate) fn replicate(&mut self, sent: Sent, mut draft: WriteSetDraft) {
        let [keys, keys_bytes, data_bytes, other_bytes] = draft.sizes();
        self.counters.replicated += 1;
        self.counters.replicated_bytes += draft.len_bytes() as u64;
        self.counters.repl_keys += keys;
        self.counters.repl_keys_bytes += keys_bytes;
        self.counters.repl_data_bytes += data_bytes;
        self.counters.repl_other_bytes += other_bytes;
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

    /// Carries out commit_order_enter().
    pub(crate) fn commit_order_enter(&mut self, ticket: Ticket, owner: Owner) {
        match self.executor.enter_commit_order(ticket, owner) {
            Entry::Answered(answer) => self.answer(ticket, answer),
            Entry::Waits => {}
            Entry::Unknown(id) => {
                let text = format!("commit order asked for unknown transaction {id}");
                self.log(Level::Error, text);
                self.answer(ticket, Answer::unordered(Code::Ok));
            }
        }
    }

    /// Lets in the waiting callers that are next in commit order.
    pub(crate) fn grant_commit_order(&mut self) {
        while let Some((ticket, answer)) = self.executor.next_granted() {
            self.answer(ticket, answer);
        }
    }

    /// Carries out commit_order_leave().
    pub(crate) fn commit_order_leave(
        &mut self,
        ticket: Ticket,
        owner: Owner,
        error: Option<Bytes>,
    ) {
        let Some(seqno) = self.executor.seqno_of(owner) else {
            return self.answer(ticket, Answer::unordered(Code::Ok));
        };
        if let Some(error) = error {
            return self.dispute(seqno, &error, Caller::Commit(ticket));
        }
        self.executor.leave(seqno);
        self.check_success(seqno);
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// Carries out release().
    pub(crate) fn release(&mut self, ticket: Ticket, id: TrxId) {
        let answer = self.executor.release(id);
        self.answer(ticket, answer);
    }

    /// Carries out abort_certification().
    pub(crate) fn abort(
        &mut self,
        ticket: Ticket,
        bf_seqno: i64,
        victim: TrxId,
        is_executing: bool,
    ) {
        let aborted = (self.executor).abort(&self.context, bf_seqno, victim, is_executing);
        if aborted.is_sent && !planted(Mutant::VictimStaysExempt) {
            // The victim releases its locks, and a write-set that this node sends from now on may take them. Such a
            // write-set is no longer exempt from conflicts with the victim (rule 9d).
            self.submissions.raise_epoch();
        }
        if let Some((waiter, answer)) = aborted.waiter {
            let recalled = self.submissions.recall(Sent::Trx(victim)).into_iter();
            let recalls = recalled.map(|bulk| Action::Group(GroupAction::Recall { bulk }));
            self.out.extend(recalls);
            self.answer(waiter, answer);
        }
        self.answer(ticket, aborted.answer);
    }

    /// Carries out replay_trx().
    pub(crate) fn replay(&mut self, ticket: Ticket, id: TrxId) {
        if !self.executor.await_replay(id, ticket) {
            self.log(
                Level::Error,
                format!("transaction {id} has nothing to replay"),
            );
            self.answer(ticket, Answer::unordered(Code::TrxFail));
        }
    }

    /// Lets a transaction replay when all earlier seqnos have left commit order.
    pub(crate) fn grant_replay(&mut self) {
        while let Some((ticket, answer)) = self.executor.next_replay(&self.context) {
            self.answer(ticket, answer);
        }
    }

    /// Carries out to_execute_start().
    pub(crate) fn toi_start(&mut self, ticket: Ticket, conn: ConnId, mut draft: WriteSetDraft) {
        if !self.may_write() {
            return self.answer(ticket, Answer::unordered(self.refusal()));
        }
        if !self.rollbacks_are_sent() {
            return self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
        if draft.is_too_long() {
            return self.answer(ticket, Answer::unordered(Code::SizeExceeded));
        }
        draft.add_flags(flags::ISOLATION);
        let large = draft.len_bytes() > self.context.options().large_bytes;
        let waits = large || !self.may_go();
        self.executor.begin_action(conn, ticket, waits);
        self.send_or_hold(Sent::Toi(conn), draft, waits);
    }

    /// Lets the first own total-order action begin when everything before it is released.
    pub(crate) fn grant_isolation(&mut self) {
        let Some(granted) = self.executor.next_action() else {
            return;
        };
        if granted.is_executed {
            self.action_begins(granted.answer.gtid);
        }
        self.answer(granted.ticket, granted.answer);
    }

    /// Carries out to_execute_end().
    pub(crate) fn toi_end(&mut self, ticket: Ticket, conn: ConnId, error: Option<Bytes>) {
        let holding = self.executor.action_of(conn);
        if let (Some(seqno), Some(error)) = (holding, error) {
            return self.dispute(seqno, &error, Caller::Isolation(ticket, conn));
        }
        self.end_isolation(conn);
        if let Some(seqno) = holding {
            self.check_success(seqno);
        }
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// Ends an own total-order action.
    pub(crate) fn end_isolation(&mut self, conn: ConnId) {
        let ended = self.executor.end_action(conn);
        if let Some(ended) = ended.filter(|ended| ended.is_executed) {
            self.action_ended(ended.seqno);
        }
    }
}
