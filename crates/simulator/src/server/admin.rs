//! An administrator: KILL, FLUSH TABLES WITH READ LOCK, pauses as for an RSU, desync.

use trireme_replicator::{Code, Event};

use super::conflict::NO_SEQNO;
use super::ctx::{Ctx, GO_ON, Next, Stride, ThreadId};
use super::pause::{Pause, PauseStage, Pauser};
use super::server::Server;

/// The present work of the administrator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Stage {
    #[default]
    Away,
    /// Begins a pause.
    Pausing(Pause),
    /// Keeps the pause.
    Holding(Pause),
    Desyncing,
    Desynced,
}

/// The administrator.
#[derive(Debug, Default)]
pub(super) struct Admin {
    pub stage: Stage,
    /// True after the first wake-up.
    awake: bool,
}

impl Admin {
    /// True while it does something.
    pub fn is_busy(&self) -> bool {
        !matches!(self.stage, Stage::Away)
    }
}

impl Server {
    /// Tells the administrator to pause the provider for its time, as for an RSU.
    pub fn hold_still(&mut self) {
        self.admin.stage = Stage::Pausing(Pause::of(Pauser::Rsu));
        self.runnable.push(self.appliers.len() + self.clients.len());
    }

    /// Tells the administrator to do FLUSH TABLES WITH READ LOCK, for its time.
    pub fn flush_tables(&mut self) {
        self.admin.stage = Stage::Pausing(Pause::of(Pauser::Client));
        self.runnable.push(self.appliers.len() + self.clients.len());
    }

    /// True while the administrator pauses the provider.
    pub fn is_held_still(&self) -> bool {
        matches!(self.admin.stage, Stage::Holding(_))
    }

    pub(super) fn step_admin(&mut self, who: ThreadId, ctx: &mut Ctx) -> Next {
        loop {
            if let Stride::Break(next) = self.admin_stride(who, ctx) {
                return next;
            }
        }
    }

    fn admin_stride(&mut self, who: ThreadId, ctx: &mut Ctx) -> Stride {
        match self.admin.stage {
            Stage::Away => self.think_of_something(who, ctx),
            Stage::Pausing(mut pause) => {
                let stride = self.pursue_pause(who, &mut pause, ctx);
                self.admin.stage = match pause.stage {
                    PauseStage::Held => Stage::Holding(pause),
                    PauseStage::Failed => Stage::Away,
                    _ => Stage::Pausing(pause),
                };
                stride?;
                ctx.sleep(self.plan.admin.hold_us)
            }
            Stage::Holding(mut pause) => {
                self.end_pause(&mut pause, ctx);
                self.admin.stage = Stage::Away;
                self.sleep_as_admin(ctx)
            }
            Stage::Desyncing => {
                let code = self.await_answer(who)?.code;
                self.admin.stage = Stage::Away;
                if code == Code::Ok {
                    self.admin.stage = Stage::Desynced;
                }
                ctx.sleep(self.plan.admin.hold_us)
            }
            Stage::Desynced => {
                self.tell(ctx, |ticket| Event::Resync { ticket });
                self.admin.stage = Stage::Away;
                self.sleep_as_admin(ctx)
            }
        }
    }

    fn sleep_as_admin(&mut self, ctx: &mut Ctx) -> Stride {
        match self.plan.admin.every_us {
            Some(span) => ctx.sleep(span),
            None => Stride::Break(Next::Ended),
        }
    }

    fn think_of_something(&mut self, who: ThreadId, ctx: &mut Ctx) -> Stride {
        let first = !std::mem::replace(&mut self.admin.awake, true);
        if first || self.is_idle || !self.ready {
            return self.sleep_as_admin(ctx);
        }
        let weights = self.plan.admin.weights;
        let mut at = ctx
            .random
            .below(weights.iter().sum::<u64>().max(1) as usize) as u64;
        let mut what = 0;
        while what < 3 && at >= weights[what] {
            at -= weights[what];
            what += 1;
        }
        match what {
            0 => {
                self.kill(ctx);
                return self.sleep_as_admin(ctx);
            }
            1 => self.admin.stage = Stage::Pausing(Pause::of(Pauser::Client)),
            2 => self.admin.stage = Stage::Pausing(Pause::of(Pauser::Rsu)),
            _ => {
                self.admin.stage = Stage::Desyncing;
                return self.ask(who, "desync", ctx, |ticket| Event::Desync { ticket });
            }
        }
        GO_ON
    }

    /// KILL CONNECTION of a client with an open transaction.
    fn kill(&mut self, ctx: &mut Ctx) {
        let open = |c: &usize| self.clients[*c].may_be_aborted() && !self.clients[*c].must_abort;
        let open: Vec<usize> = (0..self.clients.len()).filter(open).collect();
        if open.is_empty() {
            return;
        }
        let c = open[ctx.random.below(open.len())];
        self.clients[c].gone = true;
        let victim = self.thread_of_client(c);
        self.abort(victim, NO_SEQNO, ctx);
    }
}
