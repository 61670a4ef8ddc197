//! Votes on apply errors: this node's part (rule 22). A caller that reports an error waits, inside commit order, until
//! the cluster has decided. A node that is outvoted has diverged and leaves.
//!
//! In: errors of this node, and the cluster's decisions. Out: ballots and [`VotingOutput`]s.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_mutants::{Mutant, planted};

use crate::context::Context;
use crate::control::Control;
use crate::event::{ConnId, Ticket};
use crate::member_state::NodeState;
use crate::message::Message;
use crate::votes::{Ballot, ballot};

/// Maximum of an error's text in the logs of all nodes, in bytes.
const TEXT_BYTES: usize = 512;

/// The call that reported an error and waits for the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// commit_order_leave().
    Commit(Ticket),
    /// to_execute_end().
    Isolation(Ticket, ConnId),
}

/// This node's position when it has an error on which the cluster has not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standpoint {
    /// It is in step, and votes.
    Voter,
    /// No member has applied this total-order action yet: all restarted, and read their logs back. The error here
    /// counts as the outcome until the members have voted. Otherwise an action that fails everywhere, and was not voted
    /// on before all members died, would cost every database.
    FirstToKnow,
    /// It catches up: the others have already voted.
    Behind,
}

/// Voting's requests to the coordinator, in order.
#[derive(Debug, PartialEq)]
pub(crate) enum VotingOutput {
    /// The database counts an entry as applied that it has not applied. Neither a crash recovery nor other members may
    /// rely on it until the cluster agrees.
    MarkUnsafe,
    /// Ends one [`VotingOutput::MarkUnsafe`].
    MarkSafe,
    /// The cluster had the same error: the caller goes on.
    Agreed { seqno: Seqno, caller: Caller },
    /// The cluster decided otherwise, or will not decide: this node has diverged, and the caller goes on.
    Outvoted {
        seqno: Seqno,
        text: String,
        caller: Caller,
    },
    /// As `Outvoted`, but no caller waits.
    Diverged { seqno: Seqno, text: String },
}

/// An error of this node with an open vote.
#[derive(Debug)]
struct Dispute {
    ballot: Ballot,
    text: String,
    caller: Caller,
}

impl Dispute {
    /// Lets the caller go on. `winner`: None if no decision will come.
    fn settle(self, seqno: Seqno, winner: Option<Ballot>) -> VotingOutput {
        let Dispute {
            ballot,
            text,
            caller,
        } = self;
        match winner == Some(ballot) {
            true => VotingOutput::Agreed { seqno, caller },
            false => VotingOutput::Outvoted {
                seqno,
                text,
                caller,
            },
        }
    }
}

/// The votes of one connection, and the presumptions of the whole process.
#[derive(Debug)]
pub(crate) struct Voting {
    /// Errors by seqno; their callers wait.
    disputes: BTreeMap<Seqno, Dispute>,
    /// Errors, with their texts, that were taken for the cluster's outcome, by seqno.
    presumed: BTreeMap<Seqno, (Ballot, String)>,
    /// The entries that failed by the log, in the state transfer of this connection: the server got them as dummies.
    /// All other entries that have passed commit order were applied.
    dummies: BTreeSet<Seqno>,
    /// One of them that the others have applied, and that no rollback fragment undoes there: the last fragment of a
    /// streaming transaction that this node has given up.
    lacks: Option<Seqno>,
    /// The last seqno of the SST that this connection took; -1: it has taken none.
    snapshot_at: Seqno,
    /// Up to this seqno the node was in step when the group's log began anew; -1: it was not, or the log did not.
    in_step_upto: Seqno,
    /// The entries that failed, and had passed commit order here, by the control state when the log began anew. What
    /// happened to them here agrees with that.
    compared: BTreeSet<Seqno>,
    /// Decisions on entries that have not passed commit order here yet: a donor, or a joiner with a long way to go. The
    /// control state remembers the last decisions only.
    ahead: BTreeMap<Seqno, Ballot>,
}

