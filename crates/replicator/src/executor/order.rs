//! The order of apply and commit: the low-water mark of released seqnos, and the commit order
//! that every seqno passes exactly once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trireme_certification::Seqno;

use crate::event::Ticket;

/// Apply and commit order (docs/server-contract-traps.md#order).
///
/// Every seqno above the start takes two steps. It passes commit order (enters and leaves, or is passed over), strictly
/// by seqno. Then it is released, in any order.
#[derive(Debug)]
pub(crate) struct Order {
    /// Everything up to here was released before this order began.
    start: Seqno,
    /// Everything up to here is released: `last_committed`.
    low: Seqno,
    /// Seqnos above `low` that are released.
    released: BTreeSet<Seqno>,
    /// Last seqno that belongs to this order.
    top: Seqno,
    /// The next seqno to pass commit order.
    next: Seqno,
    /// True if `next` has entered and not left.
    inside: bool,
    /// Seqnos above `next` that are passed over when their turn comes.
    passed_over: BTreeSet<Seqno>,
    /// Callers that wait to enter.
    waiting: BTreeMap<Seqno, Ticket>,
    /// Nothing above the first of these seqnos enters for now (a donor holds its state still). Ascending: a second
    /// donation may be requested before the first one's callback has returned.
    holds: VecDeque<Seqno>,
}

impl Order {
    /// Returns an order in which everything up to `seqno` is released.
    pub(crate) fn new(seqno: Seqno) -> Self {
        Order {
            start: seqno,
            low: seqno,
            released: BTreeSet::new(),
            top: seqno,
            next: seqno + 1,
            inside: false,
            passed_over: BTreeSet::new(),
            waiting: BTreeMap::new(),
            holds: VecDeque::new(),
        }
    }

    /// Returns the low-water mark: everything up to it is released.
    pub(crate) fn low(&self) -> Seqno {
        self.low
    }

    /// Returns the last seqno that was added.
    pub(crate) fn top(&self) -> Seqno {
        self.top
    }

    /// Returns true if everything that was added is released.
    pub(crate) fn is_drained(&self) -> bool {
        self.low == self.top
    }

    /// Adds the next seqno, which will pass and be released.
    pub(crate) fn add(&mut self, seqno: Seqno) {
        assert!(
            seqno == self.top + 1,
            "seqno {seqno} added after {}",
            self.top
        );
        self.top = seqno;
    }

    /// Lets nothing above `seqno` commit until [`Self::unhold`].
    pub(crate) fn hold(&mut self, seqno: Seqno) {
        self.holds.push_back(seqno);
    }

    /// Ends the first [`Self::hold`].
    pub(crate) fn unhold(&mut self) {
        self.holds.pop_front();
    }

    /// Ends the last [`Self::hold`].
    pub(crate) fn unhold_last(&mut self) {
        self.holds.pop_back();
    }

    /// Ends every [`Self::hold`].
    pub(crate) fn unhold_all(&mut self) {
        self.holds.clear();
    }

    /// Returns true if all seqnos before `seqno` have left commit order and it may enter.
    pub(crate) fn may_enter(&self, seqno: Seqno) -> bool {
        self.next == seqno && !self.inside && self.holds.front().is_none_or(|hold| seqno <= *hold)
    }

    /// Enters if it may. Returns true if it has entered.
    pub(crate) fn try_enter(&mut self, seqno: Seqno) -> bool {
        self.check_open(seqno);
        let may = self.may_enter(seqno);
        self.inside |= may;
        may
    }

    /// Registers a waiter that enters later, by [`Self::next_granted`].
    pub(crate) fn wait(&mut self, seqno: Seqno, waiter: Ticket) {
        self.check_open(seqno);
        let before = self.waiting.insert(seqno, waiter);
        assert!(
            before.is_none(),
            "seqno {seqno} waits twice for commit order"
        );
    }

    /// Removes a waiter; None if it does not wait (any more).
    pub(crate) fn cancel_wait(&mut self, seqno: Seqno) -> Option<Ticket> {
        self.waiting.remove(&seqno)
    }

    /// Leaves commit order.
    pub(crate) fn leave(&mut self, seqno: Seqno) {
        assert!(
            self.inside && self.next == seqno,
            "seqno {seqno} leaves commit order, {} is next",
            self.next
        );
        self.inside = false;
        self.advance();
    }

    /// Passes commit order without entering, now or in its turn.
    pub(crate) fn pass(&mut self, seqno: Seqno) {
        self.check_open(seqno);
        assert!(
            !(self.inside && self.next == seqno),
            "seqno {seqno} is inside commit order"
        );
        if self.next == seqno {
            self.advance();
        } else {
            self.passed_over.insert(seqno);
        }
    }

    /// Returns the next seqno to pass: everything before it has left commit order.
    pub(crate) fn next_to_pass(&self) -> Seqno {
        self.next
    }

    /// Returns true if the seqno has left commit order, or will pass by itself.
    pub(crate) fn has_passed(&self, seqno: Seqno) -> bool {
        seqno < self.next || self.passed_over.contains(&seqno)
    }

    /// Returns true if the seqno has passed commit order since this order began.
    pub(crate) fn has_passed_here(&self, seqno: Seqno) -> bool {
        seqno > self.start && self.has_passed(seqno)
    }

    /// Returns true if the seqno is in commit order now.
    pub(crate) fn is_inside(&self, seqno: Seqno) -> bool {
        self.inside && self.next == seqno
    }

    /// Releases a seqno: its effects are visible. Returns true if the low-water mark rose.
    pub(crate) fn release(&mut self, seqno: Seqno) -> bool {
        assert!(
            self.has_passed(seqno),
            "seqno {seqno} released before it passed commit order"
        );
        assert!(
            seqno > self.low && seqno <= self.top,
            "seqno {seqno} released twice or never added"
        );
        assert!(self.released.insert(seqno), "seqno {seqno} released twice");
        let before = self.low;
        while self.released.remove(&(self.low + 1)) {
            self.low += 1;
        }
        self.low > before
    }

    /// Returns a waiter that may enter now, and lets it enter. Call it until None.
    pub(crate) fn next_granted(&mut self) -> Option<(Seqno, Ticket)> {
        let next = self.next;
        if !self.waiting.contains_key(&next) || !self.may_enter(next) {
            return None;
        }
        self.inside = true;
        self.waiting.remove(&next).map(|waiter| (next, waiter))
    }

    fn advance(&mut self) {
        self.next += 1;
        while self.passed_over.remove(&self.next) {
            self.next += 1;
        }
    }

    fn check_open(&self, seqno: Seqno) {
        assert!(
            seqno <= self.top,
            "seqno {seqno} is not in the order, which ends at {}",
            self.top
        );
        assert!(
            !self.has_passed(seqno),
            "seqno {seqno} passes commit order twice"
        );
    }
}
