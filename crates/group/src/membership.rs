//! This process as a member. Here: primary or not, leader or not. `membership/admission.rs`: joining and leaving.
//! `membership/overriding.rs`: forced views. `membership/payloads.rs`: its submissions and reads.
//!
//! In: lost and regained majorities, committed views, elections won. Out: heartbeats, the non-primary component, failed
//! submissions and reads, `Left`. It records no acknowledgement, and commits nothing.

mod admission;
mod overriding;
mod payloads;

use trireme_mutants::{Mutant, planted};

use crate::acks::Acks;
use crate::branches::{Branches, branches};
use crate::component::Component;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::dissemination::Dissemination;
use crate::election_timer::ElectionTimer;
use crate::elections::{Elections, Won, elections};
use crate::event::Action;
use crate::forced_views::ForcedViews;
use crate::founding::{Expects, Founding, Support};
use crate::ids::{Incarnation, ReplicaId, TimeMs};
use crate::known::{Known, known};
use crate::leader::{Leader, leader};
use crate::log::Log;
use crate::matching::Matching;
use crate::message::{Message, Status};
use crate::outbox::Outbox;
use crate::peers::Peers;
use crate::reads::Reads;
use crate::role::Role;
use crate::vote::Vote;

/// The parts that this process's membership changes.
pub(crate) struct Membership<'a> {
    pub(crate) context: &'a Context,
    pub(crate) acks: &'a Acks,
    pub(crate) peers: &'a mut Peers,
    pub(crate) vote: &'a mut Vote,
    pub(crate) log: &'a mut Log,
    pub(crate) matching: &'a mut Matching,
    pub(crate) role: &'a mut Role,
    pub(crate) election_timer: &'a mut ElectionTimer,
    pub(crate) component: &'a mut Component,
    pub(crate) forced_views: &'a mut ForcedViews,
    pub(crate) dissemination: &'a mut Dissemination,
    pub(crate) reads: &'a mut Reads,
    pub(crate) out: &'a mut Outbox,
}

/// Lends a group's parts to [`Membership`].
macro_rules! membership {
    ($group:expr) => {
        $crate::known::lend!(
            membership::Membership,
            $group,
            reads: [context, acks],
            changes: [
                peers, vote, log, matching, role, election_timer, component, forced_views,
                dissemination, reads, out
            ]
        )
    };
}
pub(crate) use membership;

