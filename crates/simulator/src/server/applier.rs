//! An applier thread: takes work from the node and does it (server-contract.md#recv).

use bytes::Bytes;
use trireme_replicator::{Apply, Code, Event, Gtid, Owner, Task, View, Work, WorkId, flags};

use super::ctx::{Ctx, GO_ON, Next, Stride, ThreadId};
use super::database::Writes;
use super::datadir::{Change, StreamId};
use super::server::Server;
use super::state::State;
use super::streaming::Part;
use super::thread::Waits;
use super::writeset::{Ddl, action, action_error, decode, done_already, table_of};

/// The stage of an applier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not in recv() yet, or back from it.
    #[default]
    Off,
    /// In recv(), without work.
    Idle,

    /// Applies rows: takes the next lock.
    Locking,
    /// Has written all rows.
    Written,
    Entering,
    Inside,
    Queued,
    /// Visible and unlocked; the callback returns next.
    Returning,

    /// Applies nothing, only takes its place in commit order.
    Dummy,
    DummyEntering,
    DummyWaiting,
    /// Applying failed; the members hold an error vote.
    Voting,

    /// A total-order action.
    Action,
    ActionEntering,
    ActionSeizing,
    ActionRunning,
    ActionExecuted,

    /// connected(), synced().
    Answering,
    /// A view while the storage engine is still down: it is started first.
    Initializing,
    Viewing,
    /// sst_request(): the joiner's script starts.
    Requesting,
    /// sst_donate(): the donor's script starts.
    Donating,
    /// sst_donate() of a method that sends within the callback.
    Sending,
    Exited,
}

/// An applier.
#[derive(Debug, Default)]
pub(super) struct Applier {
    pub stage: Stage,
    pub work: WorkId,
    pub gtid: Option<Gtid>,
    pub writes: Writes,
    pub locked: usize,
    pub view: Option<View>,
    /// Its part of a streaming transaction, if it has one.
    pub part: Option<(StreamId, Part)>,
    /// The error, if the write-set could not be applied.
    pub error: Option<Bytes>,
    /// Number of finished pieces of work.
    pub done: u64,
}

impl Applier {
    /// True while it is in a callback.
    pub fn is_busy(&self) -> bool {
        !matches!(self.stage, Stage::Off | Stage::Idle | Stage::Exited)
    }

    /// True if its present or last work is a part of this streaming transaction.
    pub fn streams(&self, id: StreamId) -> bool {
        self.part.is_some_and(|(of, _)| of == id)
    }

    /// A description for a reader.
    pub fn describe(&self) -> String {
        match (self.is_busy(), self.gtid) {
            (true, Some(gtid)) => format!("{:?} seqno {}", self.stage, gtid.seqno),
            _ => format!("{:?}", self.stage),
        }
    }
}

impl Server {
    /// The thread calls recv().
    pub(super) fn start_applier(&mut self, a: usize) {
        if self.appliers[a].stage == Stage::Off {
            self.appliers[a].stage = Stage::Idle;
            self.runnable.push(a);
        }
    }

    /// Called by the provider: so many pieces of work are ready.
    pub fn wake_appliers(&mut self, n: usize) {
        let idle = |s: &Server, a: usize| {
            s.appliers[a].stage == Stage::Idle
                && matches!(s.threads[a].waits, Some(Waits::Server(_)))
        };
        for _ in 0..n.min(self.appliers.len()) {
            let Some(a) = (0..self.appliers.len()).find(|a| idle(self, *a)) else {
                return;
            };
            self.wake(a);
        }
    }

    /// True if an applier has met the write that kills its process.
    pub fn has_died(&self) -> bool {
        self.died
    }

    /// Number of threads in recv().
    pub fn appliers_running(&self) -> usize {
        let runs = |a: &&Applier| !matches!(a.stage, Stage::Off | Stage::Exited);
        self.appliers.iter().filter(runs).count()
    }

