//! How far the own log is the leader's, in the promised ballot, and the order records that are not in it yet.
//!
//! Comes in: order records, checkpoints, heartbeats. Goes out: what may be acknowledged, and when to ask the leader to go on from
//! where the two logs agree. Holds: what is acknowledged in a ballot is the leader's; what lies beyond may be a suffix of an
//! older ballot that will be dropped (rule 1).

use trireme_mutants::{Mutant, planted};

use crate::ids::{Ballot, Position, TimeMs};
use crate::incoming::Incoming;
use crate::log::Log;
use crate::message::{Append, WireBody, WireEntry};
use crate::reminder::Reminder;
use crate::thresholds::Thresholds;

/// A hole in the order is asked for after this time: its payload may just be slower than its order.
pub(crate) const HOLE_PATIENCE_MS: TimeMs = 50;
/// A catch-up asked for is asked for again after this time without progress.
pub(crate) const SUMMARY_RETRY_MS: TimeMs = 500;

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Matching {
    /// The leader's log and this one have met, in the promised ballot.
    matched: bool,
    /// Up to here the log is the leader's, in the promised ballot.
    agreed: Position,
    /// The leader of the promised ballot has other committed entries than this log.
    forked: bool,
    fork_reminder: Reminder,
    /// Order records whose payload, or predecessor's payload, has not come in yet.
    incoming: Incoming,
    /// Since when the first of them misses its payload.
    hole_since: Option<TimeMs>,
    /// Where the own log ended when the leader's last heartbeat came in.
    end_at_status: Option<Position>,
    /// When the leader was last asked to go on from where the logs agree; none since something has come.
    asked_at: Option<TimeMs>,
    last_ack: (Ballot, Position),
}

/// What became of an order record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It is in its place, or needs none.
    Taken,
    /// It comes behind all others.
    Behind(WireEntry),
}

impl Matching {
    // ---- what everybody may ask ----

    pub(crate) fn is_matched(&self) -> bool {
        self.matched
    }

    pub(crate) fn is_forked(&self) -> bool {
        self.forked
    }

    pub(crate) fn agreed(&self) -> Position {
        self.agreed
    }

    /// Where the part of a log that ends here ends that the leader stands for.
    pub(crate) fn agreed_end(&self, end: Position) -> Position {
        match self.matched {
            true if planted(Mutant::SuffixAcknowledged) => end,
            true => end.min(self.agreed),
            false => 0,
        }
    }

    pub(crate) fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    /// Position of the last order record, in a log that ends here or in front of it.
    pub(crate) fn expected(&self, end: Position) -> Position {
        self.incoming.back().map_or(end, |entry| entry.position)
    }

    pub(crate) fn hole_since(&self) -> Option<TimeMs> {
        self.hole_since
    }

    /// When the hole is to be asked for.
    pub(crate) fn pulls_at(&self) -> Option<TimeMs> {
        let asked = self.asked_at.map_or(0, |at| at + SUMMARY_RETRY_MS);
        let since = self.hole_since?;
        Some((since + HOLE_PATIENCE_MS).max(asked))
    }

    /// The first order record has missed its payload for too long.
    pub(crate) fn has_hole(&self, now: TimeMs) -> bool {
        let is_over = |since| now >= since + HOLE_PATIENCE_MS;
        self.hole_since.is_some_and(is_over)
    }

    // ---- what the coordinator tells ----

    /// Another ballot is promised: nothing is known of its leader's log.
    pub(crate) fn promised(&mut self) {
        self.matched = false;
        self.forked = false;
        self.agreed = 0;
        self.incoming.clear();
        self.asked_at = None;
    }

    /// This member's own log is the leader's.
    pub(crate) fn leads(&mut self) {
        self.matched = true;
    }

    /// The log is not known to be the leader's any more.
    pub(crate) fn part(&mut self) {
        self.matched = false;
    }

    /// The two logs are the same up to some position; true if that is new.
    pub(crate) fn meet(&mut self) -> bool {
        let is_new = !std::mem::replace(&mut self.matched, true);
        if is_new {
            self.last_ack = Default::default();
        }
        is_new
    }

    /// They are the same up to here.
    pub(crate) fn agree(&mut self, position: Position) {
        self.agreed = self.agreed.max(position);
    }

    /// The leader's entries follow on what is committed here.
    pub(crate) fn follows(&mut self) {
        self.forked = false;
    }

    /// The leader has another entry where this log's is fixed; true if that is to be told now.
    pub(crate) fn fork(&mut self, now: TimeMs) -> bool {
        self.forked = true;
        self.matched = false;
        self.fork_reminder.is_due(now)
    }

    /// The log begins anew above a checkpoint of the leader's.
    pub(crate) fn begin_at(&mut self, position: Position) {
        self.forked = false;
        self.incoming.clear();
        self.asked_at = None;
        self.matched = true;
        self.agreed = position;
        self.last_ack = Default::default();
    }

    /// The leader counts this member's progress from a checkpoint on that lies within this log.
    pub(crate) fn keep_from(&mut self, position: Position) {
        self.agree(position);
        self.last_ack = Default::default();
    }

