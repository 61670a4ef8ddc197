//! Calls of the server's threads for this node's own transactions, from certify() to release(). In: calls, and places
//! in the order. Out: answers, at once or in their turn. An own write-set passes commit order like any other.

use trireme_certification::{Seqno, Verdict};
use trireme_group::{Incarnation, Uuid};
use trireme_mutants::{Mutant, planted};

use super::Executor;
use super::conflicts::Winner;
use super::transactions::{Ordered, Phase, ReplayCause};
use crate::action::{Answer, Code};
use crate::context::Context;
use crate::event::{Owner, Ticket, TrxId};
use crate::gtid::Gtid;
use crate::work::Apply;

/// Result of [`Executor::enter_commit_order`].
#[derive(Debug, PartialEq)]
pub(crate) enum Entry {
    /// The caller gets this answer now.
    Answered(Answer),
    /// The caller waits for its turn ([`Executor::next_granted`]).
    Waits,
    /// There is no such transaction.
    Unknown(TrxId),
}

/// Result of [`Executor::abort`].
#[derive(Debug, PartialEq)]
pub(crate) struct Aborted {
    /// Answer to the caller of abort_certification().
    pub answer: Answer,
    /// Answer to the victim's thread, if it waits in a call that ends now.
    pub waiter: Option<(Ticket, Answer)>,
    /// The victim's write-set is sent: the victim releases its locks, but may still commit by replaying.
    pub is_sent: bool,
}

/// Result of [`Executor::give_up`].
#[derive(Debug, Default, PartialEq)]
pub(crate) struct GivenUp {
    /// Answer to the transaction's thread, if it waits.
    pub answer: Option<(Ticket, Answer)>,
    /// True if it was the last fragment of a streaming transaction.
    pub commits_stream: bool,
}

impl Executor {
    pub(crate) fn open_transactions(&self) -> usize {
        self.transactions.len()
    }

    pub(crate) fn conflicts(&self) -> super::ConflictCounts {
        self.conflicts.counts()
    }

    /// Returns true if a victim waits in certify() for its place in the order: only the order can free the victim, and
    /// the applier that waits for its locks.
    pub(crate) fn victim_awaits_order(&self) -> bool {
        self.transactions.victim_awaits_order()
    }

    // --- certify()

    /// certify() fails for another reason: uses up a mark for abort.
    pub(crate) fn refuse(&mut self, trx: TrxId) {
        let is_marked = |phase: Phase| phase == Phase::MustAbort;
        if (self.transactions.get(trx)).is_some_and(|t| is_marked(t.phase)) {
            self.transactions.forget(trx);
        }
    }

    /// Begins a certify(). Returns false if the transaction is marked for abort. `waits`: its write-set is not sent
    /// yet.
    pub(crate) fn begin(&mut self, trx: TrxId, ticket: Ticket, waits: bool, commits: bool) -> bool {
        let phase = match waits {
            true => Phase::Held { ticket },
            false => Phase::Replicating {
                ticket,
                aborted: false,
            },
        };
        self.transactions.begin(trx, phase, commits)
    }

    /// Notes that the transaction's write-set is sent now. Returns false if it does not wait (any more).
    pub(crate) fn send(&mut self, id: TrxId) -> bool {
        let Some(trx) = self.transactions.get_mut(id) else {
            return false;
        };
        let Phase::Held { ticket } = trx.phase else {
            return false;
        };
        trx.phase = Phase::Replicating {
            ticket,
            aborted: false,
        };
        true
    }

    /// Returns the seqno of this transaction's last ordered fragment; -1: none. Everything before that fragment has
    /// left commit order, and so holds no locks any more: the transaction has seen it.
    pub(crate) fn previous_fragment(&self, trx: TrxId) -> Seqno {
        let known = self.transactions.get(trx);
        known.and_then(|trx| trx.previous).unwrap_or(-1)
    }

    /// Returns the last seqno that a write-set sent now has seen (server-contract-traps.md#when-last_seen-is-sampled).
    pub(crate) fn last_seen(&self, previous_fragment: Seqno) -> Seqno {
        match planted(Mutant::LastSeenTooHigh) {
            true => self.order.top(),
            false => self.order.low().max(previous_fragment),
        }
    }

    /// Returns true if its commit is in flight, and it has sent earlier fragments.
    pub(crate) fn commits_stream(&self, trx: TrxId) -> bool {
        self.transactions.commits_stream(trx)
    }

