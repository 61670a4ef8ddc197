//! The local log: its tail in memory, the commit point, and the durable position.
//!
//! In: entries, checkpoints, and the position up to which to commit. Out: the committed entries, one after the other. A
//! committed entry is never dropped (rule 1).

use trireme_mutants::{Mutant, planted};

use crate::checkpoint::Checkpoint;
use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::event::{Delivery, RecoveredLog};
use crate::ids::{Position, ReplicaId, SubmissionId, Term, Uuid};
use crate::message::Summary;
use crate::tail::Tail;

/// Greatest number of entries dropped from memory at a time: the rest waits for the next event.
const TRIMMED_AT_ONCE: Position = 4096;

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Log {
    tail: Tail,
    committed: Checkpoint,
    /// Position of the configuration in force.
    configured_at: Position,
    durable: Position,
    /// This member must read the payloads from this position on, which are only in the log on disk, before it can lead.
    wanted_from: Option<Position>,
}

/// An entry that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    pub position: Position,
    /// The submission in the entry, voided or not.
    pub submission: Option<SubmissionId>,
    pub delivers: Delivers,
    /// The configuration in force until now, and the one from here on, if the entry changes it.
    pub changed: Option<(Configuration, Configuration)>,
}

/// The delivery of a committed entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delivers {
    Nothing,
    /// A submission whose payload is only in the log on disk.
    FromLog,
    This(Delivery),
}

impl Log {
    // ---- queries ----

    pub(crate) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// The group's replicated state at the commit point.
    pub(crate) fn committed(&self) -> &Checkpoint {
        &self.committed
    }

    /// Position of the configuration in force.
    pub(crate) fn configured_at(&self) -> Position {
        self.configured_at
    }

    /// The position up to which entries are as durable as the durability mode promises.
    pub(crate) fn durable(&self) -> Position {
        self.durable
    }

    /// (term, position) of the last entry; the better of two logs has the greater pair (rule 1).
    pub(crate) fn last(&self) -> (Term, Position) {
        (self.tail.end_term(), self.tail.end())
    }

    pub(crate) fn summary(&self) -> Summary {
        self.tail.summary(self.committed.position)
    }

    /// The pending configurations, oldest first.
    pub(crate) fn uncommitted(
        &self,
    ) -> impl DoubleEndedIterator<Item = (Position, &Configuration)> {
        self.tail.configurations(self.committed.position)
    }

    /// True if a forced view is pending.
    pub(crate) fn is_override_pending(&self) -> bool {
        self.uncommitted()
            .any(|(_, pending)| pending.override_id.is_some())
    }

    /// The newest configuration, committed or not.
    pub(crate) fn latest(&self) -> &Configuration {
        let pending = self.tail.last_configuration(self.committed.position);
        pending.unwrap_or(&self.committed.configuration)
    }

    /// True if `holds` is true for the committed configuration and for every pending one. An entry ordered now needs a
    /// majority of each of them (rule 3).
    pub(crate) fn in_every_configuration(&self, holds: impl Fn(&Configuration) -> bool) -> bool {
        if planted(Mutant::OutdatedViewElects) {
            return holds(&self.committed.configuration);
        }
        if planted(Mutant::TwoPendingViews) {
            return holds(self.latest());
        }
        holds(&self.committed.configuration) && self.uncommitted().all(|(_, later)| holds(later))
    }

    /// True if the committed configuration or the newest one lists the replica: then its acknowledgement or promise may
    /// be needed (rule 3).
    pub(crate) fn has_seat(&self, replica: ReplicaId) -> bool {
        self.latest().replica(replica).is_some()
            || self.committed.configuration.replica(replica).is_some()
    }

    /// True if a leader of this term has the replica's support. While the forced view with which the term begins is
    /// pending, only that view's members have elected the leader (rule 11).
    pub(crate) fn is_electorate(&self, term: Term, replica: ReplicaId) -> bool {
        let mut pending = self.uncommitted();
        let forced =
            pending.find(|(at, c)| c.override_id.is_some() && self.tail.term_at(*at) == Some(term));
        forced.is_none_or(|(_, view)| view.replica(replica).is_some())
            || planted(Mutant::OutsidersFollowForcedView)
    }

    /// The forced views in the log, committed or not.
    pub(crate) fn overrides(&self) -> Vec<Uuid> {
        let mut overrides = self.committed.overrides.clone();
        overrides.extend(
            self.uncommitted()
                .filter_map(|(_, later)| later.override_id),
        );
        overrides
    }

