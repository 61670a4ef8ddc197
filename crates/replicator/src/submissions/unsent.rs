//! Own write-sets that are not submitted yet. Some wait for flow control. Large ones go to a majority as bulk payloads
//! before they take a number, so that nothing waits behind them (rule 8).
//!
//! In: drafts. Out: bulk payloads to be handed to the others, and write-sets to be submitted, in order.

use std::collections::VecDeque;

use super::Sent;
use crate::action::{Action, GroupAction};
use crate::writeset::WriteSetDraft;

/// A write-set that waits.
#[derive(Debug)]
pub(crate) struct Held {
    pub sent: Sent,
    pub draft: WriteSetDraft,
}

/// The end of a write-set that is not submitted any more, in order.
#[derive(Debug, PartialEq)]
pub(crate) enum Dropped {
    /// The group must forget this bulk payload.
    Recall { bulk: u64 },
    /// Its caller gets an answer.
    GivenUp(Sent),
}

#[derive(Debug, Default)]
pub(super) struct Unsent {
    /// Write-sets that wait for flow control, in order.
    held: VecDeque<Held>,
    last_bulk: u64,
    /// Write-sets that wait until a majority holds them, each with its number as a bulk payload of the group.
    own_bulk: Vec<(u64, Held)>,
}

impl Unsent {
    /// Starts over for a new connection. The numbers of bulk payloads go on.
    pub(super) fn start_over(&mut self) {
        *self = Unsent {
            last_bulk: self.last_bulk,
            ..Unsent::default()
        };
    }

    pub(super) fn len(&self) -> usize {
        self.held.len() + self.own_bulk.len()
    }

    /// Returns true if a write-set waits for flow control.
    pub(super) fn is_any_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Makes a write-set wait for flow control, behind all that wait already.
    pub(super) fn hold(&mut self, held: Held) {
        self.held.push_back(held);
    }

    /// Takes the first write-set that waits for flow control.
    pub(super) fn next_held(&mut self) -> Option<Held> {
        self.held.pop_front()
    }

    /// Hands a large write-set to the others.
    pub(super) fn spread(&mut self, sent: Sent, mut draft: WriteSetDraft) -> Action {
        self.last_bulk += 1;
        let bulk = self.last_bulk;
        let (payload, head, digest) = draft.split(bulk);
        self.own_bulk.push((bulk, Held { sent, draft }));
        Action::Group(GroupAction::Spread {
            bulk,
            payload,
            head,
            digest,
        })
    }

    /// Takes the write-set of a bulk payload that a majority holds; None: it was given up meanwhile.
    pub(super) fn is_spread(&mut self, bulk: u64) -> Option<Held> {
        let index = self.own_bulk.iter().position(|(at, _)| *at == bulk)?;
        Some(self.own_bulk.remove(index).1)
    }

    /// Drops a write-set whose caller no longer waits. Returns the bulk payloads to recall.
    pub(super) fn recall(&mut self, sent: Sent) -> Vec<u64> {
        let is_it = |held: &Held| held.sent == sent;
        let own_bulk = self.own_bulk.iter().filter(|(_, held)| is_it(held));
        let held = self.held.iter().filter(|held| is_it(held));
        let bulk_payloads = own_bulk.map(|(bulk, _)| *bulk);
        let bulk_payloads = bulk_payloads.chain(held.filter_map(|held| held.draft.bulk()));
        let bulk_payloads = bulk_payloads.collect();
        self.own_bulk.retain(|(_, held)| !is_it(held));
        self.held.retain(|held| !is_it(held));
        bulk_payloads
    }

    /// Gives up all write-sets that wait.
    pub(super) fn give_up(&mut self) -> Vec<Dropped> {
        let own_bulk = std::mem::take(&mut self.own_bulk);
        let recalled = own_bulk.iter().map(|(bulk, _)| *bulk);
        let mut dropped: Vec<_> = recalled.map(|bulk| Dropped::Recall { bulk }).collect();
        dropped.extend(own_bulk.iter().map(|(_, held)| Dropped::GivenUp(held.sent)));
        for held in std::mem::take(&mut self.held) {
            let bulk = held.draft.bulk();
            dropped.extend(bulk.map(|bulk| Dropped::Recall { bulk }));
            dropped.push(Dropped::GivenUp(held.sent));
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> Unsent {
        let mut unsent = Unsent::default();
        let draft = WriteSetDraft::rollback(1);
        unsent.hold(Held {
            sent: Sent::Trx(1),
            draft: draft.clone(),
        });
        for trx in [2, 3] {
            let action = unsent.spread(Sent::Trx(trx), draft.clone());
            assert!(
                matches!(action, Action::Group(GroupAction::Spread { bulk, .. }) if bulk == trx - 1)
            );
        }
        let held = unsent.is_spread(1).expect("it waits");
        unsent.hold(held);
        unsent
    }

    #[test]
    fn a_bulk_payload_is_recalled_wherever_its_write_set_waits() {
        let mut unsent = waiting();
        assert_eq!(unsent.recall(Sent::Trx(1)), [0; 0]);
        assert_eq!(unsent.recall(Sent::Trx(2)), [1]);
        assert_eq!(unsent.recall(Sent::Trx(3)), [2]);
        assert_eq!(unsent.len(), 0);
        assert!(unsent.is_spread(2).is_none());
    }

    #[test]
    fn whatever_waits_is_given_up_once() {
        let mut unsent = waiting();
        let expected = [
            Dropped::Recall { bulk: 2 },
            Dropped::GivenUp(Sent::Trx(3)),
            Dropped::GivenUp(Sent::Trx(1)),
            Dropped::Recall { bulk: 1 },
            Dropped::GivenUp(Sent::Trx(2)),
        ];
        assert_eq!(unsent.give_up(), expected);
        assert_eq!(unsent.give_up(), []);
    }
}
