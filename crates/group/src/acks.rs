//! What the members say that their logs hold, in which ballot.
//!
//! Comes in: acknowledgements. Goes out: what counts for commits. Holds: an acknowledgement counts for its own ballot only
//! (rule 1), and for the latest process of its replica (rule 14).

use std::collections::BTreeMap;

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::ids::{Ballot, Incarnation, Position, ReplicaId};

/// A member's latest acknowledgement.
#[derive(Clone, Copy, Debug, Hash)]
struct Ack {
    incarnation: Incarnation,
    ballot: Ballot,
    position: Position,
}

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Acks(BTreeMap<ReplicaId, Ack>);

impl Acks {
    /// A process, which speaks for this replica, holds the log up to here.
    pub(crate) fn record(
        &mut self,
        replica: ReplicaId,
        from: Incarnation,
        ballot: Ballot,
        position: Position,
    ) {
        let ack = Ack {
            incarnation: from,
            ballot,
            position,
        };
        let known = self.0.entry(replica).or_insert(ack);
        if known.incarnation != from || ballot > known.ballot {
            *known = ack;
        } else if ballot == known.ballot {
            known.position = known.position.max(position);
        }
    }

    /// What the replica has acknowledged in this ballot.
    pub(crate) fn of_replica(&self, replica: ReplicaId, ballot: Ballot) -> Position {
        let ack = self.0.get(&replica);
        let ack = ack.filter(|ack| ack.ballot == ballot || planted(Mutant::OldBallotAcksCount));
        ack.map_or(0, |ack| ack.position)
    }

    /// What this process has acknowledged in this ballot, for that replica.
    pub(crate) fn of_process(
        &self,
        replica: ReplicaId,
        incarnation: Incarnation,
        ballot: Ballot,
    ) -> Position {
        let ack = self.0.get(&replica);
        let ack = ack.filter(|ack| ack.incarnation == incarnation && ack.ballot == ballot);
        ack.map_or(0, |ack| ack.position)
    }

    /// The same, whatever its replica.
    pub(crate) fn of_member(&self, incarnation: Incarnation, ballot: Ballot) -> Position {
        let mut acks = self.0.values();
        let ack = acks.find(|ack| ack.incarnation == incarnation && ack.ballot == ballot);
        ack.map_or(0, |ack| ack.position)
    }

    /// Highest position that more than half of the votes hold, in this ballot; `own`: this replica, and what it holds.
    pub(crate) fn quorum(
        &self,
        configuration: &Configuration,
        ballot: Ballot,
        own: (ReplicaId, Position),
    ) -> Position {
        let position_of = |replica| match replica == own.0 {
            true => own.1,
            false => self.of_replica(replica, ballot),
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

    /// A process speaks for this replica: what an earlier one has said counts no more.
    pub(crate) fn replaced(&mut self, replica: ReplicaId, by: Incarnation) {
        if self
            .0
            .get(&replica)
            .is_some_and(|ack| ack.incarnation != by)
        {
            self.0.remove(&replica);
        }
    }

    /// A process is gone. Unless its replica has a seat it says it again when it is back: else every id that ever came would be
    /// kept.
    pub(crate) fn gone(&mut self, incarnation: Incarnation, has_seat: impl Fn(ReplicaId) -> bool) {
        self.0
            .retain(|replica, ack| ack.incarnation != incarnation || has_seat(*replica));
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
    fn a_word_counts_for_its_ballot_and_for_the_latest_process() {
        let replica = ReplicaId(Uuid([1; 16]));
        let process = |n| Incarnation(Uuid([n; 16]));
        let ballot = |number| Ballot { number, replica };
        let mut acks = Acks::default();
        acks.record(replica, process(1), ballot(2), 7);
        acks.record(replica, process(1), ballot(2), 5);
        acks.record(replica, process(1), ballot(1), 9);
        assert_eq!(acks.of_replica(replica, ballot(2)), 7);
        assert_eq!(acks.of_replica(replica, ballot(1)), 0);
        acks.record(replica, process(1), ballot(3), 4);
        assert_eq!(acks.of_member(process(1), ballot(3)), 4);
        acks.record(replica, process(2), ballot(1), 1);
        assert_eq!(acks.of_process(replica, process(1), ballot(3)), 0);
        assert_eq!(acks.of_process(replica, process(2), ballot(1)), 1);
        acks.gone(process(2), |_| true);
        assert_eq!(acks.len(), 1);
        acks.gone(process(2), |_| false);
        assert_eq!(acks.len(), 0);
    }
}