    pub(super) fn step_applier(&mut self, a: ThreadId, ctx: &mut Ctx) -> Next {
        loop {
            let stride = match self.appliers[a].stage {
                _ if self.awaits_unlock(a) => self.park(a, "for UNLOCK TABLES"),
                Stage::Idle => self.take_work(a, ctx),
                Stage::Off | Stage::Exited => return Next::Ended,
                Stage::Locking
                | Stage::Written
                | Stage::Entering
                | Stage::Inside
                | Stage::Queued
                | Stage::Returning => self.apply_rows(a, ctx),
                Stage::Dummy | Stage::DummyEntering | Stage::DummyWaiting => {
                    self.apply_dummy(a, ctx)
                }
                Stage::Action
                | Stage::ActionEntering
                | Stage::ActionSeizing
                | Stage::ActionRunning
                | Stage::ActionExecuted => self.apply_action(a, ctx),
                Stage::Voting => self.voted(a, ctx),
                _ => self.step_callback(a, ctx),
            };
            if let std::ops::ControlFlow::Break(next) = stride {
                return next;
            }
        }
    }

    /// A disconnecting server calls no resume() when its script ends (`let_go`). So its node cannot wait for that
    /// call: it hands out the remaining work, and the appliers wait for the script's lock on all tables as for any
    /// other lock.
    fn awaits_unlock(&self, a: ThreadId) -> bool {
        let applier = &self.appliers[a];
        let writes = match applier.stage {
            Stage::Locking | Stage::Dummy | Stage::Action => true,
            Stage::Viewing => applier.view.as_ref().is_some_and(|view| view.primary),
            _ => false,
        };
        writes && self.state == State::Disconnecting && self.db.is_frozen()
    }

    fn take_work(&mut self, a: ThreadId, ctx: &mut Ctx) -> Stride {
        let Some(Work { id, task }) = ctx.engine.replicator.take_work() else {
            return self.park(a, "for work");
        };
        self.appliers[a].work = id;
        match task {
            Task::Apply(apply) => self.begin_apply(a, &apply, ctx),
            Task::Exit { .. } => {
                self.appliers[a].stage = Stage::Exited;
                GO_ON
            }
            other => self.begin_callback(a, other, ctx),
        }
    }

    fn begin_apply(&mut self, a: ThreadId, apply: &Apply, ctx: &mut Ctx) -> Stride {
        let last = ctx.engine.replicator.last_committed();
        assert!(
            last.uuid == apply.gtid.uuid && apply.depends_on <= last.seqno,
            "{} depends on {}, applied when last_committed is {last}",
            apply.gtid,
            apply.depends_on
        );
        assert!(
            !self.shows_view(),
            "{} is applied while a view is shown",
            apply.gtid
        );
        assert!(self.initialized, "apply() while the storage engine is down");
        let part = self.part_of(apply, ctx);
        let applier = &mut self.appliers[a];
        applier.gtid = Some(apply.gtid);
        applier.locked = 0;
        applier.part = part;
        if apply.flags & flags::ROLLBACK != 0 {
            assert!(apply.data.is_empty(), "a dummy with data to apply");
            applier.stage = Stage::Dummy;
            return ctx.breath(self.plan.speed.stage_us);
        }
        applier.writes = decode(&apply.data);
        let rows = applier.writes.rows.iter().map(|(row, _)| Some(*row));
        if self.plan.dies_of_row.is_some()
            && rows.into_iter().any(|row| row == self.plan.dies_of_row)
        {
            self.died = true;
            return self.park(a, "for the end of its process");
        }
        let isolated = apply.flags & flags::ISOLATION != 0;
        applier.stage = if isolated {
            Stage::Action
        } else {
            Stage::Locking
        };
        ctx.sleep(self.plan.speed.apply_us.times(self.apply_slowness))
    }

    fn gtid(&self, a: ThreadId) -> Gtid {
        self.appliers[a].gtid.expect("it applies something")
    }

