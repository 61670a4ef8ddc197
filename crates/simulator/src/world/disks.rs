//! Disks that fail, and the processes on them.

use trireme_engine::{Session, StartError};
use trireme_group::{ComponentState, Position};
use trireme_log::{Damage, Disk, Durability, Examined, Log, LogConfig, LogError, Lost, MemoryDisk};

use super::World;
use super::outlet::NO_ROOM;
use crate::fault::Notes;
use crate::machine::{Left, Process, VotesFail};
use crate::random::Random;
use crate::saved_state::SavedState;
use crate::seen::{NodeId, Seen, TimeUs};

/// Time until a server that could not start is started again.
const RETRY_US: TimeUs = 500_000;

/// The files with entries on a disk, the oldest first.
pub(crate) fn segments(disk: &MemoryDisk) -> Vec<String> {
    let mut names = disk.list().unwrap_or_default();
    names.retain(|name| name.starts_with("trireme-0"));
    names
}

/// True if a reader can recognise the damage of a log. Damage of the last writes looks different: the end of the log
/// looks as if it had never been written completely. In `disk` mode the entries of the last flush look as if they had
/// been on their way to the disk. Example: X and Y are flushed together and acknowledged, nothing is written after
/// them, and X rots. Only Y could tell that X had been flushed, but X was not flushed yet when Y was written
/// (docs/log-format.md). One such replica makes the cluster lose X: two of three logs had X, and the majority of the
/// third and this one lacks it.
fn can_tell(examined: &Examined) -> bool {
    let last = examined.state().and_then(Session::decode);
    let relies_on_flushes =
        last.is_some_and(|last| !last.clean && last.durability == Durability::Disk);
    let tells =
        |damage: &Damage| !relies_on_flushes || damage.was_flushed || damage.lost == Lost::Older;
    examined.found().damage.iter().all(tells)
}

/// The number of damaged places, and the last entry of a log.
fn shows(examined: &Examined) -> (usize, Option<u64>) {
    let found = examined.found();
    (found.damage.len(), found.last_position)
}

impl World {
    /// Makes the node's disk full, or makes it fail: soon its process has to leave.
    pub(crate) fn spoil_disk(&mut self, node: NodeId, room_bytes: Option<u64>) {
        self.will_end(node, room_bytes.is_none());
        let disk = &self.machines[node].disk;
        match room_bytes {
            Some(_) => disk.set_room(room_bytes),
            None => disk.set_fail_syncs(true),
        }
    }

    /// A fault of its disk will end the node's process; another one may last still. `flushes_fail`: acknowledged entries may
    /// be among the pages that a failed flush has given up, or among writes that failed.
    fn will_end(&mut self, node: NodeId, flushes_fail: bool) {
        let keeps = match flushes_fail {
            true => self.plan.durability == Durability::Disk,
            false => self.plan.durability != Durability::Memory,
        };
        self.machines[node].doomed |= !self.plan.recovers || !keeps;
    }

    /// Makes writes of the node's notes fail; with `log`, also flushes of its log.
    pub(crate) fn fail_notes(&mut self, node: NodeId, notes: Notes, log: bool) {
        // A process whose promise has no room flushes its log before it leaves: nothing is forgotten.
        self.will_end(node, notes != Notes::PromisesLackRoom || log);
        let machine = &mut self.machines[node];
        machine.votes_fail = match notes {
            Notes::Both | Notes::Promises => Some(VotesFail::Error),
            Notes::PromisesLackRoom => Some(VotesFail::NoRoom),
            Notes::StateFile => None,
        };
        let fails_state = [Notes::Both, Notes::StateFile].contains(&notes);
        machine.disk.set_fail_state(fails_state);
        machine.disk.set_fail_syncs(log);
    }

    /// Makes reads of the node's log fail: a process that has to read a write-set back ends.
    pub(crate) fn fail_reads(&mut self, node: NodeId) {
        self.will_end(node, false);
        self.machines[node].disk.set_fail_reads(true);
    }

    /// Makes the volume of the node's log and promises fail: nothing can be written on it.
    pub(crate) fn fail_device(&mut self, node: NodeId) {
        self.will_end(node, true);
        let machine = &mut self.machines[node];
        machine.votes_fail = Some(VotesFail::Error);
        machine.disk.fail_device();
    }

