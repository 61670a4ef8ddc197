//! Votes on apply errors (rule 22, server-contract-callbacks.md#error-votes): the members that applied a seqno compare
//! its outcome. The replicated part.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::Incarnation;
use trireme_mutants::{Mutant, planted};

use crate::message::MessageError;
use crate::wire::{Reader, put_count};

/// A ballot: 0 for success, otherwise a digest of the error.
pub(crate) type Ballot = u64;

/// Number of results that are remembered for members that vote late.
pub(crate) const REMEMBERED: usize = 64;

/// Open votes and the results of the last ones: equal on all nodes at equal positions.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub(crate) struct Votes {
    open: BTreeMap<Seqno, Open>,
    results: BTreeMap<Seqno, Ballot>,
}

#[derive(Clone, Debug, Default, PartialEq, Hash)]
struct Open {
    /// Number of successes that decide the vote at once; 0: no number does.
    policy: u8,
    cast: BTreeMap<Incarnation, Ballot>,
}

/// The member from which the entry of a vote came.
pub(crate) enum Origin {
    /// Of a write-set: it had committed it before any other member could fail to apply it. Its success counts even if
    /// no one awaits its ballot.
    HasCommitted(Incarnation),
    /// Of an action that all execute in the order, with the seqno up to which it has reported to have applied
    /// everything. Its ballot is awaited in any state: its client may be told of a success that nobody else who votes
    /// knows of.
    Executes(Incarnation, Seqno),
}

impl Votes {
    /// Returns the cluster's decision, if there is one.
    pub(crate) fn result(&self, seqno: Seqno) -> Option<Ballot> {
        self.results.get(&seqno).copied()
    }

    /// Returns the seqnos, of those with a remembered result, that failed.
    pub(crate) fn failed(&self) -> impl Iterator<Item = Seqno> + '_ {
        let failed = self.results.iter().filter(|(_, winner)| **winner != 0);
        failed.map(|(seqno, _)| *seqno)
    }

    /// Casts a member's ballot. The first ballot of each member counts, unless it is too late, and the policy of the
    /// very first ballot.
    pub(crate) fn cast(&mut self, seqno: Seqno, from: Incarnation, ballot: Ballot, policy: u8) {
        if !self.results.contains_key(&seqno) {
            let cast = BTreeMap::new();
            let open = self.open.entry(seqno).or_insert(Open { policy, cast });
            open.cast.entry(from).or_insert(ballot);
        }
    }

    /// Returns true if this member's ballot is cast, or no longer needed.
    pub(crate) fn has_voted(&self, seqno: Seqno, member: Incarnation) -> bool {
        self.results.contains_key(&seqno)
            || self
                .open
                .get(&seqno)
                .is_some_and(|open| open.cast.contains_key(&member))
    }

    /// Returns true if a vote is open.
    pub(crate) fn is_any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the seqnos with open votes.
    pub(crate) fn open(&self) -> impl Iterator<Item = Seqno> + '_ {
        self.open.keys().copied()
    }

    /// Decides the votes that can be decided. `voters`: the members whose ballots are awaited, each with the seqno up
    /// to which it has reported to have applied everything (without an error: otherwise it would have voted first).
    /// `applied_by_all`: up to this seqno all counting members had applied everything, with success unless there is a
    /// result.
    pub(crate) fn decide(
        &mut self,
        voters: &BTreeMap<Incarnation, Seqno>,
        origin: impl Fn(Seqno) -> Option<Origin>,
        applied_by_all: Seqno,
    ) -> Vec<(Seqno, Ballot)> {
        let decide = |(seqno, open): (&Seqno, &Open)| {
            let is_silent =
                |origin| !open.cast.contains_key(origin) && !voters.contains_key(origin);
            let mut succeeded =
                *seqno <= applied_by_all && !planted(Mutant::PurgedSuccessForgotten);
            let mut voters = voters.clone();
            match origin(*seqno) {
                Some(Origin::HasCommitted(origin)) => succeeded |= is_silent(&origin),
                Some(Origin::Executes(origin, applied)) => {
                    voters.insert(origin, applied);
                }
                None => {}
            }
            let winner = winner(*seqno, open, &voters, usize::from(succeeded))?;
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
        let kept = match planted(Mutant::OpenVotesNotKept) {
            true => 0,
            false => self.open.len(),
        };
        put_count(out, kept);
        for (seqno, open) in self.open.iter().take(kept) {
            out.extend_from_slice(&seqno.to_le_bytes());
            out.push(open.policy);
            put_count(out, open.cast.len());
            for (from, ballot) in &open.cast {
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
        for _ in 0..reader.count(13)? {
            let open = votes.open.entry(reader.seqno()?).or_default();
            open.policy = reader.u8()?;
            for _ in 0..reader.count(24)? {
                open.cast.insert(reader.incarnation()?, reader.u64()?);
            }
        }
        for _ in 0..reader.count(16)? {
            votes.results.insert(reader.seqno()?, reader.u64()?);
        }
        Ok(votes)
    }
}

/// Returns the ballot that most members cast. Success wins a tie, and wins at once with as many ballots as the policy
/// demands. None while missing ballots could change the result. `further_successes`: successes of members that neither
/// vote nor are awaited.
fn winner(
    seqno: Seqno,
    Open { policy, cast }: &Open,
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
    let enough = usize::from(*policy);
    if enough > 0 && counts.get(&0).is_some_and(|successes| *successes >= enough) {
        return Some(0);
    }
    // Of equal counts the lowest ballot wins: success is 0, and always in the list.
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

/// Returns the ballot for an error at a seqno; never 0. The server describes an error as ` MESSAGE, Error_code:
/// NUMBER;` for each condition (without the message after total-order actions). The message is in the language of the
/// node, so only the numbers count. A text without numbers counts as it is.
pub(crate) fn ballot(seqno: Seqno, error: &Bytes) -> Ballot {
    let mut bytes = seqno.to_le_bytes().to_vec();
    let codes = error_codes(error);
    match codes.is_empty() {
        true => bytes.extend_from_slice(error),
        false => bytes.extend(codes.into_iter().flat_map(u32::to_le_bytes)),
    }
    xxhash_rust::xxh3::xxh3_64(&bytes).max(1)
}

/// Returns the numbers of the conditions in a server's description of an error.
fn error_codes(error: &[u8]) -> Vec<u32> {
    const BEFORE: &[u8] = b"Error_code: ";
    let mut codes = Vec::new();
    for at in 0..error.len() {
        let Some(rest) = error[at..].strip_prefix(BEFORE) else {
            continue;
        };
        let end = rest.iter().position(|byte| !byte.is_ascii_digit());
        let number = std::str::from_utf8(&rest[..end.unwrap_or(rest.len())]);
        codes.extend(number.ok().and_then(|number| number.parse::<u32>().ok()));
    }
    codes
}
