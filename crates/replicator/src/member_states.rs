//! The members and their states: joiner, donor, joined, synced. They follow views and the members' own submissions, are
//! a part of the control state, and so are equal on all nodes. The donor of each joiner is chosen here, too.
//!
//! Every node computes this alike, so a changed rule is a change of protocol: nodes with the old rule and nodes with
//! the new one must not be in one cluster (docs/formats.md).

use std::collections::{BTreeMap, VecDeque};

use trireme_certification::Seqno;
use trireme_group::{Configuration, Incarnation, Member};
use trireme_mutants::{Mutant, planted};

use crate::effect::Lost;
use crate::member_state::{MemberState, NodeState};
use crate::message::Message;

/// Maximum of remembered joiners whose SST has failed.
pub(crate) const FAILED_MAX: usize = 64;

/// The members of the configuration in force, and their states.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberStates {
    configuration: Configuration,
    /// The states of exactly the members of the configuration.
    states: BTreeMap<Incarnation, MemberState>,
    /// The last joiners whose donors failed or left. A joiner that missed the news would otherwise wait for ever.
    failed: VecDeque<Incarnation>,
}

impl MemberStates {
    /// Takes the parts of an encoding. Nothing checks that the states are those of the configuration's members.
    pub(crate) fn decoded(
        configuration: Configuration,
        states: BTreeMap<Incarnation, MemberState>,
        failed: VecDeque<Incarnation>,
    ) -> MemberStates {
        MemberStates {
            configuration,
            states,
            failed,
        }
    }

    pub(crate) fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    pub(crate) fn states(&self) -> &BTreeMap<Incarnation, MemberState> {
        &self.states
    }

    /// Joiners whose donors failed or left, the oldest first.
    pub(crate) fn failed(&self) -> &VecDeque<Incarnation> {
        &self.failed
    }

    /// Returns the state of a member; None if it is no member.
    pub(crate) fn get(&self, incarnation: Incarnation) -> Option<&MemberState> {
        self.states.get(&incarnation)
    }

    pub(crate) fn get_mut(&mut self, incarnation: Incarnation) -> Option<&mut MemberState> {
        self.states.get_mut(&incarnation)
    }