    fn apply_rows(&mut self, a: ThreadId, ctx: &mut Ctx) -> Stride {
        let gtid = self.gtid(a);
        let speed = self.plan.speed;
        match self.appliers[a].stage {
            Stage::Locking => {
                let applier = &self.appliers[a];
                let Some(&(key, _)) = applier.writes.rows.get(applier.locked) else {
                    if applier.part.is_none() && self.fails_to_apply(ctx) {
                        return self.give_up_applying(a);
                    }
                    self.appliers[a].stage = Stage::Written;
                    return ctx.breath(speed.stage_us);
                };
                if !self.locks.holds_row(key, a) {
                    let table = table_of(key);
                    self.locks.share_table(table, a, true);
                    self.seize_row(a, key, gtid.seqno, ctx)?;
                }
                self.appliers[a].locked += 1;
                ctx.sleep(speed.apply_us.times(self.apply_slowness))
            }
            Stage::Written => self.enter_as_applier(a, Stage::Entering, ctx),
            Stage::Entering => {
                self.entered_as_applier(a)?;
                self.appliers[a].stage = Stage::Inside;
                ctx.breath(speed.stage_us)
            }
            Stage::Inside => {
                let writes = self.appliers[a].writes.clone();
                match self.appliers[a].part {
                    None => self.db.queue(gtid, writes, None, true, ctx),
                    Some(part) => self.queue_part(gtid, part, writes, ctx),
                }
                self.leave_as_applier(a, ctx);
                self.appliers[a].stage = Stage::Queued;
                ctx.breath(speed.stage_us)
            }
            Stage::Queued => {
                self.db.commit_upto(gtid.seqno, ctx);
                if let Some(part) = self.appliers[a].part {
                    self.part_applied(a, part);
                }
                self.unlock_as_applier(a);
                self.appliers[a].stage = Stage::Returning;
                ctx.breath(speed.stage_us)
            }
            _ => self.work_done(a, ctx),
        }
    }

    fn apply_dummy(&mut self, a: ThreadId, ctx: &mut Ctx) -> Stride {
        let gtid = self.gtid(a);
        match self.appliers[a].stage {
            Stage::Dummy => self.enter_as_applier(a, Stage::DummyEntering, ctx),
            Stage::DummyEntering => {
                self.entered_as_applier(a)?;
                self.appliers[a].stage = Stage::DummyWaiting;
                self.wait_for_all_before(a, gtid, ctx)
            }
            _ => {
                self.await_answer(a)?;
                if let Some(error) = self.appliers[a].error.take() {
                    self.db.diverge(gtid);
                    self.db.dummy(gtid, true, ctx);
                    return self.vote(a, error, ctx);
                }
                let removes = self.appliers[a].part.map(|(id, _)| (id, Change::Remove));
                self.db.dummy_with(gtid, removes, true, ctx);
                self.leave_as_applier(a, ctx);
                self.work_done(a, ctx)
            }
        }
    }

    /// True if the write-set fails on this node only; at most once. The node is then expelled, and the other nodes
    /// must survive that.
    fn fails_to_apply(&self, ctx: &mut Ctx) -> bool {
        let chance = self.plan.apply_errors_per_million;
        ctx.may_fail && (ctx.random.below(1_000_000) as u64) < chance
    }

    /// Rolls back and takes the place in commit order as a dummy does; then the members hold an error vote.
    fn give_up_applying(&mut self, a: ThreadId) -> Stride {
        self.unlock_as_applier(a);
        (self.ready, self.failed) = (false, true);
        let applier = &mut self.appliers[a];
        applier.error = Some(format!("1032 on n{}", self.node + 1).into());
        applier.stage = Stage::Dummy;
        GO_ON
    }

    fn unlock_as_applier(&mut self, a: ThreadId) {
        let rows = self.appliers[a].writes.rows.iter().map(|(key, _)| *key);
        self.locks.release_rows(rows, a);
        self.locks.release_tables(a);
    }

