//! Incremental state transfer: which missing entry is next, and which member is asked for it.
//!
//! It owns the place in the entries, the members that may have them, and what has come of a long entry. In come answers of
//! members; out go pulls. The entries themselves are handed on by the coordinator.

use std::collections::VecDeque;

use trireme_certification::Seqno;
use trireme_group::Incarnation;

use super::partial::Partial;
use crate::direct::Direct;
use crate::history::{Recorded, RecordedPart};

/// A member that does not answer a pull for so long is given up for now.
const PATIENCE_MS: u64 = 1000;
/// How much has come in is told so often at most.
const REPORT_MS: u64 = 10_000;
/// So many pulls in a row without any answer, per member, end the attempt.
const MAX_ROUNDS: u32 = 5;

/// Whether members have what this node lacks. It is asked before anything is handed to a server that can still take a
/// snapshot: one that is left with a gap behind what it has taken can only restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    NotBegun,
    /// Members are asked for this entry.
    Asks(Seqno),
    Done,
}

/// Missing entries being pulled.
#[derive(Debug)]
pub(crate) struct Ist {
    first: Seqno,
    next: Seqno,
    last: Seqno,
    /// Own log may be read: it has no entries of a fork.
    own_log: bool,
    /// Members that may have them; the front one is asked.
    sources: VecDeque<Incarnation>,
    asked: bool,
    deadline_ms: u64,
    /// Pulls without any answer.
    silent: u32,
    /// There may be a gap between the entries of this node and those of members: one of them must show the first entry
    /// behind it. That one is not kept.
    probe: Probe,
    /// Something was handed to the server: there is no way back to a snapshot. A view at the database's
    /// position is the first (rule 6).
    begun: bool,
    /// The snapshot came, this is what it lacks.
    after_snapshot: bool,
    reported_ms: u64,
    /// The parts of the next entry that have come.
    partial: Option<Box<Partial>>,
    /// Its parts did not fit together once.
    anew: bool,
}

/// Result of [`Ist::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Everything is here.
    Over,
    /// A member was asked.
    Waits,
    /// This entry is to be found.
    Entry(Seqno),
}

/// Result of [`Ist::answered`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// This member was not asked, or was given up.
    Unasked,
    /// Members have what this node lacks.
    ProbeOver,
    /// The member does not have this entry.
    Lacks(Seqno),
    /// The records are to be handed on.
    Take,
}

/// Result of [`Ist::take_part`].
#[derive(Debug, PartialEq)]
pub(crate) enum PartTaken {
    /// The rest is pulled, or all of it again.
    Goes,
    /// The entry is here; None: it does not fit together.
    Ends(Option<Recorded>),
}

/// Nobody has the missing entries: how far the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadEnd {
    /// It has a snapshot that ends here.
    BehindSnapshot(Seqno),
    /// It was given something: it can take no snapshot.
    Begun,
    /// It can take a snapshot.
    NotBegun,
}

/// In Galera's words: so many of the missing entries are here.
pub(crate) fn received_ist(done: Seqno, total: Seqno) -> String {
    let percent = done as f64 * 100.0 / total as f64;
    format!("Receiving IST... {percent:.1}% ({done}/{total} events) complete.")
}

impl Ist {
    /// Everything from `first` to `last` is missing in this database. `own_log`: the own log has no entries of a fork;
    /// `begun`: the server has taken something already.
    pub(crate) fn of_database(
        (first, last): (Seqno, Seqno),
        sources: VecDeque<Incarnation>,
        own_log: bool,
        begun: bool,
        now_ms: u64,
    ) -> Ist {
        Ist {
            first,
            next: first,
            last,
            own_log,
            sources,
            asked: false,
            deadline_ms: 0,
            silent: 0,
            probe: Probe::NotBegun,
            begun,
            after_snapshot: false,
            reported_ms: now_ms,
            partial: None,
            anew: false,
        }
    }

    /// The snapshot came; it lacks everything from `first` to `last`.
    pub(crate) fn behind_snapshot(
        entries: (Seqno, Seqno),
        sources: VecDeque<Incarnation>,
        now_ms: u64,
    ) -> Ist {
        Ist {
            after_snapshot: true,
            ..Ist::of_database(entries, sources, true, true, now_ms)
        }
    }

    pub(crate) fn first(&self) -> Seqno {
        self.first
    }

    pub(crate) fn may_read_own_log(&self) -> bool {
        self.own_log
    }

    /// The next entry may be in the own log. If it comes in parts, the log was searched for it already.
    pub(crate) fn looks_into_own_log(&self) -> bool {
        self.own_log && self.partial.is_none()
    }

