//! Failed submissions: no delivery will answer them. Their waiting callers get an answer here (rule 7).

use trireme_group::{Fate, SubmissionId};
use trireme_mutants::{Mutant, planted};

use crate::action::{Answer, Code};
use crate::replicator::Replicator;
use crate::submissions::Sent;

impl Replicator {
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
        match sent {
            Sent::Trx(id) => {
                let given_up = self.executor.give_up(id, unknown, self.refusal());
                if let Some((ticket, answer)) = given_up.answer {
                    self.answer(ticket, answer);
                }
                if unknown && given_up.commits_stream && !self.lifecycle.is_leaving() {
                    self.become_inconsistent(&format!(
                        "whether streaming transaction {id} was committed cannot be known any more"
                    ));
                }
            }
            Sent::Toi(conn) => {
                let code = self.refusal();
                if let Some(ticket) = self.executor.give_up_action(conn) {
                    self.answer(ticket, Answer::unordered(code));
                }
            }
            Sent::Rollback(trx) => self.submissions.lose_rollback(trx),
            Sent::Desync { ticket, .. } => self.answer(ticket, Answer::unordered(Code::TrxFail)),
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
        for ticket in self
            .callers
            .give_up_reads_from(self.executor.next_to_pass())
        {
            self.answer_sync_wait(ticket, Code::TrxFail);
        }
        for ticket in self.callers.give_up_pauses() {
            self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
    }
}
