//! What every node computes alike from the log, and nothing else: equal at equal positions.

use std::collections::{BTreeMap, VecDeque};

use trireme_certification::{Certification, Outcome, Request, Seqno, Verdict};
use trireme_group::{Configuration, Delivery, Incarnation, Member, Position, SubmissionId, Uuid};
use trireme_mutants::{Mutant, planted};

use crate::effect::{Effect, Lost};
use crate::gtid::Gtid;
use crate::message::Message;
use crate::seqno_runs::SeqnoRuns;
use crate::votes::{Ballot, Votes};
use crate::writeset::WriteSet;

/// How many views are remembered, for joiners whose database lies a few views back.
const RECENT_VIEWS: usize = 64;

/// A member's place in the replicated state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum NodeState {
    /// In the view, without its state: its write-sets are void.
    Joiner,
    /// Sends its state, or is desynced.
    Donor,
    /// Has its state, lags behind.
    Joined,
    /// Has caught up.
    Synced,
}

/// What is known of a member.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct MemberState {
    pub state: NodeState,
    /// How often it was desynced and not resynced.
    pub desyncs: u32,
    /// The joiner that it sends its state to.
    pub donates_to: Option<Incarnation>,
    /// Everything it submits from now on has seen this.
    pub cut: Seqno,
    /// Its cut holds back the group's: Synced and Donor do, Joined only if it did before
    /// (contract trap 36).
    pub counts: bool,
    /// Desynced by the group, for writers had to wait for it: left out of flow control until it has
    /// caught up.
    pub left_out: bool,
    /// Where its database stands, which may hold a total-order action above that (rule 13), or -1: it has
    /// none of use; None: it has not said so.
    pub doubt: Option<Seqno>,
    /// All were in doubt, and the cluster goes on with this one's database.
    pub trusted: bool,
}

impl MemberState {
    fn new(state: NodeState) -> Self {
        MemberState {
            state,
            desyncs: 0,
            donates_to: None,
            cut: 0,
            counts: false,
            left_out: false,
            doubt: None,
            trusted: false,
        }
    }

    /// True if something keeps it desynced.
    fn is_desynced(&self) -> bool {
        self.desyncs > 0 || self.donates_to.is_some() || self.left_out
    }

    fn enter(&mut self, state: NodeState) {
        self.state = state;
        match state {
            NodeState::Synced | NodeState::Donor => self.counts = true,
            // Not reached: a seat begins so and never becomes so.
            NodeState::Joiner => self.counts = false,
            NodeState::Joined => {}
        }
    }
}

/// The replicated state after one position.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    /// Cluster uuid.
    pub history: Uuid,
    /// Last position processed.
    pub position: Position,
    pub certification: Certification,
    pub configuration: Configuration,
    /// Exactly the members of the configuration.
    pub members: BTreeMap<Incarnation, MemberState>,
    /// Operator's overrides, and for each the last seqno that is the same on all branches (rule 11).
    pub forks: Vec<(Uuid, Seqno)>,
    /// Where in the log the last seqnos are.
    pub runs: SeqnoRuns,
    /// The last views and their seqnos, oldest first.
    pub views: VecDeque<(Seqno, Configuration)>,
    /// On apply errors.
    pub votes: Votes,
}

impl Control {
    /// The state of a component that begins with one member, above `seqno`.
    pub(crate) fn found(
        history: Uuid,
        seqno: Seqno,
        forks: Vec<(Uuid, Seqno)>,
        max_length: u64,
    ) -> Self {
        let max_length = i64::try_from(max_length).unwrap_or(i64::MAX).max(1);
        Control {
            history,
            position: 0,
            certification: Certification::new(seqno, max_length),
            configuration: Configuration::default(),
            members: BTreeMap::new(),
            forks,
            runs: SeqnoRuns::default(),
            views: VecDeque::new(),
            votes: Votes::default(),
        }
    }

    /// Last seqno ordered.
    pub(crate) fn seqno(&self) -> Seqno {
        self.certification.position()
    }

    /// The last position as the server sees it.
    pub(crate) fn gtid(&self) -> Gtid {
        Gtid {
            uuid: self.history,
            seqno: self.seqno(),
        }
    }

    /// True for a member without a database.
    pub(crate) fn is_arbitrator(&self, incarnation: Incarnation) -> bool {
        let member = self.configuration.member(incarnation);
        member.is_some_and(|member| member.arbitrator)
    }

    /// Nobody waits for what this member has applied, or asks how that ended.
    fn abstains(&self, incarnation: Incarnation) -> bool {
        self.is_arbitrator(incarnation) && !planted(Mutant::ArbitratorVotes)
    }

