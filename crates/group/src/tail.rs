//! The log tail: the newest entries, in memory, and the summary of the log.
//!
//! In: entries, truncations, the position up to which entries may leave memory. Out: entries, terms, summaries, and the
//! last position on which two logs agree. Positions are contiguous; terms never fall.

use std::collections::VecDeque;

use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::ids::{Position, Term};
use crate::message::Summary;

/// Greatest number of runs in a peer's summary.
pub(crate) const SUMMARY_RUNS_MAX: usize = 4096;
/// Greatest number of runs in an own summary. The terms above the commit point have no limit: one for each leader in a
/// row that committed nothing. A process that comes back sends a summary before it is a member, and its frames have at
/// most 64 KiB (docs/wire-transport.md).
pub(crate) const SUMMARY_RUNS_SENT: usize = 1024;

/// Entries above `base`, contiguous. Entries at or below `base` are committed and dropped from memory; the log on disk
/// may still have them.
#[derive(Clone, Debug, Default, Hash)]
pub struct Tail {
    base: Position,
    base_term: Term,
    entries: VecDeque<Entry>,
    /// Runs of one term within `entries`: (term, first position).
    runs: VecDeque<(Term, Position)>,
    /// Positions of the configurations within `entries`.
    configurations: VecDeque<Position>,
    size_bytes: usize,
    /// Submissions up to this position are without their payloads, which are only in the log on disk.
    left: Position,
}

impl Tail {
    /// An empty tail above a committed position.
    pub fn new(base: Position, base_term: Term) -> Tail {
        Tail {
            base,
            base_term,
            ..Tail::default()
        }
    }

    /// The tail of a log that an earlier process left: its entries above the base. The submissions up to `left` are
    /// without their payloads.
    pub fn recovered(base: Position, base_term: Term, entries: Vec<Entry>, left: Position) -> Tail {
        let mut tail = Tail::new(base, base_term);
        for (entry, position) in entries.iter().zip(base + 1..) {
            tail.take_in(entry, position);
        }
        tail.entries = entries.into();
        tail.left = left.min(tail.end());
        tail
    }

    /// Last position, 0 if there never was an entry.
    pub fn end(&self) -> Position {
        self.base + self.entries.len() as Position
    }

    /// Term of the last entry.
    pub fn end_term(&self) -> Term {
        self.runs.back().map_or(self.base_term, |run| run.0)
    }

    /// First position from which on all entries are in memory with their payloads.
    pub fn first(&self) -> Position {
        self.base.max(self.left) + 1
    }

    /// Approximate memory of the entries, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Bytes of the payloads in memory.
    pub fn payload_bytes(&self) -> usize {
        self.entries.iter().map(Entry::payload_bytes).sum()
    }

    /// The entry at `position`, if it is in memory with its payload.
    pub fn get(&self, position: Position) -> Option<&Entry> {
        self.head(position).filter(|_| position >= self.first())
    }

