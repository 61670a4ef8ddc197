//! Acknowledgements, the commit point, and the delivery of what is committed.

use trireme_mutants::{Mutant, planted};

use crate::configuration::Configuration;
use crate::event::Action;
use crate::group::Group;
use crate::ids::{Ballot, Incarnation, Position};
use crate::log::{Committed, Delivers};

impl Group {
    pub(crate) fn ack(&mut self, from: Incarnation, ballot: Ballot, position: Position) {
        self.record_ack(from, ballot, position);
        if let Some(leader) = self.role.leader_mut() {
            if ballot == self.vote.promised() {
                leader.replication.acknowledged(from, position);
            }
        }
    }

    /// Acknowledgements count for their own ballot only (rule 1) and for the latest incarnation of
    /// their replica (rule 14).
    pub(crate) fn record_ack(&mut self, from: Incarnation, ballot: Ballot, position: Position) {
        let Some(peer) = self.peers.get(from).filter(|peer| peer.up) else {
            return;
        };
        let replica = peer.replica;
        if !self.known().has_twin(replica, from) {
            self.acks.record(replica, from, ballot, position);
        }
    }

    /// Up to here this member is known to hold what is committed: by its own word, in the ballot in force here. 0: nothing
    /// was heard.
    pub fn held_by(&self, member: Incarnation) -> Position {
        let word = self.acks.of_member(member, self.vote.promised());
        word.min(self.log.committed().position)
    }

    /// Highest position acknowledged, in the promised ballot, by more than half of the votes.
    fn quorum_position(&self, configuration: &Configuration) -> Position {
        let mut acks: Vec<(Position, u64)> = configuration
            .members
            .iter()
            .map(|member| {
                let position = if member.replica == self.my_replica() {
                    self.own_ack()
                } else {
                    self.acks.of_replica(member.replica, self.vote.promised())
                };
                (position, u64::from(member.weight))
            })
            .collect();
        acks.sort_unstable_by(|a, b| b.cmp(a));
        let mut weight = 0;
        for (position, votes) in acks {
            weight += votes;
            if configuration.is_majority(weight) {
                return position;
            }
        }
        0 // not reached: every configuration has a vote in it (`propose_changes`)
    }

    /// Commits what the acknowledgements allow.
    pub(crate) fn advance_commit(&mut self) {
        if !self.matching.is_matched() && !self.role.is_leader() {
            return;
        }
        while let Some(position) =
            (self.log).committable(self.vote.promised(), |c| self.quorum_position(c))
        {
            self.commit_to(position);
        }
        if let Some(leader) = self.role.leader() {
            // Its log is the group's now, whatever it once forgot.
            if self.log.committed().position >= leader.start() {
                self.vote.is_intact();
            }
        }
    }

    /// The sequencer says what is committed; true for this log as far as it matches.
    pub(crate) fn learn_commit(&mut self, commit: Position) {
        let commit = match planted(Mutant::UncommittedDelivered) {
            true => self.own_ack(),
            false => commit.min(self.own_ack()),
        };
        if self.matching.is_matched() && commit > self.log.committed().position {
            self.commit_to(commit);
        }
    }

    pub(crate) fn commit_to(&mut self, position: Position) {
        let mut delivers = true;
        while self.log.committed().position < position {
            let committed = self.log.commit_next();
            delivers = committed.delivers != Delivers::Nothing;
            self.deliver(committed);
        }
        if !delivers {
            self.out.push(Action::Passed { position });
        }
    }

    fn deliver(&mut self, committed: Committed) {
        let position = committed.position;
        if let Some(id) = committed.submission {
            let outputs = self.dissemination.committed(self.me(), id, position);
            self.disseminate(outputs);
        }
        match committed.delivers {
            Delivers::Nothing => {}
            Delivers::FromLog => self.out.deliver_from_log(position),
            Delivers::This(delivery) => self.out.push(Action::Deliver { position, delivery }),
        }
        if let Some((before, now)) = committed.changed {
            self.configured(&before, &now);
        }
    }

    /// A configuration is committed.
    fn configured(&mut self, before: &Configuration, now: &Configuration) {
        let me = self.me();
        let at = self.log.committed().position;
        self.forced_views.committed(at, before, now);
        (self.component).keep_joined(|member| now.member(member).is_some());
        let latest = self.log.latest().clone();
        let members = now.members.iter().chain(&latest.members);
        let members = members.map(|m| m.incarnation).collect();
        let outputs = self.dissemination.configured(members);
        self.disseminate(outputs);
        if now.member(me).is_some() {
            if before.member(me).is_none() {
                // After a long absence the numbers begin anew ([`crate::Numbers`]).
                let number = self.log.committed().last_number(self.my_replica(), me);
                self.fail_covered(number.unwrap_or(0));
            }
            self.admitted(now);
        }
        if let Some(leader) = self.role.leader_mut() {
            leader.replication.configured(now);
            // As the primary that it is by now: who has this view, too, would leave it again.
            self.announce();
        }
        let left: Vec<Incarnation> = before
            .members
            .iter()
            .map(|m| m.incarnation)
            .filter(|m| now.member(*m).is_none())
            .collect();
        for incarnation in left {
            self.peers.left(incarnation);
        }
        if now.member(me).is_none() && (before.member(me).is_some() || self.loses_seat(before, now))
        {
            self.excluded();
        }
    }

    /// This member is in a committed configuration: primary, unless it is one from before it
    /// declared itself non-primary, or it has left without the cluster's word.
    pub(crate) fn admitted(&mut self, configuration: &Configuration) {
        self.dissemination.seated();
        if self.component.admit(configuration.number) {
            self.majority.heard(self.context.now());
            self.resend_own(0);
        }
    }
}
