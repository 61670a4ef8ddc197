//! The session of a client up to its commit: it begins, reads, locks and writes rows, or gives up.

use std::ops::ControlFlow;

use trireme_replicator::{Code, Event, Seqno};

use super::client::Stage;
use super::ctx::{Ctx, GO_ON, Next, Stride, ThreadId};
use super::plan::Span;
use super::rows::Image;
use super::server::Server;
use super::thread::Waits;
use super::writeset::{Ddl, TABLES, table_of};
use crate::random::Random;
use crate::seen::{Seen, TimeUs};
use crate::watch::Watch;

/// Time between two looks at a waiting current read.
const LOOK_US: TimeUs = 250_000;

impl Server {
    pub(super) fn step_client(&mut self, who: ThreadId, ctx: &mut Ctx) -> Next {
        let c = who - self.appliers.len();
        loop {
            let client = &self.clients[c];
            let next = if client.must_abort && client.is_interruptible() {
                self.deadlock(c, ctx)
            } else {
                match client.stage {
                    Stage::Away => self.begin(c, ctx),
                    Stage::SyncWaiting => self.sync_waiting(c, ctx),
                    Stage::Reading => self.read(c, ctx),
                    Stage::Locking | Stage::TableWaiting | Stage::RowWaiting => self.lock(c, ctx),
                    Stage::Changing => self.change(c, ctx),
                    Stage::Deciding => self.decide(c, ctx),
                    Stage::ToiCalling
                    | Stage::ToiStarting
                    | Stage::ToiSeizing
                    | Stage::ToiRunning
                    | Stage::ToiExecuted
                    | Stage::ToiVoting => self.step_toi(c, ctx),
                    _ if self.clients[c].is_in_fragment() => self.step_fragment(c, ctx),
                    _ => self.step_commit(c, ctx),
                }
            };
            if let ControlFlow::Break(next) = next {
                return next;
            }
        }
    }

    /// The thread of a client.
    pub(super) fn thread_of_client(&self, c: usize) -> ThreadId {
        self.appliers.len() + c
    }

    /// Wakes the clients that wait to begin.
    pub(super) fn wake_clients(&mut self) {
        self.wake_clients_at(&[Stage::Away]);
    }

    /// Wakes the clients that are parked at these stages.
    pub(super) fn wake_clients_at(&mut self, stages: &[Stage]) {
        for c in 0..self.clients.len() {
            let who = self.thread_of_client(c);
            let parked = matches!(self.threads[who].waits, Some(Waits::Server(_)));
            if parked && stages.contains(&self.clients[c].stage) {
                self.wake(who);
            }
        }
    }

    /// Begins a client's next transaction.
    fn begin(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let who = self.thread_of_client(c);
        if self.is_idle || !self.ready {
            return self.park(who, "for the server to be ready");
        }
        let client = &mut self.clients[c];
        client.script.clear();
        client.reads.clear();
        client.retried = false;
        (client.streams, client.rolls_back) = (false, false);
        client.gone = false;
        if !self.plan.load.by_hand {
            self.think(c, ctx.random);
        } else if !self.take_errand(c) {
            return self.park(who, "for somebody to ask");
        }
        let client = &mut self.clients[c];
        if client.is_ddl {
            let (trx, current) = (client.writes.writer, client.current);
            ctx.see(Seen::Began { trx, current });
            client.stage = Stage::ToiCalling;
            return GO_ON;
        }
        self.start_statement(c, ctx)
    }

