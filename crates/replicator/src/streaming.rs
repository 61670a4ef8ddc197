//! Streaming replication: a transaction that reaches the others in fragments, before it commits.
//!
//! A fragment is an ordinary entry with flags: the first has TRX_START, the last TRX_END. To the server of
//! every other node they are one transaction, which it keeps open ("streaming applier") until the last
//! fragment, a rollback fragment, or a view that closes it.

use trireme_certification::Seqno;
use trireme_group::{Configuration, Incarnation, SubmissionId};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, GroupAction};
use crate::control::Control;
use crate::event::{Ticket, TrxId};
use crate::message::Message;
use crate::replicator::Replicator;
use crate::submissions::Sent;
use crate::writeset::WriteSet;

impl Replicator {
    /// rollback(): never waits, not for flow control either (server-contract.md#rollback). The order keeps the
    /// submissions of a node in sequence, so it comes behind all fragments of its transaction (rule 9).
    pub(crate) fn rollback(&mut self, ticket: Ticket, trx: TrxId) {
        self.executor.end_stream(trx);
        if self.may_write() {
            self.send_rollback(trx);
        } else if planted(Mutant::RollbackLeftToServer) {
            return self.answer(ticket, Answer::unordered(Code::TrxFail));
        } else {
            // A server that is told TRX_FAIL sends it when it is synced. That is too late for a donor, who may be
            // one before it was told so: a joiner writes behind the donor's word (rule 7).
            self.submissions.lose_rollback(trx);
        }
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    fn send_rollback(&mut self, trx: TrxId) {
        let submit = self.submissions.rollback(trx, self.executor.low());
        self.out.extend(submit);
    }

    /// Rollback fragments that could not be sent, or were let go of with the majority, whatever became of them: the view that follows need not
    /// close its transaction, and one rollback too many does no harm. Before any write-set, which may
    /// hold the locks of these transactions.
    pub(crate) fn send_lost_rollbacks(&mut self) {
        if self.may_write() {
            let (now_ms, low) = (self.context.now_ms(), self.executor.low());
            let rollbacks = self.submissions.lost_rollbacks(now_ms, low);
            self.out.extend(rollbacks);
        }
    }

    /// True if a write-set or total-order action may follow: none overtakes a lost rollback (rule 7).
    pub(crate) fn rollbacks_are_sent(&mut self) -> bool {
        self.send_lost_rollbacks();
        !self.submissions.has_lost_rollbacks()
    }

    /// True if this joiner may write: it has what was ordered before its transfer was over, and its donor
    /// is done. A state lacks the fragments that its donor abandoned, so nothing here holds the rows that
    /// they lock elsewhere. Their rollback comes before the donor's word; without the donor, the view
    /// closes its transactions (rule 7).
    pub(crate) fn has_joined(&self) -> bool {
        let members = self
            .context
            .control()
            .into_iter()
            .flat_map(|c| c.members.values());
        let is_given = members
            .into_iter()
            .any(|m| m.donates_to == Some(self.context.me()));
        let waits = is_given && !planted(Mutant::JoinsBeforeDonated);
        self.executor.low() >= self.transfer.joined_at() && !waits
    }

    /// Entries that are ordered up to here may complete the state that was sent to this joiner.
    pub(crate) fn state_is_whole(&mut self) {
        if let Some(seqno) = self.context.seqno() {
            self.transfer.state_is_whole(seqno);
        }
    }

    /// Asks the group for the points of reads that waited for own submissions.
    pub(crate) fn ask_reads(&mut self) {
        let submissions = &self.submissions;
        for ticket in self.reads.take_due(|number| submissions.has(number)) {
            self.out
                .push(Action::Group(GroupAction::Read { token: ticket }));
        }
    }

    /// True for a fragment of this very process that nobody waits for: its client was told that it
    /// failed. The others have applied it, and undo it with the rollback fragment that follows; here
    /// there is nothing to undo (rule 7).
    pub(crate) fn is_abandoned_fragment(&self, id: SubmissionId, write_set: &WriteSet) -> bool {
        let is_own = id.incarnation == self.context.me() && write_set.is_fragment();
        is_own && !planted(Mutant::AbandonedFragmentApplied)
    }

    /// True if its client must know what becomes of it, though the group cannot say: the last fragment of
    /// a streaming transaction cannot be applied here without the others, which its client holds. It
    /// waits until this is decided, or nothing more is applied (rule 7).
    pub(crate) fn must_be_decided(&self, sent: Sent) -> bool {
        let Sent::Trx(trx) = sent else {
            return false;
        };
        self.executor.commits_stream(trx) && !planted(Mutant::UndecidedCommitFails)
    }

    /// Makes the order tell what became of undecided submissions: whatever comes after them.
    pub(crate) fn settle_undecided(&mut self) {
        if self.submissions.has_undecided() {
            let low = self.executor.low();
            self.submit_once(Sent::Cut, &Message::Cut(low));
        }
    }
}

impl Control {
    /// True if the servers have closed the streaming transactions of `origin` at a view that it had
    /// not seen when it sent this. A fragment that comes after all would be part of a transaction
    /// here, and of none there; it fails everywhere. The servers close them when their origin is no
    /// member, and all of them when the membership is that of the view before.
    pub(crate) fn stream_was_closed(&self, origin: Incarnation, last_seen: Seqno) -> bool {
        let mut views = self.views.iter().rev().peekable();
        while let Some((seqno, view)) = views.next() {
            if *seqno <= last_seen {
                return false;
            }
            // The views before the oldest that is remembered are not known.
            let closes_all = views.peek().is_none_or(|(_, before)| is_same(view, before));
            if closes_all || view.index_of(origin).is_none() {
                return !planted(Mutant::ClosedStreamGoesOn);
            }
        }
        false
    }
}

/// The same processes with data.
pub(crate) fn is_same(view: &Configuration, before: &Configuration) -> bool {
    let [here, there] =
        [view, before].map(|view| view.data_members().map(|member| member.incarnation));
    here.eq(there)
}
