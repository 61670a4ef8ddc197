//! connect() that fails: no primary component takes the node in, and the provider closes the node again. A server that
//! runs lives on and connects again; another one ends and is started again. Meanwhile the volume of the log may be away.

use std::mem::take;

use trireme_group::ComponentState;
use trireme_replicator::Event;

use super::{Happening, World};
use crate::given_up::Attempt;
use crate::machine::{Aside, Left};
use crate::seen::{NodeId, TimeUs};

/// Time until a node looks again that may not give up now.
const LOOKS_AGAIN_US: TimeUs = 20_000;

impl World {
    /// Begins the next connect: it may be one that is given up, on a node without the volume of its log.
    pub(crate) fn begins_attempt(&mut self, node: NodeId, bootstrap: bool) {
        if self.calm || bootstrap || self.machines[node].astray {
            self.machines[node].attempts.clear();
        }
        let Some(attempt) = self.machines[node].attempts.pop_front() else {
            return;
        };
        self.machines[node].isolated += u32::from(attempt.alone);
        if attempt.unmounted && self.may_lose_volume(node) {
            self.unmount(node);
        }
        let start = self.machines[node].starts();
        let latest_us = self.plan.calm_us.max(self.now_us);
        let at = (self.now_us + attempt.wait_us).min(latest_us);
        let happening = Happening::GivesUp(node, start, attempt);
        self.queue.push(at, happening);
    }

    /// True if the group can do without the node's log, from now on if need be: the node may be admitted with another log
    /// and acknowledge entries there.
    fn may_lose_volume(&self, node: NodeId) -> bool {
        self.formed && !self.dark && self.survivable(node) && self.others_have_state(node)
    }

    /// Leaves an empty directory in the place of the volume of the node's log, until [`World::mount`].
    pub(crate) fn unmount(&mut self, node: NodeId) {
        self.coverage.unmounted += 1;
        self.tell(|| format!("n{} does not find the volume of its log", node + 1));
        let machine = &mut self.machines[node];
        let (disk, left) = (take(&mut machine.disk), take(&mut machine.left));
        if disk.is_device_failed() {
            machine.votes_fail = None; // the data directory is on another volume
        }
        let last_log = machine.last_log;
        machine.aside = Some(Aside {
            disk,
            left,
            last_log,
        });
    }

    /// Mounts the volume of the node's log again: the connection without it has ended.
    pub(crate) fn mount(&mut self, node: NodeId) {
        let machine = &mut self.machines[node];
        let Some(Aside {
            disk,
            left,
            last_log,
        }) = machine.aside.take()
        else {
            return;
        };
        let is_last = machine.last_log == last_log;
        machine.disk = disk;
        // Entries that were acknowledged with another log are not in this one.
        machine.left = Left {
            intact: left.intact && is_last,
            ..left
        };
        self.coverage.mounted_late += u64::from(!is_last);
        self.tell(|| format!("n{} finds the volume of its log again", node + 1));
    }

    /// Gives up a connect, as the provider does (`connect.rs`, `connect/first_view.rs`), unless the node is admitted.
    pub(crate) fn gives_up(&mut self, node: NodeId, start: u64, mut attempt: Attempt) {
        self.machines[node].isolated -= u32::from(take(&mut attempt.alone));
        let (now, is_arbitrator) = (self.now_us, self.plan.nodes[node].arbitrator);
        let Some(process) = self.machines[node].running(start) else {
            return;
        };
        let Some(link) = process.engine.link() else {
            return;
        };
        let lives = process.server.is_running() && !is_arbitrator;
        // Such a node waits without limit.
        let waits_on = !lives && (link.group.is_blank() || link.group.is_resumed());
        let is_through = process.progress.admitted || process.leaving_us.is_some();
        if self.calm || is_through || waits_on {
            return self.keeps_connection(node, attempt);
        }
        let is_listed = link.group.component_state() == ComponentState::Primary;
        if is_listed || process.free_us > now || lives && !process.server.is_done() {
            let happening = Happening::GivesUp(node, start, attempt);
            return self.queue.push(now + LOOKS_AGAIN_US, happening);
        }
        (process.leaving_us, process.returns) = (Some(now), lives);
        self.machines[node].back_us = now + attempt.again_us;
        self.coverage.given_up += 1;
        self.tell(|| format!("n{} finds no primary component, and gives up", node + 1));
        if !is_arbitrator {
            self.closes(node, start);
        }
        let machine = &mut self.machines[node];
        let Some(process) = machine.running(start) else {
            return;
        };
        if process.engine.link().is_none() {
            return;
        }
        match take(&mut process.returns) {
            true => self.go_without(node),
            false => self.stop(node),
        }
    }

    /// Disconnects without the cluster's word.
    fn closes(&mut self, node: NodeId, start: u64) {
        let now_ms = self.now_ms(node);
        if let Some(process) = self.machines[node].running(start) {
            process.server.disconnecting();
        }
        for event in [Event::Disconnect, Event::Left] {
            let process = self.machines[node].running(start);
            if let Some(process) = process.filter(|p| p.engine.link().is_some()) {
                process.engine.node(now_ms, event);
                self.settle(node);
            }
        }
    }

    /// The connect is not given up. An empty directory in the place of the volume may then stay there for good, or the
    /// operator mounts the volume and connects the node again.
    fn keeps_connection(&mut self, node: NodeId, attempt: Attempt) {
        let machine = &mut self.machines[node];
        machine.attempts.clear();
        let is_failed = |aside: &Aside| aside.disk.is_device_failed();
        if attempt.again_us % 2 == 0 {
            machine.aside = machine.aside.take().filter(is_failed);
        }
        if machine.aside.is_some() && self.survivable(node) && self.others_have_state(node) {
            let machine = &mut self.machines[node];
            machine.back_us = machine.back_us.max(self.now_us + attempt.again_us);
            let process = machine.process.as_deref();
            match process.is_some_and(|process| process.server.is_running()) {
                true => self.leave_and_return(node),
                false => self.leave(node),
            }
        }
    }
}
