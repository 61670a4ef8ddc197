//! Votes on apply errors: this node's part. Whoever reports an error waits, inside commit order,
//! for what the cluster decides; who is outvoted has diverged and leaves.

use std::collections::BTreeMap;

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::SubmissionId;
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, Level};
use crate::event::{ConnId, Ticket};
use crate::member_state::NodeState;
use crate::message::Message;
use crate::replicator::{Replicator, Stage};
use crate::submissions::Sent;
use crate::votes::{Ballot, ballot};

/// How much of an error's text goes into the logs of all nodes.
const TEXT_BYTES: usize = 512;

/// An error of this node's that is being voted on.
#[derive(Debug)]
pub(crate) struct Dispute {
    ballot: Ballot,
    text: String,
    waiter: Disputer,
}

/// Who waits for the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Disputer {
    /// In commit_order_leave().
    Commit(Ticket),
    /// In to_execute_end().
    Isolation(Ticket, ConnId),
}

/// Errors by seqno.
pub(crate) type Disputes = BTreeMap<Seqno, Dispute>;

/// Errors, and their texts, that were taken for the cluster's, by seqno.
pub(crate) type Presumed = BTreeMap<Seqno, (Ballot, String)>;

impl Replicator {
    /// Applying `seqno` ended with an error here: the caller waits for the vote.
    pub(crate) fn dispute(&mut self, seqno: Seqno, error: &Bytes, waiter: Disputer) {
        if self.was_done_already(seqno, error) {
            return self.let_go_on(seqno, waiter, Code::Ok);
        }
        let text = String::from_utf8_lossy(&error[..error.len().min(TEXT_BYTES)]).into_owned();
        let dispute = Dispute {
            ballot: ballot(seqno, error),
            text,
            waiter,
        };
        let decided = self.context.control().and_then(|c| c.votes.result(seqno));
        let may_vote = self
            .context
            .my_node_state()
            .is_some_and(|s| s != NodeState::Joiner);
        let in_step = matches!(self.stage, Stage::Active) && may_vote && !self.leaving;
        match decided {
            Some(winner) => self.settle_dispute(seqno, dispute, Some(winner)),
            None if in_step => {
                // The database says it holds what it has not applied: not to be believed until the
                // cluster agrees.
                self.out.push(Action::MarkUnsafe);
                self.disputes.insert(seqno, dispute);
            }
            None if self.is_first_to_know(seqno) => {
                // Not to be believed before the vote, neither after a crash nor by others.
                self.out.push(Action::MarkUnsafe);
                self.presumed
                    .insert(seqno, (dispute.ballot, dispute.text.clone()));
                let ballot = dispute.ballot;
                self.settle_dispute(seqno, dispute, Some(ballot));
            }
            // While catching up there is no vote: the others have it behind them (rule 22).
            None => self.settle_dispute(seqno, dispute, None),
        }
    }

    /// True if nobody has this total-order action behind him: all restarted, and read their logs back.
    /// That it fails here is taken for its outcome, which is voted on when this node is in step: else
    /// an action that fails everywhere, and was not voted on before all died, would cost every database.
    fn is_first_to_know(&self, seqno: Seqno) -> bool {
        let Some(control) = self.context.control() else {
            return false;
        };
        let mut others = control
            .members
            .iter()
            .filter(|(id, _)| **id != self.context.me());
        // Whose a write-set was is not known below the floor: the control state does not tell the two apart.
        self.works.is_action(seqno) && !others.any(|(_, member)| member.counts)
    }

    /// The cluster has decided what this node had to presume; false if that is not so of `seqno`.
    fn end_presumed(&mut self, seqno: Seqno, winner: Ballot) -> bool {
        let Some((ballot, text)) = self.presumed.remove(&seqno) else {
            return false;
        };
        self.out.push(Action::MarkSafe);
        if ballot != winner {
            let gtid = self.gtid_of(seqno);
            self.become_inconsistent(&format!("Inconsistent by consensus on {gtid}: {text}"));
        }
        true
    }

    /// Says what this node has to say on every open vote, as soon as it knows.
    pub(crate) fn pursue_votes(&mut self) {
        if self.context.abstains() || !self.may_write() {
            return;
        }
        let Some(control) = self.context.control() else {
            return;
        };
        let differs =
            |seqno: &Seqno| self.disputes.contains_key(seqno) || self.presumed.contains_key(seqno);
        let asked = control.votes.open();
        let asked = asked.filter(|s| !differs(s) && self.order.has_passed(*s));
        let mut ballots: Vec<(Seqno, Ballot, String)> =
            asked.map(|seqno| (seqno, 0, String::new())).collect();
        ballots.extend(
            self.disputes
                .iter()
                .map(|(seqno, d)| (*seqno, d.ballot, d.text.clone())),
        );
        let presumed = self.presumed.iter();
        ballots.extend(presumed.map(|(seqno, (ballot, text))| (*seqno, *ballot, text.clone())));
        ballots.retain(|(seqno, ..)| !control.votes.has_voted(*seqno, self.context.me()));
        for (seqno, ballot, text) in ballots {
            self.submit_once(
                Sent::Vote(seqno),
                &Message::Vote {
                    seqno,
                    ballot,
                    policy: self.context.options().vote_policy,
                    text,
                },
            );
        }
    }

    /// A member voted.
    pub(crate) fn vote_cast(&mut self, id: SubmissionId, seqno: Seqno, ballot: Ballot, text: &str) {
        if ballot != 0 {
            let (member, gtid) = (self.context.name_of(id.incarnation), self.gtid_of(seqno));
            self.log(
                Level::Info,
                format!("Member {member} initiates vote on {gtid},{ballot:016x}: {text}"),
            );
        }
    }

