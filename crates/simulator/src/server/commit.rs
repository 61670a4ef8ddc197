//! The commit of a client: certify, commit order, group commit, release; and the way of a victim.
//!
//! The stages are those of wsrep-lib's transaction (server-contract.md#certify). An abort may come between the
//! decision to call the provider and the call; then the answer to the call reports it.

use trireme_replicator::{Answer, Code, Event, Gtid, Owner, flags};

use super::client::Stage;
use super::ctx::{Ctx, GO_ON, Stride, ThreadId};
use super::server::Server;
use super::writeset;

impl Server {
    pub(super) fn step_commit(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        match self.clients[c].stage {
            Stage::CallingCertify => self.certify(c, ctx),
            Stage::Certifying => self.certified(c, ctx),
            Stage::Certified => {
                if self.clients[c].must_abort {
                    // Aborted before it asked for commit order: it replays instead of asking.
                    return self.undo(c, ctx);
                }
                self.clients[c].stage = Stage::CallingEnter;
                ctx.breath(self.plan.speed.stage_us)
            }
            Stage::CallingEnter => self.enter(c, Stage::Entering, ctx),
            Stage::Entering => self.entered(c, ctx),
            Stage::Inside => self.leave(c, ctx),
            Stage::Queued => {
                let seqno = self.place(c).seqno;
                self.db.commit_upto(seqno, ctx);
                self.unlock(c);
                self.clients[c].stage = Stage::Releasing;
                ctx.breath(self.plan.speed.stage_us)
            }
            Stage::Releasing => {
                let trx = self.clients[c].id;
                self.tell(ctx, |ticket| Event::Release { ticket, trx });
                self.end(c, Code::Ok, true, ctx)
            }
            Stage::RolledBack => {
                let (who, trx) = (self.thread_of_client(c), self.clients[c].id);
                self.clients[c].stage = Stage::Replaying;
                self.ask(who, "replay_trx", ctx, |ticket| Event::Replay {
                    ticket,
                    trx,
                })
            }
            Stage::Replaying => self.replay(c, ctx),
            Stage::Reapplying => self.reapply(c, ctx),
            Stage::Reapplied => self.enter(c, Stage::Entering, ctx),
            Stage::Failed => self.enter(c, Stage::FailedEntering, ctx),
            Stage::FailedEntering => self.failed_entered(c, ctx),
            Stage::FailedWaiting => self.failed_waited(c, ctx),
            stage => unreachable!("{stage:?} is no stage of a commit"),
        }
    }

    fn place(&self, c: usize) -> Gtid {
        self.clients[c].gtid.expect("it is ordered at this stage")
    }

    fn certify(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        self.wait_for_replayers(c)?;
        self.send_pending_rollbacks(ctx);
        let who = self.thread_of_client(c);
        let client = &mut self.clients[c];
        client.stage = Stage::Certifying;
        let (trx, conn) = (client.id, who as u64);
        let flags = match client.streaming {
            true => flags::TRX_END | flags::PA_UNSAFE,
            false => flags::TRX_START | flags::TRX_END,
        };
        let draft = writeset::of_part(trx, conn, &Self::unsent(client), flags);
        self.ask(who, "certify", ctx, |ticket| Event::Certify {
            ticket,
            trx,
            conn,
            draft,
        })
    }

    fn certified(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let answer = self.await_answer(self.thread_of_client(c))?;
        let Answer { code, gtid, .. } = answer;
        let ordered = gtid != Gtid::UNDEFINED;
        assert!(
            !ordered || gtid.seqno > 0 && !gtid.uuid.is_nil(),
            "certify() answers {answer:?}"
        );
        let client = &mut self.clients[c];
        client.gtid = ordered.then_some(gtid);
        match (code, ordered) {
            (Code::Ok, true) => {
                client.stage = Stage::Certified;
                ctx.breath(self.plan.speed.stage_us)
            }
            (Code::BfAbort, true) => {
                assert!(client.must_abort, "BF_ABORT, and nobody has aborted it");
                self.undo(c, ctx)
            }
            (Code::TrxFail, true) => {
                self.end_stream(c, ctx);
                self.unlock(c);
                self.clients[c].stage = Stage::Failed;
                ctx.sleep(self.plan.speed.stage_us)
            }
            // The outcome is unknown, or the write-set was not sent: it has no place here
            // (server-contract-traps.md#unknown-outcomes).
            (Code::ConnFail | Code::NodeFail, false) => {
                let aborted = client.must_abort;
                self.roll_back(c, ctx);
                match code {
                    Code::ConnFail if aborted => self.end_or_retry(c, ctx),
                    _ => self.end(c, code, code == Code::ConnFail, ctx),
                }
            }
            _ => panic!("certify() answers {answer:?}"),
        }
    }

