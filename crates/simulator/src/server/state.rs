//! The node's state in the eyes of its server, from the callbacks that it got
//! (server-contract-callbacks.md#server-states). The way to pause and resume the provider depends on it.

use super::server::Server;

/// The states of wsrep-lib that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Until the first primary view, and again after a non-primary one.
    #[default]
    Connected,
    Joined,
    /// A script sends the database; a mere desync does not show here.
    Donor,
    Synced,
    Disconnecting,
}

impl Server {
    /// True if the last view was a non-primary one, or if there was none.
    pub fn knows_of_loss(&self) -> bool {
        self.state == State::Connected
    }

    /// The state after a view.
    pub(super) fn state_after_view(&mut self, primary: bool) {
        self.state = match (self.state, primary) {
            (State::Disconnecting, _) => State::Disconnecting,
            (_, false) => State::Connected,
            (State::Connected, true) => State::Joined,
            (same, true) => same,
        };
    }

    pub(super) fn state_after_synced(&mut self) {
        assert_ne!(self.state, State::Donor, "synced() for a donor");
        if self.state != State::Disconnecting {
            self.state = State::Synced;
        }
    }

    /// The state after a donor's script has ended, or was not started.
    pub(super) fn state_after_donation(&mut self) {
        if self.state == State::Donor {
            self.state = State::Joined;
        }
    }
}
