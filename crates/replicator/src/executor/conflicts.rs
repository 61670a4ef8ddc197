//! Own transactions that lost against another write-set.
//!
//! In: losses, where they are decided. Out: counts, and each loss once, when its transaction is released: its thread
//! knows the names of its keys. The number of waiting losses is bounded. All this outlives connections.

use std::collections::BTreeMap;

use trireme_certification::Seqno;
use trireme_group::Incarnation;

use crate::event::TrxId;

/// Maximum of losses that wait for their transactions. Beyond it, those of the oldest transactions are forgotten.
const WAITING_MAX: usize = 1_000;

/// Numbers of own transactions that lost, by kind, counted since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConflictCounts {
    /// Write-sets that failed certification.
    pub certification: u64,
    /// Transactions that an applier rolled back before their write-set was sent.
    pub brute_force_abort: u64,
    /// Transactions that an applier rolled back after their write-set had passed certification: they are applied anew.
    pub replay: u64,
}

/// The way in which a transaction lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    /// Its write-set failed certification.
    Certification,
    /// An applier took its locks.
    BruteForceAbort,
    /// An applier took its locks, and its write-set is applied anew.
    Replay,
}

/// The write-set that won.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Winner {
    /// Seqno of its write-set.
    pub seqno: Seqno,
    /// Its member, with the member's name; None: unknown, or no member any more.
    pub member: Option<(Incarnation, String)>,
}

/// The loss of an own transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The way in which it lost.
    pub kind: ConflictKind,
    /// Its own seqno; None: it was not ordered.
    pub seqno: Option<Seqno>,
    /// The winner; None: a local statement, a view, or a write-set that the order no longer knows.
    pub winner: Option<Winner>,
}

#[derive(Debug, Default)]
pub(crate) struct Conflicts {
    counts: ConflictCounts,
    waiting: BTreeMap<TrxId, Loss>,
}

impl Conflicts {
    pub(crate) fn counts(&self) -> ConflictCounts {
        self.counts
    }

    /// Counts an own action, without a transaction, that failed certification.
    pub(crate) fn failed_certification(&mut self) {
        self.counts.certification += 1;
    }

    /// Notes that the write-set of an own transaction failed certification.
    pub(crate) fn lost_certification(&mut self, trx: TrxId, seqno: Seqno, winner: Option<Winner>) {
        self.failed_certification();
        self.wait(trx, ConflictKind::Certification, Some(seqno), winner);
    }

    /// Notes that an own transaction was rolled back. `is_sent`: its write-set is sent, and the loss is counted only
    /// when the outcome is clear. `is_known`: the transaction will be released.
    pub(crate) fn was_aborted(
        &mut self,
        trx: TrxId,
        seqno: Option<Seqno>,
        winner: Option<Winner>,
        (is_sent, is_known): (bool, bool),
    ) {
        self.counts.brute_force_abort += u64::from(!is_sent);
        if is_known {
            self.wait(trx, ConflictKind::BruteForceAbort, seqno, winner);
        }
    }

    /// Notes that an own transaction that was rolled back is applied anew.
    pub(crate) fn is_replayed(&mut self, trx: TrxId, seqno: Seqno) {
        self.counts.replay += 1;
        if let Some(loss) = self.waiting.get_mut(&trx) {
            (loss.kind, loss.seqno) = (ConflictKind::Replay, Some(seqno));
        }
    }

    /// Takes the loss of a transaction that is released, if it lost.
    pub(crate) fn released(&mut self, trx: TrxId) -> Option<Loss> {
        match self.waiting.is_empty() {
            true => None,
            false => self.waiting.remove(&trx),
        }
    }

    fn wait(
        &mut self,
        trx: TrxId,
        kind: ConflictKind,
        seqno: Option<Seqno>,
        winner: Option<Winner>,
    ) {
        let loss = Loss {
            kind,
            seqno,
            winner,
        };
        self.waiting.insert(trx, loss);
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_once_and_what_waits_is_bounded() {
        let mut conflicts = Conflicts::default();
        for trx in 0..2 * WAITING_MAX as u64 {
            conflicts.was_aborted(trx, None, None, (false, true));
        }
        conflicts.was_aborted(9_999, None, None, (false, false));
        assert_eq!(conflicts.waiting.len(), WAITING_MAX);
        assert_eq!(conflicts.counts().brute_force_abort, 2_001);
        assert_eq!(conflicts.released(0), None, "forgotten");
        let loss = conflicts.released(1_999).expect("it waits");
        assert_eq!(loss.kind, ConflictKind::BruteForceAbort);
        assert_eq!(conflicts.released(1_999), None);
    }
}