impl Membership<'_> {
    // ---- what it knows ----

    fn known(&self) -> Known<'_> {
        known!(self)
    }

    fn branches(&self) -> Branches<'_> {
        branches!(self)
    }

    fn me(&self) -> Incarnation {
        self.context.me()
    }

    fn my_replica(&self) -> ReplicaId {
        self.context.my_replica()
    }

    /// The connected leader of the promised term, or its candidate.
    pub(crate) fn voice_of_term(&self) -> Option<Incarnation> {
        self.known().voice(self.vote.promised().replica)
    }

    /// The leader of the promised term, if it has said that it leads.
    pub(crate) fn leader_in_term(&self) -> Option<Incarnation> {
        self.known().leader_of(self.vote.promised())
    }

    // ---- what it lends and sends ----

    fn elections(&mut self) -> Elections<'_> {
        elections!(self)
    }

    fn leader(&mut self) -> Leader<'_> {
        leader!(self)
    }

    fn send(&mut self, to: Incarnation, message: Message) {
        self.out.send(self.peers, vec![to], message);
    }

    fn send_all(&mut self, to: Vec<Incarnation>, message: Message) {
        self.out.send(self.peers, to, message);
    }

    // ---- heartbeats ----

    fn own_status(&self) -> Status {
        own_status(self.branches(), self.vote, self.matching, self.role)
    }

    /// The heartbeat of this process for one peer.
    pub(crate) fn status_for(&self, peer: Incarnation) -> Status {
        let status = self.own_status();
        match self.may_lead(peer) {
            true => status,
            false => status.of_no_leader(),
        }
    }

    /// False for a peer with no part in the election of this leader. A lonely leader leads nobody: its followers may hear
    /// a majority without it, and must miss it.
    fn may_lead(&self, peer: Incarnation) -> bool {
        if self.component.is_lonely(self.known()) {
            return false;
        }
        let (term, replica) = (self.vote.promised(), self.peers.replica_of(peer));
        replica.is_none_or(|replica| self.log.is_electorate(term, replica))
    }

    /// Sends a heartbeat to all peers at once.
    pub(crate) fn announce(&mut self) {
        let (status, peers) = (self.own_status(), self.peers.names());
        let (electorate, others): (Vec<_>, Vec<_>) =
            (peers.iter().copied()).partition(|peer| self.may_lead(*peer));
        self.send_all(others, Message::Status(status.clone().of_no_leader()));
        self.send_all(electorate, Message::Status(status));
        self.vote.note_told();
        (self.forced_views).note_told(&self.log.committed().overrides);
        self.tell_expectation(peers);
    }

    /// Tells peers the number of nodes that this blank node expects, and its promised term.
    pub(crate) fn tell_expectation(&mut self, to: Vec<Incarnation>) {
        let support = Support::of(self.vote, self.component);
        let expectation = Founding::announce(self.known(), support, to);
        if let Some((to, Expects { nodes, promised })) = expectation {
            self.send_all(to, Message::Expects { nodes, promised });
        }
    }

    // ---- leadership ----

    /// Becomes leader. The caller tells the others when the log holds the forced view with which the term begins
    /// (rule 4).
    fn begin_to_lead(&mut self, won: Option<&Won>) {
        self.leader().begin(won);
        self.resend_own(0);
        if planted(Mutant::TakeoverMakesView) {
            self.leader().request_reform();
        }
    }

    /// Leads, if this member has won an election.
    pub(crate) fn lead(&mut self, won: Option<Won>) {
        if let Some(won) = won {
            self.begin_to_lead(Some(&won));
            self.leader().take_over(&won);
            self.announce();
        }
    }

    // ---- primary or not ----

    /// Returns when this process last heard a majority of every configuration that may be in force (rule 3). It counts
    /// itself.
    fn majority_heard_at(&self) -> Option<TimeMs> {
        let now = self.context.now();
        // A member that follows another branch acknowledges nothing here.
        let overriders = self.branches().overriders().map(|(peer, ..)| peer);
        let gone: Vec<Incarnation> = overriders.collect();
        let is_here = |peer| !gone.contains(&peer) || planted(Mutant::OtherBranchHeard);
        let heard_since = |at: TimeMs| {
            let within_ms = now.saturating_sub(at) + 1;
            let heard = |configuration: &_| {
                (self.known()).hears_majority_among(is_here, within_ms, configuration)
            };
            match planted(Mutant::PendingViewUnheeded) {
                true => heard(&self.log.committed().configuration),
                false => self.log.in_every_configuration(heard),
            }
        };
        let peers = self.peers.connected().map(|(_, peer)| peer.heard_at);
        peers.chain([now]).filter(|at| heard_since(*at)).max()
    }

    /// A node becomes non-primary if it has heard no majority of every configuration that may be in force (rule 3) for
    /// too long. A leader that hears a majority again proposes a new view.
    pub(crate) fn watch_majority(&mut self) {
        let (now, timeout_ms) = (self.context.now(), self.context.config().suspect_timeout_ms);
        let is_back = self.component.is_majority_back(self.context);
        let heard_at = match self.role.is_leader() {
            true => self.majority_heard_at(),
            false => None, // leaders tell: see `leader_speaks`
        };
        let heard_at = heard_at.filter(|at| now < at + timeout_ms);
        if let (Some(heard_at), Some(leader)) = (heard_at, self.role.leader_mut()) {
            if is_back {
                leader.begin_anew(now);
            }
            let heard_at = match planted(Mutant::SilenceFromTick) {
                true => now,
                false => heard_at,
            };
            self.component.majority_mut().heard(heard_at);
            if self.component.is_non_primary() && self.leader().may_order() {
                self.leader().request_reform();
            }
        }
        if self.component.is_primary()
            && self
                .component
                .majority()
                .is_silent(self.context.now(), timeout_ms)
        {
            // An attempt that came to nothing is not repeated: this process would stay primary and order nothing.
            let may_force = self.may_go_on_alone()
                && !self.component.is_leaving()
                && !self.component.majority().has_tried_alone();
            if may_force && self.elections().has_room_for_override() {
                self.go_on_alone();
            } else {
                // A leaver leaves without confirmation: others give way to a component that calls itself primary.
                self.component.majority_mut().lost(self.context.now());
                self.declare_non_primary();
            }
        }
    }

    pub(crate) fn declare_non_primary(&mut self) {
        let number = self.log.latest().number;
        if !self.component.stop_being_primary(number) {
            return;
        }
        self.component
            .majority_mut()
            .remind_later(self.context.now());
        self.withdraw_own();
        self.fail_reads();
        self.refresh_component();
    }

    /// Reports the non-primary component, if it has changed.
    pub(crate) fn refresh_component(&mut self) {
        if let Some(component) = self.component.reachable(known!(self)) {
            self.out.push(Action::NonPrimary { component });
        }
    }

    /// A process without a majority logs the members for which it waits, at most every 10 s.
    pub(crate) fn tell_who_is_missing(&mut self) {
        let now = self.context.now();
        if !self.component.majority().is_reminder_due(now) {
            return;
        }
        if let Some(missing) = (self.branches()).who_is_missing(self.vote.is_amnesiac()) {
            self.component.majority_mut().remind_later(now);
            let text = missing.text;
            self.out.note(text);
        }
    }

    /// A committed configuration lists this member, which makes it primary. Exceptions: the configuration is not newer
    /// than the one in which the member declared itself non-primary, or the member has left without the cluster's
    /// confirmation.
    pub(crate) fn admitted(&mut self, configuration: &Configuration) {
        self.dissemination.seated();
        let is_made_primary = self.component.admit(configuration.number);
        if is_made_primary {
            self.forced_views.made_primary();
            self.component.majority_mut().heard(self.context.now());
        }
        let is_forced = configuration.override_id.is_some();
        if is_forced {
            // The members drop what comes from a process of another branch.
            self.announce();
        }
        if is_made_primary || is_forced {
            self.resend_own(0);
        }
    }

    /// A configuration without this member is committed.
    pub(crate) fn excluded(&mut self) {
        // A forced view above may list it again: then it leads on.
        let stays = self.log.latest().member(self.me()).is_some();
        if let Some(leader) = self.role.leader().filter(|_| !stays) {
            // This leader took over a log that ends with its own removal. It transfers leadership to a member, or to a
            // restarted process of a member's replica.
            let members = &self.log.committed().configuration;
            let votes = |replica| members.replica(replica).is_some_and(|m| m.weight > 0);
            let voters = (self.peers.connected()).filter(|(_, peer)| votes(peer.replica));
            let best = voters
                .map(|(incarnation, _)| incarnation)
                .max_by_key(|incarnation| leader.replication.acked(*incarnation));
            self.elections().step_aside();
            if let Some(successor) = best {
                self.leader()
                    .hand_over_to(successor, "a view is committed without this member");
            }
        }
        if self.component.is_leaving() {
            self.component.has_left();
            self.withdraw_own();
            self.fail_reads();
            self.out.push(Action::Left);
        } else {
            self.declare_non_primary();
            // Any later view that lists this member makes it primary again, also one that its log already holds.
            let number = self.log.committed().configuration.number;
            self.component.left_in(number);
        }
    }
}

/// The heartbeat of this process.
pub(crate) fn own_status(
    branches: Branches,
    vote: &Vote,
    matching: &Matching,
    role: &Role,
) -> Status {
    let (log, component) = (branches.log, branches.component);
    let committed = log.committed();
    let members = &committed.configuration.members;
    Status {
        term: vote.promised(),
        leader: role.is_leader(),
        component_state: component.state(),
        history: committed.history,
        overrides: committed.overrides.clone(),
        configuration_number: committed.configuration.number,
        members: members.iter().map(|m| m.incarnation).collect(),
        ack: branches.own_ack(vote, matching, role.is_leader()),
        end: log.tail().end(),
        commit: committed.position,
        outlook: branches.known().own_outlook(component.is_going()),
    }
}
