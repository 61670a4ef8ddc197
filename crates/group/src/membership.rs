//! Admission, removal and weights: members ask, the sequencer proposes configurations, one at a time.

use std::collections::BTreeMap;

use trireme_mutants::{Mutant, planted};

use crate::branches::OVERRIDES_MAX;
use crate::configuration::{Configuration, Member};
use crate::event::Action;
use crate::group::Group;
use crate::ids::{Ballot, Incarnation, Uuid};
use crate::limits::MEMBERS_MAX;
use crate::message::{Join, Message, Standing, Status};
use crate::peer::Peer;

/// Membership changes wished for; the next proposal takes them all.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Changes {
    admit: BTreeMap<Incarnation, Member>,
    leave: Vec<Incarnation>,
    weights: BTreeMap<Incarnation, u8>,
    /// A member, or this sequencer, declared non-primary in the view with this number: everybody gets
    /// one with a greater number.
    reform: Option<u64>,
}

impl Group {
    /// Starts a component of one.
    pub(crate) fn bootstrap(
        &mut self,
        history: Uuid,
        overrides: Vec<Uuid>,
        override_id: Option<Uuid>,
    ) {
        assert_eq!(
            self.component.state(),
            Standing::Outside,
            "only a process outside of every view bootstraps"
        );
        assert!(
            overrides.len() + usize::from(override_id.is_some()) <= OVERRIDES_MAX,
            "who is told to bootstrap has counted the overrides"
        );
        let me = Member {
            weight: self.context.config().me.full_weight,
            voter: true,
            ..self.context.config().me.clone()
        };
        // The founder needs nobody's vote for its first view.
        let mut founded = Configuration {
            number: self.component.left_number(),
            members: vec![me],
            ..Configuration::default()
        };
        founded.ensure_vote(self.my_replica());
        self.log.found(history, overrides, founded.clone());
        self.vote.is_intact();
        let number = self.vote.promised().number + 1;
        self.promise_ballot(Ballot {
            number,
            replica: self.my_replica(),
        });
        self.open_office(&|_| None);
        self.put_configuration(Configuration {
            number: self.component.left_number() + 1,
            override_id,
            ..founded
        });
    }

    /// Proposes one configuration with all that is wished for and due, if none is under way.
    pub(crate) fn propose_changes(&mut self) {
        let Some(office) = self.role.leader() else {
            return;
        };
        let pending = self.log.uncommitted().next().is_some() && !planted(Mutant::TwoPendingViews);
        if pending || self.log.committed().position < office.start() {
            return;
        }
        let current = match planted(Mutant::TwoPendingViews) {
            true => self.log.latest().clone(),
            false => self.log.committed().configuration.clone(),
        };
        let mut next = Configuration {
            override_id: None,
            fork_after: 0,
            ..current.clone()
        };
        self.remove_the_dead(&mut next);
        let me = self.context.config().me.clone();
        let Some(office) = self.role.leader_mut() else {
            return;
        };
        let mut wishes = std::mem::take(&mut office.changes);
        // Who had no history when it asked may have joined another cluster since.
        wishes
            .admit
            .retain(|joiner, _| !self.known().is_foreign(*joiner));
        let mut changes = wishes.clone();
        if current.member(me.incarnation).is_none() && current.replica(me.replica).is_some() {
            // Elected for its log before its restarted process was admitted.
            let voter = !self.vote.is_amnesiac();
            changes.admit.insert(me.incarnation, Member { voter, ..me });
        }
        next.members
            .retain(|m| !changes.leave.contains(&m.incarnation));
        for (incarnation, member) in changes.admit {
            next.members.retain(|m| m.replica != member.replica);
            if current.member(incarnation).is_none() {
                // Who lost nothing that it acknowledged keeps the vote of its seat (rules 3, 14).
                let seat = current.replica(member.replica);
                let voter = member.voter && seat.is_some_and(|seat| seat.voter);
                next.members.push(Member {
                    weight: 0,
                    voter,
                    ..member
                });
            }
        }
        for member in &mut next.members {
            if let Some(weight) = changes.weights.get(&member.incarnation) {
                member.full_weight = *weight;
            }
            // A vote is given to who sits there already: who is admitted now has yet to join.
            let sits = current.member(member.incarnation).is_some();
            let joined = self.component.has_joined(member.incarnation);
            member.voter |= sits && joined || planted(Mutant::JoinerVotesAtOnce);
            member.weight = if member.voter { member.full_weight } else { 0 };
        }
        next.sort();
        let outlived = changes.reform.is_some_and(|left| current.number <= left);
        if !next.same_members(&current) || outlived {
            next.number += 1;
        }
        next.ensure_vote(self.my_replica());
        if next.total_weight() == 0 {
            let text = "a change of membership or weights that leaves no vote at all is not made";
            self.out.push(Action::Note { text: text.into() });
            return;
        }
        if next == current || next.members.iter().all(|m| m.incarnation != self.me()) {
            return;
        }
        if self
            .known()
            .hears_majority(self.context.config().suspect_timeout_ms, &next)
            && self.can_elect(&next)
        {
            self.put_configuration(next);
        } else if let Some(office) = self.role.leader_mut() {
            // Nobody could commit it: a restarted process that is admitted has no vote at first. When
            // the others have been silent for long enough they are left out, and it is.
            office.changes = wishes;
        }
    }

