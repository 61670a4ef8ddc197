//! sync_wait(): reads that must see everything that was acknowledged before (rule 17).

use std::collections::{BTreeMap, BTreeSet};

use trireme_certification::Seqno;
use trireme_group::Position;
use trireme_mutants::{Mutant, planted};

use crate::event::Ticket;

/// Who waits for what.
#[derive(Debug, Default)]
pub(crate) struct Causal {
    /// The group was asked; the token is the ticket.
    asked: BTreeSet<Ticket>,
    /// Until this position is processed here.
    positions: BTreeMap<Ticket, Position>,
    /// Until this seqno is released here. (seqno, ticket): the least first.
    seqnos: BTreeSet<(Seqno, Ticket)>,
}

impl Causal {
    /// The group is asked for a read point on behalf of `ticket`.
    pub(crate) fn ask(&mut self, ticket: Ticket) {
        self.asked.insert(ticket);
    }

    /// The group has answered; false if nobody waits any more.
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

    /// The group cannot answer; false if nobody waits any more.
    pub(crate) fn read_failed(&mut self, ticket: Ticket) -> bool {
        self.asked.remove(&ticket)
    }

    /// Waits until `seqno` is released.
    pub(crate) fn wait(&mut self, ticket: Ticket, seqno: Seqno) {
        self.seqnos.insert((seqno, ticket));
    }

    /// `position` is processed: turns waits for positions into waits for seqnos.
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

    /// A ticket whose wait is over. To be asked until None.
    pub(crate) fn next_done(&mut self, low: Seqno) -> Option<Ticket> {
        let &(seqno, ticket) = self.seqnos.first()?;
        if seqno > low && !planted(Mutant::ReadsDoNotWait) {
            return None;
        }
        self.seqnos.pop_first();
        Some(ticket)
    }

    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        self.asked.remove(&ticket);
        self.positions.remove(&ticket);
        self.seqnos.retain(|(_, t)| *t != ticket);
    }

    /// Everybody who waits for a read point from the group.
    pub(crate) fn give_up_asked(&mut self) -> Vec<Ticket> {
        std::mem::take(&mut self.asked).into_iter().collect()
    }

    /// Everybody whose wait may never end: who waits for the group, and for `next` and what follows.
    /// What lies before has left commit order and will be released. The server, within commit
    /// order, does not look at the answer and sets its position: a wait cut short there would say
    /// durable of what is not yet visible (contract 2.8).
    pub(crate) fn give_up_from(&mut self, next: Seqno) -> Vec<Ticket> {
        let mut tickets = self.give_up_asked();
        tickets.extend(std::mem::take(&mut self.positions).into_keys());
        let later = self.seqnos.split_off(&(next, Ticket::MIN));
        tickets.extend(later.into_iter().map(|(_, t)| t));
        tickets
    }
}