    /// Gives the write-set of an own transaction its place in the order. Returns the answer to certify().
    pub(crate) fn own_ordered(
        &mut self,
        context: &Context,
        id: TrxId,
        ordered: Ordered,
        verdict: Verdict,
    ) -> (Ticket, Answer) {
        let (seqno, depends_on) = (ordered.seqno, ordered.depends_on);
        self.order.add(seqno);
        let failed = verdict != Verdict::Pass;
        if failed {
            let winner = match verdict {
                Verdict::Conflict { with } => winner(context, with),
                _ => None,
            };
            self.conflicts.lost_certification(id, seqno, winner);
        }
        self.counters.local_cert_failures += u64::from(failed);
        let gtid = self.gtid_of(seqno);
        let trx = self
            .transactions
            .get_mut(id)
            .expect("a transaction in flight is in the table");
        let Phase::Replicating { ticket, aborted } = trx.phase else {
            panic!(
                "a transaction in flight is replicating, not {:?}",
                trx.phase
            )
        };
        trx.ordered = Some(ordered);
        if !trx.commits && (failed || aborted) {
            trx.phase = Phase::Certified { aborted: true };
            return (ticket, self.fragment_failed(id, seqno));
        }
        let (phase, code) = match (failed, aborted) {
            (true, _) => (Phase::Failed, Code::TrxFail),
            (false, true) => (Phase::MustReplay, Code::BfAbort),
            (false, false) => (Phase::Certified { aborted: false }, Code::Ok),
        };
        trx.phase = phase;
        (ticket, Answer::at(code, gtid, depends_on))
    }

    /// Fails a fragment that does not commit. Its client will not take its place in the order: the server enters no
    /// commit order after TRX_FAIL (server-contract-traps.md#failed-fragments).
    fn fragment_failed(&mut self, id: TrxId, seqno: Seqno) -> Answer {
        self.transactions.end_stream(id, &mut self.order);
        Answer::at(Code::TrxFail, self.gtid_of(seqno), -1)
    }

    /// Carries out rollback() of a streaming transaction: the fragment in flight gives up its place in the order.
    pub(crate) fn end_stream(&mut self, trx: TrxId) {
        self.transactions.end_stream(trx, &mut self.order);
    }

    /// Gives up the write-set of this transaction: it has failed, or its fate is unknown (`is_unknown`). `definite`:
    /// the answer of a call that has certainly failed.
    pub(crate) fn give_up(&mut self, id: TrxId, is_unknown: bool, definite: Code) -> GivenUp {
        let commits_stream = self.transactions.commits_stream(id);
        let Some(trx) = self.transactions.forget(id) else {
            return GivenUp::default();
        };
        // For a victim, the server makes a deadlock out of CONN_FAIL, and may repeat the statement. But a withdrawal
        // holds only while this process lives.
        let is_victim = matches!(trx.phase, Phase::Replicating { aborted: true, .. });
        let unsure = is_unknown && !planted(Mutant::UnknownIsFailure);
        let code = match trx.commits {
            true if unsure || is_victim => Code::NodeFail,
            // Only this answer makes the server send a rollback fragment, whatever the fate of this one.
            false if unsure => Code::TrxFail,
            _ => definite,
        };
        let answer = match trx.phase {
            Phase::Held { ticket } | Phase::Replicating { ticket, .. } => {
                Some((ticket, Answer::unordered(code)))
            }
            _ => None,
        };
        GivenUp {
            answer,
            commits_stream,
        }
    }

    // --- commit order

    /// Carries out commit_order_enter().
    pub(crate) fn enter_commit_order(&mut self, ticket: Ticket, owner: Owner) -> Entry {
        let seqno = match owner {
            Owner::Applied(seqno) => seqno,
            Owner::Trx(id) => {
                let Some(trx) = self.transactions.get_mut(id) else {
                    return Entry::Unknown(id);
                };
                let Some(seqno) = trx.ordered.as_ref().map(|o| o.seqno) else {
                    return Entry::Answered(Answer::unordered(Code::ConnFail));
                };
                if trx.phase == (Phase::Certified { aborted: true }) {
                    if !trx.commits {
                        return Entry::Answered(self.fragment_failed(id, seqno));
                    }
                    trx.phase = Phase::MustReplay;
                    let gtid = self.gtid_of(seqno);
                    return Entry::Answered(Answer::at(Code::BfAbort, gtid, -1));
                }
                seqno
            }
        };
        match self.order.try_enter(seqno) {
            true => Entry::Answered(Answer::at(Code::Ok, self.gtid_of(seqno), -1)),
            false => {
                self.order.wait(seqno, ticket);
                Entry::Waits
            }
        }
    }

