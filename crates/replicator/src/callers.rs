//! The callers that wait: reads of sync_wait(), which must see everything that was acknowledged before (rule 17), and
//! calls of pause(), until the node stands still. Reads outlast a connection: a read of a seqno that has left commit order
//! is still answered.

use std::collections::{BTreeMap, BTreeSet};

use trireme_certification::Seqno;
use trireme_group::Position;
use trireme_mutants::{Mutant, planted};

use crate::event::Ticket;
use crate::executor::Executor;
use crate::lifecycle::Lifecycle;
use crate::state_transfer::Place;
use crate::voting::Voting;

#[derive(Debug, Default)]
pub(crate) struct Callers {
    /// Reads that wait for an own submission, by its number: the group is asked when that is ordered.
    behind: Vec<(u64, Ticket)>,
    /// Reads for which the group was asked; the token is the ticket.
    asked: BTreeSet<Ticket>,
    /// Reads that wait until this position is processed here.
    positions: BTreeMap<Ticket, Position>,
    /// Reads that wait until this seqno is released here, as (seqno, ticket): the lowest first.
    seqnos: BTreeSet<(Seqno, Ticket)>,
    /// Number of pauses that were not taken back, including those that wait.
    pauses: u32,
    /// Pauses that wait until everything certified is released.
    pausing: BTreeSet<Ticket>,
}

impl Callers {
    /// Starts over for a new connection: its submission numbers start again, and the pauses of the last one are over.
    pub(crate) fn start_over(&mut self) {
        self.behind.clear();
        self.pauses = 0;
    }

