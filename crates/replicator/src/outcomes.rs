//! The ends of what this node executes, where the order alone does not tell them: errors and the votes on them
//! (`outcomes/votes.rs`), submissions that failed (`outcomes/failed_submissions.rs`), callbacks that have ended, and a
//! node that leaves because its data differ from the others'.

mod failed_submissions;
mod votes;

use bytes::Bytes;
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, GroupAction, HostAction, Level};
use crate::action_queue::ActionQueue;
use crate::callers::Callers;
use crate::context::Context;
use crate::database::Database;
use crate::event::{ConnId, Owner, Ticket, TrxId};
use crate::executor::{Executor, Running};
use crate::flow_control::FlowControl;
use crate::gtid::Gtid;
use crate::lifecycle::Lifecycle;
use crate::retention::Retention;
use crate::state_transfer::StateTransfer;
use crate::submissions::Submissions;
use crate::voting::{Caller, Voting};
use crate::work::{View, WorkId};

/// The parts that an outcome may change.
pub(crate) struct Outcomes<'a> {
    pub(crate) context: &'a Context,
    pub(crate) retention: &'a Retention,
    pub(crate) out: &'a mut ActionQueue,
    pub(crate) lifecycle: &'a mut Lifecycle,
    pub(crate) transfer: &'a mut StateTransfer,
    pub(crate) database: &'a mut Database,
    pub(crate) executor: &'a mut Executor,
    pub(crate) submissions: &'a mut Submissions,
    pub(crate) voting: &'a mut Voting,
    pub(crate) callers: &'a mut Callers,
    pub(crate) flow_control: &'a mut FlowControl,
}

impl Outcomes<'_> {
    // --- calls that end with a result

    /// Carries out commit_order_leave().
    pub(crate) fn commit_order_leave(
        &mut self,
        ticket: Ticket,
        owner: Owner,
        error: Option<Bytes>,
    ) {
        let Some(seqno) = self.executor.seqno_of(owner) else {
            return self.out.answer(ticket, Answer::unordered(Code::Ok));
        };
        if let Some(error) = error {
            return self.dispute(seqno, &error, Caller::Commit(ticket));
        }
        self.executor.leave(seqno);
        self.check_success(seqno);
        self.out.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// Handles that the server could not replay a transaction: its place is used up, and the node leaves.
    pub(crate) fn replay_failed(&mut self, ticket: Ticket, trx: TrxId) {
        if let Some(seqno) = self.executor.seqno_of(Owner::Trx(trx)) {
            self.become_inconsistent(&format!("replaying seqno {seqno} failed"));
        }
        let answer = self.executor.release(trx);
        self.out.answer(ticket, answer);
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
        self.out.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// Ends an own total-order action.
    fn end_isolation(&mut self, conn: ConnId) {
        let ended = self.executor.end_action(conn);
        if let Some(ended) = ended.filter(|ended| ended.is_executed) {
            self.out.action_ended(self.executor.gtid_of(ended.seqno));
        }
    }

    /// Handles the end of a callback of a recv() thread.
    pub(crate) fn work_done(&mut self, work: WorkId, ok: bool) {
        match self.executor.done(work) {
            Some(Running::Apply { seqno, isolation }) => {
                if isolation {
                    self.out.action_ended(self.executor.gtid_of(seqno));
                }
                if !ok && !planted(Mutant::VoteLoserStays) {
                    self.become_inconsistent(&format!("applying seqno {seqno} failed"));
                }
                self.flow_control.applied();
                self.executor.applied(seqno);
            }
            Some(Running::View(view)) => self.view_shown(&view, ok),
            Some(Running::Other) if !ok => self.out.fatal("the server refused a callback"),
            _ => {}
        }
    }

    /// Handles the end of a view callback: its seqno is released.
    fn view_shown(&mut self, view: &View, ok: bool) {
        if !ok {
            return self.out.fatal("the server refused a view");
        }
        if view.primary {
            self.executor.view_shown(view.gtid.seqno);
            let gtid = Gtid {
                uuid: view.gtid.uuid,
                seqno: -1,
            };
            self.save_state(gtid);
        } else if view.members.is_empty() {
            self.closed();
        }
    }

    // --- the end of the connection

    /// Handles that the final view was delivered, or that there is no server to get one.
    pub(crate) fn closed(&mut self) {
        let gtid = self.executor.last_committed();
        let counts = !self.lifecycle.has_diverged() && !self.context.is_arbitrator();
        if counts && gtid != Gtid::UNDEFINED {
            self.save_state(gtid);
        }
        self.out
            .push(Action::Host(HostAction::WakeAppliers { n: usize::MAX }));
        self.out.push(Action::Host(HostAction::Closed));
    }

    fn save_state(&mut self, gtid: Gtid) {
        self.out.push(Action::Host(HostAction::SaveState {
            gtid,
            safe_to_bootstrap: self.lifecycle.is_safe_to_bootstrap(),
        }));
    }

    /// Leaves because this node's data differ from the others': it applies nothing more.
    pub(crate) fn become_inconsistent(&mut self, why: &str) {
        self.leave_inconsistent(&format!("Inconsistency detected: {why}"));
    }

    /// Leaves before the server gets the place of a streaming transaction that this node has given up, and that an
    /// override elsewhere has committed. Its earlier fragments are undone here.
    pub(crate) fn review_given_up_commit(&mut self) {
        let lacks = self.voting.lacks_commit();
        if let Some(seqno) = lacks.filter(|_| !planted(Mutant::GivenUpCommitSkipped)) {
            let gtid = self.executor.gtid_of(seqno);
            self.become_inconsistent(&format!(
                "an operator's override has committed the streaming transaction {gtid}, whose client was told here that it \
                 failed"
            ));
        }
    }

    /// As [`Self::become_inconsistent`], with its own text in the log.
    fn leave_inconsistent(&mut self, text: &str) {
        if self.lifecycle.has_diverged() {
            return;
        }
        let leaves_now = self.lifecycle.leave();
        self.lifecycle.diverge();
        self.out.log(Level::Error, text);
        self.database.forget_action();
        self.out.forget_action();
        self.out.push(Action::Host(HostAction::MarkCorrupt));
        self.executor.diverge();
        if leaves_now {
            self.out.push(Action::Group(GroupAction::Leave));
        }
        self.abandon_disputes();
        self.wake_clients(true);
    }
}
