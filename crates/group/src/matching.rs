//! The part of the local log that agrees with the leader's, in the promised term, and the order records that are not in
//! it yet.
//!
//! In: order records, checkpoints, heartbeats. Out: the position that may be acknowledged, and the time for a catch-up
//! request. An entry that this member acknowledged in a term is in that leader's log. Entries above it may be of an
//! older term, and may be dropped (rule 1).

use trireme_mutants::{Mutant, planted};

use crate::ids::{Position, Term, TimeMs};
use crate::incoming::Incoming;
use crate::log::Log;
use crate::message::{Append, WireBody, WireEntry};
use crate::reminder::Reminder;
use crate::thresholds::Thresholds;
use crate::vote::Vote;

/// A follower requests a catch-up for a hole after this time: the payload may only be slower than its order record.
pub(crate) const HOLE_TIMEOUT_MS: TimeMs = 50;
/// A catch-up request is repeated after this time without progress.
pub(crate) const SUMMARY_RETRY_MS: TimeMs = 500;

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Matching {
    /// True if this log and the leader's are known to agree up to some position, in the promised term.
    matched: bool,
    /// The position up to which this log agrees with the leader's, in the promised term.
    agreed: Position,
    /// True if the leader of the promised term contradicts committed or agreed entries of this log.
    forked: bool,
    fork_reminder: Reminder,
    /// Order records whose payload, or an earlier one's payload, has not come in yet.
    incoming: Incoming,
    /// Since when the first of them has waited for its payload.
    hole_since: Option<TimeMs>,
    /// Position of the last order record when the leader's last heartbeat came in.
    end_at_status: Option<Position>,
    /// Time of the last catch-up request; None if something has come since.
    asked_at: Option<TimeMs>,
    last_ack: (Term, Position),
}

/// The result of [`Matching::place`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The order record is in its place, or needs none.
    Taken,
    /// The order record comes behind all others.
    Behind(WireEntry),
}

impl Matching {
    // ---- queries ----

    pub(crate) fn is_matched(&self) -> bool {
        self.matched
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.forked
    }

    pub(crate) fn agreed(&self) -> Position {
        self.agreed
    }

    /// Returns the position that this member acknowledges in the promised term.
    pub(crate) fn own_ack(&self, vote: &Vote, log: &Log, is_leader: bool) -> Position {
        match vote.is_persisted() {
            true => (log.durable()).min(self.end_agreed_with_leader(log, is_leader)),
            false => 0,
        }
    }

    /// Returns the last position of the local log that agrees with the log of the promised term's leader.
    pub(crate) fn end_agreed_with_leader(&self, log: &Log, is_leader: bool) -> Position {
        let end = log.tail().end();
        match is_leader {
            true => end,
            false => self.agreed_end(end),
        }
    }

    /// The last position that agrees with the leader's log, in a log that ends at `end`.
    fn agreed_end(&self, end: Position) -> Position {
        match self.matched {
            true if planted(Mutant::SuffixAcknowledged) => end,
            true => end.min(self.agreed),
            false => 0,
        }
    }

    pub(crate) fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    /// Position of the last order record, waiting or in the log. `end`: the log's end.
    pub(crate) fn expected(&self, end: Position) -> Position {
        self.incoming.back().map_or(end, |entry| entry.position)
    }

    /// True if this order record waits here.
    pub(crate) fn has_record(&self, position: Position, term: Term) -> bool {
        let found = (self.incoming).binary_search_by_key(&position, |entry| entry.position);
        found.is_ok_and(|index| self.incoming[index].term == term)
    }

    pub(crate) fn hole_since(&self) -> Option<TimeMs> {
        self.hole_since
    }

    /// The time for a catch-up request about the hole; None: there is no hole.
    pub(crate) fn pulls_at(&self) -> Option<TimeMs> {
        let asked = self.asked_at.map_or(0, |at| at + SUMMARY_RETRY_MS);
        let since = self.hole_since?;
        Some((since + HOLE_TIMEOUT_MS).max(asked))
    }

    /// True if the first order record has waited for its payload for too long.
    pub(crate) fn has_hole(&self, now: TimeMs) -> bool {
        let is_over = |since| now >= since + HOLE_TIMEOUT_MS;
        self.hole_since.is_some_and(is_over)
    }

    // ---- inputs from the coordinator ----