    /// Makes a random transaction.
    fn think(&mut self, c: usize, random: &mut Random) {
        self.last_client_trx += 1;
        let load = &self.plan.load;
        let client = &mut self.clients[c];
        client.writes.writer = self.last_client_trx;
        let is_ddl = random.below(1000) < load.ddl_per_mille as usize;
        let read_only = random.percent(load.read_only_percent);
        let draw = |random: &mut Random| {
            let hot = load.hot_keys > 0 && random.percent(load.hot_percent);
            let end = if hot { load.hot_keys } else { load.keys };
            TABLES + random.below(end.max(1) as usize) as u32
        };
        if is_ddl {
            client.table = random.below(load.tables.clamp(1, TABLES) as usize) as u32;
            client.script.push((client.table, true));
            client.ddl = match random.percent(load.ddl_error_percent) {
                true => Ddl::Fails,
                false => Ddl::Once,
            };
        } else if !read_only {
            for _ in 0..random.within(1..=load.writes_max.max(1)) {
                let key = draw(random);
                if client.script.iter().all(|(other, _)| *other != key) {
                    let writes = !random.percent(load.lock_only_percent);
                    client.script.push((key, writes));
                }
            }
        }
        if !is_ddl {
            for _ in 0..random.within(u64::from(read_only)..=load.reads_max.max(1)) {
                let key = draw(random);
                if client.script.iter().all(|(other, _)| *other != key) {
                    client.reads.push(key);
                }
            }
        }
        client.is_ddl = is_ddl;
        client.current = !is_ddl && random.percent(load.current_percent);
        client.autocommit =
            !is_ddl && client.script.len() == 1 && random.percent(load.autocommit_percent);
        client.long = !client.autocommit && random.percent(load.long_percent);
        let may_stream = load.streaming_percent > 0 && client.script.len() > 1 && !is_ddl;
        client.streams = may_stream && random.percent(load.streaming_percent);
    }

    /// Runs the first statement, also when the server retries it.
    fn start_statement(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let who = self.thread_of_client(c);
        self.last_trx += 1;
        let client = &mut self.clients[c];
        let (trx, current) = (client.writes.writer, client.current);
        ctx.see(Seen::Began { trx, current });
        client.id = self.last_trx;
        client.gtid = None;
        client.locked = 0;
        client.writes.rows.clear();
        (client.must_abort, client.replaying) = (false, false);
        (client.streaming, client.total_order, client.sent) = (false, false, 0);
        client.stage = Stage::Reading;
        if !client.current {
            return GO_ON;
        }
        client.stage = Stage::SyncWaiting;
        client.deadline_us = ctx.now_us + self.plan.speed.sync_wait_us;
        let upto = None;
        let _: Stride = self.ask(who, "sync_wait", ctx, |ticket| Event::SyncWait {
            ticket,
            upto,
        });
        ControlFlow::Break(Next::After(LOOK_US.min(self.plan.speed.sync_wait_us)))
    }

    fn sync_waiting(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let who = self.thread_of_client(c);
        match self.take_answer(who).map(|answer| answer.code) {
            Some(Code::Ok) => {
                self.clients[c].stage = Stage::Reading;
                GO_ON
            }
            Some(_) => self.end(c, Code::TrxFail, true, ctx),
            None if ctx.now_us >= self.clients[c].deadline_us => {
                self.give_up_waiting(who, ctx);
                self.end(c, Code::TrxFail, true, ctx)
            }
            None => {
                let trx = self.clients[c].writes.writer;
                let rests_at = ctx.rests_at();
                ctx.see(Seen::ReadWaits { trx, rests_at });
                let left_us = self.clients[c].deadline_us - ctx.now_us;
                ControlFlow::Break(Next::After(left_us.min(LOOK_US)))
            }
        }
    }

    /// Reads all rows that are only read, at one moment.
    fn read(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        if !self.ready {
            return self.refuse(c, ctx);
        }
        for at in 0..self.clients[c].reads.len() {
            let key = self.clients[c].reads[at];
            self.tell_read(c, key, ctx);
        }
        if self.clients[c].script.is_empty() {
            return self.end(c, Code::Ok, true, ctx);
        }
        self.clients[c].stage = Stage::Locking;
        ctx.sleep(self.plan.speed.statement_us)
    }