    /// The state of a member; None if it is none.
    pub(crate) fn state_of(&self, incarnation: Incarnation) -> Option<NodeState> {
        self.members.get(&incarnation).map(|m| m.state)
    }

    /// Everybody who may have a vote (rule 3).
    pub(crate) fn joined(&self) -> impl Iterator<Item = Incarnation> + '_ {
        let joined = |m: &&Member| {
            let state = self.state_of(m.incarnation);
            state.is_some_and(|s| s != NodeState::Joiner)
        };
        self.configuration
            .members
            .iter()
            .filter(joined)
            .map(|m| m.incarnation)
    }

    /// The last view at or below `seqno`, if it is remembered.
    pub(crate) fn view_at(&self, seqno: Seqno) -> Option<&(Seqno, Configuration)> {
        self.views.iter().rev().find(|(at, _)| *at <= seqno)
    }

    /// The first view of all, if it is remembered.
    pub(crate) fn first_view(&self) -> Option<&(Seqno, Configuration)> {
        let forgets = self.views.len() >= RECENT_VIEWS;
        self.views.front().filter(|_| !forgets)
    }

    /// The first view above `seqno`.
    pub(crate) fn view_after(&self, seqno: Seqno) -> Option<&Configuration> {
        let next = self.views.iter().find(|(at, _)| *at > seqno);
        next.map(|(_, configuration)| configuration)
    }

    /// The view with exactly this seqno, if it is remembered.
    pub(crate) fn view_with(&self, seqno: Seqno) -> Option<&Configuration> {
        self.views
            .iter()
            .find(|(at, _)| *at == seqno)
            .map(|(_, configuration)| configuration)
    }

    /// Takes in the next entry.
    pub(crate) fn process(&mut self, position: Position, delivery: Delivery) -> Effect {
        assert!(
            position > self.position,
            "position {position} delivered after {}",
            self.position
        );
        self.position = position;
        let before = self.seqno();
        let effect = self.take_in(delivery);
        if self.seqno() > before {
            self.runs.took(position, self.seqno());
        }
        effect
    }

    fn take_in(&mut self, delivery: Delivery) -> Effect {
        match delivery {
            Delivery::Configuration(configuration) => self.reconfigure(configuration),
            Delivery::Submission { id, payload } => match Message::decode(&payload) {
                Ok(message) => self.submission(id, message),
                // A member of a newer version: everybody here ignores it alike.
                Err(error) => Effect::Void {
                    id,
                    reason: error.to_string(),
                },
            },
        }
    }

    fn reconfigure(&mut self, configuration: Configuration) -> Effect {
        let is_view = configuration.number != self.configuration.number || self.views.is_empty();
        let first = self.views.is_empty();
        self.configuration = configuration;
        if !is_view {
            return Effect::Weights;
        }
        let seqno = self.seqno() + 1;
        if let Some(id) = self.configuration.override_id {
            if self.forks.iter().all(|(known, _)| *known != id) {
                let after = self.configuration.fork_after;
                let fork = match planted(Mutant::ForkNotedTooHigh) {
                    true => self.seqno(),
                    false => self.runs.last_upto(after, self.seqno()),
                };
                self.forks.push((id, fork));
            }
        }
        self.certification.view(seqno);
        let lost = self.reseat(first);
        self.views.push_back((seqno, self.configuration.clone()));
        if self.views.len() > RECENT_VIEWS {
            self.views.pop_front();
        }
        self.apply_cut();
        self.settle_doubts();
        Effect::View { seqno, lost }
    }

    /// Makes `members` follow the configuration.
    fn reseat(&mut self, first: bool) -> Vec<Lost> {
        let before = std::mem::take(&mut self.members);
        for member in &self.configuration.members {
            let mut seat = before
                .get(&member.incarnation)
                .cloned()
                .unwrap_or(MemberState::new(NodeState::Joiner));
            if first && !member.arbitrator {
                // Who founds a history has its state.
                seat.enter(NodeState::Synced);
            }
            self.members.insert(member.incarnation, seat);
        }
        let mut lost = Vec::new();
        for (donor, seat) in before {
            match seat.donates_to {
                Some(joiner) if !self.members.contains_key(&donor) => {
                    lost.push(Lost { donor, joiner })
                }
                _ => {}
            }
        }
        lost
    }

    fn submission(&mut self, id: SubmissionId, message: Message) -> Effect {
        let from = id.incarnation;
        let anybody = planted(Mutant::EvictedDelivered).then_some(NodeState::Synced);
        let Some(state) = self.state_of(from).or(anybody) else {
            return Effect::Void {
                id,
                reason: "the origin is not a member".into(),
            };
        };
        match message {
            Message::WriteSet(_)
                if state == NodeState::Joiner && !planted(Mutant::JoinerWrites) =>
            {
                Effect::Void {
                    id,
                    reason: "the origin has not joined".into(),
                }
            }
            Message::WriteSet(write_set) => self.write_set(id, write_set),
            Message::StateRequest {
                request,
                preference,
                ..
            } => {
                // Not twice: an earlier request of the same joiner may have been ordered after all.
                let may_ask = state == NodeState::Joiner
                    && self.members.values().all(|m| m.donates_to != Some(from));
                let donor = if may_ask {
                    self.choose_donor(from, &preference)
                } else {
                    None
                };
                if let Some(seat) = donor.and_then(|donor| self.members.get_mut(&donor)) {
                    seat.enter(NodeState::Donor);
                    seat.donates_to = Some(from);
                } else if may_ask {
                    self.doubts(from, -1);
                }
                Effect::StateRequest {
                    id,
                    donor,
                    request,
                    preference,
                }
            }
            Message::Donated { rcode } => {
                let joiner = self.members.get_mut(&from).and_then(|seat| {
                    let joiner = seat.donates_to.take();
                    if joiner.is_some() && !seat.is_desynced() {
                        seat.enter(NodeState::Joined);
                    }
                    joiner
                });
                Effect::Donated { id, joiner, rcode }
            }
            Message::Cut(cut) => {
                if let Some(seat) = self.members.get_mut(&from) {
                    seat.cut = seat.cut.max(cut);
                }
                self.apply_cut();
                Effect::Cut { id }
            }
            Message::Vote {
                seqno,
                ballot,
                policy,
                text,
            } => {
                // Of what was not ordered yet there is nothing to say, and without a database never.
                let may_vote = state != NodeState::Joiner && !self.abstains(from);
                if may_vote && seqno <= self.seqno() {
                    self.votes.cast(seqno, from, ballot, policy);
                }
                Effect::Vote {
                    id,
                    seqno,
                    ballot,
                    text,
                }
            }
            Message::LeaveOut(member) => Effect::LeftOut {
                id,
                member: self.leave_out(member).then_some(member),
            },
            Message::Doubt(seqno) => {
                self.doubts(from, seqno);
                Effect::Doubt { id }
            }
            Message::CaughtUp => Effect::CaughtUp {
                id,
                refused: !self.caught_up(from),
            },
            Message::Joined | Message::Synced | Message::Desync | Message::Resync => {
                let refused = !self.transition(from, state, &message);
                Effect::Member {
                    id,
                    message,
                    refused,
                }
            }
        }
    }

    fn write_set(&mut self, id: SubmissionId, write_set: WriteSet) -> Effect {
        let seqno = self.seqno() + 1;
        let is_closed =
            write_set.is_fragment() && self.stream_was_closed(id.incarnation, write_set.last_seen);
        let last_view = self.views.back().map(|(seqno, _)| *seqno);
        let outcome = match last_view.filter(|_| is_closed) {
            Some(with) => {
                self.certification.skip(seqno);
                Outcome {
                    verdict: Verdict::Conflict { with },
                    depends_on: seqno - 1,
                }
            }
            None => {
                let mut outcome = self.certification.certify(&Request {
                    seqno,
                    last_seen: write_set.last_seen,
                    origin: id.incarnation.0.0,
                    epoch: write_set.epoch,
                    isolation: write_set.is_isolation(),
                    pa_unsafe: write_set.flags & crate::flags::PA_UNSAFE != 0,
                    rollback: write_set.flags & crate::flags::ROLLBACK != 0,
                    keys: write_set.keys(),
                });
                outcome.depends_on = outcome.depends_on.max(write_set.applied_after(seqno));
                outcome
            }
        };
        Effect::WriteSet {
            id,
            write_set,
            seqno,
            outcome,
        }
    }

    /// Data members that keep pace with the writers.
    pub(crate) fn in_step(&self) -> usize {
        let in_step = |m: &&Member| self.state_of(m.incarnation) == Some(NodeState::Synced);
        self.configuration.data_members().filter(in_step).count()
    }

    /// True if this member may be left out of flow control: at least two others keep pace, so that one
    /// bounds the backlog that another's writes make.
    pub(crate) fn may_leave_out(&self, member: Incarnation) -> bool {
        let enough = self.in_step() > 2 || planted(Mutant::LastSyncedLeftOut);
        enough && self.state_of(member) == Some(NodeState::Synced)
    }

    /// Members that the group has left out of flow control.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &Member> + '_ {
        let left_out = |m: &&Member| (self.members.get(&m.incarnation)).is_some_and(|s| s.left_out);
        self.configuration.members.iter().filter(left_out)
    }

    fn leave_out(&mut self, member: Incarnation) -> bool {
        if !self.may_leave_out(member) {
            return false;
        }
        if let Some(seat) = self.members.get_mut(&member) {
            seat.left_out = true;
            seat.enter(NodeState::Donor);
        }
        true
    }

    fn caught_up(&mut self, from: Incarnation) -> bool {
        let seat = self.members.get_mut(&from).filter(|seat| seat.left_out);
        if let Some(seat) = seat {
            seat.left_out = false;
            if !seat.is_desynced() {
                seat.enter(NodeState::Synced);
            }
            return true;
        }
        false
    }

    /// A member's own change of state; false if it is not possible. An arbitrator stays Joined: nobody
    /// waits for what it has applied.
    fn transition(&mut self, from: Incarnation, state: NodeState, message: &Message) -> bool {
        if self.abstains(from) && !matches!(message, Message::Joined) {
            return false;
        }
        let Some(seat) = self.members.get_mut(&from) else {
            return false; // `submission` has looked it up
        };
        match (message, state) {
            (Message::Joined, NodeState::Joiner) => seat.enter(NodeState::Joined),
            (Message::Synced, NodeState::Joined) => seat.enter(NodeState::Synced),
            (Message::Desync, NodeState::Donor | NodeState::Joined | NodeState::Synced) => {
                seat.desyncs += 1;
                seat.enter(NodeState::Donor);
            }
            (Message::Resync, NodeState::Donor) if seat.desyncs > 0 => {
                seat.desyncs -= 1;
                if !seat.is_desynced() {
                    seat.enter(NodeState::Joined);
                }
            }
            _ => return false,
        }
        true
    }

    /// The donor for a joiner: the first of its preferred names that can; else, if it left the
    /// choice open, somebody of its segment, else anybody (contract 3.6).
    fn choose_donor(&self, joiner: Incarnation, preference: &str) -> Option<Incarnation> {
        let segment = self.configuration.member(joiner)?.segment;
        let has_state = |m: &Member| match m.arbitrator {
            true => planted(Mutant::ArbitratorDonates),
            false => self.state_of(m.incarnation) == Some(NodeState::Synced),
        };
        let able: Vec<&Member> = (self.configuration.members.iter())
            .filter(|m| m.incarnation != joiner && !m.never_donor)
            .filter(|m| has_state(m))
            .collect();
        let named = |name: &str| able.iter().find(|m| m.name == name);
        let nearest = || able.iter().find(|m| m.segment == segment).or(able.first());
        preference
            .split(',')
            .map(str::trim)
            .find_map(|name| {
                if name.is_empty() {
                    nearest()
                } else {
                    named(name)
                }
            })
            .map(|m| m.incarnation)
    }

    /// What each member with a state and a database has reported as applied. Who joins has no vote, and has begun or
    /// will begin with a snapshot: nothing is kept for it.
    pub(crate) fn reported(&self) -> Vec<(Incarnation, Seqno)> {
        let reported = |member: &Member| {
            let seat = self.members.get(&member.incarnation)?;
            (seat.state != NodeState::Joiner).then_some((member.incarnation, seat.cut))
        };
        self.configuration
            .data_members()
            .filter_map(reported)
            .collect()
    }

    /// Decides the votes that can be decided now. To be asked after every entry.
    pub(crate) fn decide_votes(&mut self) -> Vec<(Seqno, Ballot)> {
        if self.votes.open().next().is_none() {
            return Vec::new();
        }
        // Who is desynced or joins is not waited for.
        let waited_for = |m: &&MemberState| m.counts && m.state != NodeState::Donor;
        let voters = self
            .members
            .iter()
            .filter(|(_, m)| waited_for(m))
            .map(|(id, m)| (*id, m.cut))
            .collect();
        let certification = &self.certification;
        let origin = |seqno| {
            let origin = certification.origin(seqno);
            origin.map(|o| Incarnation(trireme_group::Uuid(o)))
        };
        // Behind the floor nobody knows the origin any more.
        self.votes.decide(&voters, origin, certification.floor())
    }

    /// The group's cut follows the least of those that count.
    fn apply_cut(&mut self) {
        let cut = self
            .members
            .values()
            .filter(|m| m.counts)
            .map(|m| m.cut)
            .min();
        if let Some(cut) = cut {
            self.certification.cut(cut);
        }
    }
}
