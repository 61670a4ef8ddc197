//! Current reads (rule 17).
//!
//! In: readers, and the members' log ends. Out: questions to members, and read points. The voters are asked for their log
//! ends: no acknowledged commit lies beyond the ends of any majority (one round trip, no lease). A read point is told
//! only when it is committed here: until then it may lie in a suffix that the next leader does not have.

use std::collections::{BTreeMap, BTreeSet};

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::ids::{Incarnation, Position, ReplicaId, TimeMs};
use crate::known::Known;

pub(crate) const RETRY_MS: TimeMs = 200;

/// The present round: one question to all voters.
#[derive(Clone, Debug, Hash)]
struct Round {
    id: u64,
    tokens: Vec<u64>,
    ends: BTreeMap<ReplicaId, Position>,
    asked_at: TimeMs,
}

/// Readers that wait for a read point.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Reads {
    last_round: u64,
    waiting: Vec<u64>,
    round: Option<Round>,
    /// Read points of this term that are not committed here, with their readers' tokens.
    uncommitted: Vec<(Position, Vec<u64>)>,
}

/// A request to the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutput {
    /// Ask these members for their log ends.
    Ask { round: u64, of: Vec<Incarnation> },
    /// The reader may read when this position is applied.
    Point { token: u64, position: Position },
    /// No majority can answer.
    Failed { token: u64 },
}

impl Reads {
    pub(crate) fn ask(&mut self, token: u64) {
        self.waiting.push(token);
    }

    /// A new term begins: its readers ask again, because answers of another term prove nothing.
    pub(crate) fn restart(&mut self) {
        if let Some(round) = self.round.take() {
            self.waiting.extend(round.tokens);
        }
        for (_, tokens) in std::mem::take(&mut self.uncommitted) {
            self.waiting.extend(tokens);
        }
    }

    /// Starts and finishes rounds. There is one round at a time; readers that come meanwhile share the next. `own_end`:
    /// the end of the local log as far as it agrees with the leader's, if that is known.
    pub(crate) fn pursue(
        &mut self,
        known: Known,
        is_primary: bool,
        own_end: Option<Position>,
    ) -> Vec<ReadOutput> {
        let mut out = Vec::new();
        self.finish(known, own_end, &mut out);
        self.tell_points(known, &mut out);
        let now = known.now();
        let overdue = |round: &&mut Round| now >= round.asked_at + RETRY_MS;
        if let Some(round) = self.round.as_mut().filter(overdue) {
            // The same round: an answer may be under way for longer than this.
            round.asked_at = now;
            out.extend(self.ask_log_ends(known));
        }
        if self.waiting.is_empty() || self.round.is_some() {
            return out;
        }
        if !is_primary {
            out.extend(self.fail());
            return out;
        }
        self.last_round += 1;
        self.round = Some(Round {
            id: self.last_round,
            tokens: std::mem::take(&mut self.waiting),
            ends: BTreeMap::new(),
            asked_at: now,
        });
        self.finish(known, own_end, &mut out);
        out.extend(self.ask_log_ends(known));
        out
    }

    /// Takes the end of a voter's log in the term in force.
    pub(crate) fn end_told(
        &mut self,
        known: Known,
        (replica, end): (ReplicaId, Position),
        round: u64,
        own_end: Option<Position>,
    ) -> Vec<ReadOutput> {
        let mut out = Vec::new();
        let is_voter = voters(known).any(|m| m.replica == replica);
        let current = self.round.as_mut();
        if let Some(current) = current.filter(|current| current.id == round && is_voter) {
            current.ends.insert(replica, end);
            self.finish(known, own_end, &mut out);
        }
        out
    }

    /// Fails all readers: no majority can answer.
    pub(crate) fn fail(&mut self) -> Vec<ReadOutput> {
        self.restart();
        let tokens = std::mem::take(&mut self.waiting).into_iter();
        tokens.map(|token| ReadOutput::Failed { token }).collect()
    }