    fn tell_read(&self, c: usize, key: u32, ctx: &mut Ctx) -> Image {
        let image = self.db.row(key);
        if self.db.has_diverged() {
            return image;
        }
        ctx.see(Seen::Read {
            trx: self.clients[c].writes.writer,
            key,
            len: image.len,
            digest: image.digest,
            last: image.last,
        });
        image
    }

    /// Locks the next row, after the row's table.
    fn lock(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let who = self.thread_of_client(c);
        let client = &self.clients[c];
        let Some(&(key, _)) = client.script.get(client.locked) else {
            self.clients[c].stage = Stage::Deciding;
            return ctx.breath(self.plan.speed.stage_us);
        };
        let table = table_of(key);
        let is_new = client.stage == Stage::Locking;
        if is_new && !self.ready {
            return self.refuse(c, ctx);
        }
        if !self.locks.share_table(table, who, false) {
            return self.wait_for_lock(c, Stage::TableWaiting, Waits::Table(table), ctx);
        }
        let got = if client.stage == Stage::RowWaiting {
            self.locks.holds_row(key, who)
        } else {
            self.locks.row(key, who, false).is_ok()
        };
        if got {
            self.threads[who].waits = None;
            let client = &mut self.clients[c];
            client.locked += 1;
            client.stage = Stage::Changing;
            return ctx.sleep(self.plan.speed.statement_us);
        }
        if self.locks.is_deadlock(who) {
            self.roll_back(c, ctx);
            return self.end(c, Code::TrxFail, true, ctx);
        }
        self.wait_for_lock(c, Stage::RowWaiting, Waits::Row(key), ctx)
    }

    fn wait_for_lock(&mut self, c: usize, stage: Stage, waits: Waits, ctx: &mut Ctx) -> Stride {
        let who = self.thread_of_client(c);
        let client = &mut self.clients[c];
        if client.stage != stage {
            client.stage = stage;
            client.deadline_us = ctx.now_us + self.plan.speed.lock_wait_us;
        }
        let left_us = client.deadline_us.saturating_sub(ctx.now_us);
        if left_us == 0 {
            self.roll_back(c, ctx);
            return self.end(c, Code::TrxFail, true, ctx);
        }
        self.threads[who].waits = Some(waits);
        ControlFlow::Break(Next::After(left_us))
    }

    /// Reads the row that was locked last and writes it: its present list with this writer at the end.
    fn change(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let client = &self.clients[c];
        let (key, writes) = client.script[client.locked - 1];
        let image = self.tell_read(c, key, ctx);
        let client = &mut self.clients[c];
        if writes {
            let written = image.with(client.writes.writer);
            client.writes.rows.push((key, written));
            // The last rows may go with the commit, or the commit has no rows.
            if client.streams && (client.locked < client.script.len() || ctx.random.percent(30)) {
                client.stage = Stage::FragmentCalling;
                return ctx.breath(self.plan.speed.stage_us);
            }
        }
        client.stage = Stage::Locking;
        if client.long {
            let Span(from, to) = self.plan.speed.statement_us;
            return ctx.sleep(Span(from * 20, to * 100));
        }
        ctx.breath(self.plan.speed.stage_us)
    }

    /// Decides: COMMIT, ROLLBACK, or the client goes away.
    fn decide(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let load = &self.plan.load;
        if ctx.random.percent(load.rollback_percent) || self.clients[c].rolls_back {
            self.roll_back(c, ctx);
            return self.end(c, Code::TrxFail, true, ctx);
        }
        if ctx.random.percent(load.vanish_percent) {
            self.clients[c].gone = true;
            if ctx.random.percent(50) {
                self.roll_back(c, ctx);
                return self.end(c, Code::ConnFail, false, ctx);
            }
        }
        if self.clients[c].writes.rows.is_empty() {
            // There is nothing to replicate, so the server does not call the provider.
            self.unlock(c);
            return self.end(c, Code::Ok, true, ctx);
        }
        if self.commits_blocked {
            let who = self.thread_of_client(c);
            return self.park(who, "for FLUSH TABLES WITH READ LOCK");
        }
        self.enter_commit(c);
        self.clients[c].stage = Stage::CallingCertify;
        ctx.breath(self.plan.speed.stage_us)
    }

