//! Flushes of the log, divided as in `libtrireme.so`. A thread of its own does them, beside everything else. If small
//! flushes are quick, the reactor does its own small flushes itself (`provider/src/flusher.rs`, `reactor.rs`).

use trireme_log::{Durability, FlushJob};

use super::{Happening, World};
use crate::machine::{Input, Job, Progress};
use crate::seen::{NodeId, TimeUs};

/// A disk is quick if no flush takes longer than this.
const QUICK_US: TimeUs = 300;
/// The reactor does no flush larger than this.
const SMALL_BYTES: u64 = 64 << 10;

impl World {
    /// Makes the node busy for the time of its last work.
    pub(crate) fn charge(&mut self, node: NodeId) {
        let plan = &self.plan.nodes[node];
        let flushes_itself = self.plan.durability == Durability::Disk && plan.arbitrator;
        let machine = &mut self.machines[node];
        let Some(process) = &mut machine.process else {
            return;
        };
        let progress = &mut process.progress;
        let waited = progress.waited || progress.appended && flushes_itself;
        if progress.acted || waited {
            let mut us = self.random.within(1..=plan.work_us);
            if waited {
                us += self.random.within(1..=plan.flush_us);
            }
            let begins_us = match waited {
                true => self.now_us.max(machine.hangs_until_us),
                false => self.now_us,
            };
            process.free_us = process.free_us.max(begins_us + us * machine.slow);
        }
        (progress.acted, progress.appended, progress.waited) = (false, false, false);
    }

    /// Renews a flush that the reactor has put off: the reactor has had the node again, and the flush must cover the
    /// new entries. True if there was one.
    pub(crate) fn renew_own_flush(&mut self, node: NodeId) -> bool {
        let Some(process) = &mut self.machines[node].process else {
            return false;
        };
        let progress = &mut process.progress;
        let put_off = progress.own_flush.take_if(|_| progress.in_reactor);
        let Some(job) = put_off else {
            return false;
        };
        // If another flush is due, the log has begun anew since.
        if progress.flushes.is_empty() {
            let bytes = job.bytes();
            let renewed = process.engine.renew_flush(job);
            let covers_more = renewed.as_ref().is_some_and(|job| job.bytes() > bytes);
            self.coverage.renewed += u64::from(covers_more);
            progress.flushes.extend(renewed);
        }
        true
    }

    /// Plans the end of flushes and of writes of bulk payloads; the process goes on meanwhile.
    pub(crate) fn plan_disk_work(&mut self, node: NodeId) {
        let now = self.now_us;
        let plan = &self.plan.nodes[node];
        let (flush_us, wake_us) = (plan.flush_us, plan.wake_us);
        let machine = &mut self.machines[node];
        let Some(process) = &mut machine.process else {
            return;
        };
        let (start, slow, hangs_until_us) = (process.start, machine.slow, machine.hangs_until_us);
        let Progress {
            flushes,
            stages,
            serves,
            own_flush,
            in_reactor,
            ..
        } = &mut process.progress;
        if flushes.is_empty() && stages.is_empty() && serves.is_empty() {
            return; // as after most events
        }
        let is_own = |job: &FlushJob| {
            *in_reactor
                && flush_us * slow <= QUICK_US
                && job.is_awaited()
                && job.bytes() <= SMALL_BYTES
        };
        let (random, coverage) = (&mut self.disk_random, &mut self.coverage);
        let mut jobs = Vec::new();
        for job in flushes.drain(..) {
            if is_own(&job) {
                *own_flush = Some(job);
                let at = process.free_us.max(now) + random.within(1..=wake_us);
                self.queue
                    .push(at, Happening::To(node, start, Input::OwnFlush));
            } else {
                coverage.flushes += u64::from(job.is_awaited());
                coverage.write_backs += u64::from(!job.is_awaited());
                jobs.push(Input::Flushed(Job::begin(job, random.percent(50))));
            }
        }
        for job in stages.drain(..) {
            coverage.pieces += 1;
            jobs.push(Input::Staged(Job::begin(job, random.percent(50))));
        }
        for job in serves.drain(..) {
            coverage.serves += 1;
            let job = Job::begin(job, random.percent(50));
            jobs.push(Input::Served(Box::new(job)));
        }
        for input in jobs {
            let us = random.within(1..=flush_us) * slow;
            let begins_us = now.max(hangs_until_us);
            self.queue
                .push(begins_us + us, Happening::To(node, start, input));
        }
    }

    /// Does the flush that the reactor has put off; no other thread has the node meanwhile.
    pub(crate) fn flush_in_reactor(&mut self, node: NodeId) {
        let now_ms = self.now_ms(node);
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        if let Some(job) = process.progress.own_flush.take() {
            self.coverage.own_flushes += 1;
            process.progress.waited = true;
            process.engine.flushed(now_ms, job.run());
        }
    }
}
