//! What the server takes its node for, by the callbacks that it was given
//! (server-contract-callbacks.md#server-states): how it holds the provider still, and how it lets go, depends on it.

use super::server::Server;

/// The states of the lib that something depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Up to the first primary view, and again from a non-primary one on.
    #[default]
    Connected,
    Joined,
    /// A script sends; being desynced is not told.
    Donor,
    Synced,
    Disconnecting,
}

impl Server {
    /// A view was shown.
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

    /// The script that sends is over, or was not started.
    pub(super) fn state_after_donation(&mut self) {
        if self.state == State::Donor {
            self.state = State::Joined;
        }
    }
}
