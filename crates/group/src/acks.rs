//! The latest acknowledgement of each replica: (term, position).
//!
//! In: acknowledgements from members. Out: the highest position that a majority holds in a term. An acknowledgement
//! counts only in its own term (rule 1), and only if it comes from the latest process of its replica (rule 14).

use std::collections::BTreeMap;

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::ids::{Incarnation, Position, ReplicaId, Term};

/// A member's latest acknowledgement.
#[derive(Clone, Copy, Debug, Hash)]
struct Ack {
    incarnation: Incarnation,
    term: Term,
    position: Position,
}

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Acks(BTreeMap<ReplicaId, Ack>);

impl Acks {
    /// Records that the process `from` of this replica holds the log up to `position`.
    pub(crate) fn record(
        &mut self,
        replica: ReplicaId,
        from: Incarnation,
        term: Term,
        position: Position,
    ) {
        let ack = Ack {
            incarnation: from,
            term,
            position,
        };
        let known = self.0.entry(replica).or_insert(ack);
        if known.incarnation != from || term > known.term {
            *known = ack;
        } else if term == known.term {
            known.position = known.position.max(position);
        }
    }

    /// The position that the replica has acknowledged in this term; 0 if none.
    pub(crate) fn of_replica(&self, replica: ReplicaId, term: Term) -> Position {
        let ack = self.0.get(&replica);
        let ack = ack.filter(|ack| ack.term == term || planted(Mutant::OldTermAcksCount));
        ack.map_or(0, |ack| ack.position)
    }

    /// The position that this process of the replica has acknowledged in this term; 0 if none.
    pub(crate) fn of_process(
        &self,
        replica: ReplicaId,
        incarnation: Incarnation,
        term: Term,
    ) -> Position {
        let ack = self.0.get(&replica);
        let ack = ack.filter(|ack| ack.incarnation == incarnation && ack.term == term);
        ack.map_or(0, |ack| ack.position)
    }

    /// The position that this process has acknowledged in this term, for whichever replica; 0 if none.
    pub(crate) fn of_member(&self, incarnation: Incarnation, term: Term) -> Position {
        let mut acks = self.0.values();
        let ack = acks.find(|ack| ack.incarnation == incarnation && ack.term == term);
        ack.map_or(0, |ack| ack.position)
    }

    /// Returns the highest position that members with more than half of the votes hold in this term. `own`: this
    /// replica, and the position up to which it holds the log.
    pub(crate) fn quorum(
        &self,
        configuration: &Configuration,
        term: Term,
        own: (ReplicaId, Position),
    ) -> Position {
        let position_of = |replica| match replica == own.0 {
            true => own.1,
            false => self.of_replica(replica, term),
        };
        let members = configuration.members.iter();
        let votes = |m: &Member| (position_of(m.replica), u64::from(m.weight));
        let mut acks: Vec<(Position, u64)> = members.map(votes).collect();
        acks.sort_unstable_by(|a, b| b.cmp(a));
        let mut weight = 0;
        for (position, votes) in acks {
            weight += votes;
            if configuration.is_majority(weight) {
                return position;
            }
        }
        0 // not reached: every configuration has a vote in it (`propose_changes`)
    }

    /// The process `by` now speaks for this replica: drops the acknowledgement of an earlier process.
    pub(crate) fn replaced(&mut self, replica: ReplicaId, by: Incarnation) {
        if self
            .0
            .get(&replica)
            .is_some_and(|ack| ack.incarnation != by)
        {
            self.0.remove(&replica);
        }
    }

    /// Keeps the acknowledgements of these processes, and of replicas with a seat. Otherwise this map would keep every id
    /// that ever connected. If another process returns, it acknowledges again.
    pub(crate) fn keep(
        &mut self,
        has_seat: impl Fn(ReplicaId) -> bool,
        is_up: impl Fn(Incarnation) -> bool,
    ) {
        self.0
            .retain(|replica, ack| has_seat(*replica) || is_up(ack.incarnation));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Uuid;

    #[test]
    fn a_word_counts_for_its_term_and_for_the_latest_process() {
        let replica = ReplicaId(Uuid([1; 16]));
        let process = |n| Incarnation(Uuid([n; 16]));
        let term = |number| Term { number, replica };
        let mut acks = Acks::default();
        acks.record(replica, process(1), term(2), 7);
        acks.record(replica, process(1), term(2), 5);
        acks.record(replica, process(1), term(1), 9);
        assert_eq!(acks.of_replica(replica, term(2)), 7);
        assert_eq!(acks.of_replica(replica, term(1)), 0);
        acks.record(replica, process(1), term(3), 4);
        assert_eq!(acks.of_member(process(1), term(3)), 4);
        acks.record(replica, process(2), term(1), 1);
        assert_eq!(acks.of_process(replica, process(1), term(3)), 0);
        assert_eq!(acks.of_process(replica, process(2), term(1)), 1);
        acks.keep(|_| true, |_| false);
        acks.keep(|_| false, |incarnation| incarnation == process(2));
        assert_eq!(acks.len(), 1);
        acks.keep(|_| false, |incarnation| incarnation == process(1));
        assert_eq!(acks.len(), 0);
    }
}
