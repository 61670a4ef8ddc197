//! Carries out the outputs of the parts: hands each to its part, or to the host.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::SubmissionId;
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, GroupAction, HostAction, Level, LogAction, Note};
use crate::flow_control::FlowOutput;
use crate::gtid::Gtid;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::replicator::Replicator;
use crate::state_transfer::Place;
use crate::submissions::{Dropped, Held, Sent};
use crate::votes::Ballot;
use crate::voting::{Caller, Standpoint, VotingOutput};

impl Replicator {
    /// Tells the host the callbacks that have become ready for the server's threads.
    pub(crate) fn announce(&mut self) {
        if self.is_held_still() {
            return self.executor.hold_still();
        }
        let announced = self.executor.announce();
        if announced.begins_to_apply {
            self.out.push(Action::Note(Note::Applying));
        }
        if let Some(gtid) = announced.action {
            self.action_begins(gtid);
        }
        if announced.wake > 0 {
            self.out
                .push(Action::Host(HostAction::WakeAppliers { n: announced.wake }));
        }
    }

    /// Notes that a total-order action begins: from here on the database may hold it (rule 13).
    pub(crate) fn action_begins(&mut self, gtid: Gtid) {
        self.out
            .push(Action::Note(Note::Action { gtid, ended: false }));
        self.out.push(Action::Host(HostAction::MarkUnsafe));
    }

    /// Notes that the action has ended: the database holds it (rule 13).
    pub(crate) fn action_ended(&mut self, seqno: Seqno) {
        let gtid = self.gtid_of(seqno);
        self.out
            .push(Action::Note(Note::Action { gtid, ended: true }));
        self.out.push(Action::Host(HostAction::MarkSafe));
    }

    pub(crate) fn carry_out_flow(&mut self, output: FlowOutput) {
        match output {
            FlowOutput::Send(to, message) => self.send(to, &message),
            FlowOutput::LeaveOut(member) => {
                self.submit_once(Sent::LeaveOut(member), &Message::LeaveOut(member));
            }
        }
    }

    /// Opens a dispute: applying `seqno` ended with an error here, and the caller waits for the vote.
    pub(crate) fn dispute(&mut self, seqno: Seqno, error: &Bytes, caller: Caller) {
        if self.was_done_already(seqno, error) {
            return self.let_go_on(seqno, caller, Code::Ok);
        }
        let standpoint = self.standpoint(seqno);
        let outputs = (self.voting).dispute(&self.context, (seqno, error), caller, standpoint);
        self.carry_out_voting(outputs);
    }

    fn standpoint(&self, seqno: Seqno) -> Standpoint {
        let state = self.context.my_node_state();
        let may_vote = state.is_some_and(|s| s != NodeState::Joiner);
        if self.transfer.place() == Place::Active && may_vote && !self.lifecycle.is_leaving() {
            return Standpoint::Voter;
        }
        let me = self.context.me();
        // Below the floor the origin of a write-set is unknown: the control state does not distinguish the two cases.
        let is_first = self.context.control().is_some_and(|control| {
            let mut others = control.members.iter().filter(|(id, _)| **id != me);
            self.executor.queue().is_action(seqno) && !others.any(|(_, member)| member.counts)
        });
        match is_first {
            true => Standpoint::FirstToKnow,
            false => Standpoint::Behind,
        }
    }