    /// The cluster has decided how `seqno` ended.
    pub(crate) fn vote_decided(&mut self, seqno: Seqno, winner: Ballot) {
        let gtid = self.gtid_of(seqno);
        self.log(
            Level::Info,
            format!("Votes over {gtid}: winner {winner:016x}"),
        );
        if winner != 0 {
            // Whoever gets it from the log gets a dummy.
            if let Some(position) = self.retention.position_of(seqno) {
                self.out.push(Action::RecordOutcome {
                    position,
                    seqno,
                    depends_on: seqno - 1,
                    failed: true,
                });
            }
        }
        let was_known = self.end_presumed(seqno, winner) || self.end_dispute(seqno, Some(winner));
        if !was_known && self.order.has_passed(seqno) && !self.donor_has_heeded(seqno) {
            self.check_success(seqno);
        }
    }

    /// True of a decision that is ordered below the end of this node's snapshot, which includes `seqno`: the donor
    /// was there when it was decided, and would have left if it had disagreed.
    fn donor_has_heeded(&self, seqno: Seqno) -> bool {
        let delivered = self.context.seqno().unwrap_or(-1);
        seqno <= self.snapshot_at && delivered < self.snapshot_at
    }

    /// This node has applied `seqno` without an error; did the cluster? A joiner, too, must know: the vote
    /// may be over before it counts, or before it has come to that seqno. But that a database in doubt came
    /// with an action says nothing of a success: it is replaced, or is what all others are replaced with.
    pub(crate) fn check_success(&mut self, seqno: Seqno) {
        let result = self.context.control().and_then(|c| c.votes.result(seqno));
        let follows = match &self.stage {
            Stage::Active => !self.context.is_arbitrator(),
            Stage::Transfer(_) => !self.awaits_snapshot(),
            Stage::Closed | Stage::Admission(_) | Stage::Final => false,
        };
        let is_unknown = self.doubt.hides_outcome(seqno) && !planted(Mutant::DoubtIsASuccess);
        let is_mine = follows && !is_unknown && !self.dummies.contains(&seqno);
        if is_mine && result.is_some_and(|winner| winner != 0) {
            let gtid = self.gtid_of(seqno);
            // The words that galera_vote_majority_dml and galera_toi_vote look for.
            self.leave_inconsistent(&format!(
                "Vote 0 (success) on {gtid} is inconsistent with group. Leaving cluster. It was applied here, and elsewhere it failed"
            ));
        }
    }

    /// Lets the caller go on: agreed, or (None: nobody to agree with) outvoted.
    pub(crate) fn settle_dispute(
        &mut self,
        seqno: Seqno,
        dispute: Dispute,
        winner: Option<Ballot>,
    ) {
        let gtid = self.gtid_of(seqno);
        let agreed = winner == Some(dispute.ballot);
        if agreed {
            self.log(
                Level::Info,
                format!("Vote (error) on {gtid} is consistent with group. Continue."),
            );
        } else if !planted(Mutant::VoteLoserStays) {
            self.become_inconsistent(&format!(
                "Inconsistent by consensus on {gtid}: {}",
                dispute.text
            ));
        }
        let code = if agreed { Code::Ok } else { Code::NodeFail };
        self.let_go_on(seqno, dispute.waiter, code);
    }

    /// The caller leaves commit order.
    fn let_go_on(&mut self, seqno: Seqno, waiter: Disputer, code: Code) {
        let (ticket, code) = match waiter {
            Disputer::Commit(ticket) => {
                self.order.leave(seqno);
                (ticket, code)
            }
            Disputer::Isolation(ticket, conn) => {
                self.end_isolation(conn);
                // The action is over, however the vote went. Of another code the server warns that it is not.
                (ticket, Code::Ok)
            }
        };
        self.answer(ticket, Answer::unordered(code));
    }

    /// In step with the group again, which may have decided meanwhile, or forgotten the vote.
    pub(crate) fn review_disputes(&mut self) {
        let Some(control) = self.context.control() else {
            return;
        };
        let is_open = |seqno: &Seqno| control.votes.open().any(|open| open == *seqno);
        let over = self.disputes.keys().filter(|seqno| !is_open(seqno));
        let over: Vec<_> = over
            .map(|seqno| (*seqno, control.votes.result(*seqno)))
            .collect();
        for (seqno, winner) in over {
            self.end_dispute(seqno, winner);
        }
    }

    /// The database has caught up: what the control state from a peer knew already is heeded.
    pub(crate) fn review_presumed(&mut self) {
        let Some(control) = self.context.control() else {
            return;
        };
        let result = |seqno: &Seqno| Some((*seqno, control.votes.result(*seqno)?));
        let decided: Vec<_> = self.presumed.keys().filter_map(result).collect();
        for (seqno, winner) in decided {
            self.end_presumed(seqno, winner);
        }
    }

    /// Ends an open dispute; false if there is none over `seqno`.
    fn end_dispute(&mut self, seqno: Seqno, winner: Option<Ballot>) -> bool {
        let Some(dispute) = self.disputes.remove(&seqno) else {
            return false;
        };
        self.settle_dispute(seqno, dispute, winner);
        self.out.push(Action::MarkSafe);
        true
    }

    /// Nobody will decide any more what this node disputes: it cannot know whether it has diverged.
    pub(crate) fn abandon_disputes(&mut self) {
        let open: Vec<Seqno> = self.disputes.keys().copied().collect();
        for seqno in open {
            self.end_dispute(seqno, None);
        }
    }
}