    /// Counts the client's transaction as committing: FLUSH TABLES WITH READ LOCK waits for it.
    pub(super) fn enter_commit(&mut self, c: usize) {
        self.clients[c].in_commit = true;
        self.committing += 1;
    }

    /// Refuses the statement, because the node is not ready (error 1047); the client gives up.
    fn refuse(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        self.roll_back(c, ctx);
        self.end(c, Code::ConnFail, true, ctx)
    }

    /// Ends a transaction that a brute-force thread aborted before it was sent.
    fn deadlock(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        self.roll_back(c, ctx);
        self.end_or_retry(c, ctx)
    }

    /// Rolls back and releases all locks; the provider forgets the transaction.
    pub(super) fn roll_back(&mut self, c: usize, ctx: &mut Ctx) {
        self.end_stream(c, ctx);
        self.unlock(c);
        let trx = self.clients[c].id;
        // Without a key the provider does not know the handle (server-contract.md#release).
        if !self.clients[c].writes.rows.is_empty() {
            self.tell(ctx, |ticket| Event::Release { ticket, trx });
        }
    }

    /// Releases all locks.
    pub(super) fn unlock(&mut self, c: usize) {
        let who = self.thread_of_client(c);
        self.threads[who].waits = None;
        let rows = self.clients[c].script.iter().map(|(key, _)| *key);
        self.locks.release_rows(rows, who);
        self.locks.release_tables(who);
    }

    /// Reports a deadlock error, unless the server retries the statement (`wsrep_retry_autocommit`). The retry makes
    /// the same write again, so the first attempt must not have committed.
    pub(super) fn end_or_retry(&mut self, c: usize, ctx: &mut Ctx) -> Stride {
        let client = &mut self.clients[c];
        let may = client.autocommit && !client.gone && self.plan.retry_autocommit;
        if may && !std::mem::replace(&mut client.retried, true) {
            self.leave_commit(c);
            return self.start_statement(c, ctx);
        }
        self.end(c, Code::TrxFail, true, ctx)
    }

    fn leave_commit(&mut self, c: usize) {
        if std::mem::take(&mut self.clients[c].in_commit) {
            self.committing -= 1;
            if let (0, Some(pauser)) = (self.committing, self.pauser) {
                self.wake_if_parked(pauser);
            }
        }
    }

    /// Ends the client's transaction with this answer.
    pub(super) fn end(&mut self, c: usize, code: Code, certain: bool, ctx: &mut Ctx) -> Stride {
        self.leave_commit(c);
        let client = &mut self.clients[c];
        // On a diverged node, the answers of the provider do not count.
        let lost = client.gone || self.db.has_diverged();
        let (code, certain) = if lost {
            (Code::ConnFail, false)
        } else {
            (code, certain)
        };
        let writes = client.keys();
        self.acknowledged += u64::from(code == Code::Ok && !writes.is_empty());
        ctx.see(Seen::Ended {
            trx: client.writes.writer,
            code,
            seqno: client.gtid.map(|gtid| gtid.seqno),
            writes,
            certain,
        });
        client.stage = Stage::Away;
        (client.must_abort, client.replaying, client.gtid) = (false, false, None);
        client.streaming = false;
        ctx.sleep(self.plan.load.think_us)
    }

    /// The process is gone: clients with an open transaction do not know its outcome.
    pub(super) fn break_connections(&mut self, now_us: TimeUs, watch: &mut Watch) {
        for client in self.clients.iter().filter(|client| client.is_busy()) {
            let seqno: Option<Seqno> = None;
            let what = Seen::Ended {
                trx: client.writes.writer,
                code: Code::ConnFail,
                seqno,
                writes: client.keys(),
                certain: false,
            };
            watch.see(now_us, self.node, what);
        }
    }
}