    /// Where an entry would have to be another one that is committed, or was agreed on in this ballot, as far as is
    /// remembered (rule 1).
    pub(crate) fn contradicted_at(&self, log: &Log, append: &Append) -> Option<Position> {
        let prev = (append.prev_position, append.prev_ballot);
        let entries = append.entries.iter().map(|e| (e.position, e.ballot));
        let fixed = log.committed().position.max(self.agreed);
        let mut links = std::iter::once(prev)
            .chain(entries)
            .take_while(|(position, _)| *position <= fixed);
        let differs = |&(position, ballot): &(Position, Ballot)| {
            let known = log.tail().ballot_at(position);
            known.is_some_and(|known| known != ballot)
        };
        links.find(differs).map(|(position, _)| position)
    }

    /// True once in a while: the leader may be asked to go on from where the logs agree.
    pub(crate) fn may_ask(&mut self, now: TimeMs) -> bool {
        let waits = |at| now < at + SUMMARY_RETRY_MS;
        let may = !self.asked_at.is_some_and(waits);
        if may {
            self.asked_at = Some(now);
        }
        may
    }

    /// Something has changed: the next question need not wait.
    pub(crate) fn ask_at_once(&mut self) {
        self.asked_at = None;
    }

    /// The leader's heartbeat says where its log ends; true if nothing has come since the one before although it goes on. Order
    /// records travel ahead of a heartbeat on the same connection: what is missing was lost.
    pub(crate) fn has_stalled(&mut self, leaders_end: Position, end: Position) -> bool {
        let expected = self.expected(end);
        let before = self.end_at_status.replace(expected);
        leaders_end > expected && before == Some(expected)
    }

    /// This ballot's acknowledgement: false if it was the last one, too.
    pub(crate) fn acknowledges(&mut self, ballot: Ballot, position: Position) -> bool {
        let ack = (ballot, position);
        std::mem::replace(&mut self.last_ack, ack) != ack
    }

    /// Puts an order record in its place behind a log that ends before `first`; what conflicts with it is dropped.
    pub(crate) fn place(
        &mut self,
        entry: WireEntry,
        first: Position,
        thresholds: &Thresholds,
    ) -> Placed {
        let index = (entry.position - first) as usize;
        match self.incoming.get(index) {
            Some(known) if known.ballot == entry.ballot => {
                let is_full = matches!(entry.body, WireBody::Full(_));
                // Without room it stays a reference, and its payload is asked for when it is the first.
                if is_full && self.incoming.has_room_at(index, &entry, thresholds) {
                    self.incoming.replace(index, entry);
                }
                return Placed::Taken;
            }
            // From a correct leader only after a ballot that has cleared these: a position has one
            // entry in each ballot's log.
            Some(_) => self.incoming.truncate(index),
            None if index == self.incoming.len() => {}
            // Cannot happen within a contiguous Append; a hole is asked for again by the heartbeat.
            None => return Placed::Taken,
        }
        Placed::Behind(entry)
    }

    /// Room for one more?
    pub(crate) fn has_room(&self, entry: &WireEntry, thresholds: &Thresholds) -> bool {
        self.incoming.has_room(entry, thresholds)
    }

    /// Puts an order record behind all others.
    pub(crate) fn put_behind(&mut self, entry: WireEntry) {
        self.incoming.push_back(entry);
    }

    /// The first order record goes into the log.
    pub(crate) fn take_first(&mut self) {
        self.incoming.pop_front();
        self.asked_at = None;
    }

    /// All order records are to be fed again.
    pub(crate) fn drop_incoming(&mut self) {
        self.incoming.clear();
    }

    /// What was complete is in the log; `grew`: there was something.
    pub(crate) fn note_hole(&mut self, grew: bool, now: TimeMs) {
        if self.incoming.is_empty() {
            self.hole_since = None;
        } else if grew || self.hole_since.is_none() {
            self.hole_since = Some(now);
        }
    }

    /// Ages of stamps, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn rebase(&mut self, now: TimeMs, aged: impl Fn(&mut TimeMs, TimeMs)) {
        if let Some(at) = &mut self.asked_at {
            aged(at, SUMMARY_RETRY_MS);
        }
        // Asked so long ago that it may be asked again: as if never asked.
        self.asked_at = self.asked_at.filter(|at| now < at + SUMMARY_RETRY_MS);
        if let Some(at) = &mut self.fork_reminder.told_at {
            aged(at, Reminder::PERIOD_MS);
        }
        if let Some(since) = &mut self.hole_since {
            aged(since, HOLE_PATIENCE_MS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Incarnation, SubmissionId};

    fn reference(position: Position, ballot: u64) -> WireEntry {
        let id = SubmissionId {
            incarnation: Incarnation::default(),
            number: position,
        };
        let (len, digest) = (1, 0);
        WireEntry {
            position,
            ballot: Ballot {
                number: ballot,
                ..Ballot::default()
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
        assert!(matching.acknowledges(Ballot::default(), 7));
        assert!(!matching.acknowledges(Ballot::default(), 7));
        matching.promised();
        assert_eq!(matching.agreed_end(9), 0);
    }

    #[test]
    fn an_order_record_of_another_ballot_takes_the_place_of_all_behind_it() {
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
