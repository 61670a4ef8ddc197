//! What forced views (an operator's overrides, rule 11) leave behind in this process.
//!
//! Comes in: views that were forced, here or elsewhere. Goes out: what is to be given way to, and what is to be told of it.

use crate::configuration::{Configuration, Member};
use crate::ids::{Position, ReplicaId, TimeMs, Uuid};
use crate::reminder::Reminder;

/// The last forced view that was committed while this process looked on.
#[derive(Clone, Debug, Hash)]
struct Fork {
    id: Uuid,
    /// Where it stands in the log.
    at: Position,
    /// The members before: those who are not there any more may have gone on by themselves.
    before: Vec<Member>,
}

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct ForcedViews {
    /// The longest list of overrides seen that extends the own one.
    known: Vec<Uuid>,
    /// Has given way to a primary component without the last own overrides, and has not got its log yet.
    gave_way: bool,
    fork: Option<Fork>,
    /// Of a branch of the history that excludes this one.
    reminder: Reminder,
}

impl ForcedViews {
    /// A component with more overrides than these has overruled this one, which has not taken over its log yet.
    pub(crate) fn overrule(&self, own: &[Uuid]) -> bool {
        self.known.len() > own.len()
    }

    pub(crate) fn has_given_way(&self) -> bool {
        self.gave_way
    }

    /// Where the override with this id stands in the log, if that was seen.
    pub(crate) fn position_of(&self, id: Uuid) -> Option<Position> {
        let fork = self.fork.as_ref().filter(|fork| fork.id == id);
        fork.map(|fork| fork.at)
    }

    /// The replica's member of before the last forced view.
    pub(crate) fn member_before(&self, replica: ReplicaId) -> Option<&Member> {
        let mut before = self.fork.iter().flat_map(|fork| &fork.before);
        before.find(|member| member.replica == replica)
    }

    /// A view is committed, at this position. If it was forced, what is to be told of it is kept, should another branch of
    /// the history be met.
    pub(crate) fn committed(&mut self, at: Position, before: &Configuration, now: &Configuration) {
        if let Some(id) = now.override_id {
            let before = before.members.clone();
            self.fork = Some(Fork { id, at, before });
        }
    }

    /// A component with these overrides, which extend the own ones, is to be followed.
    pub(crate) fn heed(&mut self, overrides: &[Uuid]) {
        self.known = overrides.to_vec();
    }

    /// A component without the last own overrides is to be followed.
    pub(crate) fn give_way(&mut self) {
        self.gave_way = true;
    }

    /// The log has been replaced.
    pub(crate) fn log_replaced(&mut self) {
        self.gave_way = false;
    }

    /// True now and then: a branch that excludes this one is to be told of.
    pub(crate) fn is_split_due(&mut self, now: TimeMs) -> bool {
        self.reminder.is_due(now)
    }

    /// Ages of stamps, for the model check.
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
        forced.committed(4, &before, &Configuration::default());
        assert_eq!(forced.position_of(id), None, "that one was not forced");
        let now = Configuration {
            override_id: Some(id),
            ..Configuration::default()
        };
        forced.committed(5, &before, &now);
        assert_eq!(forced.position_of(id), Some(5));
        assert_eq!(forced.member_before(replica), Some(&member));
    }

    #[test]
    fn it_overrules_until_its_log_is_taken_over() {
        let mut forced = ForcedViews::default();
        let (one, two) = (Uuid([1; 16]), Uuid([2; 16]));
        forced.heed(&[one, two]);
        assert!(forced.overrule(&[one]) && !forced.overrule(&[one, two]));
    }
}