    /// True if a sequencer could be elected under this configuration although restarted processes, which
    /// may have forgotten what they acknowledged, sit in it with the vote of the one before (rule 4):
    /// they have to come in first.
    fn can_elect(&self, configuration: &Configuration) -> bool {
        let is_intact = |m: &Member| self.is_here(m) || self.successors(m).next().is_none();
        configuration.is_half(configuration.weight_of(is_intact))
    }

    /// The seat's own process speaks; another one on its data directory is a copy's (rule 14).
    fn is_here(&self, seat: &Member) -> bool {
        let heard = |peer: &Peer| {
            peer.up && self.context.now() < peer.heard_at + self.context.config().office_timeout_ms
        };
        seat.incarnation == self.me() || self.peers.get(seat.incarnation).is_some_and(heard)
    }

    /// Processes that have taken the place of the seat's, and are connected.
    fn successors<'a>(&'a self, seat: &'a Member) -> impl Iterator<Item = &'a Peer> {
        let another = self
            .peers
            .connected()
            .filter(|(known, peer)| peer.replica == seat.replica && *known != seat.incarnation);
        another.map(|(_, peer)| peer)
    }

    /// Leaves out members that are proven dead or silent for too long, as long as the remainder
    /// keeps the majority (rule 10).
    fn remove_the_dead(&self, next: &mut Configuration) {
        let Some(office) = self.role.leader() else {
            return;
        };
        let timeout_ms = self.context.config().suspect_timeout_ms;
        let since = match self.is_majority_back() {
            true => self.context.now(),
            false => office.since(),
        };
        let speaks = |peer: &Peer| self.context.now() < peer.heard_at + timeout_ms;
        let gone = |m: &Member| match self.peers.get(m.incarnation) {
            // A seat whose process has restarted is taken by the new one, if that lives.
            _ if m.replica == self.my_replica() || self.successors(m).any(speaks) => false,
            Some(peer) if peer.dead || self.branches().has_gone_on_alone(m) => true,
            Some(peer) => self.context.now() >= peer.heard_at.max(since) + timeout_ms,
            None => self.context.now() >= since + timeout_ms,
        };
        if next.is_majority(next.weight_of(|m| !gone(m))) {
            next.members.retain(|m| !gone(m));
        }
    }

    pub(crate) fn join_requested(&mut self, from: Incarnation, join: Join) {
        if join.member.incarnation != from
            || self.peers.replica_of(from) != Some(join.member.replica)
        {
            return;
        }
        if !self.role.is_leader() {
            return;
        }
        if let Err(reason) = self.admissible(&join) {
            // Without a majority nobody can say which branch is the cluster's (rule 11).
            if self.component.is_primary() || planted(Mutant::MinorityRefuses) {
                self.send(from, Message::JoinRefused { reason });
            }
            return;
        }
        let latest = self.log.latest();
        let seated = latest.member(from).is_some();
        // Numbers of another branch mean nothing here.
        let knows = (join.overrides == self.log.committed().overrides).then_some(join.known_number);
        let knows = knows.filter(|known| *known >= latest.number);
        let Some(office) = self.role.leader_mut() else {
            return;
        };
        if !seated {
            office.changes.admit.insert(from, join.member);
        } else {
            office.changes.reform = office.changes.reform.max(knows);
        }
    }