    pub(crate) fn carry_out_voting(&mut self, outputs: Vec<VotingOutput>) {
        for output in outputs {
            match output {
                VotingOutput::MarkUnsafe => self.out.push(Action::Host(HostAction::MarkUnsafe)),
                VotingOutput::MarkSafe => self.out.push(Action::Host(HostAction::MarkSafe)),
                VotingOutput::Agreed { seqno, caller } => {
                    let gtid = self.gtid_of(seqno);
                    let text =
                        format!("Vote (error) on {gtid} is consistent with group. Continue.");
                    self.log(Level::Info, text);
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
        let gtid = self.gtid_of(seqno);
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
        self.answer(ticket, Answer::unordered(code));
    }

    /// Submits the ballots that this node has to cast.
    pub(crate) fn pursue_votes(&mut self) {
        if self.context.abstains() || !self.may_write() {
            return;
        }
        let executor = &self.executor;
        let ballots = (self.voting).ballots(&self.context, |seqno| executor.has_passed(seqno));
        for (seqno, message) in ballots {
            self.submit_once(Sent::Vote(seqno), &message);
        }
    }

    /// Handles a member's ballot.
    pub(crate) fn vote_cast(&mut self, id: SubmissionId, seqno: Seqno, ballot: Ballot, text: &str) {
        if ballot != 0 {
            let member = self.context.name_of(id.incarnation);
            let gtid = self.gtid_of(seqno);
            self.log(
                Level::Info,
                format!("Member {member} initiates vote on {gtid},{ballot:016x}: {text}"),
            );
        }
    }

    /// Handles the cluster's decision on the outcome of `seqno`.
    pub(crate) fn vote_decided(&mut self, seqno: Seqno, winner: Ballot) {
        let gtid = self.gtid_of(seqno);
        let text = format!("Votes over {gtid}: winner {winner:016x}");
        self.log(Level::Info, text);
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
            return self.carry_out_voting(outputs);
        }
        let is_heeded = self.voting.donor_has_heeded(&self.context, seqno);
        if self.executor.has_passed(seqno) && !is_heeded {
            self.check_success(seqno);
        }
    }

    /// Compares this node's success on `seqno` with the cluster's decision. If an in-doubt database came with the
    /// action, its success is not known: the database is replaced, or all others are replaced with it.
    pub(crate) fn check_success(&mut self, seqno: Seqno) {
        let follows = match self.transfer.place() {
            Place::Active => !self.context.is_arbitrator(),
            Place::Transfer => !self.transfer.awaits_snapshot(),
            Place::Closed | Place::Admission | Place::Final => false,
        };
        let is_unknown =
            self.database.in_doubt().hides_outcome(seqno) && !planted(Mutant::DoubtIsASuccess);
        let is_mine = follows && !is_unknown;
        if is_mine && self.voting.contradicts_success(&self.context, seqno) {
            let gtid = self.gtid_of(seqno);
            // galera_vote_majority_dml and galera_toi_vote look for these words.
            self.leave_inconsistent(&format!(
                "Vote 0 (success) on {gtid} is inconsistent with group. Leaving cluster. It was applied here, and elsewhere it failed"
            ));
        }
    }

    /// Ends disputes after the node is in step with the group again: the group may have decided meanwhile, or forgotten
    /// the vote.
    pub(crate) fn review_disputes(&mut self) {
        while let Some(outputs) = self.voting.next_over(&self.context) {
            self.carry_out_voting(outputs);
        }
    }

    /// Checks presumed outcomes when the database has caught up, against decisions that a peer's control state
    /// contained.
    pub(crate) fn review_presumed(&mut self) {
        while let Some(outputs) = self.voting.next_presumed_decided(&self.context) {
            self.carry_out_voting(outputs);
        }
    }

    /// Abandons the disputes of this node: no decision will come.
    pub(crate) fn abandon_disputes(&mut self) {
        while let Some(outputs) = self.voting.abandon_next() {
            self.carry_out_voting(outputs);
        }
    }

    // --- own write-sets that wait

    /// Submits the write-set of a bulk payload that a majority holds, as any other write-set.
    pub(crate) fn is_spread(&mut self, bulk: u64) {
        let Some(held) = self.submissions.is_spread(bulk) else {
            return;
        };
        if !self.may_write() {
            return self.drop_held(&held);
        }
        match self.may_go() {
            true => self.let_go(held),
            false => self.submissions.hold(held),
        }
    }

    /// Sends the write-sets that waited here, as far as no peer requests more waiting.
    pub(crate) fn send_held(&mut self) {
        while self.submissions.is_any_held() && !self.flow_control.is_stopped() {
            if self.may_write() && !(self.rollbacks_are_sent() && self.flow_control.admit()) {
                return;
            }
            match self.submissions.next_held() {
                Some(held) if self.may_write() => self.let_go(held),
                Some(held) => self.drop_held(&held),
                None => {}
            }
        }
    }

    /// Drops a held write-set: the group forgets its bulk payload.
    fn drop_held(&mut self, held: &Held) {
        if let Some(bulk) = held.draft.bulk() {
            self.out.push(Action::Group(GroupAction::Recall { bulk }));
        }
        self.give_up(held.sent, false);
    }

    fn let_go(&mut self, held: Held) {
        // When a held transaction is forgotten, it is taken from the list as well (`abort`).
        let is_sent = match held.sent {
            Sent::Trx(id) => self.executor.send(id),
            Sent::Toi(conn) => self.executor.send_action(conn),
            _ => false, // nothing else is held
        };
        if !is_sent {
            return;
        }
        self.replicate(held.sent, held.draft);
    }

    /// Returns true if a write-set that comes now may go at once; others that wait go first.
    pub(crate) fn may_go(&mut self) -> bool {
        !self.submissions.is_any_held() && self.flow_control.admit()
    }

    /// Gives up all write-sets that wait here.
    pub(crate) fn give_up_unsent(&mut self) {
        for dropped in self.submissions.give_up_waiting() {
            match dropped {
                Dropped::Recall { bulk } => {
                    self.out.push(Action::Group(GroupAction::Recall { bulk }))
                }
                Dropped::GivenUp(sent) => self.give_up(sent, false),
            }
        }
    }
}
