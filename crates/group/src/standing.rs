//! What a process believes about itself and the others: heartbeats, silence, non-primary (rules 10, 20).

use trireme_mutants::{Mutant, planted};

use crate::configuration::Member;
use crate::dissemination::RESEND_AFTER_MS;
use crate::event::Action;
use crate::group::Group;
use crate::ids::{Incarnation, TimeMs};
use crate::known::known;
use crate::message::{Message, Standing, Status};
use crate::missing::Missing;
use crate::peer::Peer;

impl Group {
    pub(crate) fn own_status(&self) -> Status {
        let configuration = &self.log.committed().configuration;
        Status {
            ballot: self.vote.promised(),
            sequencer: self.role.is_leader(),
            standing: self.component.state(),
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

    pub(crate) fn status(&mut self, from: Incarnation, status: Status) {
        let Some(replica) = self.peers.replica_of(from) else {
            return; // `message` has looked it up
        };
        let news = self.peers.said(from, &status);
        self.meet_own_twin(from, &status);
        if self.known().is_foreign(from) || self.known().has_twin(replica, from) {
            return;
        }
        self.ack(from, status.ballot, status.ack);
        if self.context.config().measures {
            let (me, now) = (self.me(), self.context.now());
            self.peers.measure(from, me, &status.outlook, now);
        }
        self.tell_split(&status);
        let same_history =
            self.log.committed().history.is_nil() || self.log.committed().history == status.history;
        if !status.sequencer
            || status.ballot.replica != replica
            || status.standing == Standing::Outside
        {
            return;
        }
        if !self.component.is_outside() && !same_history {
            return;
        }
        if !self.heed_overrides(from, &status) {
            // Who has a seat may be about to commit the override that it lacks, and needs this member's word: in a
            // higher ballot than its own.
            if status.ballot < self.vote.promised() && self.log.has_seat(replica) {
                let promised = self.vote.promised();
                self.send(from, Message::Refuse { promised });
            }
            return;
        }
        if !self.concerns_me(&status) {
            // A component that this process is not in (any more): it asks for admission.
            if self.component.is_primary()
                && self.log.committed().configuration.number < status.configuration_number
            {
                self.declare_non_primary();
            }
            if self.component.is_primary()
                || !status
                    .overrides
                    .starts_with(self.branches().binding_overrides())
            {
                return;
            }
        }
        self.leader_speaks(from, &status, news);
    }

    /// A heartbeat of somebody that leads a component that this process is in, or may come into.
    fn leader_speaks(&mut self, from: Incarnation, status: &Status, news: bool) {
        if status.ballot < self.vote.promised() {
            let promised = self.vote.promised();
            self.send(from, Message::Refuse { promised });
            return;
        }
        if !self.accept_ballot(from, status.ballot) {
            return;
        }
        if self.vote.is_amnesiac() && self.log.tail().end() > 0 {
            // Whatever this replica acknowledged and has forgotten is in a sequencer's log (rule 4).
            self.vote.will_be_intact_at(status.end);
        }
        if status.standing == Standing::Primary {
            // One whose log is no continuation of this one is not this node's primary.
            if !self.matching.is_forked() {
                self.majority.heard(self.context.now());
            }
        } else if self.component.is_primary()
            && status.configuration_number >= self.log.committed().configuration.number
        {
            // Not an old word from before the view that this member knows already.
            self.declare_non_primary();
        }
        let stalled = (self.matching).has_stalled(status.end, self.log.tail().end());
        if news {
            self.matching.ask_at_once();
            self.go_on_leaving();
        }
        if news || !self.matching.is_matched() || stalled {
            self.ask_catch_up(from);
        }
        if self.matching.is_matched() {
            self.learn_commit(status.commit);
        }
        self.ask_to_join();
    }

    /// True if the sender's component counts on this process: it is a member there, or it knows of
    /// a membership that the sender has not committed yet.
    fn concerns_me(&self, status: &Status) -> bool {
        let me = self.me();
        status.members.contains(&me)
            || self.log.latest().member(me).is_some()
                && status.overrides == self.log.committed().overrides
                && status.configuration_number < self.log.latest().number
            || self.component.is_outside()
    }

    pub(crate) fn tick(&mut self, late_ms: TimeMs) {
        if late_ms > 2 * self.context.config().heartbeat_ms {
            self.overslept(late_ms);
        }
        if self.context.beats() {
            self.reconsider_office();
            self.election_timer.forget_silence();
            self.announce();
            self.resend_own(RESEND_AFTER_MS);
            let leader = self.sequencer_in_office();
            let outputs = self.dissemination.go_on(known!(self), leader);
            self.disseminate(outputs);
            self.refresh_component();
            self.ask_to_join();
            self.tell_who_is_missing();
            self.tell_what_founding_waits_for();
            self.pursue_founding();
        }
        self.pull_holes();
        self.watch_evidence();
        self.watch_majority();
        self.watch_office();
        self.go_on_leaving();
    }

    /// This process did not run, or its machine slept: that nobody was heard meanwhile says nothing of
    /// the others (rule 2).
    fn overslept(&mut self, late_ms: TimeMs) {
        let now = self.context.now();
        let awake = |heard_at: &mut TimeMs| *heard_at = (*heard_at + late_ms).min(now);
        self.election_timer.shift_heard(awake);
        self.majority.shift_heard(awake);
        self.peers.shift_heard(awake);
    }

    /// A process without a majority says whom it waits for, now and then.
    fn tell_who_is_missing(&mut self) {
        let now = self.context.now();
        if !self.majority.is_reminder_due(now) {
            return;
        }
        if let Some(missing) = self.missing() {
            self.majority.remind_later(now);
            let text = missing.text;
            self.out.note(text);
        }
    }

    /// Whom this process waits for; None: not for a majority.
    pub fn missing(&self) -> Option<Missing> {
        self.branches().who_is_missing(self.vote.is_amnesiac())
    }

    /// Without a majority for too long, of every configuration that may be in force (rule 3), a node stops being
    /// primary; a sequencer that has one again makes a new view.
    fn watch_majority(&mut self) {
        let timeout_ms = self.context.config().suspect_timeout_ms;
        let heard = |configuration: &_| self.known().hears_majority(timeout_ms, configuration);
        let heard = match planted(Mutant::PendingViewUnheeded) {
            true => heard(&self.log.committed().configuration),
            false => self.log.in_every_configuration(heard),
        };
        let is_back = self.is_majority_back();
        if let Some(leader) = self.role.leader_mut().filter(|_| heard) {
            if is_back {
                leader.begin_anew(self.context.now());
            }
            self.majority.heard(self.context.now());
            if self.component.is_non_primary() && self.may_order() {
                self.wish_reform();
            }
        }
        if self.component.is_primary()
            && self.majority.is_silent(self.context.now(), timeout_ms)
            && !self.component.is_leaving()
        {
            if self.may_go_on_alone() && self.has_room_for_override() {
                self.go_on_alone();
            } else {
                self.majority.lost(self.context.now());
                self.declare_non_primary();
            }
        }
    }

    /// True when a sequencer that had lost its majority hears one again. Those who are still missing get as long to come
    /// back as under a new sequencer: without them the new view would keep their streaming transactions out, and the
    /// others' in.
    pub(crate) fn is_majority_back(&self) -> bool {
        (self.majority).is_silent(self.context.now(), self.context.config().suspect_timeout_ms)
    }

    pub(crate) fn declare_non_primary(&mut self) {
        let number = self.log.latest().number;
        if !self.component.stop_being_primary(number) {
            return;
        }
        self.majority.remind_later(self.context.now());
        self.withdraw_own();
        self.fail_reads();
        self.refresh_component();
    }

    /// Members of the last view that are reachable and have no majority either (rule 20). The others lose the same majority
    /// some heartbeats sooner or later: until then they count.
    fn refresh_component(&mut self) {
        if !self.component.is_non_primary() {
            return;
        }
        let me = self.me();
        let speaks = |peer: &Peer| {
            self.context.now() < peer.heard_at + self.context.config().suspect_timeout_ms
        };
        let soon_ms = 3 * self.context.config().heartbeat_ms;
        let just_lost = self.majority.was_just_lost(self.context.now(), soon_ms);
        let with_me = |m: &&Member| {
            let peer = self.peers.get(m.incarnation).filter(|p| p.up);
            let status = peer.and_then(|p| p.status.as_ref());
            m.incarnation == me
                || status.is_some_and(|s| s.standing == Standing::NonPrimary)
                || (just_lost && peer.is_some_and(speaks))
        };
        let mut component: Vec<Member> = self
            .log
            .committed()
            .configuration
            .members
            .iter()
            .filter(with_me)
            .cloned()
            .collect();
        if !component.iter().any(|m| m.incarnation == me) {
            component.push(self.context.config().me.clone());
            component.sort_by_key(|m| m.incarnation);
        }
        let names: Vec<Incarnation> = component.iter().map(|m| m.incarnation).collect();
        if self.component.show(names) {
            self.out.push(Action::NonPrimary { component });
        }
    }
}
