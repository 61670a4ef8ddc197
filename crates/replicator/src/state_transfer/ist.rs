//! An IST: the next missing entry, and the member that is asked for it.
//!
//! It owns the place in the entries and the parts of a long entry; [`Sources`] owns the members that may have them. In:
//! answers of members. Out: pulls. The coordinator hands the entries on.

use std::collections::VecDeque;

use trireme_certification::Seqno;
use trireme_group::Incarnation;

use super::partial::Partial;
use super::probe::Probe;
use super::sources::Sources;
use crate::history::{Recorded, RecordedPart};
use crate::peer_message::PeerMessage;

/// Minimum time between two reports of the progress.
const REPORT_MS: u64 = 10_000;

/// A pull of missing entries.
#[derive(Debug)]
pub(crate) struct Ist {
    first: Seqno,
    next: Seqno,
    last: Seqno,
    /// True if the local log may be read: it has no entries of a fork.
    own_log: bool,
    sources: Sources,
    /// An entry that a member shows in this check is not kept.
    probe: Probe,
    /// True if something was handed to the server: it can no longer take an SST. The first such thing is a view at the
    /// database's position (rule 6).
    begun: bool,
    /// True if an SST came, and these entries are the ones that it lacks.
    after_snapshot: bool,
    reported_ms: u64,
    /// The parts of the next entry that have come.
    partial: Option<Box<Partial>>,
    /// True if the parts of the next entry once did not fit together.
    anew: bool,
}

/// Result of [`Ist::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// All entries are here.
    Over,
    /// A member was asked.
    Waits,
    /// Find this entry.
    Entry(Seqno),
}

/// Result of [`Ist::answered`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// This member was not asked, or was given up.
    Unasked,
    /// Members have the entries that this node lacks.
    ProbeOver,
    /// The member does not have this entry.
    Lacks(Seqno),
    /// Hand the records on.
    Take,
}

/// Result of [`Ist::take_part`].
#[derive(Debug, PartialEq)]
pub(crate) enum PartTaken {
    /// The rest is pulled, or the whole entry again.
    Goes,
    /// The entry is here; None: its parts do not fit together.
    Ends(Option<Recorded>),
}

/// The server's state, when no member has the missing entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadEnd {
    /// It has an SST that ends here.
    BehindSnapshot(Seqno),
    /// It was given something: it can take no SST.
    Begun,
    /// It can take an SST.
    NotBegun,
}

/// Returns the report, in Galera's words, that `done` of `total` missing entries are here.
pub(crate) fn received_ist(done: Seqno, total: Seqno) -> String {
    let percent = done as f64 * 100.0 / total as f64;
    format!("Receiving IST... {percent:.1}% ({done}/{total} events) complete.")
}

