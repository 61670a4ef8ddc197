//! The table of this node's own transactions, from certify() to release(), with the phase of each. Every call moves a
//! transaction to its next phase, and a brute-force abort decides by the phase.

use std::collections::BTreeMap;

use trireme_certification::Seqno;
use trireme_mutants::{Mutant, planted};

use super::order::Order;
use crate::action::Code;
use crate::event::{Ticket, TrxId};
use crate::writeset::WriteSet;

/// The progress of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Streaming, between two fragments.
    Executing,
    /// Executing, and marked for abort: its next certify() fails.
    MustAbort,
    /// In certify(), not sent yet: it waits for flow control.
    Held { ticket: Ticket },
    /// In certify(), sent; its place in the order is not known yet. `aborted`: brute-force
    /// aborted meanwhile, it must be replayed.
    Replicating { ticket: Ticket, aborted: bool },
    /// Passed certification. `aborted`: the next commit_order_enter() answers BF_ABORT. For a fragment that does not
    /// commit, it answers TRX_FAIL, and release() answers BF_ABORT.
    Certified { aborted: bool },
    /// Failed certification; it only takes its place in the order.
    Failed,
    /// Answered BF_ABORT: the server rolls it back, then replays it.
    MustReplay,
    /// In replay_trx(): it waits until all earlier seqnos have left commit order.
    ReplayWaiting { ticket: Ticket },
    /// Being applied anew; nothing may abort it.
    Replaying,
}

/// The place of a transaction in the order.
#[derive(Clone, Debug)]
pub(crate) struct Ordered {
    pub seqno: Seqno,
    pub depends_on: Seqno,
    /// For replay.
    pub write_set: WriteSet,
}

/// One transaction.
#[derive(Debug)]
pub(crate) struct Trx {
    pub phase: Phase,
    /// Set from certification on; of a streaming transaction, until its fragment is released.
    pub ordered: Option<Ordered>,
    /// Streaming: the last fragment that was released.
    pub previous: Option<Seqno>,
    /// True if the write-set in flight is the last, or only one: it commits. Any other fragment is never replayed: if
    /// it fails, the transaction ends.
    pub commits: bool,
}

/// Result of release().
#[derive(Debug, PartialEq)]
pub(crate) struct Released {
    /// True if it committed.
    pub committed: bool,
    /// A fragment was released, and its transaction goes on.
    pub lives_on: bool,
    /// The transaction goes on only to be rolled back.
    pub aborted: bool,
}

/// All own transactions that the node must remember.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    table: BTreeMap<TrxId, Trx>,
    /// Transactions that wait to replay, by seqno.
    replays: BTreeMap<Seqno, TrxId>,
}

