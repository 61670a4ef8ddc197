//! The members that may have the missing entries of an IST. It owns which one is asked, until when, and when none is
//! left to ask. In: views, answers, the time. Out: the member to ask next.

use std::collections::VecDeque;

use trireme_group::Incarnation;

/// Time after which a member that does not answer a pull is given up for now.
const TIMEOUT_MS: u64 = 1000;
/// Maximum of unanswered pulls in a row, per member; then the attempt ends.
const MAX_ROUNDS: u32 = 5;

#[derive(Debug)]
pub(super) struct Sources {
    /// The front one is asked.
    members: VecDeque<Incarnation>,
    /// The time when the asked member is given up for now; None: nobody is asked.
    deadline_ms: Option<u64>,
    /// Number of unanswered pulls in a row.
    silent: u32,
}

impl Sources {
    pub(super) fn new(members: VecDeque<Incarnation>) -> Sources {
        Sources {
            members,
            deadline_ms: None,
            silent: 0,
        }
    }

    pub(super) fn contains(&self, member: Incarnation) -> bool {
        self.members.contains(&member)
    }

    /// Returns the member that is asked, or will be asked next.
    pub(super) fn first(&self) -> Option<Incarnation> {
        self.members.front().copied()
    }

    /// Asks this member first.
    pub(super) fn prefer(&mut self, member: Incarnation) {
        if let Some(at) = self.members.iter().position(|source| *source == member) {
            self.members.remove(at);
            self.members.push_front(member);
        }
    }

    /// Goes on with the members of a new view. A member that lacked the entry before may have it now. If nobody else is
    /// in the view, the usual time passes before this node gives up: the others may come back.
    pub(super) fn follow_view(&mut self, members: VecDeque<Incarnation>) {
        if members.is_empty() {
            return;
        }
        if self.members.front() != members.front() {
            self.deadline_ms = None; // the asked member has left
        }
        (self.members, self.silent) = (members, 0);
    }

    // --- pulls

    /// Asks a member; None: no member has the entry.
    pub(super) fn ask(&mut self, now_ms: u64) -> Option<Incarnation> {
        let first = self.first()?;
        self.deadline_ms = Some(now_ms + TIMEOUT_MS);
        Some(first)
    }

    /// Returns the time when the asked member is given up for now.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.deadline_ms
    }

    pub(super) fn is_asked(&self, member: Incarnation) -> bool {
        self.deadline_ms.is_some() && self.first() == Some(member)
    }

    /// Gives up the asked member for now, if it has not answered in time. Returns true if so.
    pub(super) fn expire(&mut self, now_ms: u64) -> bool {
        if self.deadline_ms.is_none_or(|at_ms| now_ms < at_ms) {
            return false;
        }
        self.deadline_ms = None;
        self.silent += 1;
        self.members.rotate_left(1);
        if self.silent > MAX_ROUNDS * self.members.len() as u32 {
            self.members.clear();
        }
        true
    }

    /// Takes in that the asked member has answered.
    pub(super) fn answered(&mut self) {
        (self.deadline_ms, self.silent) = (None, 0);
    }

    /// Makes the node ask again: the answer does not count, or will not come.
    pub(super) fn ask_anew(&mut self) {
        self.deadline_ms = None;
    }

    /// Forgets who was asked, and who did not answer: this node was cut off.
    pub(super) fn start_over(&mut self) {
        (self.deadline_ms, self.silent) = (None, 0);
    }

    /// Drops the asked member until the next view: it lacks the entry.
    pub(super) fn drop_first(&mut self) {
        self.members.pop_front();
    }
}