impl Ist {
    /// Returns the IST of a database that lacks everything from `first` to `last`. `own_log`: the local log has no
    /// entries of a fork. `begun`: the server has taken something already.
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
            sources: Sources::new(sources),
            probe: Probe::default(),
            begun,
            after_snapshot: false,
            reported_ms: now_ms,
            partial: None,
            anew: false,
        }
    }

    /// Returns the IST behind an SST that lacks everything from `first` to `last`.
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

    /// Returns true if the next entry may be in the local log. For an entry that comes in parts, the log was searched
    /// already.
    pub(crate) fn looks_into_own_log(&self) -> bool {
        self.own_log && self.partial.is_none()
    }

    /// Returns the time when another member is asked.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.sources.deadline_ms()
    }

    /// Returns the entry that members are asked for.
    fn wanted(&self) -> Seqno {
        self.probed().unwrap_or(self.next)
    }

    /// Returns true if this member was asked for entries from `next` on.
    fn awaits(&self, from: Incarnation, next: Seqno) -> bool {
        next == self.wanted() && self.sources.is_asked(from)
    }

    /// Returns the number of bytes that have come of the next entry.
    fn received(&self) -> u32 {
        self.partial
            .as_ref()
            .map_or(0, |partial| partial.received())
    }

    /// Returns the next step. Gives up a member that does not answer.
    pub(crate) fn next(&mut self, now_ms: u64) -> Next {
        if self.next > self.last {
            return Next::Over;
        }
        if self.sources.expire(now_ms) && self.probe.is_not_answered() {
            self.sources.ask_anew();
        }
        if self.sources.deadline_ms().is_some() {
            return Next::Waits;
        }
        Next::Entry(self.next)
    }

    /// Returns true if the check for a gap was not made yet; see [`Probe::is_due`].
    pub(crate) fn is_to_probe(&self, before_script: bool) -> bool {
        self.probe.is_due(before_script)
    }

    /// Returns true if this member has shown, within the check, that it lives and has the entries.
    pub(crate) fn was_shown_by(&self, member: Incarnation) -> bool {
        self.probe.was_shown_by(member)
    }

    /// Makes the node ask the future donor for a sign of life, if the check has asked nobody. Returns false if that is not
    /// possible, or was done before.
    pub(crate) fn greet(&mut self, donor: Incarnation) -> bool {
        if !self.sources.contains(donor) || !self.probe.greet(self.last) {
            return false;
        }
        self.sources.ask_anew();
        self.prefer(donor);
        true
    }

    /// Asks this member first.
    pub(crate) fn prefer(&mut self, member: Incarnation) {
        self.sources.prefer(member);
    }

    /// Returns the member that is asked, or will be asked next.
    pub(crate) fn asks_first(&self) -> Option<Incarnation> {
        self.sources.first()
    }

    /// Goes on with these members, which are in the new view.
    pub(crate) fn follow_view(&mut self, members: VecDeque<Incarnation>) {
        self.sources.follow_view(members);
    }

    /// Handles the loss of the majority: the asked member may be out of reach.
    pub(crate) fn lose_primary(&mut self) {
        self.sources.start_over();
    }

    /// Begins that check. `is_here`: tells whether this node has the entry. `before_script`: nothing is handed over
    /// before a script has run.
    pub(crate) fn begin_probe(&mut self, before_script: bool, is_here: impl Fn(Seqno) -> bool) {
        let lacking = (self.next..=self.last).find(|seqno| !is_here(*seqno));
        // The very first entry is requested before anything is handed over, and is kept. Before a script nothing is
        // kept.
        let asks = lacking.filter(|seqno| !self.begun && (before_script || *seqno > self.next));
        self.partial = None;
        self.sources.ask_anew();
        self.probe.begin(asks, before_script);
    }

    /// Returns the entry that one of the members must show.
    pub(crate) fn probed(&self) -> Option<Seqno> {
        self.probe.asks()
    }

    /// Asks a member for the wanted entry and the ones behind it. None: no member has it.
    pub(crate) fn pull(&mut self, now_ms: u64) -> Option<(Incarnation, PeerMessage)> {
        let source = self.sources.ask(now_ms)?;
        let from = self.wanted();
        let pull = match self.received() {
            0 => PeerMessage::IstPull { from },
            offset => PeerMessage::IstPullPart { from, offset },
        };
        Some((source, pull))
    }

    /// Takes in a member's answer with entries from `at` on; `shown`: the first of them.
    pub(crate) fn answered(
        &mut self,
        from: Incarnation,
        at: Seqno,
        shown: Option<Seqno>,
    ) -> Answered {
        if !self.awaits(from, at) {
            return Answered::Unasked;
        }
        let answered = match self.probe.answered(from, shown) {
            None if shown == Some(at) => Answered::Take,
            None => return Answered::Lacks(at),
            Some(Ok(())) => Answered::ProbeOver,
            Some(Err(seqno)) => return Answered::Lacks(seqno),
        };
        self.sources.answered(from);
        answered
    }

    /// Drops a member that lacks the entry: another one is asked.
    pub(crate) fn drop_source(&mut self, member: Incarnation) {
        self.partial = None;
        self.sources.drop_member(member);
    }

    /// Takes in a part of a long entry.
    pub(crate) fn take_part(&mut self, from: Incarnation, part: &RecordedPart) -> PartTaken {
        let seqno = part.record.seqno;
        if !self.awaits(from, seqno) || part.offset != self.received() {
            return PartTaken::Goes; // not asked, or the answer to an abandoned pull
        }
        if self.probed().is_some() {
            self.answered(from, seqno, Some(seqno));
            return PartTaken::Goes;
        }
        let partial = self.partial.take();
        let mut partial = partial.unwrap_or_else(|| Box::new(Partial::new(part)));
        let taken = partial.take(part);
        if taken && !partial.is_whole() {
            self.sources.answered(from);
            self.partial = Some(partial);
            return PartTaken::Goes;
        }
        let whole = partial.into_record().filter(|_| taken);
        if whole.is_none() && !std::mem::replace(&mut self.anew, true) {
            // The cause may be another member, or a vote that has changed the outcome: pull the whole entry from this
            // member.
            self.sources.ask_anew();
            return PartTaken::Goes;
        }
        PartTaken::Ends(whole)
    }

    /// Returns true if this entry is the next.
    pub(crate) fn expects(&self, record: &Recorded) -> bool {
        let is_next = record.seqno == self.next && record.seqno <= self.last;
        is_next && record.depends_on < record.seqno
    }

    /// Notes that something is about to be handed to the server. Returns true the first time.
    pub(crate) fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.begun, true)
    }

    /// Notes that the next entry is handed on. Returns its seqno.
    pub(crate) fn took_next(&mut self) -> Seqno {
        let seqno = self.next;
        self.next += 1;
        (self.partial, self.anew) = (None, false);
        self.sources.ask_anew();
        seqno
    }

    /// Returns a report of the progress, if one is due.
    pub(crate) fn report(&mut self, now_ms: u64) -> Option<String> {
        let (done, total) = (self.next - self.first, self.last - self.first + 1);
        let is_due = done == total || now_ms >= self.reported_ms + REPORT_MS;
        is_due.then(|| {
            self.reported_ms = now_ms;
            received_ist(done, total)
        })
    }

    /// Returns the server's state, when no member has the missing entries.
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

    const TIMEOUT_MS: u64 = 1000;

    fn member(number: u8) -> Incarnation {
        Incarnation(Uuid([number; 16]))
    }

    fn ist(begun: bool) -> Ist {
        let sources = VecDeque::from([member(1), member(2)]);
        Ist::of_database((5, 7), sources, true, begun, 0)
    }

    fn pulls(from: Seqno) -> PeerMessage {
        PeerMessage::IstPull { from }
    }

    #[test]
    fn members_are_asked_in_turn_and_given_up_in_the_end() {
        let mut ist = ist(true);
        assert_eq!(ist.next(0), Next::Entry(5));
        assert_eq!(ist.pull(0), Some((member(1), pulls(5))));
        assert_eq!(ist.next(TIMEOUT_MS - 1), Next::Waits);
        assert_eq!(ist.next(TIMEOUT_MS), Next::Entry(5));
        assert_eq!(ist.pull(TIMEOUT_MS), Some((member(2), pulls(5))));
        assert_eq!(ist.answered(member(3), 5, Some(5)), Answered::Unasked);
        assert_eq!(ist.answered(member(1), 6, Some(6)), Answered::Unasked);
        assert_eq!(ist.answered(member(1), 5, Some(5)), Answered::Take, "late");
        assert_eq!(ist.took_next(), 5);
        assert_eq!(ist.answered(member(2), 5, Some(5)), Answered::Unasked);
        let mut now_ms = TIMEOUT_MS;
        while ist.pull(now_ms).is_some() {
            now_ms = ist.deadline_ms().expect("asked");
            assert_eq!(ist.next(now_ms), Next::Entry(6));
            assert!(now_ms < 100 * TIMEOUT_MS, "asks for ever");
        }
        assert_eq!(ist.dead_end(), DeadEnd::Begun);
    }

    #[test]
    fn one_that_is_preferred_leaves_the_others_in_their_order() {
        let sources = VecDeque::from([member(1), member(2), member(3)]);
        let mut ist = Ist::of_database((5, 7), sources, true, true, 0);
        ist.prefer(member(3));
        let asked = [0, 1, 2].map(|round| {
            let now_ms = round * TIMEOUT_MS;
            ist.next(now_ms);
            ist.pull(now_ms).unwrap().0
        });
        assert_eq!(asked, [3, 1, 2].map(member));
    }

    #[test]
    fn a_member_must_show_what_lies_behind_a_gap_before_anything_is_handed_over() {
        let mut ist = ist(false);
        assert!(ist.is_to_probe(false) && ist.is_to_probe(true));
        ist.begin_probe(false, |seqno| seqno < 7);
        assert_eq!(ist.probed(), Some(7));
        assert_eq!(ist.pull(0), Some((member(1), pulls(7))));
        assert_eq!(ist.answered(member(1), 7, None), Answered::Lacks(7));
        ist.drop_source(member(1));
        assert_eq!(ist.dead_end(), DeadEnd::NotBegun);
        assert_eq!(ist.pull(0), Some((member(2), pulls(7))));
        assert_eq!(ist.answered(member(2), 7, Some(7)), Answered::ProbeOver);
        assert_eq!(ist.next(0), Next::Entry(5), "what it showed is not kept");
        assert!(ist.begin() && !ist.begin());
    }

    /// A donor may become free after the check.
    #[test]
    fn a_check_without_a_script_is_not_enough_for_a_script() {
        let mut ist = ist(false);
        ist.begin_probe(false, |_| false);
        assert_eq!(ist.probed(), None, "the first entry is kept");
        assert!(!ist.is_to_probe(false) && ist.is_to_probe(true));
        ist.begin_probe(true, |_| false);
        assert_eq!(ist.probed(), Some(5));
        assert_eq!(ist.pull(0), Some((member(1), pulls(5))));
        assert_eq!(ist.answered(member(1), 5, Some(5)), Answered::ProbeOver);
        assert!(!ist.is_to_probe(true) && ist.probed().is_none());
        assert!(ist.was_shown_by(member(1)) && !ist.was_shown_by(member(2)));
    }

    #[test]
    fn a_donor_to_be_is_asked_first() {
        let mut ist = ist(false);
        ist.prefer(member(2));
        ist.prefer(member(9));
        ist.begin_probe(true, |_| false);
        assert!(!ist.greet(member(2)), "it is asked for what is lacking");
        assert_eq!(ist.pull(0), Some((member(2), pulls(5))));
    }

    /// The own log has everything.
    #[test]
    fn a_donor_to_be_is_greeted_once() {
        for lives in [true, false] {
            let mut ist = ist(false);
            ist.begin_probe(true, |_| true);
            assert!(!ist.greet(member(9)) && ist.greet(member(2)));
            let last = ist.probed().expect("the last entry");
            assert_eq!(ist.pull(0), Some((member(2), pulls(last))));
            if lives {
                assert_eq!(ist.answered(member(2), last, None), Answered::ProbeOver);
            }
            assert_eq!(ist.next(TIMEOUT_MS), Next::Entry(5));
            assert_eq!(ist.was_shown_by(member(2)), lives);
            assert!(ist.probed().is_none() && !ist.is_to_probe(true));
            assert!(!ist.greet(member(2)));
        }
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
