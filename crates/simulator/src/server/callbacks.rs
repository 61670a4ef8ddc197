//! The other callbacks of an applier: connected, views, synced, state transfer (docs/server-contract-callbacks.md).

use trireme_replicator::{Event, Gtid, Task, View};

use super::applier::Stage;
use super::ctx::{Ctx, Stride, ThreadId};
use super::server::Server;
use super::state::State;
use super::transfer::{read_request, request};
use crate::seen::view_digest;

impl Server {
    pub(super) fn begin_callback(&mut self, a: ThreadId, task: Task, ctx: &mut Ctx) -> Stride {
        let stage = match task {
            Task::Connected(view) => {
                let index = view
                    .my_index
                    .is_some_and(|index| index < view.members.len());
                assert!(
                    index && view.primary,
                    "connected() without a place in the view: {view:?}"
                );
                self.me = view.members[view.my_index.expect("has one")].incarnation;
                Stage::Answering
            }
            Task::View(view) => return self.begin_view(a, view, ctx),
            Task::Synced => {
                self.state_after_synced();
                self.ready = self.initialized && !self.leaving && !self.db.has_diverged();
                self.wake_clients();
                self.send_pending_rollbacks(ctx);
                Stage::Answering
            }
            Task::SstRequest => {
                self.is_with_scripts = true;
                Stage::Requesting
            }
            Task::Donate {
                request,
                gtid,
                bypass,
            } => {
                self.begin_donation(a, &request, gtid, bypass, ctx);
                Stage::Donating
            }
            Task::Apply(_) | Task::Exit { .. } => unreachable!("not given here"),
        };
        self.appliers[a].stage = stage;
        ctx.sleep(self.plan.speed.stage_us)
    }

    /// A view is a transaction of the server itself; no other one is under way.
    fn begin_view(&mut self, a: ThreadId, view: View, ctx: &mut Ctx) -> Stride {
        let (primary, seqno) = (view.primary, view.gtid.seqno);
        let last_words = !primary && (self.leaving || view.members.is_empty());
        assert!(
            !self.is_with_scripts || last_words,
            "a view between sst_request and sst_received: the only applier would wait for ever"
        );
        if primary {
            let last = ctx.last_committed();
            self.nobody_applies();
            assert!(
                last == seqno - 1,
                "last_committed is {last} in the callback of view {seqno}"
            );
            if view.gtid != self.db.ordered() {
                let (number, before) = (view.number, self.last_view);
                assert!(number > before, "view {number} after {before}");
                self.last_view = number;
            }
        } else {
            let names: Vec<_> = view.members.iter().map(|m| m.incarnation).collect();
            assert!(
                names.is_sorted() && (last_words || names.contains(&self.me)),
                "rule 20: a component without its node, or unsorted: {view:?}"
            );
            self.ready = false;
            self.state_after_view(false);
        }
        let applier = &mut self.appliers[a];
        applier.gtid = Some(view.gtid);
        applier.view = Some(view);
        if primary && !self.initialized {
            applier.stage = Stage::Initializing;
            return ctx.sleep(self.plan.speed.start_us);
        }
        applier.stage = Stage::Viewing;
        ctx.sleep(self.plan.speed.view_us)
    }

    /// Asserts that no applier applies: a view waits for the whole apply queue (server-contract-callbacks.md#view).
    fn nobody_applies(&self) {
        let applies = |a: &&super::applier::Applier| a.is_busy() && a.gtid.is_some();
        let busy = self.appliers.iter().find(applies);
        if let Some(applier) = busy {
            panic!("a view while an applier is at {}", applier.describe());
        }
    }

    /// True while a primary view's callback runs.
    pub(super) fn shows_view(&self) -> bool {
        let shows = |a: &super::applier::Applier| a.view.as_ref().is_some_and(|v| v.primary);
        self.appliers.iter().any(shows)
    }

    pub(super) fn step_callback(&mut self, a: ThreadId, ctx: &mut Ctx) -> Stride {
        let work = self.appliers[a].work;
        match self.appliers[a].stage {
            Stage::Initializing => {
                self.storage_is_up();
                self.appliers[a].stage = Stage::Viewing;
                ctx.sleep(self.plan.speed.view_us)
            }
            Stage::Viewing => {
                if let Some(view) = self.appliers[a].view.clone().filter(|view| view.primary) {
                    if !self.close_streams(&view, ctx) {
                        return ctx.sleep(self.plan.speed.stage_us);
                    }
                }
                if let Some(view) = self.appliers[a].view.take().filter(|view| view.primary) {
                    self.db.view(view.gtid, view_digest(&view), ctx);
                    self.state_after_view(true);
                }
                self.work_done(a, ctx)
            }
            Stage::Requesting => {
                // A running server cannot replace its own database by an SST
                // (server-contract-callbacks.md#sst_request).
                let request = if self.initialized {
                    self.is_with_scripts = false;
                    Vec::new()
                } else {
                    request(self.node, self.start)
                };
                let request = Some(request.into());
                self.return_from_callback(a, Event::SstRequested { work, request }, ctx)
            }
            Stage::Donating => {
                if self.donates_within(a) {
                    self.appliers[a].stage = Stage::Sending;
                    return self.park(a, "for its own state transfer");
                }
                let ok = self.has_donation(a);
                if !ok {
                    self.state_after_donation();
                }
                self.return_from_callback(a, Event::Donated { work, ok }, ctx)
            }
            Stage::Sending => {
                if self.donates_within(a) {
                    return self.park(a, "for its own state transfer");
                }
                self.return_from_callback(a, Event::Donated { work, ok: true }, ctx)
            }
            Stage::Answering => self.work_done(a, ctx),
            stage => unreachable!("{stage:?} is no callback"),
        }
    }

    /// The storage engine is up: starts the other appliers.
    pub(super) fn storage_is_up(&mut self) {
        self.initialized = true;
        for a in 0..self.appliers.len() {
            self.start_applier(a);
        }
    }

    fn begin_donation(
        &mut self,
        a: ThreadId,
        request: &[u8],
        gtid: Gtid,
        bypass: bool,
        ctx: &mut Ctx,
    ) {
        let at = self.db.ordered();
        let is_there = self.db.stands_at(gtid.seqno) && self.db.queued() == 0;
        assert!(
            at.uuid == gtid.uuid && (bypass || is_there),
            "asked to donate its state at {gtid}, which is at {at}"
        );
        assert!(
            self.transfers.iter().all(|thread| !thread.is_busy()),
            "asked to donate while a script sends"
        );
        self.state = State::Donor;
        let to = read_request(request);
        self.prepare_donation(a, to, bypass.then_some(gtid), ctx);
    }
}
