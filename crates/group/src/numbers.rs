//! The last ordered submission number of each replica, as far as it is remembered.
//!
//! In: the entries of the log, one after the other. Out: the last number of an incarnation. This is replicated state: a
//! function of the log alone, and bounded.

use std::collections::BTreeMap;

use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::ids::{Incarnation, Position, ReplicaId, SubmissionId};
use crate::limits::MEMBERS_MAX;

/// Greatest number of remembered replicas that have left the view: those that left last.
const ABSENT_MAX: usize = 1024;
/// Greatest number of remembered replicas.
pub(crate) const NUMBERS_MAX: usize = ABSENT_MAX + MEMBERS_MAX;

/// The numbers of one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counted {
    /// Its latest incarnation.
    pub incarnation: Incarnation,
    /// Its last ordered submission number.
    pub number: u64,
    /// Position of the first configuration without it; 0: the latest one lists it.
    pub left_at: Position,
}

/// The numbers of all remembered replicas. A member that leaves the view is remembered, because the same incarnation
/// may come back and count on. Of the replicas that have left, only the last 1024 are remembered. One that returns
/// after that begins with number 0, and voids its earlier submissions (`Group::fail_covered`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Numbers {
    replicas: BTreeMap<ReplicaId, Counted>,
    /// The replica of each incarnation, because entries name incarnations. As many as `replicas`.
    owners: BTreeMap<Incarnation, ReplicaId>,
}

impl Numbers {
    /// Last number ordered for this origin; None if another incarnation took its place, or if it is not remembered.
    pub fn last(&self, replica: ReplicaId, incarnation: Incarnation) -> Option<u64> {
        let counted = self.replicas.get(&replica)?;
        (counted.incarnation == incarnation).then_some(counted.number)
    }

    /// True if that number, or a later one of the same origin, was ordered or voided.
    pub fn cover(&self, id: SubmissionId) -> bool {
        let owner = self.owners.get(&id.incarnation);
        let last = owner.and_then(|replica| self.last(*replica, id.incarnation));
        last.is_some_and(|last| last >= id.number)
    }

