//! This process's knowledge of forced views (rule 11).
//!
//! In: forced views, committed here or heard of. Out: whether this component must give way, and the facts for a report
//! of a split brain. Forced-view histories only grow.

use trireme_mutants::{Mutant, planted};

use crate::branches::OVERRIDES_MAX;
use crate::configuration::{Configuration, Member};
use crate::ids::{Position, ReplicaId, TimeMs, Uuid};
use crate::reminder::Reminder;

/// The last forced view that this process saw committed.
#[derive(Clone, Debug, Hash)]
struct Fork {
    id: Uuid,
    /// Its position in the log.
    at: Position,
    /// The members of the view before: those that the forced view lacks may have gone on by themselves.
    before: Vec<Member>,
}

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct ForcedViews {
    /// The longest forced-view history heard of that extends the own one, until a view makes this process primary: with
    /// that history, or because a majority went on without it.
    known: Vec<Uuid>,
    /// True if this process has given way to a primary component without its last forced views, and has not got that
    /// component's log yet.
    gave_way: bool,
    /// The yielding forced views that this process has given up, or has outvoted as part of a primary component. A node
    /// that joined their branch before may still try to go on with it.
    given_up: Vec<Uuid>,
    fork: Option<Fork>,
    /// When this log got its last forced view, or was replaced.
    learnt_at: TimeMs,
    /// The last forced view that a heartbeat has named.
    told: Option<Uuid>,
    /// For the report of a branch of the history that excludes this one.
    reminder: Reminder,
}

impl ForcedViews {
    /// The forced views of a component that has overruled this one, if it has more than `own`: this log is not replaced
    /// yet.
    pub(crate) fn beyond(&self, own: &[Uuid]) -> Option<&[Uuid]> {
        Some(&self.known[..]).filter(|known| known.len() > own.len())
    }

    pub(crate) fn has_given_way(&self) -> bool {
        self.gave_way
    }

    /// The position of the forced view with this id, if this process saw it committed last.
    pub(crate) fn position_of(&self, id: Uuid) -> Option<Position> {
        let fork = self.fork.as_ref().filter(|fork| fork.id == id);
        fork.map(|fork| fork.at)
    }

    /// The replica's member in the view before the last forced one.
    pub(crate) fn member_before(&self, replica: ReplicaId) -> Option<&Member> {
        let mut before = self.fork.iter().flat_map(|fork| &fork.before);
        before.find(|member| member.replica == replica)
    }

    /// A view is committed at this position, at this time. If it is a forced view, keeps the facts that a report needs
    /// when another branch of the history is met.
    pub(crate) fn committed(
        &mut self,
        (at, at_ms): (Position, TimeMs),
        before: &Configuration,
        view: &Configuration,
    ) {
        if let Some(id) = view.override_id {
            self.learnt_at = at_ms;
            let before = before.members.clone();
            self.fork = Some(Fork { id, at, before });
        }
    }

    /// This process must follow a component with these forced views, which extend its own.
    pub(crate) fn heed(&mut self, overrides: &[Uuid]) {
        self.known = overrides.to_vec();
    }

    /// A view makes this process primary. Forced views that it only heard of and did not adopt have lost against this
    /// view, unless their leader is heard again.
    pub(crate) fn made_primary(&mut self) {
        if !planted(Mutant::GivenUpOverrideCounts) {
            self.known.clear();
        }
    }

    /// This process must follow a primary component without its last forced views, which are these.
    pub(crate) fn give_way(&mut self, last: &[Uuid]) {
        self.gave_way = true;
        self.give_up(last);
    }

    /// These forced views have lost against a primary component. The oldest are forgotten beyond a bound.
    pub(crate) fn give_up(&mut self, lost: &[Uuid]) {
        for id in lost {
            if !self.given_up.contains(id) {
                self.given_up.push(*id);
            }
        }
        let excess = self.given_up.len().saturating_sub(OVERRIDES_MAX);
        self.given_up.drain(..excess);
    }

    pub(crate) fn has_given_up(&self, id: &Uuid) -> bool {
        self.given_up.contains(id) && !planted(Mutant::GivenUpBranchRevived)
    }

    /// The log has been replaced at this time.
    pub(crate) fn log_replaced(&mut self, at_ms: TimeMs) {
        self.gave_way = false;
        self.learnt_at = at_ms;
    }

    /// True if this log has had its forced views since before this time.
    pub(crate) fn are_older_than(&self, heard_at: TimeMs) -> bool {
        heard_at >= self.learnt_at || planted(Mutant::EarlierWordCounts)
    }

    /// True if the peers have yet to hear that this process has committed the last of these forced views.
    pub(crate) fn are_untold(&self, own: &[Uuid]) -> bool {
        self.told.as_ref() != own.last()
    }

    /// A heartbeat names these forced views.
    pub(crate) fn note_told(&mut self, own: &[Uuid]) {
        self.told = own.last().copied();
    }

    /// Returns true if the report of a branch that excludes this one is due, and notes it as written.
    pub(crate) fn is_split_due(&mut self, now: TimeMs) -> bool {
        self.reminder.is_due(now)
    }

    /// The time stamps, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn told_at(&mut self) -> Option<&mut TimeMs> {
        self.reminder.told_at.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_view_is_remembered_with_those_it_left_out() {
        let (id, replica) = (Uuid([7; 16]), ReplicaId(Uuid([1; 16])));
        let member = Member {
            replica,
            ..Member::default()
        };
        let before = Configuration {
            members: vec![member.clone()],
            ..Configuration::default()
        };
        let mut forced = ForcedViews::default();
        forced.committed((4, 50), &before, &Configuration::default());
        assert_eq!(forced.position_of(id), None, "that one was not forced");
        let now = Configuration {
            override_id: Some(id),
            ..Configuration::default()
        };
        forced.committed((5, 60), &before, &now);
        assert_eq!(forced.position_of(id), Some(5));
        assert_eq!(forced.member_before(replica), Some(&member));
        assert!(!forced.are_older_than(59) && forced.are_older_than(60));
        forced.log_replaced(70);
        assert!(!forced.are_older_than(69));
    }

    #[test]
    fn it_overrules_until_its_log_is_taken_over_or_a_view_goes_on_without_it() {
        let mut forced = ForcedViews::default();
        let (one, two) = (Uuid([1; 16]), Uuid([2; 16]));
        forced.heed(&[one, two]);
        assert_eq!(forced.beyond(&[one]), Some(&[one, two][..]));
        assert_eq!(forced.beyond(&[one, two]), None);
        forced.made_primary();
        assert_eq!(forced.beyond(&[one]), None);
    }
}