    /// Rules 11 and 14: another history, a fork and a copied data directory are refused.
    fn admissible(&self, join: &Join) -> Result<(), String> {
        let (history, known) = (
            self.log.committed().history,
            &self.log.committed().overrides,
        );
        if !join.history.is_nil() && join.history != history {
            return Err(format!(
                "this node goes on with the history {}, the cluster's is {history}: if it belongs here, move grastate.dat and \
                 the trireme-*.log files away to join by a state snapshot, which drops this node's own data",
                join.history
            ));
        }
        if !known.starts_with(&join.overrides) {
            let mut only_there = join.overrides.iter().filter(|id| !known.contains(id));
            let forks = only_there.next().copied().unwrap_or_default();
            return Err(format!(
                "this node's history was forked by an override ({forks}) that the cluster does not know; move \
                 grastate.dat and the trireme-*.log files away to rejoin by a state snapshot, which drops this \
                 node's own commits"
            ));
        }
        let Some(office) = self.role.leader() else {
            return Ok(()); // its caller holds the office
        };
        if self.log.latest().members.len() + office.changes.admit.len() >= MEMBERS_MAX {
            return Err(format!(
                "the cluster has {MEMBERS_MAX} members, which is as many as it may have"
            ));
        }
        let twin = self.log.latest().members.iter().find(|m| {
            m.replica == join.member.replica
                && m.incarnation != join.member.incarnation
                && self.peers.is_up(m.incarnation)
        });
        if let Some(twin) = twin {
            return Err(format!(
                "member {} ({}) runs with the same replica id {}: this is a copied data directory; remove its \
                 trireme state files and grastate.dat",
                twin.name, twin.address, twin.replica
            ));
        }
        if join.member.replica == self.my_replica() {
            return Err(format!(
                "replica id {} is this node's own: a copied data directory",
                join.member.replica
            ));
        }
        Ok(())
    }

    pub(crate) fn leave_requested(&mut self, from: Incarnation) {
        if let Some(office) = self.role.leader_mut() {
            if !office.changes.leave.contains(&from) {
                office.changes.leave.push(from);
            }
        }
    }

    pub(crate) fn weight_requested(&mut self, from: Incarnation, weight: u8) {
        if let Some(office) = self.role.leader_mut() {
            office.changes.weights.insert(from, weight);
        }
    }

    /// `pc.weight` of this member: ordered through the sequencer; a member without one sends it
    /// with its next admission.
    pub(crate) fn set_weight(&mut self, weight: u8) {
        self.context.config_mut().me.full_weight = weight;
        let me = self.me();
        if self.role.is_leader() {
            self.weight_requested(me, weight);
        } else if let Some(sequencer) = self.sequencer() {
            self.send(sequencer, Message::Weight { weight });
        }
    }

    /// Asks the cluster for admission, again and again, until a view says so.
    pub(crate) fn ask_to_join(&mut self) {
        let retry_ms = self.context.config().heartbeat_ms * 3;
        if !(self.component).may_ask_to_join(self.context.now(), retry_ms) {
            return;
        }
        let history = self.log.committed().history;
        let offices = self.peers.connected().filter(|(_, peer)| {
            let status = peer.status.as_ref();
            // A process with a history goes on with it: another cluster's view is no way back.
            let office = |s: &Status| {
                let same = history.is_nil() || s.history == history;
                s.sequencer && s.standing != Standing::Outside && same
            };
            status.is_some_and(office)
        });
        let offices =
            offices.filter(|(incarnation, _)| !self.branches().outvotes_peer(*incarnation));
        let offices: Vec<Incarnation> = offices.map(|(incarnation, _)| incarnation).collect();
        if offices.is_empty() {
            return;
        }
        self.component.asked_to_join(self.context.now());
        let join = Join {
            member: Member {
                voter: self.component.is_resumed() && !self.vote.is_amnesiac(),
                ..self.context.config().me.clone()
            },
            history: self.log.committed().history,
            known_number: match self.branches().gives_up_overrides() {
                true => 0, // numbers of the branch that is given up mean nothing there
                false => self.component.left_number(),
            },
            overrides: self.branches().binding_overrides().to_vec(),
        };
        self.send_all(offices, Message::Join(join));
    }

    /// Wishes for a new view although nobody comes or goes.
    pub(crate) fn wish_reform(&mut self) {
        let left = match planted(Mutant::TakeoverMakesView) {
            true => self.log.committed().configuration.number,
            false => self.component.left_number(),
        };
        if let Some(office) = self.role.leader_mut() {
            office.changes.reform = office.changes.reform.max(Some(left));
        }
    }
}