    fn enter(&mut self, c: usize, stage: Stage, ctx: &mut Ctx) -> Stride {
        let (who, owner) = (self.thread_of_client(c), Owner::Trx(self.clients[c].id));
        self.clients[c].stage = stage;
        self.ask(who, "commit_order_enter", ctx, |ticket| {
            Event::CommitOrderEnter { ticket, owner }
        })
    }

    fn entered(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let answer = self.await_answer(self.thread_of_client(c))?;
        let client = &mut self.clients[c];
        match answer.code {
            Code::Ok => {
                assert!(
                    !client.must_abort,
                    "commit order granted to seqno {:?}, which was aborted",
                    client.gtid
                );
                client.stage = Stage::Inside;
                ctx.breath(self.plan.speed.stage_us)
            }
            Code::BfAbort if client.must_abort && !client.replaying => self.undo(c, ctx),
            _ => panic!(
                "commit_order_enter() answers {answer:?} to {}",
                client.describe()
            ),
        }
    }

    /// Joins the queue of the group commit, and leaves commit order.
    fn leave(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let gtid = self.place(c);
        let ends = self.ends_stream(c);
        let client = &mut self.clients[c];
        let (owner, applied) = (Owner::Trx(client.id), client.replaying);
        self.db
            .queue(gtid, client.writes.clone(), ends, applied, ctx);
        client.stage = Stage::Queued;
        self.tell(ctx, |ticket| Event::CommitOrderLeave {
            ticket,
            owner,
            error: None,
        });
        ctx.breath(self.plan.speed.stage_us)
    }

    /// Rolls back a victim that has its place in the order; the replay is next.
    fn undo(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        self.unlock(c);
        let client = &mut self.clients[c];
        client.stage = Stage::RolledBack;
        client.locked = 0;
        ctx.sleep(self.plan.speed.stage_us)
    }

    fn replay(&mut self, c: usize, ctx: &Ctx) -> Stride {
        let answer = self.await_answer(self.thread_of_client(c))?;
        let client = &mut self.clients[c];
        let (Code::Ok, Some(apply)) = (answer.code, answer.replay) else {
            panic!(
                "replay_trx() answers {:?} to {}",
                answer.code,
                client.describe()
            );
        };
        let passed = self.db.ordered().seqno;
        assert!(
            passed == apply.gtid.seqno - 1 || ctx.is_inconsistent(),
            "{} replays when {passed} was the last to pass commit order (server-contract.md#replay_trx)",
            apply.gtid
        );
        assert_eq!(Some(apply.gtid), client.gtid, "replayed under another name");
        assert_eq!(
            writeset::decode(&apply.data),
            Self::unsent(client),
            "replayed with other data"
        );
        (client.replaying, client.must_abort) = (true, false);
        client.stage = Stage::Reapplying;
        GO_ON
    }

    /// Applies the client's own write-set, as a brute-force thread.
    fn reapply(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let (who, seqno) = (self.thread_of_client(c), self.place(c).seqno);
        let client = &self.clients[c];
        let Some(&(key, _)) = client.writes.rows.get(client.locked) else {
            self.clients[c].stage = Stage::Reapplied;
            return ctx.breath(self.plan.speed.stage_us);
        };
        let table = writeset::table_of(key);
        self.locks.share_table(table, who, true);
        if !self.locks.holds_row(key, who) {
            self.seize_row(who, key, seqno, ctx)?;
        }
        self.clients[c].locked += 1;
        ctx.sleep(self.plan.speed.apply_us)
    }

    /// A transaction that failed certification takes its place, once all earlier seqnos are visible.
    fn failed_entered(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let who = self.thread_of_client(c);
        let code = self.await_answer(who)?.code;
        assert_eq!(
            code,
            Code::Ok,
            "a failed transaction is kept from its place"
        );
        let place = self.place(c);
        self.clients[c].stage = Stage::FailedWaiting;
        self.wait_for_all_before(who, place, ctx)
    }

    fn failed_waited(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        self.await_answer(self.thread_of_client(c))?;
        let (place, trx) = (self.place(c), self.clients[c].id);
        self.db.dummy(place, false, ctx);
        self.tell(ctx, |ticket| Event::CommitOrderLeave {
            ticket,
            owner: Owner::Trx(trx),
            error: None,
        });
        self.tell(ctx, |ticket| Event::Release { ticket, trx });
        self.end_or_retry(c, ctx)
    }

    /// Waits, within commit order, until all earlier seqnos are visible: only then a position may be set
    /// (server-contract-traps.md#waiting-inside-commit-order). The server ignores the result.
    pub(super) fn wait_for_all_before(
        &mut self,
        who: ThreadId,
        place: Gtid,
        ctx: &mut Ctx,
    ) -> Stride {
        let upto = Some(Gtid {
            seqno: place.seqno - 1,
            ..place
        });
        self.ask(who, "sync_wait (before a position)", ctx, |ticket| {
            Event::SyncWait { ticket, upto }
        })
    }
}
