//! Write-sets that wait until a majority holds them: large ones are handed to the others before they take a
//! number, so that nothing waits behind them (rule 8).

use crate::action::Action;
use crate::isolation::Isolation;
use crate::replicator::{Held, Replicator};
use crate::submissions::Sent;
use crate::transactions::Phase;
use crate::writeset::WriteSetDraft;

/// Those that are on their way, each with its number as a parcel of the group.
#[derive(Default)]
pub(crate) struct Spreads {
    last_parcel: u64,
    waiting: Vec<(u64, Held)>,
}

impl Spreads {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The connection is gone. Numbers go on.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    fn take(&mut self, is_it: impl Fn(&(u64, Held)) -> bool) -> Option<(u64, Held)> {
        let index = self.waiting.iter().position(is_it)?;
        Some(self.waiting.remove(index))
    }
}

impl Replicator {
    pub(crate) fn is_large(&self, draft: &WriteSetDraft) -> bool {
        draft.len_bytes() > self.context.options().large_bytes
    }

    /// Hands a write-set to the others; its phase is that of one that is held.
    pub(crate) fn spread(&mut self, sent: Sent, mut draft: WriteSetDraft) {
        self.spreads.last_parcel += 1;
        let parcel = self.spreads.last_parcel;
        let (payload, head, digest) = draft.split(parcel);
        self.spreads.waiting.push((parcel, Held { sent, draft }));
        self.out.push(Action::Spread {
            parcel,
            payload,
            head,
            digest,
        });
    }

    /// A majority has it: it goes the way of the others.
    pub(crate) fn is_spread(&mut self, parcel: u64) {
        let Some((_, held)) = self.spreads.take(|(number, _)| *number == parcel) else {
            return; // given up meanwhile
        };
        if !self.may_write() {
            self.out.push(Action::Recall { parcel });
            return self.give_up(held.sent, false);
        }
        match self.may_go() {
            true => self.let_go(held),
            false => self.held.push_back(held),
        }
    }

    /// Sends what waited here, as far as nobody asks to wait any more.
    pub(crate) fn send_held(&mut self) {
        while !self.held.is_empty() && !self.flow_control.is_stopped() {
            if self.may_write() && !(self.rollbacks_are_sent() && self.flow_control.admit()) {
                return;
            }
            match self.held.pop_front() {
                Some(held) if self.may_write() => self.let_go(held),
                Some(held) => {
                    if let Some(parcel) = held.draft.parcel() {
                        self.out.push(Action::Recall { parcel });
                    }
                    self.give_up(held.sent, false)
                }
                None => {}
            }
        }
    }

    pub(crate) fn let_go(&mut self, held: Held) {
        match held.sent {
            Sent::Trx(id) => {
                // Whoever forgets a held transaction takes it from the list as well (`abort`).
                let Some(trx) = self.transactions.get_mut(id) else {
                    return;
                };
                let Phase::Held { ticket } = trx.phase else {
                    return;
                };
                trx.phase = Phase::Replicating {
                    ticket,
                    aborted: false,
                };
            }
            Sent::Toi(conn) => {
                let Some(Isolation::Held { ticket }) = self.isolations.get(&conn).copied() else {
                    return;
                };
                self.isolations
                    .insert(conn, Isolation::Replicating { ticket });
            }
            _ => return, // nothing else is held
        }
        self.replicate(held.sent, held.draft);
    }

    /// True if a write-set that comes now may go at once; others that wait go first.
    pub(crate) fn may_go(&mut self) -> bool {
        self.held.is_empty() && self.flow_control.admit()
    }

    /// Nobody waits for this write-set any more.
    pub(crate) fn recall(&mut self, sent: Sent) {
        let of = |held: &Held| held.sent == sent;
        self.recall_parcels(|held| of(held));
        let parcels = self.held.iter().filter(|held| of(held));
        let parcels: Vec<u64> = parcels.filter_map(|held| held.draft.parcel()).collect();
        self.held.retain(|held| !of(held));
        for parcel in parcels {
            self.out.push(Action::Recall { parcel });
        }
    }

    /// Nor for any other.
    pub(crate) fn give_up_held(&mut self) {
        for held in self.recall_parcels(|_| true) {
            self.give_up(held.sent, false);
        }
        for held in std::mem::take(&mut self.held) {
            if let Some(parcel) = held.draft.parcel() {
                self.out.push(Action::Recall { parcel });
            }
            self.give_up(held.sent, false);
        }
    }

    fn recall_parcels(&mut self, which: impl Fn(&Held) -> bool) -> Vec<Held> {
        let mut recalled = Vec::new();
        while let Some((parcel, held)) = self.spreads.take(|(_, held)| which(held)) {
            self.out.push(Action::Recall { parcel });
            recalled.push(held);
        }
        recalled
    }
}
