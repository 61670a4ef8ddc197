//! The last announcements: to the group, to the server, to the log. Each is told once after each change.

use trireme_group::{Incarnation, Position};

use crate::control::Control;
use crate::status::LocalState;

#[derive(Debug)]
pub(crate) struct Announcements {
    /// The members that may vote, as the group was told; None: it is to be told (again).
    joined: Option<Vec<Incarnation>>,
    /// The server was told that it is synced, and still is.
    synced: bool,
    /// The state that the log was told of.
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

    /// A new connection begins. The log goes on.
    pub(crate) fn start_over(&mut self) {
        *self = Announcements {
            state: self.state,
            ..Announcements::new()
        };
    }

    /// The members that may vote, and as of which position, if the group is to be told.
    pub(crate) fn joined(&mut self, control: &Control) -> Option<(Position, Vec<Incarnation>)> {
        let told = self.joined.iter().flatten().copied();
        if self.joined.is_some() && control.joined().eq(told) {
            return None;
        }
        let members: Vec<_> = control.joined().collect();
        self.joined = Some(members.clone());
        Some((control.position, members))
    }

    /// The group is to be told anew who may vote.
    pub(crate) fn forget_joined(&mut self) {
        self.joined = None;
    }

    /// The node is synced: true if the server is to be told.
    pub(crate) fn synced(&mut self) -> bool {
        !std::mem::replace(&mut self.synced, true)
    }

    /// The server is not synced any more.
    pub(crate) fn forget_synced(&mut self) {
        self.synced = false;
    }

    /// The state before, if the log is to be told of this one.
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
