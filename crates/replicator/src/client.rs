//! Calls of client and applier threads that concern one transaction.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Incarnation, Uuid};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, Level};
use crate::conflicts::Winner;
use crate::event::{ConnId, Owner, Ticket, TrxId};
use crate::flags;
use crate::gtid::Gtid;
use crate::isolation::{Isolation, first_waiting};
use crate::replicator::Replicator;
use crate::submissions::Sent;
use crate::transactions::Phase;
use crate::unsent::Held;
use crate::voting::Caller;
use crate::writeset::WriteSetDraft;

impl Replicator {
    /// certify(): the write-set goes to the order; its delivery answers.
    pub(crate) fn certify(&mut self, ticket: Ticket, trx: TrxId, draft: WriteSetDraft) {
        if !self.may_write() || draft.is_too_long() {
            let marked = self
                .transactions
                .get(trx)
                .is_some_and(|t| t.phase == Phase::MustAbort);
            if marked {
                self.transactions.forget(trx);
            }
            let code = match self.may_write() {
                true => Code::SizeExceeded,
                false if self.lifecycle.has_diverged() => Code::NodeFail,
                false => Code::ConnFail,
            };
            return self.answer(ticket, Answer::unordered(code));
        }
        if !self.rollbacks_are_sent() {
            return self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
        let large = draft.len_bytes() > self.context.options().large_bytes;
        let waits = large || !self.may_go();
        let phase = if waits {
            Phase::Held { ticket }
        } else {
            Phase::Replicating {
                ticket,
                aborted: false,
            }
        };
        let commits = draft.flags() & flags::TRX_END != 0;
        if !self.transactions.begin(trx, phase, commits) {
            return self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
        let sent = Sent::Trx(trx);
        if large {
            let spread = self.unsent.spread(sent, draft);
            self.out.push(spread);
        } else if waits {
            self.unsent.hold(Held { sent, draft })
        } else {
            self.replicate(sent, draft)
        }
        self.counters.send_queue.queued(self.unsent.len());
    }

    /// Sends a write-set: last_seen is what is visible now, with all its locks held
    /// (server-contract-traps.md#when-last_seen-is-sampled).
    pub(crate) fn replicate(&mut self, sent: Sent, mut draft: WriteSetDraft) {
        let [keys, keys_bytes, data_bytes, other_bytes] = draft.sizes();
        self.counters.replicated += 1;
        self.counters.replicated_bytes += draft.len_bytes() as u64;
        self.counters.repl_keys += keys;
        self.counters.repl_keys_bytes += keys_bytes;
        self.counters.repl_data_bytes += data_bytes;
        self.counters.repl_other_bytes += other_bytes;
        let previous = self.previous_fragment(sent);
        if previous >= 0 && planted(Mutant::FirstFragmentRepeated) {
            draft.add_flags(flags::TRX_START);
        }
        let last_seen = if planted(Mutant::LastSeenTooHigh) {
            self.order.top()
        } else {
            self.order.low().max(previous)
        };
        let submit = (self.submissions).write_set(sent, draft, last_seen, previous);
        self.out.push(submit);
    }

    /// commit_order_enter()
    pub(crate) fn commit_order_enter(&mut self, ticket: Ticket, owner: Owner) {
        let seqno = match owner {
            Owner::Applied(seqno) => seqno,
            Owner::Trx(id) => {
                let Some(trx) = self.transactions.get_mut(id) else {
                    self.log(
                        Level::Error,
                        format!("commit order asked for unknown transaction {id}"),
                    );
                    return self.answer(ticket, Answer::unordered(Code::Ok));
                };
                let Some(seqno) = trx.ordered.as_ref().map(|o| o.seqno) else {
                    return self.answer(ticket, Answer::unordered(Code::ConnFail));
                };
                if trx.phase == (Phase::Certified { aborted: true }) {
                    if !trx.commits {
                        return self.fragment_failed(ticket, id, seqno);
                    }
                    trx.phase = Phase::MustReplay;
                    let gtid = self.gtid_of(seqno);
                    return self.answer(ticket, Answer::at(Code::BfAbort, gtid, -1));
                }
                seqno
            }
        };
        if self.order.try_enter(seqno) {
            let gtid = self.gtid_of(seqno);
            self.answer(ticket, Answer::at(Code::Ok, gtid, -1));
        } else {
            self.order.wait(seqno, ticket);
        }
    }

    /// Lets in whoever waits for commit order and is next.
    pub(crate) fn grant_commit_order(&mut self) {
        while let Some((seqno, ticket)) = self.order.next_granted() {
            let gtid = self.gtid_of(seqno);
            self.answer(ticket, Answer::at(Code::Ok, gtid, -1));
        }
    }

    /// commit_order_leave()
    pub(crate) fn commit_order_leave(
        &mut self,
        ticket: Ticket,
        owner: Owner,
        error: Option<Bytes>,
    ) {
        let seqno = match owner {
            Owner::Applied(seqno) => Some(seqno),
            Owner::Trx(id) => self
                .transactions
                .get(id)
                .and_then(|t| t.ordered.as_ref())
                .map(|o| o.seqno),
        };
        let Some(seqno) = seqno else {
            return self.answer(ticket, Answer::unordered(Code::Ok));
        };
        if let Some(error) = error {
            return self.dispute(seqno, &error, Caller::Commit(ticket));
        }
        self.order.leave(seqno);
        self.check_success(seqno);
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// release()
    pub(crate) fn release(&mut self, ticket: Ticket, id: TrxId) {
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
            let in_order = self.order.low() > before;
            self.counters
                .out_of_order_left
                .add(f64::from(u8::from(!in_order)));
        }
        answer.loss = self.conflicts.released(id).map(Box::new);
        self.answer(ticket, answer);
    }

    /// The write-set of this seqno, against which an own transaction has lost.
    pub(crate) fn winner(&self, seqno: Seqno) -> Option<Winner> {
        let control = self.context.control().filter(|_| seqno > 0)?;
        let member = || {
            let incarnation = Incarnation(Uuid(control.certification.origin(seqno)?));
            let member = control.configuration.member(incarnation)?;
            Some((incarnation, member.name.clone()))
        };
        Some(Winner {
            seqno,
            member: member(),
        })
    }

    /// abort_certification()
    pub(crate) fn abort(
        &mut self,
        ticket: Ticket,
        bf_seqno: Seqno,
        victim: TrxId,
        executing: bool,
    ) {
        let is_known = executing || self.transactions.get(victim).is_some();
        let abort = self
            .transactions
            .abort(victim, executing, bf_seqno, &mut self.order);
        if abort.code == Code::Ok {
            let seqno = Some(abort.seqno).filter(|seqno| *seqno > 0);
            let winner = self.winner(bf_seqno);
            (self.conflicts).was_aborted(victim, seqno, winner, (abort.is_sent, is_known));
        }
        if abort.is_sent && !planted(Mutant::VictimStaysExempt) {
            // What this node sends from now on may have locked what the victim lets go of: it is no
            // longer exempt from conflicts with it (rule 9d).
            self.submissions.raise_epoch();
        }
        if let Some((waiter, code)) = abort.wake {
            let recalled = self.unsent.recall(Sent::Trx(victim)).into_iter();
            let recalls = recalled.map(|parcel| Action::Recall { parcel });
            self.out.extend(recalls);
            let answer = match code {
                Code::BfAbort | Code::TrxFail => Answer::at(code, self.gtid_of(abort.seqno), -1),
                _ => Answer::unordered(code),
            };
            self.answer(waiter, answer);
        }
        let uuid = if abort.seqno > 0 {
            self.applied_history
        } else {
            trireme_group::Uuid::NIL
        };
        self.answer(
            ticket,
            Answer::at(
                abort.code,
                Gtid {
                    uuid,
                    seqno: abort.seqno,
                },
                -1,
            ),
        );
    }

    /// replay_trx()
    pub(crate) fn replay(&mut self, ticket: Ticket, id: TrxId) {
        if !self.transactions.await_replay(id, ticket) {
            self.log(
                Level::Error,
                format!("transaction {id} has nothing to replay"),
            );
            self.answer(ticket, Answer::unordered(Code::TrxFail));
        }
    }

    /// Lets a transaction replay when all before it have left commit order.
    pub(crate) fn grant_replay(&mut self) {
        while let Some((ticket, ordered)) = self.transactions.next_replay(&self.order) {
            self.counters.local_replays += 1;
            (self.conflicts).is_replayed(ordered.write_set.trx, ordered.seqno);
            let apply = self.apply_task(
                self.context.me(),
                &ordered.write_set,
                ordered.seqno,
                ordered.depends_on,
                false,
            );
            let mut answer = Answer::at(Code::Ok, apply.gtid, apply.depends_on);
            answer.replay = Some(Box::new(apply));
            self.answer(ticket, answer);
        }
    }

    /// to_execute_start()
    pub(crate) fn toi_start(&mut self, ticket: Ticket, conn: ConnId, mut draft: WriteSetDraft) {
        if !self.may_write() {
            let code = if self.lifecycle.has_diverged() {
                Code::NodeFail
            } else {
                Code::ConnFail
            };
            return self.answer(ticket, Answer::unordered(code));
        }
        if !self.rollbacks_are_sent() {
            return self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
        if draft.is_too_long() {
            return self.answer(ticket, Answer::unordered(Code::SizeExceeded));
        }
        assert!(
            !self.isolations.contains_key(&conn),
            "connection {conn} starts two total-order actions"
        );
        draft.add_flags(flags::ISOLATION);
        let sent = Sent::Toi(conn);
        let large = draft.len_bytes() > self.context.options().large_bytes;
        if large || !self.may_go() {
            self.isolations.insert(conn, Isolation::Held { ticket });
            match large {
                true => {
                    let spread = self.unsent.spread(sent, draft);
                    self.out.push(spread);
                }
                false => self.unsent.hold(Held { sent, draft }),
            }
        } else {
            self.isolations
                .insert(conn, Isolation::Replicating { ticket });
            self.replicate(sent, draft);
        }
    }

    /// Lets the first own total-order action begin when everything before it is released.
    pub(crate) fn grant_isolation(&mut self) {
        let Some((conn, isolation, seqno)) = first_waiting(&self.isolations) else {
            return;
        };
        let Isolation::Waiting {
            ticket,
            depends_on,
            code,
            ..
        } = isolation
        else {
            return; // see `first_waiting`
        };
        let alone = self.order.low() == seqno - 1 || planted(Mutant::ToiNotAlone);
        if !alone || !self.order.try_enter(seqno) {
            return;
        }
        self.isolations
            .insert(conn, Isolation::Holding { seqno, code });
        let gtid = self.gtid_of(seqno);
        if code == Code::Ok {
            self.out.push(Action::NoteAction { gtid, ended: false });
            self.out.push(Action::MarkUnsafe);
        }
        self.answer(ticket, Answer::at(code, gtid, depends_on));
    }

    /// to_execute_end()
    pub(crate) fn toi_end(&mut self, ticket: Ticket, conn: ConnId, error: Option<Bytes>) {
        let holding = match self.isolations.get(&conn) {
            Some(Isolation::Holding { seqno, .. }) => Some(*seqno),
            _ => None,
        };
        if let (Some(seqno), Some(error)) = (holding, error) {
            return self.dispute(seqno, &error, Caller::Isolation(ticket, conn));
        }
        self.end_isolation(conn);
        if let Some(seqno) = holding {
            self.check_success(seqno);
        }
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// An own total-order action is over.
    pub(crate) fn end_isolation(&mut self, conn: ConnId) {
        let Some(Isolation::Holding { seqno, code }) = self.isolations.get(&conn).copied() else {
            return;
        };
        self.isolations.remove(&conn);
        self.order.leave(seqno);
        self.released(seqno);
        if code == Code::Ok {
            self.action_ended(seqno);
        }
    }
}
