//! Disks that fail, and what becomes of the processes on them.

use trireme_engine::{Session, StartError};
use trireme_group::Standing;
use trireme_log::{Damage, Disk, Durability, Examined, Log, LogConfig, LogError, Lost, MemoryDisk};

use super::World;
use crate::machine::{Left, Process};
use crate::random::Random;
use crate::saved_state::SavedState;
use crate::seen::{NodeId, Seen, TimeUs};

/// A server that could not start is started again after this time.
const RETRY_US: TimeUs = 500_000;

/// The files with entries on a disk, oldest first.
pub(crate) fn segments(disk: &MemoryDisk) -> Vec<String> {
    let mut names = disk.list().unwrap_or_default();
    names.retain(|name| name.starts_with("trireme-0"));
    names
}

/// Whether damage in a log is seen to be such. What was written last is not: its end looks as if it had never been
/// written whole, and in `disk` mode what the last flush covered looks as if it had been on its way to the disk. X
/// and Y are flushed together and acknowledged, nothing is written after them, X rots: of X only Y could tell that it had
/// been flushed, and when Y was written it was not (docs/log-format.md). One such replica makes the cluster
/// lose X: of three logs two had it, and the majority of the third and this one misses it.
fn can_tell(examined: &Examined) -> bool {
    let last = examined.state().and_then(Session::decode);
    let relies_on_flushes =
        last.is_some_and(|last| !last.clean && last.durability == Durability::Disk);
    let tells =
        |damage: &Damage| !relies_on_flushes || damage.was_flushed || damage.lost == Lost::Older;
    let damage = &examined.found().damage;
    !damage.is_empty() && damage.iter().all(tells)
}

impl World {
    /// The node's disk is full, or fails: soon its process has to leave.
    pub(crate) fn spoil_disk(&mut self, node: NodeId, room_bytes: Option<u64>) {
        let forgets = !self.plan.recovers;
        let machine = &mut self.machines[node];
        // Pages that a failed flush has given up, or what was never written, may have been acknowledged.
        match room_bytes {
            Some(_) => {
                machine.doomed = forgets || self.plan.durability == Durability::Memory;
                machine.disk.set_room(room_bytes);
            }
            None => {
                machine.doomed = forgets || self.plan.durability != Durability::Disk;
                machine.disk.set_fail_syncs(true);
            }
        }
    }

    /// What the node must note, flushed, cannot be written.
    pub(crate) fn fail_notes(&mut self, node: NodeId, log: bool) {
        let forgets = !self.plan.recovers || self.plan.durability != Durability::Disk;
        let machine = &mut self.machines[node];
        machine.doomed = forgets;
        machine.votes_fail = true;
        machine.disk.set_fail_state(true);
        machine.disk.set_fail_syncs(log);
    }

    /// The volume that holds the node's log and its promises fails: nothing can be kept on it any more.
    pub(crate) fn fail_device(&mut self, node: NodeId) {
        let forgets = !self.plan.recovers;
        let machine = &mut self.machines[node];
        machine.doomed = forgets || self.plan.durability != Durability::Disk;
        machine.votes_fail = true;
        machine.disk.fail_device();
    }

    /// It is mounted again, within one boot of the machine; each page that was not flushed is there if `survives` says so.
    pub(crate) fn remount(&mut self, node: NodeId, survives: impl Fn(&mut Random) -> bool) {
        let random = &mut self.server_random;
        self.machines[node].disk.remount(|| survives(random));
        let forgets = !self.plan.recovers || self.plan.durability != Durability::Disk;
        let machine = &mut self.machines[node];
        // A process that has not noticed goes on with handles that take nothing any more.
        let is_open = |process: &Process| process.engine.link().is_some();
        machine.detached = machine.process.as_deref().is_some_and(is_open);
        machine.doomed &= machine.detached;
        machine.votes_fail = false;
        machine.left.intact &= !forgets;
    }