impl Default for Voting {
    fn default() -> Voting {
        Voting {
            disputes: BTreeMap::new(),
            presumed: BTreeMap::new(),
            dummies: BTreeSet::new(),
            lacks: None,
            snapshot_at: -1,
            in_step_upto: -1,
            compared: BTreeSet::new(),
            ahead: BTreeMap::new(),
        }
    }
}

impl Voting {
    /// Begins a connection. Presumptions last: they are about the database, which the next connection goes on with.
    pub(crate) fn start_over(&mut self) {
        let presumed = match planted(Mutant::PresumptionForgotten) {
            true => BTreeMap::new(),
            false => std::mem::take(&mut self.presumed),
        };
        *self = Voting {
            presumed,
            ..Voting::default()
        };
    }

    /// Opens a dispute: applying `seqno` ended with an error here, and its caller waits for the vote.
    pub(crate) fn dispute(
        &mut self,
        context: &Context,
        (seqno, error): (Seqno, &Bytes),
        caller: Caller,
        standpoint: Standpoint,
    ) -> Vec<VotingOutput> {
        let text = String::from_utf8_lossy(&error[..error.len().min(TEXT_BYTES)]).into_owned();
        let dispute = Dispute {
            ballot: ballot(seqno, error),
            text,
            caller,
        };
        let decided = self.result(context, seqno);
        if decided.is_some() {
            return vec![dispute.settle(seqno, decided)];
        }
        match standpoint {
            Standpoint::Voter => {
                self.disputes.insert(seqno, dispute);
                vec![VotingOutput::MarkUnsafe]
            }
            Standpoint::FirstToKnow => {
                let ballot = dispute.ballot;
                self.presumed.insert(seqno, (ballot, dispute.text.clone()));
                vec![
                    VotingOutput::MarkUnsafe,
                    dispute.settle(seqno, Some(ballot)),
                ]
            }
            Standpoint::Behind => vec![dispute.settle(seqno, None)],
        }
    }

    /// Returns true if a caller waits for the decision on this seqno.
    pub(crate) fn disputes(&self, seqno: Seqno) -> bool {
        self.disputes.contains_key(&seqno)
    }

    /// Returns true if a caller waits for a decision, and so holds commit order.
    pub(crate) fn is_disputing(&self) -> bool {
        !self.disputes.is_empty()
    }

    /// Returns the ballots that this node has to cast: on every open vote, as soon as it knows its own outcome, and on
    /// every error of its own. `has_passed`: this seqno has left commit order.
    pub(crate) fn ballots(
        &self,
        context: &Context,
        has_passed: impl Fn(Seqno) -> bool,
    ) -> Vec<(Seqno, Message)> {
        let Some(control) = context.control() else {
            return Vec::new();
        };
        if self.disputes.is_empty() && self.presumed.is_empty() && !control.votes.is_any_open() {
            return Vec::new();
        }
        let differs =
            |seqno: &Seqno| self.disputes.contains_key(seqno) || self.presumed.contains_key(seqno);
        let asked = control.votes.open();
        let successes = asked.filter(|seqno| !differs(seqno) && has_passed(*seqno));
        let successes = successes.map(|seqno| (seqno, 0, ""));
        let disputes = self.disputes.iter();
        let disputes = disputes.map(|(seqno, d)| (*seqno, d.ballot, d.text.as_str()));
        let presumed = self.presumed.iter();
        let presumed = presumed.map(|(seqno, (ballot, text))| (*seqno, *ballot, text.as_str()));
        let vote = |(seqno, ballot, text): (Seqno, Ballot, &str)| {
            let message = Message::Vote {
                seqno,
                ballot,
                policy: context.options().vote_policy,
                text: text.to_owned(),
            };
            (seqno, message)
        };
        let all = successes.chain(disputes).chain(presumed);
        all.filter(|(seqno, ..)| !control.votes.has_voted(*seqno, context.me()))
            .map(vote)
            .collect()
    }