    /// Returns a caller of commit_order_enter() that may enter now, and lets it enter. Call it until None.
    pub(crate) fn next_granted(&mut self) -> Option<(Ticket, Answer)> {
        let (seqno, ticket) = self.order.next_granted()?;
        Some((ticket, Answer::at(Code::Ok, self.gtid_of(seqno), -1)))
    }

    /// Returns the place of a write-set in the order; None: it has none.
    pub(crate) fn seqno_of(&self, owner: Owner) -> Option<Seqno> {
        match owner {
            Owner::Applied(seqno) => Some(seqno),
            Owner::Trx(id) => {
                let ordered = self.transactions.get(id)?.ordered.as_ref();
                ordered.map(|o| o.seqno)
            }
        }
    }

    /// Carries out release().
    ///
    /// # Panics
    /// If the transaction is inside another call: its thread would wait for ever.
    pub(crate) fn release(&mut self, id: TrxId) -> Answer {
        let in_certify = self.transactions.get(id).is_some_and(|t| {
            matches!(
                t.phase,
                Phase::Held { .. } | Phase::Replicating { .. } | Phase::ReplayWaiting { .. }
            )
        });
        assert!(
            !in_certify,
            "transaction {id} is released inside certify() or replay_trx()"
        );
        let before = self.order.low();
        let mut answer = Answer::unordered(Code::Ok);
        if let Some(released) = self.transactions.release(id, &mut self.order) {
            answer.lives_on = released.lives_on;
            if released.aborted {
                answer.code = Code::BfAbort;
            }
            self.counters.local_commits += u64::from(released.committed);
            self.counters.released(self.order.low() > before);
        }
        answer.loss = self.conflicts.released(id).map(Box::new);
        answer
    }

    // --- brute-force abort and replay

    /// Carries out abort_certification().
    pub(crate) fn abort(
        &mut self,
        context: &Context,
        bf_seqno: Seqno,
        victim: TrxId,
        is_executing: bool,
    ) -> Aborted {
        let is_known = is_executing || self.transactions.get(victim).is_some();
        let abort = self
            .transactions
            .abort(victim, is_executing, bf_seqno, &mut self.order);
        if abort.code == Code::Ok {
            let seqno = Some(abort.seqno).filter(|seqno| *seqno > 0);
            // A view closes streaming transactions, and passes its number for a seqno.
            let by_view = self.queue.is_in_view();
            let winner = winner(context, bf_seqno).filter(|_| !by_view);
            (self.conflicts).was_aborted(victim, seqno, winner, (abort.is_sent, is_known));
        }
        let answer_of = |code| match code {
            Code::BfAbort | Code::TrxFail => Answer::at(code, self.gtid_of(abort.seqno), -1),
            _ => Answer::unordered(code),
        };
        let gtid = match abort.seqno > 0 {
            true => self.gtid_of(abort.seqno),
            false => Gtid {
                uuid: Uuid::NIL,
                seqno: abort.seqno,
            },
        };
        Aborted {
            waiter: abort.wake.map(|(waiter, code)| (waiter, answer_of(code))),
            answer: Answer::at(abort.code, gtid, -1),
            is_sent: abort.is_sent,
        }
    }

    /// Carries out replay_trx(). Returns the cause of the replay; None: there is nothing to replay.
    pub(crate) fn await_replay(&mut self, id: TrxId, ticket: Ticket) -> Option<ReplayCause> {
        self.transactions.await_replay(id, ticket, &self.order)
    }

    /// Grants a transaction its replay, if all earlier seqnos have left commit order. Call it until None.
    pub(crate) fn next_replay(&mut self, context: &Context) -> Option<(Ticket, Answer)> {
        let (ticket, ordered) = self.transactions.next_replay(&self.order)?;
        self.counters.local_replays += 1;
        (self.conflicts).is_replayed(ordered.write_set.trx, ordered.seqno);
        let gtid = Gtid {
            uuid: context.history().unwrap_or(self.history),
            seqno: ordered.seqno,
        };
        let write_set = &ordered.write_set;
        let apply = Apply::of(write_set, context.me(), gtid, ordered.depends_on, false);
        let mut answer = Answer::at(Code::Ok, apply.gtid, apply.depends_on);
        answer.replay = Some(Box::new(apply));
        Some((ticket, answer))
    }
}

/// Returns the write-set of this seqno, against which an own transaction has lost.
fn winner(context: &Context, seqno: Seqno) -> Option<Winner> {
    let control = context.control().filter(|_| seqno > 0)?;
    let member = || {
        let incarnation = Incarnation(Uuid(control.certification.origin(seqno)?));
        let member = control.members.configuration().member(incarnation)?;
        Some((incarnation, member.name.clone()))
    };
    Some(Winner {
        seqno,
        member: member(),
    })
}
