//! The members of a configuration, their votes, and the arithmetic of majorities.

use trireme_mutants::{Mutant, planted};

use crate::ids::{Incarnation, Position, ReplicaId, Uuid};

/// A member as the group and the server know it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct Member {
    /// Its data directory; votes are counted by it.
    pub replica: ReplicaId,
    /// The wsrep member id.
    pub incarnation: Incarnation,
    /// Vote in force: 0 for a learner (a joiner that has not JOINED, rule 3) and for a member whose `pc.weight` is 0.
    pub weight: u8,
    /// `pc.weight`: the vote that the member has once it has JOINED.
    pub full_weight: u8,
    /// True once the member has JOINED and holds its vote. In a join request: the replica lost nothing that it
    /// acknowledged, and may keep the vote that it had.
    pub voter: bool,
    /// `wsrep_node_name`.
    pub name: String,
    /// `wsrep_node_incoming_address`: where clients connect.
    pub incoming: String,
    /// Where its peers connect, "host:port".
    pub address: String,
    /// `gmcast.segment`.
    pub segment: u8,
    /// True for an arbitrator: it holds the log and applies nothing.
    pub arbitrator: bool,
    /// True for a member that is never a donor: `gcs.stateless`, or an arbitrator.
    pub never_donor: bool,
    /// Application protocol (wsrep: 4).
    pub app_protocol: i32,
}

/// The membership in force from one log position on. For the server, a configuration with a new number is a *view*. A
/// change of weights alone keeps the number, takes no seqno, and is not shown to the server (rule 3).
#[derive(Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct Configuration {
    /// View number, +1 per membership change.
    pub number: u64,
    /// Sorted by incarnation; the same order on every node.
    pub members: Vec<Member>,
    /// Id of the forced view, if an override made this view without a majority (rule 11).
    pub override_id: Option<Uuid>,
    /// The fork point, if `override_id` is set: the last position that its members knew to be committed. The other
    /// members may have dropped the entries above it, and gone on from here without them. Otherwise 0.
    pub fork_after: Position,
}

impl Configuration {
    /// Sum of the votes.
    pub fn total_weight(&self) -> u64 {
        self.weight_of(|_| true)
    }

    /// Sum of the votes of these members.
    pub(crate) fn weight_of(&self, counts: impl Fn(&Member) -> bool) -> u64 {
        let members = self.members.iter().filter(|m| counts(m));
        members.map(|m| u64::from(m.weight)).sum()
    }

    /// True if `weight` is more than half of the votes.
    pub fn is_majority(&self, weight: u64) -> bool {
        weight * 2 > self.total_weight()
            || planted(Mutant::HalfIsAMajority) && weight >= self.total_weight() / 2
    }

    /// True if `weight` is at least half of the votes.
    pub(crate) fn is_half(&self, weight: u64) -> bool {
        weight * 2 >= self.total_weight()
    }

    /// Gives this replica one vote if no member has any, whatever its `pc.weight`: without a vote nothing could ever be
    /// committed. The vote lasts until another member has one. Returns true if it was needed.
    pub(crate) fn ensure_vote(&mut self, replica: ReplicaId) -> bool {
        let needed = self.total_weight() == 0;
        let mut voters = self.members.iter_mut().filter(|m| m.voter);
        match voters.find(|m| m.replica == replica).filter(|_| needed) {
            Some(seat) => seat.weight = 1,
            None => return false,
        }
        true
    }

    /// Members with a database.
    pub fn data_members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|m| !m.arbitrator)
    }

    /// The application protocol that all members with a database speak; -1 if no member has a database.
    pub fn app_protocol(&self) -> i32 {
        let protocols = self.data_members().map(|m| m.app_protocol);
        protocols.min().unwrap_or(-1)
    }

    /// The member with this incarnation.
    pub fn member(&self, incarnation: Incarnation) -> Option<&Member> {
        self.members.iter().find(|m| m.incarnation == incarnation)
    }

    /// The member with this replica id.
    pub fn replica(&self, replica: ReplicaId) -> Option<&Member> {
        self.members.iter().find(|m| m.replica == replica)
    }

    /// Index in member order (`wsrep_local_index`).
    pub fn index_of(&self, incarnation: Incarnation) -> Option<usize> {
        self.members
            .iter()
            .position(|m| m.incarnation == incarnation)
    }

    /// Restores the member order, which is the same on every node.
    pub fn sort(&mut self) {
        self.members.sort_by_key(|m| m.incarnation);
    }

    /// True if both have the same incarnations.
    pub fn same_members(&self, other: &Configuration) -> bool {
        self.members
            .iter()
            .map(|m| m.incarnation)
            .eq(other.members.iter().map(|m| m.incarnation))
    }
}