    /// Takes in the cluster's decision on the outcome of `seqno`; None if this node has reported no error on it.
    pub(crate) fn decided(&mut self, seqno: Seqno, winner: Ballot) -> Option<Vec<VotingOutput>> {
        self.end_presumed(seqno, winner)
            .or_else(|| self.end_dispute(seqno, Some(winner)))
    }

    /// Notes a decision on an entry that has not passed commit order here yet. `has_passed`: this seqno has.
    pub(crate) fn decided_ahead(
        &mut self,
        seqno: Seqno,
        winner: Ballot,
        has_passed: impl Fn(Seqno) -> bool,
    ) {
        while (self.ahead.first_key_value()).is_some_and(|(first, _)| has_passed(*first)) {
            self.ahead.pop_first();
        }
        self.ahead.insert(seqno, winner);
    }

    /// Returns the cluster's decision on this seqno; None: there was no vote, it is open, or nobody remembers it.
    fn result(&self, context: &Context, seqno: Seqno) -> Option<Ballot> {
        let replicated = context.control().and_then(|c| c.votes.result(seqno));
        replicated.or_else(|| self.ahead.get(&seqno).copied())
    }

    fn end_presumed(&mut self, seqno: Seqno, winner: Ballot) -> Option<Vec<VotingOutput>> {
        let (ballot, text) = self.presumed.remove(&seqno)?;
        let mut outputs = Vec::new();
        if ballot != winner {
            outputs.push(VotingOutput::Diverged { seqno, text });
        }
        outputs.push(VotingOutput::MarkSafe);
        Some(outputs)
    }

    fn end_dispute(&mut self, seqno: Seqno, winner: Option<Ballot>) -> Option<Vec<VotingOutput>> {
        let dispute = self.disputes.remove(&seqno)?;
        Some(vec![dispute.settle(seqno, winner), VotingOutput::MarkSafe])
    }

    /// Returns true for a decision that is ordered below the end of this node's SST, which includes `seqno`. The donor
    /// was a member at the decision, and would have left if it had disagreed.
    pub(crate) fn donor_has_heeded(&self, context: &Context, seqno: Seqno) -> bool {
        let delivered = context.seqno().unwrap_or(-1);
        seqno <= self.snapshot_at && delivered < self.snapshot_at
    }

    /// Returns true if this node has applied `seqno` without an error, and the cluster has decided that it failed. A
    /// joiner must check that, too: the vote may be over before its ballot counts, or before it has come to that seqno.
    pub(crate) fn contradicts_success(&self, context: &Context, seqno: Seqno) -> bool {
        let result = self.result(context, seqno);
        !self.dummies.contains(&seqno) && result.is_some_and(|winner| winner != 0)
    }

    /// Notes that the group's log begins anew. `in_step_upto`: the database is in step up to this seqno; None: it is
    /// not. `decided_upto`: the decisions on entries up to here count on the new log, too. `has_passed`: this seqno has
    /// left commit order. Call it while the control state is still there.
    pub(crate) fn log_begins_anew(
        &mut self,
        context: &Context,
        in_step_upto: Option<Seqno>,
        decided_upto: Seqno,
        has_passed: impl Fn(Seqno) -> bool,
    ) {
        self.ahead.split_off(&(decided_upto + 1));
        self.in_step_upto = in_step_upto.unwrap_or(self.in_step_upto);
        if let Some(control) = context.control() {
            let failed = control.votes.failed().filter(|seqno| has_passed(*seqno));
            self.compared = failed.chain(self.dummies.iter().copied()).collect();
        }
    }

