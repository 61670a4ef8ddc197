//! The phase of this node between connect() and the last view: in the primary component or not, leaving or not, and how
//! much its server knows of that.

use trireme_mutants::{Mutant, planted};

use crate::action::Code;
use crate::context::Context;
use crate::member_state::NodeState;
use crate::state_transfer::{Place, StateTransfer};

/// The reasons for which the node leaves. Several may come together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Departure {
    /// The server disconnects, and waits for its last views.
    is_awaited: bool,
    /// The view by which the node leaves was ordered: the node ignores later entries.
    is_excluded: bool,
    /// The database differs from the others': it does not count until an SST replaces it.
    has_diverged: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    /// None: the node stays.
    departure: Option<Departure>,
    is_primary: bool,
    /// The group's word, which is ahead of `is_primary` by the entries that wait.
    is_group_primary: bool,
    is_founding: bool,
    is_connected: bool,
    is_server_running: bool,
    /// True if the server was told that it is synced, and still is.
    is_server_synced: bool,
    /// True if the server was told so in this connection, whatever came since.
    has_been_synced: bool,
    /// True if the last donation was to pass a joiner's position on.
    passes_position_on: bool,
    is_safe_to_bootstrap: bool,
    has_exited: bool,
}

impl Lifecycle {
    /// Begins a connection. `is_founding`: connect() said to found or continue a history. `is_server_running`: the
    /// storage engines are up.
    pub(crate) fn connect(&mut self, is_founding: bool, is_server_running: bool) {
        *self = Lifecycle {
            is_founding,
            is_server_running,
            is_safe_to_bootstrap: self.is_safe_to_bootstrap,
            ..Lifecycle::default()
        };
    }

    // --- the primary component

    pub(crate) fn is_primary(&self) -> bool {
        self.is_primary
    }

    /// Takes the group's word.
    pub(crate) fn group_is_primary(&mut self, is_primary: bool) {
        self.is_group_primary = is_primary;
    }

    /// Notes that the node is in the primary component by the entries that it has processed. Without effect if the group
    /// has lost the component since, or has not come back to it yet: an old view says nothing about the present.
    pub(crate) fn enter_primary(&mut self) {
        self.is_primary = self.is_group_primary || planted(Mutant::OldViewIsPrimary);
    }

    pub(crate) fn lose_primary(&mut self) {
        self.is_primary = false;
    }

    /// Returns true if the node is in the primary component and stays.
    pub(crate) fn takes_part(&self) -> bool {
        self.is_primary && !self.is_leaving()
    }

    /// Returns true if the order would accept a write-set of this node.
    pub(crate) fn may_write(&self, context: &Context, transfer: &StateTransfer) -> bool {
        let in_step = |s| s != NodeState::Joiner && transfer.place() == Place::Active;
        let joined = |s| in_step(s) || planted(Mutant::JoinerWrites);
        context.my_node_state().is_some_and(joined) && self.takes_part()
    }

    /// Returns true if the order would accept this node's ballot on an error. The entry that failed may hold up what the
    /// node pulls, so it votes before it has caught up.
    pub(crate) fn may_vote(&self, context: &Context, transfer: &StateTransfer) -> bool {
        let in_step = |s| s != NodeState::Joiner && transfer.feeds_database();
        context.my_node_state().is_some_and(in_step) && self.takes_part()
    }

    /// Returns the answer to a call that has certainly failed.
    pub(crate) fn refusal(&self) -> Code {
        match self.has_diverged() {
            true => Code::NodeFail,
            false => Code::ConnFail,
        }
    }

    /// Returns true if the node founds or continues a history, and its first view is still to come.
    pub(crate) fn is_founding(&self) -> bool {
        self.is_founding
    }

    pub(crate) fn found(&mut self) {
        self.is_founding = true;
    }

    /// Gives up founding, because others have the history: the node takes it from them.
    pub(crate) fn give_up_founding(&mut self) {
        self.is_founding = false;
    }

    /// Returns true if the node is safe to bootstrap. Of two members, the one that stays is, not the leaver.
    pub(crate) fn is_safe_to_bootstrap(&self) -> bool {
        self.is_safe_to_bootstrap
    }

    pub(crate) fn set_safe_to_bootstrap(&mut self, is_safe: bool) {
        self.is_safe_to_bootstrap = is_safe;
    }