    /// Notes that the caller no longer waits.
    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        self.asked.remove(&ticket);
        self.positions.remove(&ticket);
        self.seqnos.retain(|(_, t)| *t != ticket);
        if self.pausing.remove(&ticket) {
            self.end_pause();
        }
    }

    // --- reads

    /// Registers a read that waits for a read point of the group. Returns true if the group must be asked now.
    /// `behind`: number of an own submission in flight that the read has to see. No caller has waited for a rollback
    /// fragment, so it may not be ordered yet.
    pub(crate) fn ask_read(&mut self, ticket: Ticket, behind: Option<u64>) -> bool {
        self.asked.insert(ticket);
        self.behind.extend(behind.map(|number| (number, ticket)));
        behind.is_none()
    }

    /// Takes the reads for which the group must be asked now: the submissions that they waited for are ordered.
    pub(crate) fn take_due_reads(&mut self, is_in_flight: impl Fn(u64) -> bool) -> Vec<Ticket> {
        if self.behind.is_empty() {
            return Vec::new();
        }
        let waits = |(number, _): &(u64, Ticket)| is_in_flight(*number);
        let (behind, due) = std::mem::take(&mut self.behind)
            .into_iter()
            .partition(waits);
        self.behind = behind;
        let due: Vec<(u64, Ticket)> = due;
        due.into_iter().map(|(_, ticket)| ticket).collect()
    }

    /// Takes in the group's answer. Returns false if the read no longer waits.
    pub(crate) fn read_point(&mut self, ticket: Ticket, position: Position) -> bool {
        let waits = self.asked.remove(&ticket);
        if waits {
            let beyond = if planted(Mutant::ReadWaitsForNothing) {
                40
            } else {
                0
            };
            self.positions.insert(ticket, position + beyond);
        }
        waits
    }

    /// Takes in that the group cannot answer. Returns false if the read no longer waits.
    pub(crate) fn read_failed(&mut self, ticket: Ticket) -> bool {
        self.asked.remove(&ticket)
    }

    /// Registers a read that waits until `seqno` is released.
    pub(crate) fn wait_for(&mut self, ticket: Ticket, seqno: Seqno) {
        self.seqnos.insert((seqno, ticket));
    }

    /// Turns waits for positions into waits for seqnos, now that `position` is processed.
    pub(crate) fn processed(&mut self, position: Position, seqno_at: impl Fn(Position) -> Seqno) {
        let reached: Vec<(Ticket, Position)> = self
            .positions
            .iter()
            .filter(|(_, at)| **at <= position)
            .map(|(t, at)| (*t, *at))
            .collect();
        for (ticket, at) in reached {
            self.positions.remove(&ticket);
            self.seqnos.insert((seqno_at(at), ticket));
        }
    }

    /// Takes a read whose wait is over. Call it until None.
    pub(crate) fn next_done_read(&mut self, low: Seqno) -> Option<Ticket> {
        let &(seqno, ticket) = self.seqnos.first()?;
        if seqno > low && !planted(Mutant::ReadsDoNotWait) {
            return None;
        }
        self.seqnos.pop_first();
        Some(ticket)
    }

    /// Takes all reads that wait for a read point of the group.
    pub(crate) fn give_up_asked(&mut self) -> Vec<Ticket> {
        std::mem::take(&mut self.asked).into_iter().collect()
    }

    /// Takes all reads whose wait may never end: those that wait for the group, or for `next` and later seqnos. The
    /// earlier seqnos have left commit order and will be released. Within commit order the server ignores the answer
    /// and sets its position. A wait cut short there would declare a commit durable that is not visible yet
    /// (server-contract.md#commit_order_leave).
    pub(crate) fn give_up_reads_from(&mut self, next: Seqno) -> Vec<Ticket> {
        let mut tickets = self.give_up_asked();
        tickets.extend(std::mem::take(&mut self.positions).into_keys());
        let later = self.seqnos.split_off(&(next, Ticket::MIN));
        tickets.extend(later.into_iter().map(|(_, t)| t));
        tickets
    }

    // --- pauses

    pub(crate) fn begin_pause(&mut self, ticket: Ticket) {
        self.pauses += 1;
        self.pausing.insert(ticket);
    }

    pub(crate) fn end_pause(&mut self) {
        self.pauses = self.pauses.saturating_sub(1);
    }

    /// Returns true if the node is paused, or a caller wants that.
    pub(crate) fn is_any_pause(&self) -> bool {
        self.pauses > 0
    }

    /// Returns true if a caller waits for a pause.
    fn is_pause_awaited(&self) -> bool {
        !self.pausing.is_empty()
    }

    /// Returns true if a pause was granted: the server must be held still.
    fn is_pause_granted(&self) -> bool {
        self.pauses as usize > self.pausing.len()
    }

    /// Returns true while deliveries must wait. Until a pause is granted, deliveries go on in two cases that need them.
    /// A brute-force victim that waits for its place in the order holds locks that an applier needs. A caller that
    /// waits for a vote holds commit order. While the local log is read back, deliveries never wait, because none of
    /// them is applied.
    pub(crate) fn stops_deliveries(
        &self,
        place: Place,
        executor: &Executor,
        voting: &Voting,
    ) -> bool {
        if place == Place::Admission {
            return false;
        }
        let needed = || executor.victim_awaits_order() || voting.is_disputing();
        self.is_any_pause() && !(self.is_pause_awaited() && needed())
    }

    /// Returns true while a granted pause holds the server still: it gets no callback. The exception is the last
    /// callbacks, if the server itself waits for them: a donor's script ends its pause only before them (simulator,
    /// seed 11019939).
    pub(crate) fn holds_server_still(&self, place: Place, lifecycle: &Lifecycle) -> bool {
        let may_wait = match place {
            Place::Final => !lifecycle.is_awaited() && !planted(Mutant::NonPrimaryOvertakesPause),
            Place::Closed => false,
            Place::Admission | Place::Transfer | Place::Active => true,
        };
        may_wait && self.is_pause_granted()
    }

    /// Takes all callers that wait for a pause, because the node stands still.
    pub(crate) fn grant_pauses(&mut self) -> BTreeSet<Ticket> {
        std::mem::take(&mut self.pausing)
    }

    /// Takes all callers that wait for a pause, because the node will not stand still for them.
    pub(crate) fn give_up_pauses(&mut self) -> BTreeSet<Ticket> {
        let pausing = std::mem::take(&mut self.pausing);
        pausing.iter().for_each(|_| self.end_pause());
        pausing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_answered_when_its_point_is_released() {
        let mut callers = Callers::default();
        assert!(callers.ask_read(1, None));
        assert!(!callers.ask_read(2, Some(7)));
        assert_eq!(callers.take_due_reads(|number| number == 7), []);
        assert_eq!(callers.take_due_reads(|_| false), [2]);
        assert_eq!(callers.take_due_reads(|_| false), []);
        assert!(callers.read_point(1, 30) && callers.read_point(2, 40));
        assert!(!callers.read_point(3, 40), "nobody waits");
        callers.processed(30, |position| position as Seqno / 10);
        assert_eq!(callers.next_done_read(2), None);
        assert_eq!(callers.next_done_read(3), Some(1));
        assert_eq!(
            callers.next_done_read(9),
            None,
            "the other's point is not processed"
        );
        assert_eq!(callers.give_up_reads_from(4), [2]);
    }

    #[test]
    fn a_read_of_what_has_left_commit_order_is_not_given_up() {
        let mut callers = Callers::default();
        callers.wait_for(1, 4);
        callers.wait_for(2, 5);
        assert_eq!(callers.give_up_reads_from(5), [2]);
        assert_eq!(callers.next_done_read(4), Some(1));
    }

    #[test]
    fn a_pause_holds_once_it_is_granted_and_until_it_is_taken_back() {
        let mut callers = Callers::default();
        callers.begin_pause(1);
        assert!(callers.is_any_pause() && !callers.is_pause_granted());
        assert_eq!(callers.grant_pauses(), BTreeSet::from([1]));
        assert!(callers.is_pause_granted());
        callers.begin_pause(2);
        callers.begin_pause(3);
        callers.cancel(2);
        callers.cancel(2);
        assert_eq!(callers.give_up_pauses(), BTreeSet::from([3]));
        assert!(callers.is_pause_granted(), "the first holds");
        callers.end_pause();
        assert!(!callers.is_any_pause());
    }
}