    /// Lets a test put any state here.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn tampered(
        &mut self,
    ) -> (
        &mut Configuration,
        &mut BTreeMap<Incarnation, MemberState>,
        &mut VecDeque<Incarnation>,
    ) {
        (&mut self.configuration, &mut self.states, &mut self.failed)
    }

    /// Returns true for a member without a database.
    pub(crate) fn is_arbitrator(&self, incarnation: Incarnation) -> bool {
        let member = self.configuration.member(incarnation);
        member.is_some_and(|member| member.arbitrator)
    }

    /// Returns the state of a member; None if it is no member.
    pub(crate) fn state_of(&self, incarnation: Incarnation) -> Option<NodeState> {
        self.get(incarnation).map(|m| m.state)
    }

    /// Returns the members that may have a vote (rule 3).
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

    /// Returns the applied watermark that each member with a state and a database has reported. A joiner is not
    /// among them: it has no vote, and the log keeps for it only the rest of an IST that has begun (`retention`).
    pub(crate) fn applied(&self) -> impl Iterator<Item = (Incarnation, Seqno)> + '_ {
        let reported = |member: &Member| {
            let member_state = self.get(member.incarnation)?;
            (member_state.state != NodeState::Joiner)
                .then_some((member.incarnation, member_state.applied))
        };
        self.configuration.data_members().filter_map(reported)
    }

    /// As [`Self::applied`], without this member.
    pub(crate) fn applied_by_others(&self, me: Incarnation) -> Vec<(Incarnation, Seqno)> {
        self.applied().filter(|(id, _)| *id != me).collect()
    }

    /// A configuration with the same members, of which only weights have changed.
    pub(crate) fn reweigh(&mut self, configuration: Configuration) {
        self.configuration = configuration;
    }

    /// Makes the states follow a view. `first`: the first view of its history. Returns the donors that it removes.
    pub(crate) fn reseat(&mut self, view: Configuration, first: bool) -> Vec<Lost> {
        self.configuration = view;
        let before = std::mem::take(&mut self.states);
        for member in &self.configuration.members {
            let mut member_state = before
                .get(&member.incarnation)
                .cloned()
                .unwrap_or(MemberState::new(NodeState::Joiner));
            if first && !member.arbitrator {
                // The founder of a history has its state.
                member_state.enter(NodeState::Synced);
            }
            self.states.insert(member.incarnation, member_state);
        }
        let mut lost = Vec::new();
        for (donor, member_state) in before {
            match member_state.donates_to {
                Some(joiner) if !self.states.contains_key(&donor) => {
                    lost.push(Lost { donor, joiner });
                    self.note_failed(joiner);
                }
                _ => {}
            }
        }
        lost
    }

    /// Returns true if this member takes no part in error votes, and no member waits for its applied watermark.
    pub(crate) fn abstains(&self, incarnation: Incarnation) -> bool {
        self.is_arbitrator(incarnation) && !planted(Mutant::ArbitratorVotes)
    }

    /// Handles a joiner's request for an SST, or for the script before an IST. Returns its donor. A second request is
    /// ignored: an earlier one of the same joiner may have been ordered after all.
    pub(crate) fn state_requested(
        &mut self,
        from: Incarnation,
        state: NodeState,
        preference: &str,
        bypass: bool,
    ) -> Option<Incarnation> {
        if state != NodeState::Joiner || self.donor_of(from).is_some() {
            return None;
        }
        let donor = self.choose_donor(from, preference);
        if let Some(member_state) = donor.and_then(|donor| self.get_mut(donor)) {
            member_state.enter(NodeState::Donor);
            member_state.donates_to = Some(from);
            if let Some(joiner) = self.get_mut(from) {
                joiner.doubt = None; // an SST replaces that database, and an IST takes it as it is
            }
            self.failed.retain(|joiner| *joiner != from);
        } else if !bypass {
            self.doubts(from, -1);
        }
        donor
    }

    /// Returns the member that the order has chosen as this joiner's donor, while it donates.
    pub(crate) fn donor_of(&self, joiner: Incarnation) -> Option<Incarnation> {
        let mut states = self.states.iter();
        let donor = states.find(|(_, state)| state.donates_to == Some(joiner));
        donor.map(|(donor, _)| *donor)
    }

    /// Handles the end of a donation. Returns its joiner.
    pub(crate) fn has_donated(&mut self, donor: Incarnation, rcode: i32) -> Option<Incarnation> {
        let member_state = self.get_mut(donor)?;
        let joiner = member_state.donates_to.take()?;
        if !member_state.is_desynced() {
            member_state.enter(NodeState::Joined);
        }
        if rcode < 0 {
            self.note_failed(joiner);
        }
        Some(joiner)
    }

    /// Notes that this joiner's SST will not come, whether or not the joiner hears of that now.
    fn note_failed(&mut self, joiner: Incarnation) {
        if self.failed.len() == FAILED_MAX {
            self.failed.pop_front();
        }
        self.failed.push_back(joiner);
    }

    /// Returns the number of data members that keep pace with the writers.
    pub(crate) fn in_step(&self) -> usize {
        let in_step = |m: &&Member| self.state_of(m.incarnation) == Some(NodeState::Synced);
        self.configuration.data_members().filter(in_step).count()
    }

    /// Returns true if this member may be left out of flow control: at least two others keep pace. If one of them
    /// writes, the other still bounds its backlog.
    pub(crate) fn may_leave_out(&self, member: Incarnation) -> bool {
        let enough = self.in_step() > 2 || planted(Mutant::LastSyncedLeftOut);
        enough && self.state_of(member) == Some(NodeState::Synced)
    }

    /// Returns the members that the group has left out of flow control.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &Member> + '_ {
        let left_out = |m: &&Member| (self.get(m.incarnation)).is_some_and(|s| s.left_out);
        self.configuration.members.iter().filter(left_out)
    }

    pub(crate) fn leave_out(&mut self, member: Incarnation) -> bool {
        if !self.may_leave_out(member) {
            return false;
        }
        if let Some(member_state) = self.get_mut(member) {
            member_state.left_out = true;
            member_state.enter(NodeState::Donor);
        }
        true
    }

    pub(crate) fn caught_up(&mut self, from: Incarnation) -> bool {
        let member_state = self
            .get_mut(from)
            .filter(|member_state| member_state.left_out);
        if let Some(member_state) = member_state {
            member_state.left_out = false;
            if !member_state.is_desynced() {
                member_state.enter(NodeState::Synced);
            }
            return true;
        }
        false
    }

    /// Makes a member's own change of state. Returns false if it is not possible. An arbitrator stays Joined: no member
    /// waits for its applied watermark.
    pub(crate) fn transition(
        &mut self,
        from: Incarnation,
        state: NodeState,
        message: &Message,
    ) -> bool {
        if self.abstains(from) && !matches!(message, Message::Joined) {
            return false;
        }
        let Some(member_state) = self.get_mut(from) else {
            return false; // `submission` has looked it up
        };
        match (message, state) {
            (Message::Joined, NodeState::Joiner) => member_state.enter(NodeState::Joined),
            (Message::Synced, NodeState::Joined) => member_state.enter(NodeState::Synced),
            (Message::Desync, NodeState::Donor | NodeState::Joined | NodeState::Synced) => {
                member_state.desyncs += 1;
                member_state.enter(NodeState::Donor);
            }
            (Message::Resync, NodeState::Donor) if member_state.desyncs > 0 => {
                member_state.desyncs -= 1;
                if !member_state.is_desynced() {
                    member_state.enter(NodeState::Joined);
                }
            }
            _ => return false,
        }
        true
    }

    /// Returns true if a member other than the joiner may be a donor, now or when it has finished its present work. The
    /// joiner's preference does not count: an operator can change it.
    pub(crate) fn has_donor_for(&self, joiner: Incarnation) -> bool {
        let has_joined = |m: &&Member| {
            let state = self.state_of(m.incarnation);
            state.is_some_and(|state| state != NodeState::Joiner)
        };
        let mut able = (self.configuration.data_members())
            .filter(|m| m.incarnation != joiner && !m.never_donor)
            .filter(has_joined);
        able.next().is_some()
    }

    /// Chooses the donor for a joiner: the first of its preferred names (`wsrep_sst_donor`) that can donate. An empty name
    /// leaves the choice open: a member of its segment, or else any other
    /// (server-contract-callbacks.md#donor-choice).
    pub(crate) fn choose_donor(
        &self,
        joiner: Incarnation,
        preference: &str,
    ) -> Option<Incarnation> {
        let segment = self.configuration.member(joiner)?.segment;
        let can_donate = |m: &Member| match m.arbitrator {
            true => planted(Mutant::ArbitratorDonates),
            false => self.state_of(m.incarnation) == Some(NodeState::Synced),
        };
        let able: Vec<&Member> = (self.configuration.members.iter())
            .filter(|m| m.incarnation != joiner && !m.never_donor)
            .filter(|m| can_donate(m))
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
}
