//! The first view of a cluster, this process's admission to a view, its weight, and its leave.

use super::Membership;
use crate::branches::OVERRIDES_MAX;
use crate::configuration::{Configuration, Member};
use crate::event::Action;
use crate::ids::{Incarnation, Term, TimeMs, Uuid};
use crate::leaving::LEAVE_RETRY_MS;
use crate::message::{ComponentState, Join, Message, Status};

/// The interval between two requests for another weight.
const WEIGHT_RETRY_MS: TimeMs = 1_000;

impl Membership<'_> {
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
        self.vote.becomes_intact();
        let number = self.vote.promised().number + 1;
        let replica = self.my_replica();
        self.elections().promise_term(Term { number, replica });
        self.begin_to_lead(None);
        let number = self.component.left_number() + 1;
        self.leader().put_configuration(Configuration {
            number,
            override_id,
            ..founded
        });
        self.announce();
    }

    /// With each heartbeat: repeats the request of [`Self::weight_changed`] until the order has heeded it. The leader
    /// may have died, have transferred leadership, or never have heard it.
    pub(crate) fn pursue_weight(&mut self) {
        let weight = self.context.config().me.full_weight;
        let seat = self.log.latest().member(self.me());
        let is_open = seat.is_some_and(|seat| seat.full_weight != weight);
        if is_open && (self.component).is_weight_due(self.context.now(), WEIGHT_RETRY_MS) {
            self.weight_changed(weight);
        }
    }

    /// `pc.weight` of this member has changed. The leader orders it; a process that is no member sends it with its join
    /// request.
    pub(crate) fn weight_changed(&mut self, weight: u8) {
        let me = self.me();
        if self.role.is_leader() {
            self.leader().weight_requested(me, weight);
        } else if let Some(leader) = self.voice_of_term() {
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
                voter: self.component.is_resumed()
                    && !self.vote.is_amnesiac()
                    && !self.branches().may_be_a_copy(),
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

    pub(crate) fn leave(&mut self) {
        if self.component.leave(self.context.now()) {
            self.go_on_leaving();
        }
    }

    /// A leaver votes until the view without it is committed (rule 3).
    pub(crate) fn go_on_leaving(&mut self) {
        let Some(mut leaving) = self.component.take_leaving() else {
            return;
        };
        let me = self.me();
        let latest = self.log.latest();
        // If this member has the last vote, the next leader counts as 1 without it.
        let has_last_vote = latest.weight_of(|m| m.incarnation != me) == 0;
        let counts = |m: &&Member| m.weight > 0 || has_last_vote && m.voter;
        let others = latest.members.iter().filter(|m| m.incarnation != me);
        let reachable = others.filter(|m| self.peers.is_up(m.incarnation));
        let voters: Vec<_> = (reachable.filter(counts).map(|m| m.incarnation)).collect();
        if !self.component.is_primary() || voters.is_empty() {
            self.component.has_left();
            self.out.push(Action::Left);
            return;
        }
        let due = leaving
            .asked_at
            .is_none_or(|at| self.context.now() >= at + LEAVE_RETRY_MS);
        if self.role.is_leader() {
            self.leader().pass_leadership_on(&mut leaving, &voters);
        } else if due {
            if let Some(leader) = self.leader_in_term() {
                leaving.asked_at = Some(self.context.now());
                self.send(leader, Message::Leave);
            }
        }
        self.component.go_on_leaving(leaving);
    }
}
