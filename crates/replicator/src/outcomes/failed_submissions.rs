//! Failed submissions: no delivery will answer them. Their waiting callers get an answer here (rule 7).

use trireme_group::{Fate, SubmissionId};
use trireme_mutants::{Mutant, planted};

use super::Outcomes;
use crate::action::{Action, Answer, Code, GroupAction};
use crate::event::TrxId;
use crate::submissions::{Dropped, Held, Sent};

impl Outcomes<'_> {
    /// Takes in that a submission will not be answered by a delivery.
    pub(crate) fn failed(&mut self, id: SubmissionId, fate: Fate) {
        if id.incarnation != self.context.me() {
            return;
        }
        if let Some(sent) = self.submissions.take(id.number) {
            if fate == Fate::Unknown && self.must_be_decided(sent) {
                return self.submissions.keep_undecided(id.number, sent);
            }
            // The group takes nothing at the moment: an immediate repetition would go on for ever.
            self.submissions.refused(self.context.now_ms());
            self.give_up(sent, fate == Fate::Unknown);
        }
    }

    /// Answers the caller of a submission that has failed, or may have (rule 7).
    pub(crate) fn give_up(&mut self, sent: Sent, unknown: bool) {
        if unknown && !planted(Mutant::EpochNotRaised) {
            self.submissions.raise_epoch();
        }
        let refusal = self.lifecycle.refusal();
        match sent {
            Sent::Trx(id) => {
                let commits_stream = self.give_up_transaction(id, unknown);
                if unknown && commits_stream && !self.lifecycle.is_leaving() {
                    self.become_inconsistent(&format!(
                        "whether streaming transaction {id} was committed cannot be known any more"
                    ));
                }
            }
            Sent::Toi(conn) => {
                if let Some(ticket) = self.executor.give_up_action(conn) {
                    self.out.answer(ticket, Answer::unordered(refusal));
                }
            }
            Sent::Rollback(trx) => self.submissions.lose_rollback(trx),
            Sent::Desync { ticket, .. } => {
                (self.out).answer(ticket, Answer::unordered(Code::TrxFail));
            }
            // The node repeats it later.
            Sent::StateRequest => (self.transfer).request_failed(true, self.context.now_ms()),
            Sent::InDoubt
            | Sent::Donated
            | Sent::Joined
            | Sent::Synced
            | Sent::Applied
            | Sent::UnheardDesync
            | Sent::Resync
            | Sent::LeaveOut(_)
            | Sent::CaughtUp
            | Sent::Vote(_) => {}
        }
    }

    /// Answers the caller of a submission that has failed on this branch of the history, and may be committed on the one
    /// that a forced view has left (rule 11). This node's database is right: it lacks the submission like all others here.
    pub(crate) fn give_up_here(&mut self, sent: Sent) {
        match sent {
            Sent::Trx(id) => {
                self.give_up_transaction(id, true);
            }
            other => self.give_up(other, false),
        }
    }

    /// Answers the caller of a transaction that is given up. Returns true if it was about to commit a stream.
    fn give_up_transaction(&mut self, id: TrxId, unknown: bool) -> bool {
        let refusal = self.lifecycle.refusal();
        let given_up = self.executor.give_up(id, unknown, refusal);
        if let Some((ticket, answer)) = given_up.answer {
            self.out.answer(ticket, answer);
        }
        given_up.commits_stream
    }

    /// Returns true if the client must learn the submission's fate, although the group does not know it. The last
    /// fragment of a streaming transaction cannot be applied here without the earlier ones, which its client holds. The
    /// client waits until the order decides, or until nothing more is applied (rule 7).
    fn must_be_decided(&self, sent: Sent) -> bool {
        let Sent::Trx(trx) = sent else {
            return false;
        };
        self.executor.commits_stream(trx) && !planted(Mutant::UndecidedCommitFails)
    }

    // --- all that wait

    /// Answers all waiting callers: no caller may wait for an answer that will not come.
    pub(crate) fn wake_clients(&mut self, last_call: bool) {
        self.give_up_unsent();
        for (number, sent) in self.submissions.take_all() {
            // A write-set that is ordered before the group lets go is still applied here.
            if !last_call && self.must_be_decided(sent) {
                self.submissions.keep_undecided(number, sent);
            } else {
                self.give_up(sent, true);
            }
        }
        self.give_up_reads();
        for ticket in self.callers.give_up_pauses() {
            (self.out).answer(ticket, Answer::unordered(Code::ConnFail));
        }
    }

    /// Answers all reads whose wait may never end.
    pub(crate) fn give_up_reads(&mut self) {
        let next = self.executor.next_to_pass();
        for ticket in self.callers.give_up_reads_from(next) {
            let gtid = self.executor.last_committed();
            self.out.answer_read(ticket, Code::TrxFail, gtid);
        }
    }

    /// Gives up all submissions in flight, because the group's log begins anew.
    pub(crate) fn give_up_all_sent(&mut self) {
        for (_, sent) in self.submissions.take_all() {
            self.give_up(sent, true);
        }
    }

    /// Gives up all write-sets that wait here.
    pub(crate) fn give_up_unsent(&mut self) {
        for dropped in self.submissions.give_up_waiting() {
            match dropped {
                Dropped::Recall { bulk } => self.recall(bulk),
                Dropped::GivenUp(sent) => self.give_up(sent, false),
            }
        }
    }

    /// Drops a held write-set: the group forgets its bulk payload.
    pub(crate) fn drop_held(&mut self, held: &Held) {
        if let Some(bulk) = held.draft.bulk() {
            self.recall(bulk);
        }
        self.give_up(held.sent, false);
    }

    fn recall(&mut self, bulk: u64) {
        self.out.push(Action::Group(GroupAction::Recall { bulk }));
    }
}
