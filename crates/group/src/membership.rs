//! The coordinator's work on this process's own place: the first view, leadership that it has won, its weight, and its
//! admission.

use trireme_mutants::{Mutant, planted};

use crate::branches::OVERRIDES_MAX;
use crate::configuration::{Configuration, Member};
use crate::elections::Won;
use crate::group::Group;
use crate::ids::{Incarnation, Term, Uuid};
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
        self.begin_to_lead(None);
        let number = self.component.left_number() + 1;
        self.leader().put_configuration(Configuration {
            number,
            override_id,
            ..founded
        });
    }

    /// Becomes leader, and tells the others.
    fn begin_to_lead(&mut self, won: Option<&Won>) {
        self.leader().begin(won);
        self.resend_own(0);
        if planted(Mutant::TakeoverMakesView) {
            self.leader().request_reform();
        }
        self.announce();
    }

    /// Leads, if this member has won an election.
    pub(crate) fn lead(&mut self, won: Option<Won>) {
        if let Some(won) = won {
            self.begin_to_lead(Some(&won));
            self.leader().take_over(&won);
        }
    }

    /// Sets `pc.weight` of this member. The leader orders it; a member that knows no leader sends it with its next join
    /// request.
    pub(crate) fn set_weight(&mut self, weight: u8) {
        self.context.config_mut().me.full_weight = weight;
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
}