    /// The branch of the history that this log is on: the last forced view in it, committed or not. None: there is none.
    pub(crate) fn branch(&self) -> Option<Uuid> {
        let mut pending = self.uncommitted().rev();
        let last = pending.find_map(|(_, later)| later.override_id);
        last.or_else(|| self.committed.overrides.last().copied())
    }

    /// Returns the position that may be committed now in this term, if any. `quorum`: the position that a majority of a
    /// configuration has acknowledged. From a pending configuration on, entries need its majority and those of all
    /// before it (rule 3). A forced view needs only its own majority (rule 11).
    pub(crate) fn committable(
        &self,
        term: Term,
        quorum: impl Fn(&Configuration) -> Position,
    ) -> Option<Position> {
        let committed = self.committed.position;
        if self.tail.end() == committed {
            return None;
        }
        let mut later: Vec<_> = self.uncommitted().collect();
        if planted(Mutant::OutdatedViewElects) {
            later.clear();
        }
        let mut acked = quorum(&self.committed.configuration);
        let mut best = None;
        for index in 0..=later.len() {
            let mut from = committed + 1;
            if let Some((at, configuration)) = index.checked_sub(1).map(|previous| later[previous])
            {
                let quorum = quorum(configuration);
                let alone = planted(Mutant::TwoPendingViews);
                acked = if configuration.override_id.is_some() || alone {
                    quorum
                } else {
                    acked.min(quorum)
                };
                from = at;
            }
            let next = later.get(index).map(|(next, _)| next - 1);
            let candidate = acked.min(next.unwrap_or(self.tail.end()));
            // Entries of older terms are committed only through one of this term (rule 1).
            let own = self.tail.term_at(candidate) == Some(term);
            if candidate >= from && (own || planted(Mutant::OldEntriesCommitByCount)) {
                best = Some(candidate);
            }
        }
        best
    }

    // ---- inputs from the coordinator ----

    /// Begins the log of a new history, or of one that goes on with other members.
    pub(crate) fn found(
        &mut self,
        history: Uuid,
        overrides: Vec<Uuid>,
        configuration: Configuration,
    ) {
        self.committed.history = history;
        self.committed.overrides = overrides;
        self.committed.configuration = configuration;
    }

    /// Takes an earlier process's log. Returns the position up to which it is certainly committed.
    pub(crate) fn resume(&mut self, log: RecoveredLog) -> Position {
        let (base, term) = (log.checkpoint.position, log.checkpoint.term);
        self.tail = Tail::recovered(base, term, log.entries, log.left);
        self.committed = log.checkpoint;
        self.configured_at = self.committed.position;
        self.durable = self.tail.end();
        // A leader proposes a configuration only when the one before is committed; a forced view need not wait for
        // that.
        let configurations: Vec<_> = self.uncommitted().collect();
        let proven = configurations
            .windows(2)
            .rev()
            .find(|pair| pair[1].1.override_id.is_none())
            .map_or(0, |pair| pair[0].0);
        proven.max(log.commit)
    }

    /// Begins the log anew above a checkpoint.
    pub(crate) fn begin_at(&mut self, checkpoint: &Checkpoint) {
        self.tail = Tail::new(checkpoint.position, checkpoint.term);
        self.committed = checkpoint.clone();
        self.configured_at = checkpoint.position;
        self.durable = checkpoint.position;
    }

    pub(crate) fn append(&mut self, entry: Entry, is_durable: bool) {
        let position = entry.position;
        self.tail.push(entry);
        if is_durable {
            self.durable = position;
        }
    }

    /// Everything up to this position is durable.
    pub(crate) fn flushed(&mut self, position: Position) {
        self.durable = self.durable.max(position.min(self.tail.end()));
    }

    /// Drops the entries above `after`, and returns them.
    pub(crate) fn truncate(&mut self, after: Position) -> Vec<Entry> {
        assert!(
            after >= self.committed.position,
            "a committed entry is never dropped (rule 1)"
        );
        self.durable = self.durable.min(after);
        self.tail.truncate(after)
    }

    /// Requests the payloads from this position on, which are only in the log on disk.
    pub(crate) fn want_from(&mut self, position: Position) {
        self.wanted_from = Some(position);
    }

    pub(crate) fn take_wanted(&mut self) -> Option<Position> {
        self.wanted_from.take()
    }

    /// Takes payloads that were read back from the log on disk. Returns false if these are other entries.
    pub(crate) fn restore(&mut self, found: Vec<Entry>) -> bool {
        self.tail.restore(found)
    }