impl Transactions {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.replays.clear();
    }

    pub(crate) fn get_mut(&mut self, trx: TrxId) -> Option<&mut Trx> {
        self.table.get_mut(&trx)
    }

    pub(crate) fn get(&self, trx: TrxId) -> Option<&Trx> {
        self.table.get(&trx)
    }

    /// Adds a transaction or its next fragment, unless the transaction is marked for abort (then the mark is used up).
    pub(crate) fn begin(&mut self, trx: TrxId, phase: Phase, commits: bool) -> bool {
        let known = self.table.remove(&trx);
        let previous = match &known {
            None => None,
            Some(known) if known.phase == Phase::MustAbort => return false,
            Some(known) if known.phase == Phase::Executing => known.previous,
            Some(known) => panic!("transaction {trx} certifies twice: {:?}", known.phase),
        };
        let begun = Trx {
            phase,
            ordered: None,
            previous,
            commits,
        };
        self.table.insert(trx, begun);
        true
    }

    /// Forgets a transaction that was never ordered.
    pub(crate) fn forget(&mut self, trx: TrxId) -> Option<Trx> {
        self.table.remove(&trx)
    }

    /// Returns true if its commit is in flight, and it has sent earlier fragments.
    pub(crate) fn commits_stream(&self, trx: TrxId) -> bool {
        (self.table.get(&trx)).is_some_and(|t| t.commits && t.previous.is_some())
    }

    /// Ends a transaction whose fragment has failed. The fragment gives up its place in the order, and a rollback
    /// fragment undoes the earlier ones. A transaction that commits, or waits in a call, does not end here.
    pub(crate) fn end_stream(&mut self, id: TrxId, order: &mut Order) {
        let Some(trx) = self.table.get(&id) else {
            return;
        };
        let ends = match trx.phase {
            Phase::Executing | Phase::MustAbort => true,
            Phase::Certified { .. } => !trx.commits,
            _ => false,
        };
        if !ends {
            return;
        }
        if let Some(ordered) = self.table.remove(&id).and_then(|trx| trx.ordered) {
            complete(ordered.seqno, order);
        }
    }

    /// Returns true if a victim waits in certify() for its place in the order: only the order can free the victim, and
    /// the applier that waits for its locks.
    pub(crate) fn victim_awaits_order(&self) -> bool {
        self.table
            .values()
            .any(|t| matches!(t.phase, Phase::Replicating { aborted: true, .. }))
    }

    /// Handles replay_trx(). Returns the cause of the replay; None: there is nothing to replay. A victim that the
    /// server has marked between certify() and commit_order_enter() comes here without entering commit order first.
    pub(crate) fn await_replay(
        &mut self,
        id: TrxId,
        ticket: Ticket,
        order: &Order,
    ) -> Option<ReplayCause> {
        let trx = self.table.get_mut(&id).filter(|trx| trx.commits)?;
        let seqno = trx.ordered.as_ref()?.seqno;
        let cause = match trx.phase {
            Phase::MustReplay | Phase::Certified { aborted: true } => ReplayCause::Abort,
            Phase::Certified { aborted: false } => ReplayCause::Failure,
            _ => return None,
        };
        if order.is_inside(seqno) || order.has_passed(seqno) {
            return None;
        }
        trx.phase = Phase::ReplayWaiting { ticket };
        self.replays.insert(seqno, id);
        Some(cause)
    }

    /// Grants the first waiting transaction its replay, if it may enter commit order now.
    pub(crate) fn next_replay(&mut self, order: &Order) -> Option<(Ticket, Ordered)> {
        let (&seqno, &id) = self.replays.first_key_value()?;
        if !order.may_enter(seqno) && !planted(Mutant::ReplayTooEarly) {
            return None;
        }
        self.replays.pop_first();
        // A transaction that waits to replay is in the table, and ordered: see `await_replay`.
        let trx = self.table.get_mut(&id)?;
        let Phase::ReplayWaiting { ticket } = trx.phase else {
            return None;
        };
        trx.phase = Phase::Replaying;
        let mut ordered = trx.ordered.clone()?;
        if planted(Mutant::AnothersWriteSetReplayed) {
            let mut all = self.table.values().filter_map(|t| t.ordered.as_ref());
            let other = all.rfind(|other| other.seqno != seqno);
            ordered.write_set = other.map_or(ordered.write_set, |o| o.write_set.clone());
        }
        Some((ticket, ordered))
    }

    /// Notes the abort of a transaction that has sent nothing. `executing`: it will try to commit.
    fn abort_unsent(&mut self, victim: TrxId, executing: bool) -> Abort {
        if executing {
            self.table.insert(
                victim,
                Trx {
                    phase: Phase::MustAbort,
                    ordered: None,
                    previous: None,
                    commits: false,
                },
            );
        }
        Abort::done(-1)
    }

    /// Handles abort_certification() (server-contract.md#abort_certification). Returns the answer, and a waiter that
    /// gets BF_ABORT (from commit_order_enter) or CONN_FAIL (from a certify that was not sent).
    pub(crate) fn abort(
        &mut self,
        victim: TrxId,
        executing: bool,
        bf_seqno: Seqno,
        order: &mut Order,
    ) -> Abort {
        let Some(trx) = self.table.get_mut(&victim) else {
            return self.abort_unsent(victim, executing);
        };
        let seqno = trx.ordered.as_ref().map_or(-1, |o| o.seqno);
        let refused = Abort {
            code: Code::NotAllowed,
            seqno,
            wake: None,
            is_sent: false,
        };
        // A fragment that does not commit decides nothing yet.
        let older = trx.commits && bf_seqno > 0 && seqno > 0 && seqno < bf_seqno;
        if older && !planted(Mutant::OlderVictimAborted) {
            return refused;
        }
        match &mut trx.phase {
            Phase::Held { ticket } => {
                let wake = Some((*ticket, Code::ConnFail));
                self.table.remove(&victim);
                Abort {
                    wake,
                    ..Abort::done(seqno)
                }
            }
            Phase::Executing => {
                trx.phase = Phase::MustAbort;
                Abort::done(seqno)
            }
            Phase::Replicating { aborted, .. } if !*aborted => {
                *aborted = !planted(Mutant::AbortNotRemembered);
                Abort {
                    is_sent: trx.commits,
                    ..Abort::sent(seqno)
                }
            }
            // Also inside or behind commit order: release() reports the abort.
            Phase::Certified { aborted } if !*aborted && !trx.commits => {
                *aborted = true;
                let wake = order.cancel_wait(seqno);
                if wake.is_some() {
                    self.end_stream(victim, order);
                }
                Abort {
                    wake: wake.map(|waiter| (waiter, Code::TrxFail)),
                    ..Abort::done(seqno)
                }
            }
            Phase::Certified { aborted }
                if !*aborted && !order.is_inside(seqno) && !order.has_passed(seqno) =>
            {
                let waiter = match planted(Mutant::WaiterNotWoken) {
                    true => None,
                    false => order.cancel_wait(seqno),
                };
                match waiter {
                    Some(waiter) => {
                        trx.phase = Phase::MustReplay;
                        Abort {
                            wake: Some((waiter, Code::BfAbort)),
                            ..Abort::sent(seqno)
                        }
                    }
                    None => {
                        *aborted = true;
                        Abort::sent(seqno)
                    }
                }
            }
            // Inside or behind commit order, failed, or aborted already.
            _ => refused,
        }
    }

    /// Handles release() of a fragment that has committed: its transaction goes on. None: it is no such fragment.
    fn release_fragment(&mut self, id: TrxId, order: &mut Order) -> Option<Released> {
        let trx = self.table.get_mut(&id)?;
        let seqno = trx.ordered.as_ref()?.seqno;
        let Phase::Certified { aborted } = trx.phase else {
            return None;
        };
        // A fragment that was not committed has failed in the server: its transaction ends.
        if trx.commits || !order.has_passed(seqno) {
            return None;
        }
        order.release(seqno);
        trx.ordered = None;
        trx.previous = Some(seqno);
        trx.phase = match aborted {
            true => Phase::MustAbort,
            false => Phase::Executing,
        };
        Some(Released {
            committed: true,
            lives_on: true,
            aborted,
        })
    }

    /// Handles release(): completes the open stages and forgets the transaction, unless a fragment was released. None:
    /// the transaction has no place in the order.
    pub(crate) fn release(&mut self, trx: TrxId, order: &mut Order) -> Option<Released> {
        if let Some(released) = self.release_fragment(trx, order) {
            return Some(released);
        }
        let gone = self.table.remove(&trx)?;
        let seqno = gone.ordered?.seqno;
        let entered = complete(seqno, order);
        let ran = matches!(
            gone.phase,
            Phase::Certified { aborted: false } | Phase::Replaying
        );
        Some(Released {
            committed: entered && ran && gone.commits,
            lives_on: false,
            aborted: false,
        })
    }
}