    /// Mounts the volume again, within one boot of the machine. `survives` decides for each unflushed page.
    pub(crate) fn remount(&mut self, node: NodeId, survives: impl Fn(&mut Random) -> bool) {
        let random = &mut self.server_random;
        let forgets = !self.plan.recovers || self.plan.durability != Durability::Disk;
        let machine = &mut self.machines[node];
        if let Some(aside) = &mut machine.aside {
            // No fault of a device begins while a connection goes on without the volume.
            aside.disk.remount(|| survives(random));
            aside.left.intact &= !forgets;
            return;
        }
        machine.disk.remount(|| survives(random));
        // A process that has not noticed still has open files, on which all writes fail.
        let is_open = |process: &Process| process.engine.link().is_some();
        machine.detached = machine.process.as_deref().is_some_and(is_open);
        machine.doomed &= machine.detached;
        machine.votes_fail = None;
        machine.left.intact &= !forgets;
    }

    /// Repairs the disk completely, but for a failed device.
    pub(crate) fn mend_disk(&mut self, node: NodeId) {
        let machine = &mut self.machines[node];
        machine.doomed = machine.detached || machine.doomed && machine.disk.is_device_failed();
        machine.votes_fail = (machine.votes_fail).filter(|_| machine.disk.is_device_failed());
        let aside = machine.aside.as_ref().map(|aside| &aside.disk);
        for disk in aside.into_iter().chain([&machine.disk]) {
            disk.set_room(None);
            disk.set_fail_syncs(false);
            disk.set_fail_state(false);
            disk.set_fail_reads(false);
        }
    }

    /// Flips bits in the log of a node that does not run, where a reader can recognise it.
    pub(crate) fn flip_bits(&mut self, node: NodeId, bits: u64) {
        let disk = self.machines[node].disk.clone();
        let Ok(Some(identity)) = Log::identity_on(&disk) else {
            return;
        };
        let names = segments(&disk);
        let durability = self.plan.durability;
        let config = || LogConfig::new("".into(), 1, identity, durability);
        let examine = || Log::examine_on(Box::new(disk.clone()), config());
        let mut known = examine().as_ref().map_or((0, None), shows);
        for _ in 0..bits {
            let name = &names[self.random.below(names.len())];
            let length = disk.contents(name).map_or(0, |bytes| bytes.len());
            if length == 0 {
                continue;
            }
            let (offset, bit) = (self.random.below(length), self.random.below(8) as u8);
            disk.flip_bit(name, offset, bit);
            // A second flip may shorten the log without a sign, behind the damage of the first (seed 273, disks).
            let is_new = |shown: (usize, Option<u64>)| shown.0 > known.0 || shown.1 == known.1;
            let examined = examine().ok().filter(can_tell);
            let shown = examined.as_ref().map(shows);
            if let Some(shown) = shown.filter(|shown| shown.0 > 0 && is_new(*shown)) {
                known = shown;
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

    /// Checks whether the process has just found that it can write nothing any more; the server then lives on without
    /// a connection.
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
            // The branch of the last report: the link is gone.
            overrides: process.engine.replicator.overrides(),
        };
        // The views of this step are committed, although the process has not counted them yet.
        let is_new = |at: &Position| !self.views.iter().any(|(delivered, _)| delivered == at);
        let pending = process.pending_views().any(is_new);
        self.coverage.cut_off_pending += u64::from(pending);
        self.coverage.lacked_room += u64::from(text.contains(NO_ROOM));
        process.cut_off = true;
        process.loses_connection();
        if !process.progress.admitted {
            // connect() has not returned yet: it fails, and the server with it.
            process.progress.fatal = Some("connect() fails".to_owned());
        }
        let history = process.progress.history;
        self.coverage.cut_off += 1;
        self.tell(|| format!("n{} leaves: {text}", node + 1));
        let component_state = ComponentState::Outside;
        let what = Seen::ComponentState {
            component_state,
            view: 0,
            history,
        };
        self.watch.see(now, node, what);
        self.close_links(node);
    }

    /// The server of a node whose disk has failed has got its last view: an operator restarts it, or connects it
    /// again.
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

    /// Ends a process that cannot use its log, and plans its restart; an unusable log is moved away.
    pub(crate) fn start_fails(&mut self, node: NodeId, error: &StartError) {
        self.coverage.not_started += 1;
        self.tell(|| format!("n{} cannot start: {error}", node + 1));
        match error {
            StartError::Log(LogError::Io { .. }) => {}
            // The log advises to move grastate.dat away.
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
