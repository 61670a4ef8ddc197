//! The last announcements to the group and to the log. Each is made once after each change.

use trireme_group::{Incarnation, Position};

use crate::control::Control;
use crate::status::LocalState;

#[derive(Debug)]
pub(crate) struct Announcements {
    /// The members with a vote, as told to the group; None: tell the group (again).
    joined: Option<Vec<Incarnation>>,
    /// The control state at this position has just these members with a vote.
    joined_at: Position,
    /// The state as told to the log.
    state: LocalState,
}

impl Default for Announcements {
    fn default() -> Announcements {
        Announcements {
            joined: None,
            joined_at: 0,
            state: LocalState::Initialized,
        }
    }
}

impl Announcements {
    /// Returns the members with a vote and the position that they hold for, if the group must be told.
    pub(crate) fn joined(&mut self, control: &Control) -> Option<(Position, Vec<Incarnation>)> {
        // All control states of one position have the same members.
        let is_compared = self.joined_at == control.position;
        self.joined_at = control.position;
        let told = self.joined.iter().flatten().copied();
        if self.joined.is_some() && (is_compared || control.members.joined().eq(told)) {
            return None;
        }
        let members: Vec<_> = control.members.joined().collect();
        self.joined = Some(members.clone());
        Some((control.position, members))
    }

    /// Makes the group hear the members with a vote again.
    pub(crate) fn forget_joined(&mut self) {
        self.joined = None;
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
        let mut announcements = Announcements::default();
        let before = announcements.state(LocalState::Synced);
        assert_eq!(before, Some(LocalState::Initialized));
        assert_eq!(announcements.state(LocalState::Synced), None);
    }
}