    /// Returns the entries whose failure this node has not compared with what happened here: the group decided on them
    /// after this node's log had begun anew, and this node has reported no error on them.
    pub(crate) fn failed_meanwhile(&self, context: &Context) -> Vec<Seqno> {
        let failed = context
            .control()
            .into_iter()
            .flat_map(|control| control.votes.failed());
        let is_known = |seqno: &Seqno| {
            self.compared.contains(seqno)
                || self.disputes.contains_key(seqno)
                || self.presumed.contains_key(seqno)
        };
        failed.filter(|seqno| !is_known(seqno)).collect()
    }

    /// Returns true if this node got the entry before its log began anew, and can wait for the vote on it: the vote is
    /// open, or this node can open it. Without a control state it is not known yet: [`Self::next_over`] will tell.
    pub(crate) fn may_wait_for_vote(&self, context: &Context, seqno: Seqno) -> bool {
        let is_to_come = |control| is_open(control, seqno) || may_open(context, control, seqno);
        seqno <= self.in_step_upto && context.control().is_none_or(is_to_come)
    }

    /// Ends a dispute on which no decision can come any more, after the node is in step with the group again: the group
    /// may have decided meanwhile, or forgotten the vote. Call it until None.
    pub(crate) fn next_over(&mut self, context: &Context) -> Option<Vec<VotingOutput>> {
        let control = context.control()?;
        let is_over = |seqno: &&Seqno| {
            let is_decided = control.votes.result(**seqno).is_some();
            is_decided || !is_open(control, **seqno) && !may_open(context, control, **seqno)
        };
        let seqno = *self.disputes.keys().find(is_over)?;
        self.end_dispute(seqno, control.votes.result(seqno))
    }

    /// Ends a presumption that is decided, after the database has caught up: a peer's control state already contained
    /// the decision. Call it until None.
    pub(crate) fn next_presumed_decided(&mut self, context: &Context) -> Option<Vec<VotingOutput>> {
        let votes = &context.control()?.votes;
        let mut presumed = self.presumed.keys();
        let (seqno, winner) = presumed.find_map(|seqno| Some((*seqno, votes.result(*seqno)?)))?;
        self.end_presumed(seqno, winner)
    }

    /// Ends a dispute on which no decision will come: this node cannot know whether it has diverged. Call it until
    /// None.
    pub(crate) fn abandon_next(&mut self) -> Option<Vec<VotingOutput>> {
        let seqno = *self.disputes.keys().next()?;
        self.end_dispute(seqno, None)
    }

    /// Forgets the dummies, because a state transfer begins: its log says again which entries failed.
    pub(crate) fn forget_dummies(&mut self) {
        self.dummies.clear();
    }

    /// Notes that the server gets this seqno as a dummy. `commits`: it commits a stream at the others.
    pub(crate) fn passed_as_dummy(&mut self, seqno: Seqno, commits: bool) {
        self.dummies.insert(seqno);
        if commits {
            self.lacks = Some(seqno);
        }
    }

    /// Returns the seqno with which the others have committed a streaming transaction that this node has given up (rule
    /// 7).
    pub(crate) fn lacks_commit(&self) -> Option<Seqno> {
        self.lacks
    }

    /// Notes that an SST has replaced the database; it ends at `seqno`. Presumptions are over, without a
    /// [`VotingOutput::MarkSafe`]: the SST ends all marks.
    pub(crate) fn snapshot_taken(&mut self, seqno: Seqno) {
        self.snapshot_at = seqno;
        self.ahead = self.ahead.split_off(&(seqno + 1));
        self.lacks = None;
        self.presumed.clear();
    }
}

fn is_open(control: &Control, seqno: Seqno) -> bool {
    control.votes.open().any(|open| open == seqno)
}

/// Returns true if this node may still open the vote on this seqno. A joiner may not: it would have to apply the entry
/// before its ballot counts. At or below the floor all members have applied the entry, and its vote may be forgotten.
fn may_open(context: &Context, control: &Control, seqno: Seqno) -> bool {
    let state = context.my_node_state();
    state.is_some_and(|state| state != NodeState::Joiner) && seqno > control.certification.floor()
}

#[cfg(test)]
mod tests;