    /// Drops committed entries from memory. `lacking`: the position that all members in replication have acknowledged.
    pub(crate) fn trim(&mut self, tail_bytes: usize, lacking: Option<Position>) {
        let committed = self.committed.position;
        self.tail.trim_left(committed);
        let held = self.tail.end() + 1 - self.tail.first();
        let bytes = self.tail.size_bytes();
        if held <= 4096 && bytes <= tail_bytes {
            return;
        }
        let lacking = lacking.filter(|_| bytes <= 4 * tail_bytes);
        let upto = lacking.map_or(committed, |acked| acked.min(committed));
        let at_once = self.tail.first() + TRIMMED_AT_ONCE;
        self.tail.trim(upto.min(at_once));
    }

    /// Commits the next entry.
    pub(crate) fn commit_next(&mut self) -> Committed {
        let position = self.committed.position + 1;
        let entry = self.tail.head(position).cloned();
        let entry = entry.expect("entries above the commit point are never trimmed");
        // Entries above a pending configuration wait for it, so the committed configuration is in force for this entry.
        let in_force = &self.committed.configuration;
        let delivers = match &entry.body {
            Body::Submission { id, payload }
                if in_force.member(id.incarnation).is_some()
                    || planted(Mutant::EvictedDelivered) =>
            {
                match position <= self.tail.left() {
                    true => Delivers::FromLog,
                    false => Delivers::This(Delivery::Submission {
                        id: *id,
                        payload: payload.clone(),
                    }),
                }
            }
            Body::Configuration(configuration) => {
                Delivers::This(Delivery::Configuration(configuration.clone()))
            }
            _ => Delivers::Nothing,
        };
        let changed = match &entry.body {
            Body::Configuration(now) => Some((in_force.clone(), now.clone())),
            _ => None,
        };
        self.committed.apply(&entry);
        if changed.is_some() {
            self.configured_at = position;
        }
        Committed {
            position,
            submission: entry.submission(),
            delivers,
            changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Member;
    use crate::ids::Incarnation;

    fn number(n: u8) -> Uuid {
        Uuid([n; 16])
    }

    fn term(number: u64) -> Term {
        Term {
            number,
            replica: ReplicaId::default(),
        }
    }

    /// A configuration of these members, with one vote each.
    fn view(members: &[u8]) -> Configuration {
        let member = |n: &u8| Member {
            replica: ReplicaId(number(*n)),
            incarnation: Incarnation(number(*n)),
            weight: 1,
            ..Member::default()
        };
        Configuration {
            members: members.iter().map(member).collect(),
            ..Configuration::default()
        }
    }

    fn log(bodies: Vec<(u64, Body)>) -> Log {
        let mut log = Log::default();
        log.found(number(9), Vec::new(), view(&[1]));
        for (position, (of, body)) in (1..).zip(bodies) {
            let term = term(of);
            let entry = Entry {
                position,
                term,
                body,
            };
            log.append(entry, true);
        }
        log
    }

    fn submission(origin: u8, n: u64) -> Body {
        Body::Submission {
            id: SubmissionId {
                incarnation: Incarnation(number(origin)),
                number: n,
            },
            payload: vec![n as u8].into(),
        }
    }

    #[test]
    fn a_submission_of_a_stranger_is_committed_and_not_delivered() {
        let mut log = log(vec![
            (1, submission(2, 1)),
            (1, Body::Configuration(view(&[1, 2]))),
            (1, submission(2, 2)),
        ]);
        assert_eq!(log.commit_next().delivers, Delivers::Nothing);
        let view_of_two = log.commit_next();
        assert_eq!(view_of_two.changed, Some((view(&[1]), view(&[1, 2]))));
        assert_eq!(log.configured_at(), 2);
        assert!(matches!(log.commit_next().delivers, Delivers::This(_)));
    }

    #[test]
    fn entries_above_an_uncommitted_view_need_its_majority_too() {
        let log = log(vec![
            (1, Body::TermStart),
            (1, Body::Configuration(view(&[1, 2, 3]))),
            (1, submission(1, 1)),
        ]);
        assert_eq!(log.latest(), &view(&[1, 2, 3]));
        let acked = |of_one: Position, of_three: Position| {
            log.committable(term(1), |c| match c.members.len() {
                1 => of_one,
                _ => of_three,
            })
        };
        assert_eq!(acked(3, 0), Some(1), "the view itself is not held by two");
        assert_eq!(acked(3, 2), Some(2));
        assert_eq!(acked(1, 3), Some(1));
        assert_eq!(log.committable(term(2), |_| 3), None, "of an older term");
    }

    #[test]
    #[should_panic(expected = "never dropped")]
    fn a_committed_entry_is_never_dropped() {
        let mut log = log(vec![(1, Body::TermStart)]);
        log.commit_next();
        log.truncate(0);
    }
}