    /// Another term is promised: nothing is known of its leader's log.
    pub(crate) fn promised(&mut self) {
        self.matched = false;
        self.forked = false;
        self.agreed = 0;
        self.incoming.clear();
        self.asked_at = None;
    }

    /// This member leads: its log is the leader's.
    pub(crate) fn leads(&mut self) {
        self.matched = true;
    }

    /// This log is no longer known to agree with the leader's.
    pub(crate) fn part(&mut self) {
        self.matched = false;
    }

    /// The two logs agree up to some position. Returns true if that is new.
    pub(crate) fn meet(&mut self) -> bool {
        let is_new = !std::mem::replace(&mut self.matched, true);
        if is_new {
            self.last_ack = Default::default();
        }
        is_new
    }

    /// The two logs agree up to this position.
    pub(crate) fn agree(&mut self, position: Position) {
        self.agreed = self.agreed.max(position);
    }

    /// The leader's entries do not contradict this log.
    pub(crate) fn follows(&mut self) {
        self.forked = false;
    }

    /// The leader contradicts a fixed entry of this log. Returns true if the log line about that is due.
    pub(crate) fn fork(&mut self, now: TimeMs) -> bool {
        self.forked = true;
        self.matched = false;
        self.fork_reminder.is_due(now)
    }

    /// The log begins anew above a checkpoint of the leader.
    pub(crate) fn begin_at(&mut self, position: Position) {
        self.forked = false;
        self.incoming.clear();
        self.asked_at = None;
        self.matched = true;
        self.agreed = position;
        self.last_ack = Default::default();
    }

    /// The leader sent a checkpoint that lies within this log, and counts this member's progress from there.
    pub(crate) fn keep_from(&mut self, position: Position) {
        self.agree(position);
        self.last_ack = Default::default();
    }

    /// Returns the position at which the append contradicts a fixed entry, as far as memory reaches back. Committed
    /// entries are fixed, and those agreed with the leader in this term (rule 1).
    pub(crate) fn contradicted_at(&self, log: &Log, append: &Append) -> Option<Position> {
        let prev = (append.prev_position, append.prev_term);
        let entries = append.entries.iter().map(|e| (e.position, e.term));
        let fixed = log.committed().position.max(self.agreed);
        let mut links = std::iter::once(prev)
            .chain(entries)
            .take_while(|(position, _)| *position <= fixed);
        let differs = |&(position, term): &(Position, Term)| {
            let known = log.tail().term_at(position);
            known.is_some_and(|known| known != term)
        };
        links.find(differs).map(|(position, _)| position)
    }

    /// Returns true if a catch-up request may be sent now, and notes it as sent.
    pub(crate) fn may_ask(&mut self, now: TimeMs) -> bool {
        let waits = |at| now < at + SUMMARY_RETRY_MS;
        let may = !self.asked_at.is_some_and(waits);
        if may {
            self.asked_at = Some(now);
        }
        may
    }

    /// Something has changed: the next catch-up request need not wait.
    pub(crate) fn ask_at_once(&mut self) {
        self.asked_at = None;
    }

    /// Takes the log end from the leader's heartbeat. Returns true if no order record has come since the previous
    /// heartbeat, although the leader's log is longer. Order records travel ahead of a heartbeat on the same
    /// connection, so the missing ones were lost.
    pub(crate) fn has_stalled(&mut self, leaders_end: Position, end: Position) -> bool {
        let expected = self.expected(end);
        let before = self.end_at_status.replace(expected);
        leaders_end > expected && before == Some(expected)
    }

    /// Notes an acknowledgement to send. Returns false if it equals the last one.
    pub(crate) fn acknowledges(&mut self, term: Term, position: Position) -> bool {
        let ack = (term, position);
        std::mem::replace(&mut self.last_ack, ack) != ack
    }

    /// Puts an order record in its place, and drops waiting ones that conflict with it. `first`: the position after the
    /// log's end.
    pub(crate) fn place(
        &mut self,
        entry: WireEntry,
        first: Position,
        thresholds: &Thresholds,
    ) -> Placed {
        let index = (entry.position - first) as usize;
        match self.incoming.get(index) {
            Some(known) if known.term == entry.term => {
                let is_full = matches!(entry.body, WireBody::Full(_));
                // Without room the record stays a reference. Its payload is requested when it is the first.
                if is_full && self.incoming.has_room_at(index, &entry, thresholds) {
                    self.incoming.replace(index, entry);
                }
                return Placed::Taken;
            }
            // A correct leader causes this only after a new term, which clears these records: a position has one entry
            // in each term's log.
            Some(_) => self.incoming.truncate(index),
            None if index == self.incoming.len() => {}
            // Cannot happen within a contiguous Append; after the next heartbeat a hole is requested again.
            None => return Placed::Taken,
        }
        Placed::Behind(entry)
    }

