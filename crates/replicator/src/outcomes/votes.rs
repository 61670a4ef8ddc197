//! Errors in what this node executes, and the cluster's votes on them: carries out what [`crate::voting`] requests.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::SubmissionId;
use trireme_mutants::{Mutant, planted};

use super::Outcomes;
use crate::action::{Action, Answer, Code, Level, LogAction};
use crate::member_state::NodeState;
use crate::state_transfer::Place;
use crate::submissions::Sent;
use crate::votes::Ballot;
use crate::voting::{Caller, Standpoint, VotingOutput};

impl Outcomes<'_> {
    /// Opens a dispute: applying `seqno` ended with an error here, and the caller waits for the vote.
    pub(super) fn dispute(&mut self, seqno: Seqno, error: &Bytes, caller: Caller) {
        if self.was_done_already(seqno, error) {
            return self.let_go_on(seqno, caller, Code::Ok);
        }
        let standpoint = self.standpoint(seqno);
        let outputs = (self.voting).dispute(self.context, (seqno, error), caller, standpoint);
        self.carry_out(outputs);
    }

    /// Returns true if an action that was applied again failed with an error that says that it was done before.
    fn was_done_already(&mut self, seqno: Seqno, error: &Bytes) -> bool {
        let is_action = self.executor.queue().is_action(seqno);
        let in_doubt = self.database.in_doubt();
        let is_done = is_action && in_doubt.was_done_before(seqno, error);
        if is_done {
            let (gtid, text) = (self.executor.gtid_of(seqno), String::from_utf8_lossy(error));
            let text = format!("the action at {gtid} had been executed: {text}");
            self.out.log(Level::Info, text);
        }
        is_done
    }

    fn standpoint(&self, seqno: Seqno) -> Standpoint {
        let state = self.context.my_node_state();
        let may_vote = state.is_some_and(|s| s != NodeState::Joiner);
        let may_wait = match self.transfer.place() {
            Place::Active => may_vote,
            // The entry was queued before the group's log began anew.
            Place::Transfer if self.transfer.awaits_snapshot() => false,
            Place::Admission | Place::Transfer => {
                self.voting.may_wait_for_vote(self.context, seqno)
            }
            Place::Closed | Place::Final => false,
        };
        if may_wait && !self.lifecycle.is_leaving() {
            return Standpoint::Voter;
        }
        let me = self.context.me();
        // Below the floor the origin of a write-set is unknown: the control state does not distinguish the two cases.
        let is_first = self.context.control().is_some_and(|control| {
            let mut others = control.members.states().iter().filter(|(id, _)| **id != me);
            self.executor.queue().is_action(seqno) && !others.any(|(_, member)| member.counts)
        });
        match is_first {
            true => Standpoint::FirstToKnow,
            false => Standpoint::Behind,
        }
    }

    fn carry_out(&mut self, outputs: Vec<VotingOutput>) {
        for output in outputs {
            match output {
                VotingOutput::MarkUnsafe => self.out.mark_unsafe(),
                VotingOutput::MarkSafe => self.out.mark_safe(),
                VotingOutput::Agreed { seqno, caller } => {
                    let gtid = self.executor.gtid_of(seqno);
                    let text =
                        format!("Vote (error) on {gtid} is consistent with group. Continue.");
                    self.out.log(Level::Info, text);
                    self.let_go_on(seqno, caller, Code::Ok);
                }
                VotingOutput::Outvoted {
                    seqno,
                    text,
                    caller,
                } => {
                    if !planted(Mutant::VoteLoserStays) {
                        self.diverged(seqno, &text);
                    }
                    self.let_go_on(seqno, caller, Code::NodeFail);
                }
                VotingOutput::Diverged { seqno, text } => self.diverged(seqno, &text),
            }
        }
    }

    fn diverged(&mut self, seqno: Seqno, text: &str) {
        let gtid = self.executor.gtid_of(seqno);
        self.become_inconsistent(&format!("Inconsistent by consensus on {gtid}: {text}"));
    }

    /// Lets a call that reported an error leave commit order.
    fn let_go_on(&mut self, seqno: Seqno, caller: Caller, code: Code) {
        let (ticket, code) = match caller {
            Caller::Commit(ticket) => {
                self.executor.leave(seqno);
                (ticket, code)
            }
            Caller::Isolation(ticket, conn) => {
                self.end_isolation(conn);
                // The action is over, whatever the vote's result. With another code the server would warn that it is
                // not.
                (ticket, Code::Ok)
            }
        };
        self.out.answer(ticket, Answer::unordered(code));
    }

    /// Submits the ballots that this node has to cast.
    pub(crate) fn pursue_votes(&mut self) {
        let (executor, now_ms) = (&self.executor, self.context.now_ms());
        let ballots = (self.voting).ballots(self.context, |seqno| executor.has_passed(seqno));
        if ballots.is_empty() || self.context.abstains() {
            return;
        }
        let may_write = (self.lifecycle).may_write(self.context, self.transfer);
        let may_vote = (self.lifecycle).may_vote(self.context, self.transfer);
        for (seqno, message) in ballots {
            if !(may_write || may_vote && self.voting.disputes(seqno)) {
                continue;
            }
            (self.submissions).submit_once(now_ms, Sent::Vote(seqno), &message, self.out);
        }
    }

    /// Handles a member's ballot.
    pub(crate) fn vote_cast(&mut self, id: SubmissionId, seqno: Seqno, ballot: Ballot, text: &str) {
        if ballot != 0 {
            let member = self.context.name_of(id.incarnation);
            let gtid = self.executor.gtid_of(seqno);
            let text = format!("Member {member} initiates vote on {gtid},{ballot:016x}: {text}");
            self.out.log(Level::Info, text);
        }
    }

    /// Handles the cluster's decision on the outcome of `seqno`.
    pub(crate) fn vote_decided(&mut self, seqno: Seqno, winner: Ballot) {
        let gtid = self.executor.gtid_of(seqno);
        let text = format!("Votes over {gtid}: winner {winner:016x}");
        self.out.log(Level::Info, text);
        if winner != 0 {
            // A member that gets the entry from the log gets a dummy.
            if let Some(position) = self.retention.position_of(seqno) {
                self.out.push(Action::Log(LogAction::RecordOutcome {
                    position,
                    seqno,
                    depends_on: seqno - 1,
                    failed: true,
                }));
            }
        }
        if let Some(outputs) = self.voting.decided(seqno, winner) {
            return self.carry_out(outputs);
        }
        let executor = &self.executor;
        let has_passed = |seqno| executor.has_passed(seqno);
        if !has_passed(seqno) {
            self.voting.decided_ahead(seqno, winner, has_passed);
        } else if !self.voting.donor_has_heeded(self.context, seqno) {
            self.check_success(seqno);
        }
    }

    /// Compares this node's success on `seqno` with the cluster's decision. If an in-doubt database came with the
    /// action, its success is not known: the database is replaced, or all others are replaced with it.
    pub(super) fn check_success(&mut self, seqno: Seqno) {
        let follows = self.transfer.feeds_database() && !self.context.is_arbitrator();
        let is_unknown =
            self.database.in_doubt().hides_outcome(seqno) && !planted(Mutant::DoubtIsASuccess);
        let is_mine = follows && !is_unknown;
        if is_mine && self.voting.contradicts_success(self.context, seqno) {
            let gtid = self.executor.gtid_of(seqno);
            // galera_vote_majority_dml and galera_toi_vote look for these words.
            self.leave_inconsistent(&format!(
                "Vote 0 (success) on {gtid} is inconsistent with group. Leaving cluster. It was applied here, and elsewhere it failed"
            ));
        }
    }

    // --- disputes that the group decided, or cannot decide any more

    /// Compares what this node applied before its log began anew with the decisions since, when it is in step with the
    /// group again.
    pub(crate) fn review_successes(&mut self) {
        for seqno in self.voting.failed_meanwhile(self.context) {
            if self.executor.has_passed_here(seqno) {
                self.check_success(seqno);
            }
        }
    }

    /// Ends disputes after the node is in step with the group again: the group may have decided meanwhile, or forgotten
    /// the vote.
    pub(crate) fn review_disputes(&mut self) {
        while let Some(outputs) = self.voting.next_over(self.context) {
            self.carry_out(outputs);
        }
    }

    /// Checks presumed outcomes when the database has caught up, against decisions that a peer's control state
    /// contained.
    pub(crate) fn review_presumed(&mut self) {
        while let Some(outputs) = self.voting.next_presumed_decided(self.context) {
            self.carry_out(outputs);
        }
    }

    /// Abandons the disputes of this node: no decision will come.
    pub(crate) fn abandon_disputes(&mut self) {
        while let Some(outputs) = self.voting.abandon_next() {
            self.carry_out(outputs);
        }
    }
}
