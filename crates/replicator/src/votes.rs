//! Votes on apply errors (rule 22, contract 5): do the members that applied a seqno agree on how it
//! ended? The replicated part.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::Incarnation;
use trireme_mutants::{Mutant, planted};

use crate::message::MessageError;
use crate::wire::{Reader, put_count};

/// A ballot: 0 for success, else a digest of the error.
pub(crate) type Ballot = u64;

/// How many results are remembered for members that vote late.
const REMEMBERED: usize = 64;

/// Open votes and the results of the last ones: equal on all nodes at equal positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Votes {
    open: BTreeMap<Seqno, BTreeMap<Incarnation, Ballot>>,
    results: BTreeMap<Seqno, Ballot>,
}

impl Votes {
    /// What the cluster decided, if it has.
    pub(crate) fn result(&self, seqno: Seqno) -> Option<Ballot> {
        self.results.get(&seqno).copied()
    }

    /// A member votes; the first ballot of each member counts, unless it is too late.
    pub(crate) fn cast(&mut self, seqno: Seqno, from: Incarnation, ballot: Ballot) {
        if !self.results.contains_key(&seqno) {
            self.open
                .entry(seqno)
                .or_default()
                .entry(from)
                .or_insert(ballot);
        }
    }

    /// True if this member's ballot is in, or nobody needs it any more.
    pub(crate) fn has_voted(&self, seqno: Seqno, member: Incarnation) -> bool {
        self.results.contains_key(&seqno)
            || self
                .open
                .get(&seqno)
                .is_some_and(|cast| cast.contains_key(&member))
    }

    /// Seqnos that are being voted on.
    pub(crate) fn open(&self) -> impl Iterator<Item = Seqno> + '_ {
        self.open.keys().copied()
    }

    /// Decides what can be decided. `voters`: whose ballot is waited for, and the seqno up to which
    /// each has reported to have applied all (without an error, else it had voted first).
    /// `committed_by`: the origin of a write-set, which had committed it before anybody could fail to
    /// apply it; it counts even if nobody waits for its ballot. `applied_by_all`: up to here everybody
    /// who counted had applied all, which was a success unless there is a result.
    pub(crate) fn decide(
        &mut self,
        voters: &BTreeMap<Incarnation, Seqno>,
        committed_by: impl Fn(Seqno) -> Option<Incarnation>,
        applied_by_all: Seqno,
    ) -> Vec<(Seqno, Ballot)> {
        let decide = |(seqno, cast): (&Seqno, &BTreeMap<Incarnation, Ballot>)| {
            let is_silent = |origin| !cast.contains_key(&origin) && !voters.contains_key(&origin);
            let all_had = *seqno <= applied_by_all && !planted(Mutant::PurgedSuccessForgotten);
            let succeeded = all_had || committed_by(*seqno).is_some_and(is_silent);
            let winner = winner(*seqno, cast, voters, usize::from(succeeded))?;
            Some((*seqno, winner))
        };
        let decided: Vec<_> = self.open.iter().filter_map(decide).collect();
        for (seqno, ballot) in &decided {
            self.open.remove(seqno);
            self.results.insert(*seqno, *ballot);
        }
        while self.results.len() > REMEMBERED {
            self.results.pop_first();
        }
        decided
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_count(out, self.open.len());
        for (seqno, cast) in &self.open {
            out.extend_from_slice(&seqno.to_le_bytes());
            put_count(out, cast.len());
            for (from, ballot) in cast {
                out.extend_from_slice(&from.0.0);
                out.extend_from_slice(&ballot.to_le_bytes());
            }
        }
        put_count(out, self.results.len());
        for (seqno, ballot) in &self.results {
            out.extend_from_slice(&seqno.to_le_bytes());
            out.extend_from_slice(&ballot.to_le_bytes());
        }
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Votes, MessageError> {
        let mut votes = Votes::default();
        for _ in 0..reader.count(12)? {
            let cast = votes.open.entry(reader.i64()?).or_default();
            for _ in 0..reader.count(24)? {
                cast.insert(reader.incarnation()?, reader.u64()?);
            }
        }
        for _ in 0..reader.count(16)? {
            votes.results.insert(reader.i64()?, reader.u64()?);
        }
        Ok(votes)
    }
}

/// The ballot that most cast; success wins a tie. None while missing ballots could change that.
/// `further_successes`: of those who neither vote nor are waited for.
fn winner(
    seqno: Seqno,
    cast: &BTreeMap<Incarnation, Ballot>,
    voters: &BTreeMap<Incarnation, Seqno>,
    further_successes: usize,
) -> Option<Ballot> {
    let mut counts = BTreeMap::from([(0, further_successes)]);
    let mut missing = 0;
    for ballot in cast.values() {
        *counts.entry(*ballot).or_default() += 1;
    }
    for (voter, applied) in voters {
        match cast.contains_key(voter) {
            true => {}
            false if *applied >= seqno => *counts.entry(0).or_default() += 1,
            false => missing += 1,
        }
    }
    // Of equal counts the least ballot wins: success is 0, and always in the list.
    let (best, count) = counts
        .iter()
        .map(|(b, c)| (*b, *c))
        .min_by_key(|(b, c)| (Reverse(*c), *b))?;
    let rival = counts
        .iter()
        .filter(|(b, _)| **b != best)
        .map(|(_, c)| *c)
        .max()
        .unwrap_or(0);
    (missing == 0 || count > rival + missing).then_some(best)
}

/// The ballot for an error at a seqno; never 0.
pub(crate) fn ballot(seqno: Seqno, error: &Bytes) -> Ballot {
    let mut bytes = seqno.to_le_bytes().to_vec();
    bytes.extend_from_slice(error);
    xxhash_rust::xxh3::xxh3_64(&bytes).max(1)
}