    /// Accounts for the next entry of the log.
    pub fn apply(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Configuration(configuration) => self.seat(entry.position, configuration),
            Body::Submission { id, .. } | Body::Voided { id } => self.count(*id),
            Body::TermStart => {}
        }
    }

    /// Accounts for a configuration: a new incarnation of a replica starts to count anew; the same one counts on.
    fn seat(&mut self, position: Position, configuration: &Configuration) {
        for (replica, counted) in &mut self.replicas {
            if counted.left_at == 0 && configuration.replica(*replica).is_none() {
                counted.left_at = position;
            }
        }
        for member in &configuration.members {
            let (replica, incarnation) = (member.replica, member.incarnation);
            let number = self.last(replica, incarnation).unwrap_or(0);
            self.remember(
                replica,
                Counted {
                    incarnation,
                    number,
                    left_at: 0,
                },
            );
        }
        self.forget_the_oldest();
    }

    fn forget_the_oldest(&mut self) {
        let absent = self.replicas.iter().filter(|(_, c)| c.left_at > 0);
        let mut absent: Vec<_> = absent
            .map(|(r, c)| (c.left_at, *r, c.incarnation))
            .collect();
        let Some(too_many) = absent.len().checked_sub(ABSENT_MAX).filter(|n| *n > 0) else {
            return;
        };
        absent.sort_unstable();
        for (_, replica, incarnation) in &absent[..too_many] {
            self.replicas.remove(replica);
            self.owners.remove(incarnation);
        }
    }

    fn count(&mut self, id: SubmissionId) {
        let owner = self.owners.get(&id.incarnation);
        if let Some(counted) = owner.and_then(|replica| self.replicas.get_mut(replica)) {
            counted.number = counted.number.max(id.number);
        }
    }

    /// Remembers the numbers of a replica. An incarnation belongs to one replica: to the last that had it.
    pub(crate) fn remember(&mut self, replica: ReplicaId, counted: Counted) {
        if let Some(before) = self.replicas.insert(replica, counted) {
            self.owners.remove(&before.incarnation);
        }
        if let Some(other) = self.owners.insert(counted.incarnation, replica) {
            if other != replica {
                self.replicas.remove(&other);
            }
        }
    }

    /// True if this replica is, or was, a member, as far as is remembered.
    pub(crate) fn knows(&self, replica: ReplicaId) -> bool {
        self.replicas.contains_key(&replica)
    }

    /// The number of remembered replicas.
    pub fn len(&self) -> usize {
        self.replicas.len()
    }

    /// True if no replica is remembered.
    pub fn is_empty(&self) -> bool {
        self.replicas.is_empty()
    }

    /// The numbers of all remembered replicas, in the order of replica ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Counted> {
        self.replicas.values()
    }

    /// All remembered replicas with their numbers, for the encoding.
    pub(crate) fn replicas(&self) -> &BTreeMap<ReplicaId, Counted> {
        &self.replicas
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::configuration::Member;
    use crate::ids::{Term, Uuid};

    fn member(id: u64) -> Member {
        let mut bytes = [1; 16];
        bytes[..8].copy_from_slice(&id.to_be_bytes());
        Member {
            replica: ReplicaId(Uuid(bytes)),
            incarnation: Incarnation(Uuid(bytes)),
            ..Member::default()
        }
    }

    fn id(member: &Member, number: u64) -> SubmissionId {
        SubmissionId {
            incarnation: member.incarnation,
            number,
        }
    }

    fn apply(numbers: &mut Numbers, position: Position, body: Body) {
        numbers.apply(&Entry {
            position,
            term: Term::default(),
            body,
        });
    }

    fn view(ids: impl IntoIterator<Item = u64>) -> Body {
        Body::Configuration(Configuration {
            members: ids.into_iter().map(member).collect(),
            ..Configuration::default()
        })
    }

    #[test]
    fn whoever_has_left_last_is_remembered() {
        let mut numbers = Numbers::default();
        let mut position = 0;
        for newcomer in 1..=5_000 {
            position += 2;
            apply(&mut numbers, position - 1, view([0, newcomer]));
            let id = id(&member(newcomer), 5);
            apply(&mut numbers, position, Body::Voided { id });
        }
        assert_eq!(numbers.len(), 2 + ABSENT_MAX);
        let last = |numbers: &Numbers, who| {
            let member = member(who);
            numbers.last(member.replica, member.incarnation)
        };
        let oldest = 5_000 - ABSENT_MAX as u64;
        assert_eq!(last(&numbers, oldest - 1), None);
        assert_eq!(last(&numbers, oldest), Some(5));
        assert_eq!(last(&numbers, 0), Some(0), "it never left");
        // A replica that comes back and leaves again is the last to be forgotten.
        apply(&mut numbers, position + 1, view([0, oldest]));
        apply(&mut numbers, position + 2, view([0, 200_000]));
        apply(&mut numbers, position + 3, view([0, 200_001]));
        assert_eq!(last(&numbers, oldest), Some(5));
        assert_eq!(last(&numbers, oldest + 1), None);
    }

    #[test]
    fn an_incarnation_belongs_to_one_replica() {
        let mut numbers = Numbers::default();
        apply(&mut numbers, 1, view([1]));
        apply(
            &mut numbers,
            2,
            Body::Voided {
                id: id(&member(1), 7),
            },
        );
        let moved = Member {
            replica: member(2).replica,
            ..member(1)
        };
        let configuration = Configuration {
            members: vec![moved.clone()],
            ..Configuration::default()
        };
        apply(&mut numbers, 3, Body::Configuration(configuration));
        assert_eq!(numbers.last(moved.replica, moved.incarnation), Some(0));
        assert_eq!(numbers.len(), 1);
        assert!(!numbers.cover(id(&moved, 1)) && numbers.cover(id(&moved, 0)));
    }

    /// The cost of one `count` in ns, with this many remembered replicas.
    fn cost_ns(replicas: u64) -> u128 {
        let mut numbers = Numbers::default();
        for who in 0..replicas {
            let incarnation = member(who).incarnation;
            let counted = Counted {
                incarnation,
                number: 0,
                left_at: 0,
            };
            numbers.remember(member(who).replica, counted);
        }
        let last = member(replicas - 1);
        let best = (0..5).map(|_| {
            let start = Instant::now();
            for number in 0..1_000 {
                numbers.count(id(&last, number));
            }
            start.elapsed().as_nanos() / 1_000
        });
        best.min().unwrap_or_default()
    }

    /// A scan took 30,000 times as long for 100,000 replicas as for three.
    #[test]
    fn a_commit_costs_the_same_with_100_000_replicas_remembered() {
        let (few, many) = (cost_ns(3), cost_ns(100_000));
        assert!(many <= 50 * few.max(20), "{few} ns, {many} ns");
    }
}