    /// The time stamp of the round, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn asked_at(&mut self) -> Option<&mut TimeMs> {
        self.round.as_mut().map(|round| &mut round.asked_at)
    }

    /// Asks the voters that have not answered.
    fn ask_log_ends(&self, known: Known) -> Option<ReadOutput> {
        let round = self.round.as_ref()?;
        // Ask the process that speaks for the replica: a restarted member acknowledges under its new incarnation before
        // a view lists that.
        let silent = voters(known).filter(|m| !round.ends.contains_key(&m.replica));
        let of: BTreeSet<Incarnation> = silent.filter_map(|m| known.voice(m.replica)).collect();
        Some(ReadOutput::Ask {
            round: round.id,
            of: of.into_iter().collect(),
        })
    }

    fn finish(&mut self, known: Known, own_end: Option<Position>, out: &mut Vec<ReadOutput>) {
        let (Some(round), Some(own_end)) = (&self.round, own_end) else {
            return;
        };
        // A longer log counts once this one is as long: its entries may hold a configuration. Any other majority proves
        // as much, so one log end, true or false, holds nobody up.
        let reaches_own = |end: &Position| *end <= own_end;
        let counts = |m: &Member| {
            m.replica == known.my_replica() || round.ends.get(&m.replica).is_some_and(reaches_own)
        };
        let answered = |configuration: &Configuration| {
            let weight = configuration.weight_of(counts);
            let enough =
                !planted(Mutant::ReadWaitsForAll) || weight == configuration.total_weight();
            configuration.is_majority(weight) && enough
        };
        if known.log.in_every_configuration(answered) || planted(Mutant::ReadPointFromOwnLog) {
            let round = self.round.take();
            let tokens = round.map(|round| round.tokens).unwrap_or_default();
            self.uncommitted.push((own_end, tokens));
            self.tell_points(known, out);
        }
    }

    fn tell_points(&mut self, known: Known, out: &mut Vec<ReadOutput>) {
        let committed = match planted(Mutant::ReadPointNotCommitted) {
            true => Position::MAX,
            false => known.log.committed().position,
        };
        for (position, tokens) in std::mem::take(&mut self.uncommitted) {
            if position > committed {
                self.uncommitted.push((position, tokens));
                continue;
            }
            let points = tokens.into_iter();
            out.extend(points.map(|token| ReadOutput::Point { token, position }));
        }
    }
}

/// The other replicas whose log ends count: those with a vote in the newest configuration or the committed one.
fn voters(known: Known<'_>) -> impl Iterator<Item = &Member> {
    let latest = known.log.latest().members.iter();
    let members = latest.chain(&known.log.committed().configuration.members);
    members.filter(move |m| m.weight > 0 && m.replica != known.my_replica())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Body, Entry};
    use crate::fixture::{Fixture, member};
    use crate::ids::Term;

    /// A member of three, with one entry in its log, and the others connected.
    fn of_three() -> Fixture {
        let mut fixture = Fixture::of(3);
        let entry = Entry {
            position: 1,
            term: Term::default(),
            body: Body::TermStart,
        };
        fixture.log.append(entry, true);
        for n in [2, 3] {
            let peers = &mut fixture.peers;
            peers.connect(member(n).replica, member(n).incarnation, 0);
        }
        fixture
    }

    #[test]
    fn a_reader_is_told_the_greatest_end_of_a_majority_once_it_is_committed() {
        let mut fixture = of_three();
        let mut reads = Reads::default();
        reads.ask(7);
        let known = fixture.known();
        let asked = reads.pursue(known, true, Some(1));
        let of = vec![member(2).incarnation, member(3).incarnation];
        assert_eq!(asked, [ReadOutput::Ask { round: 1, of }]);
        let from = (member(2).replica, 1);
        assert_eq!(reads.end_told(known, from, 0, Some(1)), [], "another round");
        assert_eq!(reads.end_told(known, from, 1, Some(1)), [], "not committed");
        fixture.log.commit_next();
        let known = fixture.known();
        let (token, position) = (7, 1);
        let point = ReadOutput::Point { token, position };
        assert_eq!(reads.pursue(known, true, Some(1)), [point]);
    }

    /// A log end that nothing reaches, of a voter or of another process, holds no reader up.
    #[test]
    fn a_false_end_counts_in_no_majority() {
        let mut fixture = of_three();
        fixture.log.commit_next();
        let stranger = member(4);
        (fixture.peers).connect(stranger.replica, stranger.incarnation, 0);
        let known = fixture.known();
        let mut reads = Reads::default();
        reads.ask(7);
        reads.pursue(known, true, Some(1));
        for liar in [&stranger, &member(2)] {
            let from = (liar.replica, 1 << 61);
            assert_eq!(reads.end_told(known, from, 1, Some(1)), []);
        }
        let ends = |reads: &Reads| reads.round.as_ref().map(|round| round.ends.len());
        assert_eq!(ends(&reads), Some(1), "nothing is kept of a stranger");
        let (token, position) = (7, 1);
        let point = ReadOutput::Point { token, position };
        let from = (member(3).replica, 1);
        assert_eq!(reads.end_told(known, from, 1, Some(1)), [point]);
    }

    /// The only majority with an answer has a voter whose log is longer: the entries between may be acknowledged.
    #[test]
    fn a_longer_log_counts_once_the_own_one_is_as_long() {
        let mut fixture = of_three();
        fixture.log.commit_next();
        let known = fixture.known();
        let mut reads = Reads::default();
        reads.ask(7);
        reads.pursue(known, true, Some(1));
        let from = (member(2).replica, 3);
        assert_eq!(reads.end_told(known, from, 1, Some(1)), []);
        assert_eq!(reads.pursue(known, true, Some(2)), []);
        assert_eq!(reads.pursue(known, true, Some(3)), [], "not committed");
        assert_eq!(reads.uncommitted, [(3, vec![7])]);
    }

    #[test]
    fn without_a_majority_nobody_waits() {
        let fixture = of_three();
        let known = fixture.known();
        let mut reads = Reads::default();
        reads.ask(7);
        let failed = ReadOutput::Failed { token: 7 };
        assert_eq!(reads.pursue(known, false, None), [failed]);
        assert_eq!(reads.pursue(known, false, None), []);
    }
}
