//! The role of this member: follower, candidate or leader. Each role owns its state, which ends with the role.

use crate::election::Candidacy;
use crate::leader_state::LeaderState;

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Role(State);

#[derive(Clone, Debug, Default, Hash)]
enum State {
    #[default]
    Follower,
    Candidate(Candidacy),
    Leader(Box<LeaderState>),
}

impl Role {
    pub(crate) fn follow(&mut self) {
        self.0 = State::Follower;
    }

    pub(crate) fn stand(&mut self, candidacy: Candidacy) {
        self.0 = State::Candidate(candidacy);
    }

    pub(crate) fn lead(&mut self, state: LeaderState) {
        self.0 = State::Leader(Box::new(state));
    }

    pub(crate) fn is_follower(&self) -> bool {
        matches!(self.0, State::Follower)
    }

    pub(crate) fn is_candidate(&self) -> bool {
        self.candidacy().is_some()
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.leader().is_some()
    }

    pub(crate) fn candidacy(&self) -> Option<&Candidacy> {
        match &self.0 {
            State::Candidate(candidacy) => Some(candidacy),
            State::Follower | State::Leader(_) => None,
        }
    }

    pub(crate) fn candidacy_mut(&mut self) -> Option<&mut Candidacy> {
        match &mut self.0 {
            State::Candidate(candidacy) => Some(candidacy),
            State::Follower | State::Leader(_) => None,
        }
    }

    pub(crate) fn leader(&self) -> Option<&LeaderState> {
        match &self.0 {
            State::Leader(state) => Some(state),
            State::Follower | State::Candidate(_) => None,
        }
    }

    pub(crate) fn leader_mut(&mut self) -> Option<&mut LeaderState> {
        match &mut self.0 {
            State::Leader(state) => Some(state),
            State::Follower | State::Candidate(_) => None,
        }
    }

    /// Makes a candidate a follower, and returns its candidacy; None if this member is no candidate.
    pub(crate) fn take_candidacy(&mut self) -> Option<Candidacy> {
        match std::mem::take(&mut self.0) {
            State::Candidate(candidacy) => Some(candidacy),
            other => {
                self.0 = other;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Numbers;

    #[test]
    fn a_role_is_left_for_another() {
        let mut role = Role::default();
        assert!(role.is_follower() && role.leader().is_none());
        role.lead(LeaderState::new(0, 1, Numbers::default(), 0));
        assert!(role.is_leader() && role.take_candidacy().is_none());
        assert!(role.is_leader(), "it is no candidate");
        role.follow();
        assert!(!role.is_leader() && !role.is_candidate());
    }
}