    /// True if there is room for one more order record.
    pub(crate) fn has_room(&self, entry: &WireEntry, thresholds: &Thresholds) -> bool {
        self.incoming.has_room(entry, thresholds)
    }

    /// Puts an order record behind all others.
    pub(crate) fn put_behind(&mut self, entry: WireEntry) {
        self.incoming.push_back(entry);
    }

    /// Removes the first order record, which goes into the log.
    pub(crate) fn take_first(&mut self) {
        self.incoming.pop_front();
        self.asked_at = None;
    }

    /// Drops all waiting order records; the leader must send them again.
    pub(crate) fn drop_incoming(&mut self) {
        self.incoming.clear();
    }

    /// The complete order records are in the log: notes since when a hole exists. `grew`: the log grew by that.
    pub(crate) fn note_hole(&mut self, grew: bool, now: TimeMs) {
        if self.incoming.is_empty() {
            self.hole_since = None;
        } else if grew || self.hole_since.is_none() {
            self.hole_since = Some(now);
        }
    }

    /// The time stamps, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn rebase(&mut self, now: TimeMs, aged: impl Fn(&mut TimeMs, TimeMs)) {
        if let Some(at) = &mut self.asked_at {
            aged(at, SUMMARY_RETRY_MS);
        }
        // A request so old that it may be repeated equals none.
        self.asked_at = self.asked_at.filter(|at| now < at + SUMMARY_RETRY_MS);
        if let Some(at) = &mut self.fork_reminder.told_at {
            aged(at, Reminder::PERIOD_MS);
        }
        if let Some(since) = &mut self.hole_since {
            aged(since, HOLE_TIMEOUT_MS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Incarnation, SubmissionId};

    fn reference(position: Position, term: u64) -> WireEntry {
        let id = SubmissionId {
            incarnation: Incarnation::default(),
            number: position,
        };
        let (len, digest) = (1, 0);
        WireEntry {
            position,
            term: Term {
                number: term,
                ..Term::default()
            },
            body: WireBody::Reference { id, len, digest },
        }
    }

    #[test]
    fn what_is_not_known_to_be_the_leaders_is_not_acknowledged() {
        let mut matching = Matching::default();
        assert_eq!(matching.agreed_end(9), 0);
        assert!(matching.meet() && !matching.meet());
        matching.agree(7);
        assert_eq!((matching.agreed_end(9), matching.agreed_end(5)), (7, 5));
        assert!(matching.acknowledges(Term::default(), 7));
        assert!(!matching.acknowledges(Term::default(), 7));
        matching.promised();
        assert_eq!(matching.agreed_end(9), 0);
    }

    #[test]
    fn an_order_record_of_another_term_takes_the_place_of_all_behind_it() {
        let (mut matching, thresholds) = (Matching::default(), Thresholds::default());
        for position in 5..8 {
            let placed = matching.place(reference(position, 1), 5, &thresholds);
            assert_eq!(placed, Placed::Behind(reference(position, 1)));
            matching.put_behind(reference(position, 1));
        }
        assert_eq!(matching.expected(4), 7);
        assert_eq!(
            matching.place(reference(9, 1), 5, &thresholds),
            Placed::Taken
        );
        assert_eq!(
            matching.place(reference(6, 1), 5, &thresholds),
            Placed::Taken
        );
        let placed = matching.place(reference(6, 2), 5, &thresholds);
        assert_eq!(placed, Placed::Behind(reference(6, 2)));
        assert_eq!(matching.expected(4), 5);
    }

    #[test]
    fn a_leader_is_asked_again_when_nothing_comes() {
        let mut matching = Matching::default();
        assert!(matching.may_ask(1_000) && !matching.may_ask(1_001));
        matching.ask_at_once();
        assert!(matching.may_ask(1_002));
        assert!(!matching.has_stalled(9, 5), "the first heartbeat");
        assert!(matching.has_stalled(9, 5) && !matching.has_stalled(9, 6));
    }
}
