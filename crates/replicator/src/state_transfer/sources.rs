//! The members that may have the missing entries of an IST. It owns which one is asked, how long an answer is waited
//! for, and when none is left to ask. In: views, answers, the time. Out: the member to ask next.

use std::collections::VecDeque;

use trireme_group::Incarnation;

use super::patience::Patience;

/// Maximum of unanswered pulls in a row, per member; then the attempt ends. With the time that grows this takes half a
/// minute, and 15 s more for each further member.
const MAX_ROUNDS: u32 = 4;

#[derive(Debug)]
pub(super) struct Sources {
    /// The front one is asked next.
    members: VecDeque<Incarnation>,
    /// The members that were asked for the wanted entry: the answer of each counts, even if it is late.
    asked: Vec<Incarnation>,
    /// The time when another member is asked; None: nobody is waited for.
    deadline_ms: Option<u64>,
    /// Number of unanswered pulls in a row.
    silent: u32,
    /// It grows with each round in which no member has answered, and shrinks with answers in time.
    patience: Patience,
}

impl Sources {
    pub(super) fn new(members: VecDeque<Incarnation>) -> Sources {
        Sources {
            members,
            asked: Vec::new(),
            deadline_ms: None,
            silent: 0,
            patience: Patience::default(),
        }
    }

    pub(super) fn contains(&self, member: Incarnation) -> bool {
        self.members.contains(&member)
    }

    /// Returns the member that is waited for, or will be asked next.
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
            self.deadline_ms = None; // the member that is waited for has left
        }
        self.asked.retain(|asked| members.contains(asked));
        (self.members, self.silent) = (members, 0);
    }

    /// Forgets who was asked, and who did not answer: this node was cut off.
    pub(super) fn start_over(&mut self) {
        *self = Sources::new(std::mem::take(&mut self.members));
    }

    // --- pulls

    /// Asks a member; None: no member has the entry.
    pub(super) fn ask(&mut self, now_ms: u64) -> Option<Incarnation> {
        let first = self.first()?;
        if !self.asked.contains(&first) {
            self.asked.push(first);
        }
        self.deadline_ms = Some(now_ms + self.patience.ms());
        Some(first)
    }

    /// Returns the time when another member is asked.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.deadline_ms
    }

    /// Returns true if this member's answer counts.
    pub(super) fn is_asked(&self, member: Incarnation) -> bool {
        self.asked.contains(&member)
    }

    /// Moves on to the next member, if no answer has come in time. Returns true if so.
    pub(super) fn expire(&mut self, now_ms: u64) -> bool {
        if self.deadline_ms.is_none_or(|at_ms| now_ms < at_ms) {
            return false;
        }
        self.deadline_ms = None;
        self.silent += 1;
        let count = self.members.len() as u32; // one of them is waited for
        self.members.rotate_left(1);
        if self.silent % count == 0 {
            self.patience.grow();
        }
        if self.silent > MAX_ROUNDS * count {
            self.members.clear();
        }
        true
    }

    /// Takes in the answer of a member, which is asked first from now on.
    pub(super) fn answered(&mut self, member: Incarnation) {
        if self.silent == 0 {
            self.patience.shrink();
        }
        self.silent = 0;
        self.ask_anew();
        self.prefer(member);
    }

    /// Makes the node ask again. No answer to an earlier pull counts.
    pub(super) fn ask_anew(&mut self) {
        self.deadline_ms = None;
        self.asked.clear();
    }

    /// Drops a member until the next view: it lacks the entry.
    pub(super) fn drop_member(&mut self, member: Incarnation) {
        if self.first() == Some(member) {
            self.deadline_ms = None;
        }
        self.asked.retain(|asked| *asked != member);
        self.members.retain(|source| *source != member);
        self.silent = 0;
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::Uuid;

    use super::*;

    fn member(number: u8) -> Incarnation {
        Incarnation(Uuid([number; 16]))
    }

    fn of(numbers: &[u8]) -> Sources {
        Sources::new(numbers.iter().copied().map(member).collect())
    }

    #[test]
    fn all_are_given_up_when_they_were_silent_for_long() {
        for (numbers, given_up_ms) in [(&[1][..], 31_000), (&[1, 2], 46_000), (&[1, 2, 3], 61_000)]
        {
            let mut sources = of(numbers);
            let mut now_ms = 0;
            while sources.ask(now_ms).is_some() {
                now_ms = sources.deadline_ms().expect("asked");
                assert!(!sources.expire(now_ms - 1) && sources.expire(now_ms));
            }
            assert_eq!(now_ms, given_up_ms);
        }
    }

    #[test]
    fn the_patience_is_kept_after_a_late_answer_and_shrinks_after_one_in_time() {
        let mut sources = of(&[1]);
        let waits_ms = |sources: &mut Sources| {
            sources.ask(0);
            sources.deadline_ms()
        };
        assert_eq!(waits_ms(&mut sources), Some(1_000));
        assert!(sources.expire(1_000));
        assert_eq!(waits_ms(&mut sources), Some(2_000));
        sources.answered(member(1));
        assert_eq!(waits_ms(&mut sources), Some(2_000));
        sources.answered(member(1));
        assert_eq!(waits_ms(&mut sources), Some(1_000));
    }

    #[test]
    fn a_late_answer_counts_and_its_member_is_asked_next() {
        let mut sources = of(&[1, 2, 3]);
        sources.ask(0);
        assert!(!sources.is_asked(member(2)) && sources.expire(1_000));
        assert_eq!(sources.ask(1_000), Some(member(2)));
        assert!(sources.is_asked(member(1)) && sources.is_asked(member(2)));
        sources.answered(member(1));
        assert!(!sources.is_asked(member(1)) && !sources.is_asked(member(2)));
        assert_eq!(sources.ask(1_500), Some(member(1)));
    }

    #[test]
    fn a_view_brings_members_back_and_takes_those_that_left() {
        let mut sources = of(&[1, 2]);
        sources.ask(0);
        sources.drop_member(member(1));
        assert_eq!(sources.ask(0), Some(member(2)));
        sources.follow_view([2, 1].map(member).into());
        assert_eq!(sources.deadline_ms(), Some(1_000), "it is still there");
        sources.follow_view([1, 3].map(member).into());
        assert!(!sources.is_asked(member(2)));
        assert_eq!(
            (sources.deadline_ms(), sources.ask(0)),
            (None, Some(member(1)))
        );
        sources.follow_view(VecDeque::new());
        assert_eq!(sources.first(), Some(member(1)));
    }
}