    /// The disk is as good as new.
    pub(crate) fn mend_disk(&mut self, node: NodeId) {
        let machine = &mut self.machines[node];
        machine.doomed = machine.detached;
        machine.votes_fail &= machine.disk.is_device_failed();
        machine.disk.set_room(None);
        machine.disk.set_fail_syncs(false);
        machine.disk.set_fail_state(false);
        machine.disk.set_fail_reads(false);
    }

    /// Bits of the log of a node that does not run are flipped, in places where a reader can tell.
    pub(crate) fn flip_bits(&mut self, node: NodeId, bits: u64) {
        let disk = self.machines[node].disk.clone();
        let Ok(Some(identity)) = Log::identity_on(&disk) else {
            return;
        };
        let names = segments(&disk);
        for _ in 0..bits {
            let name = &names[self.random.below(names.len())];
            let length = disk.contents(name).map_or(0, |bytes| bytes.len());
            if length == 0 {
                continue;
            }
            let (offset, bit) = (self.random.below(length), self.random.below(8) as u8);
            disk.flip_bit(name, offset, bit);
            let config = LogConfig::new("".into(), 1, identity, self.plan.durability);
            let examined = Log::examine_on(Box::new(disk.clone()), config);
            if examined.is_ok_and(|examined| can_tell(&examined)) {
                self.coverage.rotten += 1;
                self.machines[node].left.intact = false;
                self.tell(|| {
                    format!(
                        "bit {bit} of byte {offset} of {name} is flipped on n{}",
                        node + 1
                    )
                });
            } else {
                disk.flip_bit(name, offset, bit);
            }
        }
    }

    /// Sees whether the process has just found that it can keep nothing any more: the server lives, on
    /// its own.
    pub(crate) fn see_failure(&mut self, node: NodeId) {
        let (now, recovers) = (self.now_us, self.plan.recovers);
        let machine = &mut self.machines[node];
        let Some(process) = &mut machine.process else {
            return;
        };
        let Some(text) = process.progress.failed.take() else {
            return;
        };
        machine.left = Left {
            intact: process.intact && recovers && !machine.doomed,
            commit: process.commit,
            // The branch that it was on when it last said so: its link is gone.
            overrides: process.engine.replicator.overrides(),
        };
        process.cut_off = true;
        process.loses_connection();
        if !process.progress.admitted {
            // connect() has not returned yet: it fails, and the server with it.
            process.progress.fatal = Some("connect() fails".to_owned());
        }
        let history = process.progress.history;
        self.coverage.cut_off += 1;
        self.tell(|| format!("n{} leaves: {text}", node + 1));
        let standing = Standing::Outside;
        let what = Seen::Standing {
            standing,
            view: 0,
            history,
        };
        self.watch.see(now, node, what);
        self.close_links(node);
    }

    /// The server of a node whose disk has failed has its last view: an operator restarts it, or connects
    /// it again.
    pub(crate) fn is_restarted(&mut self, node: NodeId) {
        let now = self.now_us;
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        let back_us = now + self.random.within(1_000..=2_000_000);
        if process.leaving_us.is_none() {
            self.machines[node].back_us = back_us;
            if self.random.percent(50) || self.machines[node].is_reconnected {
                if let Some(process) = &mut self.machines[node].process {
                    process.returns = true;
                    process.leaving_us = Some(now);
                    process.server.disconnecting();
                }
                if self.has_left_to_return(node) {
                    self.go_without(node);
                }
                return;
            }
        }
        self.stop(node);
    }

    /// A process cannot use its log: it ends, and is started again; a log that is of no use is moved away.
    pub(crate) fn start_fails(&mut self, node: NodeId, error: &StartError) {
        self.coverage.not_started += 1;
        self.tell(|| format!("n{} cannot start: {error}", node + 1));
        match error {
            StartError::Log(LogError::Io { .. }) => {}
            // The advice is to move grastate.dat away.
            StartError::DiesApplying { .. } => self.machines[node].saved = SavedState::default(),
            StartError::Log(_) | StartError::NoMoreOverrides => {
                self.follows_advice(node);
                self.machines[node].left = Left::default();
            }
        }
        self.machines[node].back_us = self.now_us + RETRY_US;
        self.crash(node, false);
    }
}