    /// Leaves commit order with an error, and waits for the result of the error vote.
    fn vote(&mut self, a: ThreadId, error: Bytes, ctx: &mut Ctx) -> Stride {
        self.appliers[a].stage = Stage::Voting;
        let (owner, error) = (Owner::Applied(self.gtid(a).seqno), Some(error));
        self.ask(a, "commit_order_leave (vote)", ctx, |ticket| {
            Event::CommitOrderLeave {
                ticket,
                owner,
                error,
            }
        })
    }

    fn voted(&mut self, a: ThreadId, ctx: &mut Ctx) -> Stride {
        let code = self.await_answer(a)?.code;
        let ok = code == Code::Ok;
        assert!(
            ok || code == Code::NodeFail,
            "commit_order_leave() answers {code:?}"
        );
        assert!(
            !ok || !self.db.has_diverged(),
            "the others agree with an error that only n{} has",
            self.node + 1
        );
        let work = self.appliers[a].work;
        self.return_from_callback(a, Event::WorkDone { work, ok }, ctx)
    }

    fn apply_action(&mut self, a: ThreadId, ctx: &mut Ctx) -> Stride {
        let gtid = self.gtid(a);
        let applier = &self.appliers[a];
        let ((table, ddl), writer) = (action(&applier.writes), applier.writes.writer);
        match applier.stage {
            Stage::Action => self.enter_as_applier(a, Stage::ActionEntering, ctx),
            Stage::ActionEntering => {
                self.entered_as_applier(a)?;
                self.appliers[a].stage = Stage::ActionSeizing;
                GO_ON
            }
            Stage::ActionSeizing => {
                self.seize_table(a, table, ctx)?;
                self.appliers[a].stage = Stage::ActionRunning;
                ctx.sleep(self.plan.speed.ddl_us)
            }
            Stage::ActionRunning if ddl == Ddl::Fails => {
                self.db.dummy(gtid, true, ctx);
                self.locks.release_tables(a);
                self.vote(a, action_error(), ctx)
            }
            Stage::ActionRunning => {
                if !self.db.execute(gtid, table, writer, ddl, ctx) {
                    self.appliers[a].error = Some(done_already());
                }
                self.appliers[a].stage = Stage::ActionExecuted;
                ctx.sleep(self.plan.speed.stage_us)
            }
            _ => {
                self.db.executed(gtid, table, writer, true, ctx);
                self.locks.release_tables(a);
                if let Some(error) = self.appliers[a].error.take() {
                    return self.vote(a, error, ctx);
                }
                self.leave_as_applier(a, ctx);
                self.work_done(a, ctx)
            }
        }
    }

    fn enter_as_applier(&mut self, a: ThreadId, stage: Stage, ctx: &mut Ctx) -> Stride {
        let owner = Owner::Applied(self.gtid(a).seqno);
        self.appliers[a].stage = stage;
        self.ask(a, "commit_order_enter", ctx, |ticket| {
            Event::CommitOrderEnter { ticket, owner }
        })
    }

    fn entered_as_applier(&mut self, a: ThreadId) -> Stride {
        let code = self.await_answer(a)?.code;
        assert_eq!(code, Code::Ok, "an applier is kept from commit order");
        GO_ON
    }

    fn leave_as_applier(&mut self, a: ThreadId, ctx: &mut Ctx) {
        let owner = Owner::Applied(self.gtid(a).seqno);
        self.tell(ctx, |ticket| Event::CommitOrderLeave {
            ticket,
            owner,
            error: None,
        });
    }

    /// Ends the callback; the thread calls recv() again at once.
    pub(super) fn work_done(&mut self, a: ThreadId, ctx: &mut Ctx) -> Stride {
        let work = self.appliers[a].work;
        self.return_from_callback(a, Event::WorkDone { work, ok: true }, ctx)
    }

    /// Ends a callback of any kind.
    pub(super) fn return_from_callback(
        &mut self,
        a: ThreadId,
        event: Event,
        ctx: &mut Ctx,
    ) -> Stride {
        let applier = &mut self.appliers[a];
        applier.stage = Stage::Idle;
        applier.gtid = None;
        applier.done += 1;
        ctx.call(event);
        GO_ON
    }
}
