//! The last announcements to the group, to the server and to the log. Each is made once after each change.

use trireme_group::{Incarnation, Position};

use crate::control::Control;
use crate::status::LocalState;

#[derive(Debug)]
pub(crate) struct Announcements {
    /// The members with a vote, as told to the group; None: tell the group (again).
    joined: Option<Vec<Incarnation>>,
    /// True if the server was told that it is synced, and still is.
    synced: bool,
    /// The state as told to the log.
    state: LocalState,
}

impl Announcements {
    pub(crate) fn new() -> Announcements {
        Announcements {
            joined: None,
            synced: false,
            state: LocalState::Initialized,
        }
    }

    /// Starts over for a new connection. The announcements to the log go on.
    pub(crate) fn start_over(&mut self) {
        *self = Announcements {
            state: self.state,
            ..Announcements::new()
        };
    }

    /// Returns the members with a vote and the position that they hold for, if the group must be told.
    pub(crate) fn joined(&mut self, control: &Control) -> Option<(Position, Vec<Incarnation>)> {
        let told = self.joined.iter().flatten().copied();
        if self.joined.is_some() && control.joined().eq(told) {
            return None;
        }
        let members: Vec<_> = control.joined().collect();
        self.joined = Some(members.clone());
        Some((control.position, members))
    }

    /// Makes the group hear the members with a vote again.
    pub(crate) fn forget_joined(&mut self) {
        self.joined = None;
    }

    /// Notes that the node is synced. Returns true if the server must be told.
    pub(crate) fn synced(&mut self) -> bool {
        !std::mem::replace(&mut self.synced, true)
    }

    /// Notes that the server is no longer synced.
    pub(crate) fn forget_synced(&mut self) {
        self.synced = false;
    }

    /// Notes the state. Returns the state before, if the log must be told.
    pub(crate) fn state(&mut self, state: LocalState) -> Option<LocalState> {
        let before = std::mem::replace(&mut self.state, state);
        (before != state).then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_told_once() {
        let mut announcements = Announcements::new();
        assert!(announcements.synced() && !announcements.synced());
        announcements.forget_synced();
        assert!(announcements.synced());
        let before = announcements.state(LocalState::Synced);
        assert_eq!(before, Some(LocalState::Initialized));
        announcements.start_over();
        assert_eq!(announcements.state(LocalState::Synced), None);
        assert!(announcements.synced());
    }
}
