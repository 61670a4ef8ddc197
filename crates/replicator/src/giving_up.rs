//! Submissions that no delivery will answer: what those who wait for them are told (rule 7).

use trireme_group::{Fate, SubmissionId};
use trireme_mutants::{Mutant, planted};

use crate::action::{Answer, Code};
use crate::isolation::Isolation;
use crate::replicator::Replicator;
use crate::submissions::Sent;
use crate::transactions::Phase;

impl Replicator {
    /// A submission will not be answered by a delivery.
    pub(crate) fn failed(&mut self, id: SubmissionId, fate: Fate) {
        if id.incarnation != self.context.me() {
            return;
        }
        if let Some(sent) = self.submissions.take(id.number) {
            if fate == Fate::Unknown && self.must_be_decided(sent) {
                return self.submissions.keep_undecided(id.number, sent);
            }
            // The group takes nothing at the moment: saying it again at once would go on for ever.
            self.submissions.refused(self.context.now_ms());
            self.give_up(sent, fate == Fate::Unknown);
        }
    }

    /// Answers whoever waits for a submission that has failed, or may have (rule 7).
    pub(crate) fn give_up(&mut self, sent: Sent, unknown: bool) {
        if unknown && !planted(Mutant::EpochNotRaised) {
            self.submissions.raise_epoch();
        }
        let definite = if self.lifecycle.has_diverged() {
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
                // The server makes a deadlock of a victim's CONN_FAIL and may repeat the statement, but a withdrawal
                // holds only while this process lives.
                let is_victim = matches!(trx.phase, Phase::Replicating { aborted: true, .. });
                if let Phase::Held { ticket } | Phase::Replicating { ticket, .. } = trx.phase {
                    let unsure = unknown && !planted(Mutant::UnknownIsFailure);
                    let code = match trx.commits {
                        true if unsure || is_victim => Code::NodeFail,
                        // Only this makes the server send a rollback fragment, whatever came of it.
                        false if unsure => Code::TrxFail,
                        _ => definite,
                    };
                    self.answer(ticket, Answer::unordered(code));
                }
                if unknown && commits_stream && !self.lifecycle.is_leaving() {
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
            Sent::Rollback(trx) => self.submissions.lose_rollback(trx),
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

    /// Nobody may be left waiting for what will not come.
    pub(crate) fn wake_clients(&mut self, last_call: bool) {
        self.give_up_unsent();
        for (number, sent) in self.submissions.take_all() {
            // What is ordered before the group lets go is still applied here.
            if !last_call && self.must_be_decided(sent) {
                self.submissions.keep_undecided(number, sent);
            } else {
                self.give_up(sent, true);
            }
        }
        for ticket in self.reads.give_up_from(self.order.next_to_pass()) {
            self.answer_sync_wait(ticket, Code::TrxFail);
        }
        for ticket in self.pauses.give_up() {
            self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
    }
}
