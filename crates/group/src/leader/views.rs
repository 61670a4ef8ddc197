//! The views that a leader makes: members come, go and change their weights, and forced views. Members ask; only the
//! leader proposes, one configuration at a time (module `changes`).

use trireme_mutants::{Mutant, planted};

use super::Leader;
use crate::branches::branches;
use crate::changes::{Changes, Proposal};
use crate::elections::Won;
use crate::ids::{Incarnation, Uuid};
use crate::known::known;
use crate::message::{Join, Message};

impl Leader<'_> {
    /// Proposes one configuration with all requests that are due, if none is pending.
    pub(crate) fn propose_changes(&mut self) {
        let is_back = self.component.is_majority_back(self.context);
        let is_intact = !self.vote.is_amnesiac();
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        if self.log.committed().position < leader.start() {
            return;
        }
        let since = match is_back {
            true => self.context.now(),
            false => leader.since(),
        };
        match leader.changes.propose(branches!(self), since, is_intact) {
            Some(Proposal::View(next)) => self.put_configuration(next),
            Some(Proposal::NoVoteLeft) => {
                let text = "refused a change of members or weights that would leave no vote; give a member a weight above 0 \
                     first";
                self.out.note(text);
            }
            None => {}
        }
    }

    pub(crate) fn join_requested(&mut self, from: Incarnation, join: Join) {
        if join.member.incarnation != from
            || self.peers.replica_of(from) != Some(join.member.replica)
        {
            return;
        }
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let asked = leader.changes.ask_admission(known!(self), from, join);
        if let Err(reason) = asked {
            // A leader without a majority cannot know which branch is the cluster's (rule 11), so it does not refuse.
            if self.component.is_primary() || planted(Mutant::MinorityRefuses) {
                self.send(from, Message::JoinRefused { reason });
            }
        }
    }

    pub(crate) fn leave_requested(&mut self, from: Incarnation) {
        if let Some(changes) = self.changes_of(from) {
            changes.leave(from);
        }
    }

    pub(crate) fn weight_requested(&mut self, from: Incarnation, weight: u8) {
        if let Some(changes) = self.changes_of(from) {
            changes.weigh(from, weight);
        }
    }

    /// The requested changes, if this process leads and `from` is a member: others' requests would fill the memory of a
    /// leader that cannot propose.
    fn changes_of(&mut self, from: Incarnation) -> Option<&mut Changes> {
        self.log.latest().member(from)?;
        self.role.leader_mut().map(|leader| &mut leader.changes)
    }

    /// Requests a new view although no member comes or goes.
    pub(crate) fn request_reform(&mut self) {
        let left = match planted(Mutant::TakeoverMakesView) {
            true => self.log.committed().configuration.number,
            false => self.component.left_number(),
        };
        if let Some(leader) = self.role.leader_mut() {
            leader.changes.reform(left);
        }
    }

    /// Appends a forced view, whose members are the promisers.
    pub(super) fn put_override(&mut self, won: &Won, override_id: Uuid) {
        let (promises, fork_after) = (&won.promises, won.commit);
        let mut next = self.log.latest().clone();
        let me = self.context.config().me.clone();
        match next.members.iter_mut().find(|m| m.replica == me.replica) {
            Some(seat) => *seat = me,
            // A pending view removes this member, but its log is the best.
            None => next.members.push(me),
        }
        // Other restarted processes request admission afterwards.
        (next.members).retain(|m| promises.giver(m.replica) == Some(m.incarnation));
        // A learner stays one: with a vote, and without a database, it could end and take the majority with it.
        for member in &mut next.members {
            let seat = self.log.latest().replica(member.replica);
            member.voter = seat.is_some_and(|seat| seat.voter);
            member.weight = if member.voter { member.full_weight } else { 0 };
        }
        if next.total_weight() == 0 {
            // This member's log is the best.
            let mut members = next.members.iter_mut();
            if let Some(me) = members.find(|m| m.replica == self.my_replica()) {
                (me.voter, me.weight) = (true, me.full_weight);
            }
        }
        next.ensure_vote(self.my_replica());
        // A candidate promises itself, so it is a member, and a forced term has its view.
        assert!(next.total_weight() > 0, "a forced view has a voter");
        next.number += 1;
        next.override_id = Some(override_id);
        next.fork_after = fork_after;
        self.out.note(format!(
            "made {} members primary without a majority (override {override_id})",
            next.members.len()
        ));
        self.put_configuration(next);
    }
}