    // --- the server

    /// Returns true if the server got its connected() callback.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Returns true if the server must get its connected() callback now.
    pub(crate) fn show_connected(&mut self) -> bool {
        !std::mem::replace(&mut self.is_connected, true)
    }

    /// Returns true if the server's storage engines are up, or will be when the queue gets to a primary view.
    pub(crate) fn is_server_running(&self) -> bool {
        self.is_server_running
    }

    pub(crate) fn server_runs(&mut self) {
        self.is_server_running = true;
    }

    /// Returns true if the server was told in this connection that it is synced, also if it is no longer.
    pub(crate) fn has_been_synced(&self) -> bool {
        self.has_been_synced
    }

    /// Returns true if the server must be told now that it is synced.
    pub(crate) fn show_synced(&mut self) -> bool {
        self.has_been_synced = true;
        !std::mem::replace(&mut self.is_server_synced, true)
    }

    /// Notes that the server is no longer synced.
    pub(crate) fn forget_synced(&mut self) {
        self.is_server_synced = false;
    }

    /// Notes the beginning of a donation. `passes_position_on`: no rows are sent.
    pub(crate) fn begin_donation(&mut self, passes_position_on: bool) {
        self.passes_position_on = passes_position_on;
    }

    /// Returns true if the last donation was to pass a joiner's position on.
    pub(crate) fn passes_position_on(&self) -> bool {
        self.passes_position_on
    }

    /// Returns true for the thread that took the final view; all other threads hear that the connection has failed.
    pub(crate) fn exit(&mut self) -> bool {
        !std::mem::replace(&mut self.has_exited, true)
    }

    // --- the way out

    pub(crate) fn is_leaving(&self) -> bool {
        self.departure.is_some()
    }

    /// Returns true if the server waits for its last views.
    pub(crate) fn is_awaited(&self) -> bool {
        self.departure.is_some_and(|way| way.is_awaited)
    }

    /// Returns true if the view by which the node leaves was ordered.
    pub(crate) fn is_excluded(&self) -> bool {
        self.departure.is_some_and(|way| way.is_excluded)
    }

    /// Returns true if the database differs from the others'.
    pub(crate) fn has_diverged(&self) -> bool {
        self.departure.is_some_and(|way| way.has_diverged)
    }

    /// Makes the node leave. Returns false if it was leaving already.
    pub(crate) fn leave(&mut self) -> bool {
        let was_leaving = self.is_leaving();
        self.departure();
        !was_leaving
    }

    /// Handles disconnect(). Returns false if the node was leaving already.
    pub(crate) fn disconnect(&mut self) -> bool {
        let was_leaving = self.is_leaving();
        self.departure().is_awaited = true;
        !was_leaving
    }

    /// Notes that the view by which the node leaves was ordered.
    pub(crate) fn exclude(&mut self) {
        self.departure().is_excluded = true;
    }

    /// Makes the node leave, because its database differs from the others'.
    pub(crate) fn diverge(&mut self) {
        self.departure().has_diverged = true;
    }

    fn departure(&mut self) -> &mut Departure {
        self.departure.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_connection_forgets_all_but_whether_it_is_safe_to_bootstrap() {
        let mut lifecycle = Lifecycle::default();
        lifecycle.enter_primary();
        assert!(!lifecycle.is_primary(), "the group is not");
        lifecycle.group_is_primary(true);
        lifecycle.enter_primary();
        lifecycle.set_safe_to_bootstrap(true);
        assert!(lifecycle.show_connected() && !lifecycle.show_connected());
        assert!(lifecycle.show_synced() && !lifecycle.show_synced());
        lifecycle.forget_synced();
        assert!(lifecycle.show_synced());
        assert!(lifecycle.takes_part() && lifecycle.leave() && !lifecycle.takes_part());
        lifecycle.diverge();
        assert!(!lifecycle.disconnect(), "it was leaving already");
        assert!(lifecycle.is_awaited() && lifecycle.has_diverged() && !lifecycle.is_excluded());
        lifecycle.connect(false, true);
        assert!(lifecycle.is_safe_to_bootstrap() && lifecycle.is_server_running());
        assert!(!lifecycle.is_leaving() && !lifecycle.is_connected() && !lifecycle.is_primary());
        assert!(lifecycle.show_synced(), "it has to be told again");
    }
}
