//! What this node has submitted and not heard of.

use std::collections::{BTreeMap, BTreeSet};

use trireme_certification::Seqno;
use trireme_group::Incarnation;

use crate::event::{ConnId, Ticket, TrxId};

/// What a submission was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Trx(TrxId),
    Toi(ConnId),
    /// Rollback fragment of a streaming transaction: nobody waits for it.
    Rollback(TrxId),
    StateRequest,
    /// Where a database stands that may hold an action above its position.
    Doubt,
    Joined,
    Synced,
    Donated,
    /// `as_donor`: the server that asked was one, and knew it.
    Desync {
        ticket: Ticket,
        as_donor: bool,
    },
    /// A desync that nobody waits for (any more).
    UnheardDesync,
    Resync,
    Cut,
    Vote(Seqno),
    LeaveOut(Incarnation),
    CaughtUp,
}

/// Numbers own submissions 1, 2, 3.. per connection.
#[derive(Debug, Default)]
pub(crate) struct Submissions {
    pub last_number: u64,
    in_flight: BTreeMap<u64, (Sent, Seqno)>,
    /// Those in flight that the group has let go of with unknown fate, and that are waited for all the same.
    undecided: BTreeSet<u64>,
    /// Goes up whenever a submission lets go of its locks before it is decided: abandoned with
    /// unknown fate, or brute-force aborted. The exemption from conflicts with own write-sets rests
    /// on these locks: it holds within one epoch only (rule 9d).
    pub epoch: u64,
}

impl Submissions {
    /// Takes the next number. `last_seen` of a write-set, else the greatest seqno there is.
    pub(crate) fn send(&mut self, sent: Sent, last_seen: Seqno) -> u64 {
        self.last_number += 1;
        self.in_flight.insert(self.last_number, (sent, last_seen));
        self.last_number
    }

    /// It was ordered, or failed. None: it was given up before.
    pub(crate) fn take(&mut self, number: u64) -> Option<Sent> {
        self.undecided.remove(&number);
        self.in_flight.remove(&number).map(|(sent, _)| sent)
    }

    /// The group has let go of it, and it may come all the same: it stays in flight.
    pub(crate) fn keep_undecided(&mut self, number: u64, sent: Sent) {
        self.in_flight.insert(number, (sent, Seqno::MAX));
        self.undecided.insert(number);
    }

    pub(crate) fn has_undecided(&self) -> bool {
        !self.undecided.is_empty()
    }

    /// `number` was ordered: what is undecided below it never will be, as an origin's submissions are
    /// ordered by their numbers.
    pub(crate) fn take_overtaken(&mut self, number: u64) -> Vec<Sent> {
        let later = self.undecided.split_off(&number);
        let overtaken = std::mem::replace(&mut self.undecided, later);
        overtaken.into_iter().filter_map(|n| self.take(n)).collect()
    }

    /// Gives up all.
    pub(crate) fn take_all(&mut self) -> Vec<(u64, Sent)> {
        self.undecided.clear();
        let all = std::mem::take(&mut self.in_flight).into_iter();
        all.map(|(number, (sent, _))| (number, sent)).collect()
    }

    /// The caller of desync() has gone.
    pub(crate) fn abandon_desync(&mut self, ticket: Ticket) {
        for (sent, _) in self.in_flight.values_mut() {
            if matches!(sent, Sent::Desync { ticket: of, .. } if *of == ticket) {
                *sent = Sent::UnheardDesync;
            }
        }
    }

    /// Nobody is to be granted the desyncs that are under way: who waits for them.
    pub(crate) fn abandon_desyncs(&mut self) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        for (sent, _) in self.in_flight.values_mut() {
            if let Sent::Desync { ticket, .. } = *sent {
                tickets.push(ticket);
                *sent = Sent::UnheardDesync;
            }
        }
        tickets
    }

    /// True if a desync or resync is under way.
    pub(crate) fn changes_desyncs(&self) -> bool {
        let changes = |sent: &Sent| {
            matches!(
                sent,
                Sent::Desync { .. } | Sent::UnheardDesync | Sent::Resync
            )
        };
        self.in_flight.values().any(|(sent, _)| changes(sent))
    }

    /// The last rollback fragment in flight.
    pub(crate) fn last_rollback(&self) -> Option<u64> {
        let mut latest_first = self.in_flight.iter().rev();
        latest_first
            .find(|(_, (sent, _))| matches!(sent, Sent::Rollback(_)))
            .map(|(number, _)| *number)
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        self.in_flight.contains_key(&number)
    }

    pub(crate) fn is_in_flight(&self, what: Sent) -> bool {
        self.in_flight.values().any(|(sent, _)| *sent == what)
    }

    /// The least last_seen among own write-sets in flight.
    pub(crate) fn least_seen(&self) -> Option<Seqno> {
        self.in_flight.values().map(|(_, seen)| *seen).min()
    }
}
