//! A member's state in the order.

use trireme_certification::Seqno;
use trireme_group::Incarnation;

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

/// The state of a member.
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
    /// (server-contract-traps.md#who-holds-the-watermark).
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
    pub fn new(state: NodeState) -> Self {
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
    pub fn is_desynced(&self) -> bool {
        self.desyncs > 0 || self.donates_to.is_some() || self.left_out
    }

    /// True if the group has left it out, and it is neither desynced by hand nor a donor.
    pub fn is_only_left_out(&self) -> bool {
        self.left_out && self.desyncs == 0 && self.donates_to.is_none()
    }

    pub fn enter(&mut self, state: NodeState) {
        self.state = state;
        match state {
            NodeState::Synced | NodeState::Donor => self.counts = true,
            // Not reached: a seat begins so and never becomes so.
            NodeState::Joiner => self.counts = false,
            NodeState::Joined => {}
        }
    }
}