    /// When the member that was asked is given up.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.asked.then_some(self.deadline_ms)
    }

    /// The entry that members are asked for.
    fn wanted(&self) -> Seqno {
        self.probed().unwrap_or(self.next)
    }

    /// True if this member was asked for what follows, beginning with `next`.
    fn awaits(&self, from: Incarnation, next: Seqno) -> bool {
        self.asked && next == self.wanted() && self.sources.front() == Some(&from)
    }

    /// Bytes that have come of the next entry.
    fn received(&self) -> u32 {
        self.partial
            .as_ref()
            .map_or(0, |partial| partial.received())
    }

    /// The next step. Gives up a member that does not answer.
    pub(crate) fn next(&mut self, now_ms: u64) -> Next {
        if self.next > self.last {
            return Next::Over;
        }
        if self.asked {
            if now_ms < self.deadline_ms {
                return Next::Waits;
            }
            self.asked = false;
            self.silent += 1;
            self.sources.rotate_left(1);
            if self.silent > MAX_ROUNDS * self.sources.len() as u32 {
                self.sources.clear();
            }
        }
        Next::Entry(self.next)
    }

    /// It was not yet looked for an entry that this node lacks behind some that it has.
    pub(crate) fn is_to_probe(&self) -> bool {
        self.probe == Probe::NotBegun
    }

    /// Looks for it. `is_here`: this node has the entry; `before_script`: nothing is handed over before a script has run.
    pub(crate) fn begin_probe(&mut self, before_script: bool, is_here: impl Fn(Seqno) -> bool) {
        let lacking = (self.next..=self.last).find(|seqno| !is_here(*seqno));
        // The first of all is asked for before anything is handed over, and kept; but before a script nothing is.
        let asks = lacking.filter(|seqno| !self.begun && (before_script || *seqno > self.next));
        self.probe = asks.map_or(Probe::Done, Probe::Asks);
    }

    /// The entry that one of the members must show.
    pub(crate) fn probed(&self) -> Option<Seqno> {
        match self.probe {
            Probe::Asks(seqno) => Some(seqno),
            Probe::NotBegun | Probe::Done => None,
        }
    }

    /// Asks a member for the entry that is wanted, and what follows it. None: nobody has it.
    pub(crate) fn pull(&mut self, now_ms: u64) -> Option<(Incarnation, Direct)> {
        let source = self.sources.front().copied()?;
        let from = self.wanted();
        (self.asked, self.deadline_ms) = (true, now_ms + PATIENCE_MS);
        let pull = match self.received() {
            0 => Direct::IstPull { from },
            offset => Direct::IstPullPart { from, offset },
        };
        Some((source, pull))
    }

    /// A member answers with entries from `at` on, `shown` being the first of them.
    pub(crate) fn answered(
        &mut self,
        from: Incarnation,
        at: Seqno,
        shown: Option<Seqno>,
    ) -> Answered {
        if !self.awaits(from, at) {
            return Answered::Unasked;
        }
        (self.asked, self.silent) = (false, 0);
        match self.probed() {
            None => Answered::Take,
            Some(wanted) if shown == Some(wanted) => {
                self.probe = Probe::Done;
                Answered::ProbeOver
            }
            Some(wanted) => Answered::Lacks(wanted),
        }
    }

    /// The member that was asked does not have what it was asked for: another one is asked.
    pub(crate) fn drop_source(&mut self) {
        self.partial = None;
        self.sources.pop_front();
    }

    /// A member answers with a part of a long entry.
    pub(crate) fn take_part(&mut self, from: Incarnation, part: &RecordedPart) -> PartTaken {
        let seqno = part.record.seqno;
        if !self.awaits(from, seqno) || part.offset != self.received() {
            return PartTaken::Goes; // unasked, or the answer to a pull that was given up
        }
        if self.probed().is_some() {
            self.answered(from, seqno, Some(seqno));
            return PartTaken::Goes;
        }
        let partial = self.partial.take();
        let mut partial = partial.unwrap_or_else(|| Box::new(Partial::new(part)));
        let taken = partial.take(part);
        if taken && !partial.is_whole() {
            (self.asked, self.silent) = (false, 0);
            self.partial = Some(partial);
            return PartTaken::Goes;
        }
        let whole = partial.into_record().filter(|_| taken);
        if whole.is_none() && !std::mem::replace(&mut self.anew, true) {
            // Another member may be the cause, or a vote that has changed the outcome: all of it, from this one.
            self.asked = false;
            return PartTaken::Goes;
        }
        PartTaken::Ends(whole)
    }

    /// True if this entry is the next.
    pub(crate) fn expects(&self, record: &Recorded) -> bool {
        let is_next = record.seqno == self.next && record.seqno <= self.last;
        is_next && record.depends_on < record.seqno
    }

    /// Something is about to be handed to the server: true if it is the first.
    pub(crate) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.begun, true)
    }

    /// The next entry is handed on. Gives its seqno.
    pub(crate) fn took_next(&mut self) -> Seqno {
        let seqno = self.next;
        self.next += 1;
        (self.partial, self.anew) = (None, false);
        seqno
    }

    /// How much has come in, if that is to be told.
    pub(crate) fn report(&mut self, now_ms: u64) -> Option<String> {
        let (done, total) = (self.next - self.first, self.last - self.first + 1);
        let is_due = done == total || now_ms >= self.reported_ms + REPORT_MS;
        is_due.then(|| {
            self.reported_ms = now_ms;
            received_ist(done, total)
        })
    }

    /// How far the server is, if nobody has the missing entries.
    pub(crate) fn dead_end(&self) -> DeadEnd {
        match (self.after_snapshot, self.begun) {
            (true, _) => DeadEnd::BehindSnapshot(self.next - 1),
            (false, true) => DeadEnd::Begun,
            (false, false) => DeadEnd::NotBegun,
        }
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::Uuid;

    use super::*;

    fn member(number: u8) -> Incarnation {
        Incarnation(Uuid([number; 16]))
    }

    fn ist(begun: bool) -> Ist {
        let sources = VecDeque::from([member(1), member(2)]);
        Ist::of_database((5, 7), sources, true, begun, 0)
    }

    fn pulls(from: Seqno) -> Direct {
        Direct::IstPull { from }
    }

    #[test]
    fn members_are_asked_in_turn_and_given_up_in_the_end() {
        let mut ist = ist(true);
        assert_eq!(ist.next(0), Next::Entry(5));
        assert_eq!(ist.pull(0), Some((member(1), pulls(5))));
        assert_eq!(ist.next(PATIENCE_MS - 1), Next::Waits);
        assert_eq!(ist.next(PATIENCE_MS), Next::Entry(5));
        assert_eq!(ist.pull(PATIENCE_MS), Some((member(2), pulls(5))));
        assert_eq!(ist.answered(member(1), 5, Some(5)), Answered::Unasked);
        assert_eq!(ist.answered(member(2), 5, Some(5)), Answered::Take);
        assert_eq!(ist.took_next(), 5);
        let mut now_ms = PATIENCE_MS;
        while ist.pull(now_ms).is_some() {
            now_ms += PATIENCE_MS;
            assert_eq!(ist.next(now_ms), Next::Entry(6));
            assert!(now_ms < 100 * PATIENCE_MS, "asks for ever");
        }
        assert_eq!(ist.dead_end(), DeadEnd::Begun);
    }

    #[test]
    fn a_member_must_show_what_lies_behind_a_gap_before_anything_is_handed_over() {
        let mut ist = ist(false);
        assert!(ist.is_to_probe());
        ist.begin_probe(false, |seqno| seqno < 7);
        assert_eq!(ist.probed(), Some(7));
        assert_eq!(ist.pull(0), Some((member(1), pulls(7))));
        assert_eq!(ist.answered(member(1), 7, None), Answered::Lacks(7));
        ist.drop_source();
        assert_eq!(ist.dead_end(), DeadEnd::NotBegun);
        assert_eq!(ist.pull(0), Some((member(2), pulls(7))));
        assert_eq!(ist.answered(member(2), 7, Some(7)), Answered::ProbeOver);
        assert_eq!(ist.next(0), Next::Entry(5), "what it showed is not kept");
        assert!(ist.begin() && !ist.begin());
    }

    #[test]
    fn it_is_over_behind_the_last_entry() {
        let mut ist = Ist::behind_snapshot((5, 6), VecDeque::new(), 0);
        assert_eq!(ist.dead_end(), DeadEnd::BehindSnapshot(4));
        ist.begin_probe(true, |_| false);
        assert_eq!(ist.probed(), None, "the server has the snapshot");
        assert_eq!((ist.took_next(), ist.report(1)), (5, None));
        assert_eq!(ist.took_next(), 6);
        assert!(
            ist.report(1)
                .is_some_and(|text| text.contains("100.0% (2/2"))
        );
        assert_eq!(ist.next(1), Next::Over);
    }
}