    /// The entry at `position` above the base; up to [`Tail::left`] a submission is without its payload.
    pub fn head(&self, position: Position) -> Option<&Entry> {
        let index = position.checked_sub(self.base + 1)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    /// Submissions up to this position are without their payloads.
    pub fn left(&self) -> Position {
        self.left
    }

    /// Takes in entries that were read from the log on disk, contiguous up to [`Tail::left`]. Returns false if these
    /// are other entries.
    pub fn restore(&mut self, found: Vec<Entry>) -> bool {
        let Some(first) = found.first().map(|entry| entry.position) else {
            return false;
        };
        let reaches = found.last().is_some_and(|last| last.position == self.left);
        let is_it = |(entry, position): (&Entry, Position)| {
            let term = self.head(position).map(|head| head.term);
            entry.position == position && term == Some(entry.term)
        };
        if !reaches || !found.iter().zip(first..).all(is_it) {
            return false;
        }
        for entry in found {
            let index = (entry.position - self.base - 1) as usize;
            self.size_bytes += entry.payload_bytes();
            self.entries[index] = entry;
        }
        self.left = first - 1;
        true
    }

    /// Term of the entry at `position`, as far back as the base.
    pub fn term_at(&self, position: Position) -> Option<Term> {
        if position == self.base {
            return Some(self.base_term);
        }
        if position < self.base || position > self.end() {
            return None;
        }
        let index = self.runs.partition_point(|run| run.1 <= position);
        Some(self.runs[index - 1].0)
    }

    /// Adds the next entry.
    pub fn push(&mut self, entry: Entry) {
        self.take_in(&entry, self.end() + 1);
        self.entries.push_back(entry);
    }

    /// Accounts for the next entry, at `position`: its term, its size, and whether it is a configuration.
    fn take_in(&mut self, entry: &Entry, position: Position) {
        assert_eq!(entry.position, position, "the log is contiguous");
        assert!(
            entry.term >= self.end_term(),
            "terms never fall within a log"
        );
        if self.runs.back().is_none_or(|run| run.0 != entry.term) {
            self.runs.push_back((entry.term, entry.position));
        }
        if matches!(entry.body, Body::Configuration(_)) {
            self.configurations.push_back(entry.position);
        }
        self.size_bytes += entry.size_bytes();
    }

    /// Drops every entry above `after` and returns them, in order.
    pub fn truncate(&mut self, after: Position) -> Vec<Entry> {
        assert!(after >= self.base, "nothing committed is truncated");
        let keep = (after - self.base) as usize;
        let dropped: Vec<Entry> = self.entries.split_off(keep.min(self.entries.len())).into();
        self.runs.retain(|run| run.1 <= after);
        self.configurations.retain(|position| *position <= after);
        self.size_bytes -= dropped.iter().map(Entry::size_bytes).sum::<usize>();
        self.left = self.left.min(after);
        dropped
    }

    /// Drops entries at or below `upto`, which must be committed, from memory.
    pub fn trim(&mut self, upto: Position) {
        while self.base < upto {
            let Some(entry) = self.entries.pop_front() else {
                return; // `upto` is committed, so it is not beyond the end
            };
            self.size_bytes -= entry.size_bytes();
            if self.configurations.front() == Some(&entry.position) {
                self.configurations.pop_front();
            }
            self.base = entry.position;
            self.base_term = entry.term;
            if self.runs.get(1).is_some_and(|run| run.1 <= self.base + 1) {
                self.runs.pop_front();
            } else if self.entries.is_empty() {
                self.runs.clear();
            } else {
                self.runs[0].1 = self.base + 1;
            }
        }
    }

    /// Drops entries at or below `upto`, which must be committed, from memory if their payloads are not here.
    pub fn trim_left(&mut self, upto: Position) {
        let upto = upto.min(self.left);
        if self.base < upto {
            self.trim(upto);
            // Only now and then, because shrinking moves the remaining entries.
            if self.entries.len() < self.entries.capacity() / 4 {
                self.entries.shrink_to_fit();
            }
        }
    }

    /// Entries above `from`, in order; some without their payloads, as from [`Tail::head`].
    pub fn above(&self, from: Position) -> impl Iterator<Item = &Entry> {
        let skip = from.saturating_sub(self.base) as usize;
        self.entries.iter().skip(skip)
    }

    /// Configurations above `from`, with their positions.
    pub fn configurations(
        &self,
        from: Position,
    ) -> impl DoubleEndedIterator<Item = (Position, &Configuration)> {
        let above = self
            .configurations
            .iter()
            .filter(move |position| **position > from);
        above.filter_map(|position| match &self.head(*position)?.body {
            Body::Configuration(configuration) => Some((*position, configuration)),
            _ => None, // not reached: `configurations` holds only such positions
        })
    }

    /// The newest configuration, if it is above `from`.
    pub fn last_configuration(&self, from: Position) -> Option<&Configuration> {
        let last = self.configurations.back().filter(|at| **at > from)?;
        match &self.head(*last)?.body {
            Body::Configuration(configuration) => Some(configuration),
            _ => None, // not reached, as above
        }
    }

    /// The summary, from which a peer finds the last position on which two logs agree: the newest [`SUMMARY_RUNS_SENT`]
    /// runs.
    pub fn summary(&self, commit: Position) -> Summary {
        let mut runs: Vec<(Term, Position, Position)> = Vec::new();
        let mut last = self.end();
        for (term, first) in self.runs.iter().rev().take(SUMMARY_RUNS_SENT) {
            runs.push((*term, *first, last));
            last = first - 1;
        }
        if self.base > 0 && runs.len() < SUMMARY_RUNS_SENT {
            runs.push((self.base_term, self.base, self.base));
        }
        runs.reverse();
        Summary {
            commit,
            end: self.end(),
            end_term: self.end_term(),
            runs,
        }
    }

    /// True if this log may continue the other one: as far as memory reaches back, this log has no other entry at the
    /// other's end.
    pub fn may_go_on_from(&self, other: &Summary) -> bool {
        match self.term_at(other.end) {
            Some(term) => term == other.end_term,
            None => other.end < self.base && other.end_term <= self.base_term,
        }
    }

    /// The last position up to which a log with this summary is known to equal this one: a position at which both have
    /// an entry of the same term (log matching); otherwise the other's commit point.
    pub fn matching(&self, other: &Summary) -> Position {
        for &(term, first, last) in other.runs.iter().rev() {
            let Some((own_first, own_last)) = self.run_of(term) else {
                continue;
            };
            let common = last.min(own_last);
            if common >= first.max(own_first) {
                return common.max(other.commit.min(self.end()));
            }
        }
        other.commit.min(self.end())
    }

    /// First and last position with an entry of this term, as far back as the base.
    fn run_of(&self, term: Term) -> Option<(Position, Position)> {
        let index = self.runs.partition_point(|run| run.0 < term);
        let run = self.runs.get(index).filter(|run| run.0 == term);
        let at_base = self.base > 0 && term == self.base_term;
        let first = match run {
            _ if at_base => self.base,
            Some(run) => run.1,
            None => return None,
        };
        let next = run.and_then(|_| self.runs.get(index + 1));
        let last = match run {
            Some(_) => next.map_or(self.end(), |next| next.1 - 1),
            None => self.base,
        };
        Some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ReplicaId, Uuid};

    fn term(number: u64) -> Term {
        Term {
            number,
            replica: ReplicaId(Uuid([number as u8; 16])),
        }
    }

    fn tail(terms: &[u64]) -> Tail {
        let mut tail = Tail::default();
        for (index, number) in terms.iter().enumerate() {
            tail.push(Entry {
                position: index as u64 + 1,
                term: term(*number),
                body: Body::TermStart,
            });
        }
        tail
    }

    #[test]
    fn logs_match_where_the_last_common_term_ends() {
        let mine = tail(&[1, 1, 1, 3, 3]);
        assert_eq!(mine.matching(&tail(&[1, 1, 1, 1]).summary(0)), 3);
        assert_eq!(mine.matching(&tail(&[1, 1, 2, 2]).summary(0)), 2);
        assert_eq!(mine.matching(&tail(&[1, 1, 1, 3]).summary(0)), 4);
        assert_eq!(mine.matching(&tail(&[2, 2]).summary(0)), 0);
        assert_eq!(mine.matching(&Tail::default().summary(0)), 0);
    }

    #[test]
    fn a_trimmed_log_still_matches_at_its_base() {
        let mut mine = tail(&[1, 1, 1, 3, 3]);
        mine.trim(4);
        assert_eq!((mine.first(), mine.end()), (5, 5));
        assert_eq!(mine.term_at(4), Some(term(3)));
        assert_eq!(mine.term_at(3), None);
        assert_eq!(mine.matching(&tail(&[1, 1, 1, 3]).summary(3)), 4);
        assert_eq!(mine.matching(&tail(&[1, 1, 1]).summary(3)), 3);
        mine.trim(5);
        assert_eq!(mine.end_term(), term(3));
        mine.push(Entry {
            position: 6,
            term: term(4),
            body: Body::TermStart,
        });
        assert_eq!(mine.term_at(6), Some(term(4)));
    }

    #[test]
    fn truncation_drops_the_suffix_and_its_runs() {
        let mut mine = tail(&[1, 1, 2, 2]);
        assert_eq!(mine.truncate(2).len(), 2);
        assert_eq!((mine.end(), mine.end_term()), (2, term(1)));
        mine.push(Entry {
            position: 3,
            term: term(3),
            body: Body::TermStart,
        });
        assert_eq!(mine.term_at(3), Some(term(3)));
    }
}
