//! DDL of a client: a total-order action that its origin executes itself (server-contract.md#to_execute_start).

use trireme_replicator::{Answer, Code, Event, Gtid};

use super::client::Stage;
use super::ctx::{Ctx, Stride};
use super::server::Server;
use super::writeset::{self, Ddl};

impl Server {
    pub(super) fn step_toi(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let who = self.thread_of_client(c);
        let client = &self.clients[c];
        let (table, writer) = (client.table, client.writes.writer);
        match client.stage {
            Stage::ToiCalling => self.call_toi(c, ctx),
            Stage::ToiStarting => self.toi_started(c, ctx),
            Stage::ToiSeizing => {
                self.seize_table(who, table, ctx)?;
                self.clients[c].stage = Stage::ToiRunning;
                ctx.sleep(self.plan.speed.ddl_us)
            }
            Stage::ToiRunning if client.ddl == Ddl::Fails => self.fail_toi(c, ctx),
            Stage::ToiVoting => {
                // OK: it failed on all nodes. NODE_FAIL: this node is expelled.
                let code = self.await_answer(who)?.code;
                assert!(
                    matches!(code, Code::Ok | Code::NodeFail),
                    "to_execute_end() answers {code:?}"
                );
                self.end(c, Code::TrxFail, true, ctx)
            }
            Stage::ToiRunning => {
                let gtid = client.gtid.expect("it is ordered at this stage");
                let ddl = client.ddl;
                self.db.execute(gtid, table, writer, ddl, ctx);
                self.clients[c].stage = Stage::ToiExecuted;
                ctx.sleep(self.plan.speed.stage_us)
            }
            Stage::ToiExecuted => {
                let gtid = client.gtid.expect("it is ordered at this stage");
                self.db.executed(gtid, table, writer, false, ctx);
                self.unlock(c);
                self.end_toi(c, Code::Ok, ctx)
            }
            stage => unreachable!("{stage:?} is no stage of a total-order action"),
        }
    }

    fn call_toi(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let who = self.thread_of_client(c);
        if !self.ready {
            return self.end(c, Code::ConnFail, true, ctx);
        }
        if self.commits_blocked {
            return self.park(who, "for FLUSH TABLES WITH READ LOCK");
        }
        self.enter_commit(c);
        let client = &mut self.clients[c];
        client.stage = Stage::ToiStarting;
        client.gtid = None;
        let conn = who as u64;
        let draft = writeset::of_action(conn, client.table, client.writes.writer, client.ddl);
        self.ask(who, "to_execute_start", ctx, |ticket| Event::ToiStart {
            ticket,
            conn,
            draft,
        })
    }

    fn toi_started(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let answer = self.await_answer(self.thread_of_client(c))?;
        let Answer { code, gtid, .. } = answer;
        let ordered = gtid != Gtid::UNDEFINED;
        self.clients[c].gtid = ordered.then_some(gtid);
        match (code, ordered) {
            (Code::Ok, true) => {
                let last = ctx.last_committed();
                assert!(
                    last == gtid.seqno - 1,
                    "an action at {gtid} begins while last_committed is {last}"
                );
                self.clients[c].stage = Stage::ToiSeizing;
                ctx.breath(self.plan.speed.stage_us)
            }
            (Code::TrxFail, true) => {
                self.db.failed_action(gtid, ctx);
                self.end_toi(c, Code::TrxFail, ctx)
            }
            // CONN_FAIL also stands for an unknown outcome (protocol rule 7).
            (Code::ConnFail | Code::NodeFail, false) => self.end(c, code, false, ctx),
            _ => panic!("to_execute_start() answers {answer:?}"),
        }
    }

    /// The action failed: sets the position all the same; then the members compare their errors.
    fn fail_toi(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let who = self.thread_of_client(c);
        let gtid = self.clients[c].gtid.expect("it is ordered at this stage");
        self.db.dummy(gtid, false, ctx);
        self.unlock(c);
        self.clients[c].stage = Stage::ToiVoting;
        let (conn, error) = (who as u64, Some(writeset::action_error()));
        self.ask(who, "to_execute_end (vote)", ctx, |ticket| Event::ToiEnd {
            ticket,
            conn,
            error,
        })
    }

    fn end_toi(&mut self, c: usize, code: Code, ctx: &mut Ctx) -> Stride {
        let conn = self.thread_of_client(c) as u64;
        self.tell(ctx, |ticket| Event::ToiEnd {
            ticket,
            conn,
            error: None,
        });
        self.end(c, code, true, ctx)
    }
}
