//! The coordinator's work on membership: admission, removal, weights, and the first view.
//!
//! In: requests of members and of this process. Out: proposed configurations, join requests. Members ask; only the
//! leader proposes, one configuration at a time (module `changes`).

use trireme_mutants::{Mutant, planted};

use crate::branches::{OVERRIDES_MAX, branches};
use crate::changes::Proposal;
use crate::configuration::{Configuration, Member};
use crate::group::Group;
use crate::ids::{Incarnation, Term, Uuid};
use crate::known::known;
use crate::message::{ComponentState, Join, Message, Status};

impl Group {
    /// Starts a component with this member alone.
    pub(crate) fn bootstrap(
        &mut self,
        history: Uuid,
        overrides: Vec<Uuid>,
        override_id: Option<Uuid>,
    ) {
        assert_eq!(
            self.component.state(),
            ComponentState::Outside,
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
        // The founder needs no other member's vote for its first view.
        let mut founded = Configuration {
            number: self.component.left_number(),
            members: vec![me],
            ..Configuration::default()
        };
        founded.ensure_vote(self.my_replica());
        self.log.found(history, overrides, founded.clone());
        self.vote.is_intact();
        let number = self.vote.promised().number + 1;
        self.promise_term(Term {
            number,
            replica: self.my_replica(),
        });
        self.begin_to_lead(&|_| None);
        self.put_configuration(Configuration {
            number: self.component.left_number() + 1,
            override_id,
            ..founded
        });
    }

    /// Proposes one configuration with all requests that are due, if none is pending.
    pub(crate) fn propose_changes(&mut self) {
        let is_back = self.is_majority_back();
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
                let text =
                    "a change of membership or weights that leaves no vote at all is not made";
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
        if let Some(leader) = self.role.leader_mut() {
            leader.changes.leave(from);
        }
    }

    pub(crate) fn weight_requested(&mut self, from: Incarnation, weight: u8) {
        if let Some(leader) = self.role.leader_mut() {
            leader.changes.weigh(from, weight);
        }
    }

    /// Sets `pc.weight` of this member. The leader orders it; a member that knows no leader sends it with its next join
    /// request.
    pub(crate) fn set_weight(&mut self, weight: u8) {
        self.context.config_mut().me.full_weight = weight;
        let me = self.me();
        if self.role.is_leader() {
            self.weight_requested(me, weight);
        } else if let Some(leader) = self.leader() {
            self.send(leader, Message::Weight { weight });
        }
    }

    /// Requests admission from all leaders here, repeatedly, until a view lists this process.
    pub(crate) fn ask_to_join(&mut self) {
        let retry_ms = self.context.config().heartbeat_ms * 3;
        if !(self.component).may_ask_to_join(self.context.now(), retry_ms) {
            return;
        }
        let history = self.log.committed().history;
        let leaders = self.peers.connected().filter(|(_, peer)| {
            let status = peer.status.as_ref();
            // A process with a history requests admission only from leaders of its own cluster UUID.
            let leads = |s: &Status| {
                let same = history.is_nil() || s.history == history;
                s.leader && s.component_state != ComponentState::Outside && same
            };
            status.is_some_and(leads)
        });
        let leaders =
            leaders.filter(|(incarnation, _)| !self.branches().outvotes_peer(*incarnation));
        let leaders: Vec<Incarnation> = leaders.map(|(incarnation, _)| incarnation).collect();
        if leaders.is_empty() {
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
        self.send_all(leaders, Message::Join(join));
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
}
