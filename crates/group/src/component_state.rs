//! The coordinator's work on the component state: heartbeats, non-primary (rules 10, 20), leaving, and removal.
//!
//! In: the tick, a leave request, committed removals. Out: heartbeats, the non-primary component, `Left`. A leaver
//! votes until the view without it is committed (rule 3).

use trireme_mutants::{Mutant, planted};

use crate::configuration::Member;
use crate::dissemination::RESEND_AFTER_MS;
use crate::event::Action;
use crate::group::Group;
use crate::ids::TimeMs;
use crate::known::known;
use crate::leaving::LEAVE_RETRY_MS;
use crate::message::{Message, Status};
use crate::missing::Missing;

impl Group {
    pub(crate) fn own_status(&self) -> Status {
        let configuration = &self.log.committed().configuration;
        Status {
            term: self.vote.promised(),
            leader: self.role.is_leader(),
            component_state: self.component.state(),
            history: self.log.committed().history,
            overrides: self.log.committed().overrides.clone(),
            configuration_number: configuration.number,
            members: configuration
                .members
                .iter()
                .map(|m| m.incarnation)
                .collect(),
            ack: self.own_ack(),
            end: self.log.tail().end(),
            commit: self.log.committed().position,
            outlook: self.known().own_outlook(self.component.is_going()),
        }
    }

    pub(crate) fn tick(&mut self, late_ms: TimeMs) {
        if late_ms > 2 * self.context.config().heartbeat_ms {
            self.overslept(late_ms);
        }
        if self.context.beats() {
            self.leader().reconsider_leadership();
            self.election_timer.forget_silence();
            self.announce();
            self.resend_own(RESEND_AFTER_MS);
            let leader = self.leader_in_term();
            let outputs = self.dissemination.go_on(known!(self), leader);
            self.disseminate(outputs);
            self.refresh_component();
            self.ask_to_join();
            self.tell_who_is_missing();
            let support = self.support();
            let reminder = self.founding.remind(known!(self), support);
            self.carry_out_founding(reminder);
            self.pursue_founding();
        }
        self.pull_holes();
        self.elections().watch_evidence();
        self.watch_majority();
        let won = self.elections().watch_leader();
        self.lead(won);
        self.go_on_leaving();
    }

    /// This process did not run, or its machine slept. The silence of the others in that time proves nothing (rule 2),
    /// so all stamps move forward.
    fn overslept(&mut self, late_ms: TimeMs) {
        let now = self.context.now();
        let awake = |heard_at: &mut TimeMs| *heard_at = (*heard_at + late_ms).min(now);
        self.election_timer.shift_heard(awake);
        self.component.majority_mut().shift_heard(awake);
        self.peers.shift_heard(awake);
    }

    /// A process without a majority logs the members for which it waits, at most every 10 s.
    fn tell_who_is_missing(&mut self) {
        let now = self.context.now();
        if !self.component.majority().is_reminder_due(now) {
            return;
        }
        if let Some(missing) = self.missing() {
            self.component.majority_mut().remind_later(now);
            let text = missing.text;
            self.out.note(text);
        }
    }

    /// The members for which this process waits; None: it does not wait for a majority.
    pub fn missing(&self) -> Option<Missing> {
        self.branches().who_is_missing(self.vote.is_amnesiac())
    }

    /// A node becomes non-primary if it has heard no majority of every configuration that may be in force (rule 3) for
    /// too long. A leader that hears a majority again proposes a new view.
    fn watch_majority(&mut self) {
        let timeout_ms = self.context.config().suspect_timeout_ms;
        let heard = |configuration: &_| self.known().hears_majority(timeout_ms, configuration);
        let heard = match planted(Mutant::PendingViewUnheeded) {
            true => heard(&self.log.committed().configuration),
            false => self.log.in_every_configuration(heard),
        };
        let is_back = self.component.is_majority_back(&self.context);
        if let Some(leader) = self.role.leader_mut().filter(|_| heard) {
            if is_back {
                leader.begin_anew(self.context.now());
            }
            self.component.majority_mut().heard(self.context.now());
            if self.component.is_non_primary() && self.leader().may_order() {
                self.leader().request_reform();
            }
        }
        if self.component.is_primary()
            && self
                .component
                .majority()
                .is_silent(self.context.now(), timeout_ms)
            && !self.component.is_leaving()
        {
            if self.may_go_on_alone() && self.elections().has_room_for_override() {
                self.go_on_alone();
            } else {
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
    fn refresh_component(&mut self) {
        if let Some(component) = self.component.reachable(known!(self)) {
            self.out.push(Action::NonPrimary { component });
        }
    }

    // ---- leaving, and removal ----

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
        let reachable = |m: &&Member| self.peers.is_up(m.incarnation);
        let members = self.log.latest().members.iter();
        let voters = members.filter(|m| m.incarnation != me && m.weight > 0);
        let voters: Vec<_> = (voters.filter(reachable).map(|m| m.incarnation)).collect();
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

    /// A configuration without this member is committed.
    pub(crate) fn excluded(&mut self) {
        if let Some(leader) = self.role.leader() {
            // This leader took over a log that ends with its own removal. It transfers leadership to a member, or to a
            // restarted process of a member's replica.
            let members = &self.log.committed().configuration;
            let votes = |replica| members.replica(replica).is_some_and(|m| m.weight > 0);
            let voters = (self.peers.connected()).filter(|(_, peer)| votes(peer.replica));
            let best = voters
                .map(|(incarnation, _)| incarnation)
                .max_by_key(|incarnation| leader.replication.acked(*incarnation));
            self.role.follow();
            self.matching.part();
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
