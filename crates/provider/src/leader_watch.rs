//! Counts the changes of leader that this node sees.
//!
//! In: the term and its leader, at each look. Out: the count. A leader that came and went between two looks is not
//! counted.

use trireme_group::{Group, Incarnation, Term};

/// The counter of one connection.
#[derive(Debug, Default)]
pub struct LeaderWatch {
    last: Option<(Term, Incarnation)>,
    changes: u64,
}

impl LeaderWatch {
    /// Compares the leader with the one at the last look. The first leader is no change.
    pub fn look(&mut self, group: &Group) {
        if self.last.is_some_and(|(term, _)| term == group.term()) {
            return;
        }
        let leader = group.leader_member().map(|member| member.incarnation);
        if let Some(leader) = leader {
            self.leads(group.term(), leader);
        }
    }

    /// Returns how often another member became leader, or the same one in another term.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn leads(&mut self, term: Term, leader: Incarnation) {
        self.changes += u64::from(self.last.is_some_and(|last| last != (term, leader)));
        self.last = Some((term, leader));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_group::{ReplicaId, Uuid};

    #[test]
    fn every_new_term_with_a_leader_is_a_change_but_the_first() {
        let leads = |watch: &mut LeaderWatch, number, id| {
            let term = Term {
                number,
                replica: ReplicaId(Uuid([id; 16])),
            };
            watch.leads(term, Incarnation(Uuid([id; 16])));
            watch.changes()
        };
        let mut watch = LeaderWatch::default();
        assert_eq!(leads(&mut watch, 4, 1), 0);
        assert_eq!(leads(&mut watch, 4, 1), 0);
        assert_eq!(leads(&mut watch, 6, 2), 1);
        assert_eq!(leads(&mut watch, 7, 2), 2);
    }
}