/// Takes the steps in the order that `seqno` has not taken yet. Returns false if it had not entered commit order.
fn complete(seqno: Seqno, order: &mut Order) -> bool {
    if order.is_inside(seqno) {
        order.leave(seqno);
    }
    let entered = order.has_passed(seqno);
    if !entered {
        order.cancel_wait(seqno);
        order.pass(seqno);
    }
    order.release(seqno);
    entered
}

/// The cause of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayCause {
    /// An applier or a total-order action has aborted the transaction.
    Abort,
    /// The server has rolled it back without that: an engine could not prepare it.
    Failure,
}

/// Result of [`Transactions::abort`].
#[derive(Debug, PartialEq)]
pub(crate) struct Abort {
    pub code: Code,
    /// The victim's seqno, or -1.
    pub seqno: Seqno,
    /// A waiter, with its answer.
    pub wake: Option<(Ticket, Code)>,
    /// The victim's write-set is sent: the victim releases its locks, but may still commit by replaying.
    pub is_sent: bool,
}

impl Abort {
    fn done(seqno: Seqno) -> Self {
        Abort {
            code: Code::Ok,
            seqno,
            wake: None,
            is_sent: false,
        }
    }

    fn sent(seqno: Seqno) -> Self {
        Abort {
            is_sent: true,
            ..Abort::done(seqno)
        }
    }
}
