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
    /// Carries out rollback(). It never waits, not even for flow control (server-contract.md#rollback). The order keeps
    /// the submissions of a node in sequence, so the rollback fragment comes behind all fragments of its transaction
    /// (rule 9).
    pub(crate) fn rollback(&mut self, ticket: Ticket, trx: TrxId) {
        self.executor.end_stream(trx);
        if self.may_write() {
            self.send_rollback(trx);
        } else if planted(Mutant::RollbackLeftToServer) {
            return self.answer(ticket, Answer::unordered(Code::TrxFail));
        } else {
            // A server that is told TRX_FAIL sends it when it is synced. That is too late for a donor, which may be one
            // before it hears so: a joiner begins to write after the donor's report (rule 7).
            self.submissions.lose_rollback(trx);
        }
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    fn send_rollback(&mut self, trx: TrxId) {
        let submit = self.submissions.rollback(trx, self.executor.low());
        self.out.extend(submit);
    }

    /// Sends the rollback fragments that could not be sent, or that the group let go of when it lost the majority,
    /// whatever their fate. The next view may leave their transactions open, and one rollback too many does no harm.
    /// They go before any write-set, which may hold the locks of these transactions.
    pub(crate) fn send_lost_rollbacks(&mut self) {
        if self.may_write() {
            let (now_ms, low) = (self.context.now_ms(), self.executor.low());
            let rollbacks = self.submissions.lost_rollbacks(now_ms, low);
            self.out.extend(rollbacks);
        }
    }

    /// Returns true if a write-set or total-order action may follow: none overtakes a lost rollback (rule 7).
    pub(crate) fn rollbacks_are_sent(&mut self) -> bool {
        self.send_lost_rollbacks();
        !self.submissions.has_lost_rollbacks()
    }

    /// Returns true if this joiner may write: it has the entries that were ordered before its transfer ended, and its
    /// donor has finished. A state lacks the fragments that its donor abandoned, so nothing here holds the rows that
    /// they lock elsewhere. Their rollback comes before the donor's report; without the donor, the view closes its
    /// transactions (rule 7).
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

    /// Notes that entries ordered up to here may complete the state that was sent to this joiner.
    pub(crate) fn state_is_whole(&mut self) {
        if let Some(seqno) = self.context.seqno() {
            self.transfer.state_is_whole(seqno);
        }
    }

    /// Requests the read points for reads that waited for own submissions.
    pub(crate) fn ask_reads(&mut self) {
        let submissions = &self.submissions;
        for ticket in self
            .callers
            .take_due_reads(|number| submissions.has(number))
        {
            self.out
                .push(Action::Group(GroupAction::Read { token: ticket }));
        }
    }

    /// Returns true for a fragment of this very process whose client no longer waits: the client was told that it
    /// failed. The others have applied it, and undo it with the rollback fragment that follows; here there is nothing
    /// to undo (rule 7).
    pub(crate) fn is_abandoned_fragment(&self, id: SubmissionId, write_set: &WriteSet) -> bool {
        let is_own = id.incarnation == self.context.me() && write_set.is_fragment();
        is_own && !planted(Mutant::AbandonedFragmentApplied)
    }

    /// Returns true if the client must learn the submission's fate, although the group does not know it. The last
    /// fragment of a streaming transaction cannot be applied here without the earlier ones, which its client holds. The
    /// client waits until the order decides, or until nothing more is applied (rule 7).
    pub(crate) fn must_be_decided(&self, sent: Sent) -> bool {
        let Sent::Trx(trx) = sent else {
            return false;
        };
        self.executor.commits_stream(trx) && !planted(Mutant::UndecidedCommitFails)
    }

    /// Submits an entry behind the undecided submissions: its place in the order reveals their fate.
    pub(crate) fn settle_undecided(&mut self) {
        if self.submissions.has_undecided() {
            let low = self.executor.low();
            self.submit_once(Sent::Applied, &Message::Applied(low));
        }
    }
}

impl Control {
    /// Returns true if the servers have closed the streaming transactions of `origin` at a view that `origin` had not
    /// seen when it sent this fragment. A late fragment would be part of a transaction here, and of none there; so it
    /// fails everywhere. The servers close these transactions when their origin is no member, and all of them when a
    /// view has the members of the view before.
    pub(crate) fn stream_was_closed(&self, origin: Incarnation, last_seen: Seqno) -> bool {
        let mut views = self.views.iter().rev().peekable();
        while let Some((seqno, view)) = views.next() {
            if *seqno <= last_seen {
                return false;
            }
            // Views before the oldest remembered one are unknown.
            let closes_all = views.peek().is_none_or(|(_, before)| is_same(view, before));
            if closes_all || view.index_of(origin).is_none() {
                return !planted(Mutant::ClosedStreamGoesOn);
            }
        }
        false
    }
}

/// Returns true if both views have the same processes with data.
pub(crate) fn is_same(view: &Configuration, before: &Configuration) -> bool {
    let [here, there] =
        [view, before].map(|view| view.data_members().map(|member| member.incarnation));
    here.eq(there)
}
