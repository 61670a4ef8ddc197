//! A member's state in the order.

use trireme_certification::Seqno;
use trireme_group::Incarnation;

/// A member's place in the replicated state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum NodeState {
    /// In the view, without its state: its write-sets have no effect.
    Joiner,
    /// Sends its state, or is desynced.
    Donor,
    /// Has its state, and lags behind.
    Joined,
    /// Has caught up.
    Synced,
}

/// The state of a member.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct MemberState {
    pub state: NodeState,
    /// Number of desyncs that were not taken back.
    pub desyncs: u32,
    /// The joiner to which it sends its state.
    pub donates_to: Option<Incarnation>,
    /// Its applied watermark: everything that it submits from now on has seen this seqno.
    pub applied: Seqno,
    /// True if its watermark holds back the group's. It does in the states Synced and Donor, and in Joined only if it
    /// did before (server-contract-traps.md#who-holds-the-watermark).
    pub counts: bool,
    /// Desynced by the group, because writers had to wait for it: left out of flow control until it has caught up.
    pub left_out: bool,
    /// The position of its in-doubt database, which may hold a total-order action above it (rule 13); -1: it has no
    /// usable database; None: not reported.
    pub doubt: Option<Seqno>,
    /// True if all databases were in doubt, and the cluster goes on with this member's.
    pub trusted: bool,
}

impl MemberState {
    pub fn new(state: NodeState) -> Self {
        MemberState {
            state,
            desyncs: 0,
            donates_to: None,
            applied: 0,
            counts: false,
            left_out: false,
            doubt: None,
            trusted: false,
        }
    }

    /// Returns true if anything keeps it desynced.
    pub fn is_desynced(&self) -> bool {
        self.desyncs > 0 || self.donates_to.is_some() || self.left_out
    }

    /// Returns true if the group has left it out, and it is neither desynced by hand nor a donor.
    pub fn is_only_left_out(&self) -> bool {
        self.left_out && self.desyncs == 0 && self.donates_to.is_none()
    }

    /// Returns true if it is a donor, and neither desynced by hand nor left out.
    pub fn is_only_donor(&self) -> bool {
        self.donates_to.is_some() && self.desyncs == 0 && !self.left_out
    }

    pub fn enter(&mut self, state: NodeState) {
        self.state = state;
        match state {
            NodeState::Synced | NodeState::Donor => self.counts = true,
            // Not reached: a member begins as a joiner, and never becomes one again.
            NodeState::Joiner => self.counts = false,
            NodeState::Joined => {}
        }
    }
}
