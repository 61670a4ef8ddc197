//! Starts and stops processes, and kills them.

use std::collections::VecDeque;

use trireme_engine::{Engine, Link, Start};
use trireme_group::{
    Body, ComponentState, Entry, Incarnation, LogReader, Uuid, unvouched_override,
};
use trireme_log::MemoryDisk;
use trireme_replicator::{Gtid, Options, Replicator};

use super::{Happening, World};
use crate::machine::{Left, Process, Progress};
use crate::saved_state::SavedState;
use crate::seen::{NodeId, Seen, TimeUs};
use crate::server::Server;

/// Time limit of a leave that the cluster does not answer, as in the provider.
const LEAVE_TIMEOUT_US: TimeUs = 2_000_000;
/// Further time for the server's threads to take the final view.
const CLOSE_TIMEOUT_US: TimeUs = 10_000_000;
/// Time until a failed service is started again.
const RESTART_US: TimeUs = 1_000_000;

/// The beginning of a connection.
struct Begun {
    /// The id of the history, or of the override, that the operator's order makes.
    bootstrap: Option<Uuid>,
    /// The position of the database before.
    held: Gtid,
    /// The position with which the node connected.
    local: Gtid,
}

impl World {
    /// Starts a process on the node's data directory, and connects it.
    pub(crate) fn start(&mut self, node: NodeId) {
        let machine = &mut self.machines[node];
        if machine.process.is_some() || self.dark && !machine.bootstrap {
            return;
        }
        let Some(datadir) = machine.datadir.take() else {
            return;
        };
        machine.saved = machine.saved.reopened();
        let start = machine.starts() + 1;
        let mut server = Server::new(
            datadir,
            self.plan.nodes[node].server.clone(),
            node,
            start,
            &mut self.server_random,
        );
        server.set_busy(self.busy);
        if self.calm {
            server.calm();
        }
        if self.machines[node].astray {
            server.set_busy(false); // clients are not sent to it
        }
        let process = Process {
            start,
            first_start: start,
            incarnation: Incarnation::default(),
            engine: Engine::new(Replicator::new(Options::default())),
            server,
            progress: Progress::default(),
            inbox: VecDeque::new(),
            reacting: false,
            free_us: self.now_us,
            tick_us: TimeUs::MAX,
            steps_us: Vec::new(),
            leaving_us: None,
            returns: false,
            cut_off: false,
            failed_syncs_before: 0,
            commit: 0,
            component_state: ComponentState::Outside,
            left_out: false,
            held_up_us: None,
            commit_before: 0,
            looked_us: 0,
            leads_us: None,
            keeps_hanging_us: None,
            voter: false,
            intact: start == 1,
            configurations: Vec::new(),
            control_shown: 0,
            counted: Default::default(),
        };
        let bootstrap = std::mem::take(&mut self.machines[node].bootstrap);
        self.connect_process(node, Box::new(process), bootstrap);
    }

    /// connect(): a process begins its next connection.
    pub(crate) fn connect_process(
        &mut self,
        node: NodeId,
        mut process: Box<Process>,
        bootstrap: bool,
    ) {
        // The last node with a database does not throw it away only because its position is unknown.
        let served = self.others_have_state(node);
        let incarnation = Incarnation(self.random.uuid());
        let fresh = self.random.uuid();
        let passed_position = self.calm || !self.random.percent(self.plan.unrecovered_percent);
        self.machines[node].incarnations.push(incarnation);
        self.begins_attempt(node, bootstrap);
        let is_new = process.first_start == self.machines[node].starts();
        let doom = self.new_doom(node, is_new && !bootstrap);
        let (now, plan) = (self.now_us, &self.plan);
        let machine = &mut self.machines[node];
        if std::mem::take(&mut machine.detached) {
            machine.doomed = false;
        }
        process.begin_connection(machine.starts(), incarnation, machine.disk.failed_syncs());
        let held = process.server.holds();
        // The process was killed after it had left the cluster: its saved seqno alone cannot be trusted.
        let must_know = bootstrap || machine.saved.is_doubtful() || !served;
        let database = process.server.recovered_at_start();
        let database = database.filter(|_| passed_position || must_know);
        let bootstrapped = database.filter(|_| bootstrap);
        let (saved, disk) = (&machine.saved, &machine.disk);
        let (local, fresh) = match saved.unvouched_position(bootstrapped, disk) {
            Some(unvouched) => (unvouched, unvouched_override(fresh)),
            None => (saved.starting_position(database, disk), fresh),
        };
        machine.saved.refute(local);
        let me = machine.member(node, incarnation, plan.nodes[node].arbitrator);
        let expect = (plan.founding.as_ref()).map(|founding| {
            machine.listed = founding.list(now).to_vec();
            founding.expected(fresh)
        });
        let connect = Start {
            config: plan.group_config(node, me),
            promised: machine.promised,
            last_log: machine.last_log,
            recover: plan.recovers,
            boot_id: u128::from(machine.boots).to_le_bytes(),
            log: plan.log_config(),
            disk: doom.opens(&machine.disk),
            mark: (plan.marks).then(|| doom.mark(&machine.mark)),
            // As in `libtrireme.so`; an arbitrator has only one thread.
            flushes_apart: !plan.nodes[node].arbitrator,
            local,
            bootstrap: bootstrap.then_some(fresh),
            expect,
            untouched: database == Some(Gtid::UNDEFINED),
            server_running: process.server.is_running(),
            apply_again: 0,
            options: plan.replicator_options(),
            thresholds: plan.scale.engine,
        };
        let now_ms = machine.clock.now_ms(now);
        let Some(result) = doom.within(|| process.engine.connect(now_ms, connect)) else {
            machine.process = Some(process);
            return self.dies_within(node);
        };
        if machine.dying.is_some() {
            self.is_spared(node);
        }
        let machine = &mut self.machines[node];
        if let Err(error) = result {
            machine.bootstrap |= bootstrap;
            machine.process = Some(process);
            return self.start_fails(node, &error);
        }
        machine.process = Some(process);
        let begun = Begun {
            bootstrap: bootstrap.then_some(fresh),
            held,
            local,
        };
        if let Some(steps) = self.machines[node].dies_at_rename.take() {
            self.doom_at_rename(node, steps);
        }
        self.has_begun(node, begun);
        self.settle(node);
        self.tell_listed(node);
    }

    /// Shows the beginning of a connection to the invariants, and tells it.
    fn has_begun(&mut self, node: NodeId, begun: Begun) {
        let now = self.now_us;
        let replica = self.machines[node].replica;
        let Some(process) = self.machines[node].process.as_deref_mut() else {
            return;
        };
        let link = process.engine.link();
        let resumed = link.is_some_and(|link| link.storage.resumed().is_some());
        let held_bytes = link.map_or(0, |link| link.group.payload_bytes());
        if resumed {
            process.intact = link.is_some_and(|link| !link.group.is_amnesiac());
            self.coverage.resumed += 1;
        }
        let (start, incarnation) = (process.start, process.incarnation);
        let again = start > process.first_start;
        let local = process.engine.replicator.local();
        let size = Seen::Size {
            name: "bytes of the log that a restart holds",
            value: held_bytes as u64,
            limit: self.plan.queue_bytes as u64,
        };
        self.watch.see(now, node, size);
        if let Some(trace) = &mut self.watch.trace {
            trace.name(node, start, replica, incarnation);
        }
        self.tell(|| {
            let begins = if again {
                "connects again as"
            } else {
                "starts its process"
            };
            let how = match begun.bootstrap {
                Some(_) => ", to bootstrap,",
                None => "",
            };
            format!(
                "n{} {begins} {start} ({incarnation}){how} with its database at {}",
                node + 1,
                begun.local
            )
        });
        // A founder's database is at 0 before it has stored any position.
        let is_founder = begun.held == Gtid::UNDEFINED && local.is_known() && local.seqno == 0;
        let Gtid { uuid, seqno } = if is_founder { local } else { begun.held };
        let database = (uuid, seqno);
        self.watch.see(now, node, Seen::Started { database });
        if resumed && !again && begun.held.precedes(local) {
            self.counts_again(node, local);
        }
        self.see_log(node);
        self.see_resumed(node);
        self.show_taken_up(node);
        if let Some(fresh) = begun.bootstrap {
            self.has_bootstrapped(node, fresh, resumed);
        }
    }

    /// Shows that a database counts as being at a total-order action above its position, as when it was bootstrapped.
    fn counts_again(&mut self, node: NodeId, local: Gtid) {
        let now = self.now_us;
        if let Some(process) = self.machines[node].process.as_deref_mut() {
            process.server.founds(local);
        }
        let (history, seqno) = (local.uuid, local.seqno);
        self.watch.see(now, node, Seen::Counted { history, seqno });
    }

    /// Shows a bootstrap. `fresh`: the id of its history, or of its override. `resumed`: the node goes on with its log.
    fn has_bootstrapped(&mut self, node: NodeId, fresh: Uuid, resumed: bool) {
        let now = self.now_us;
        let Some(process) = self.machines[node].process.as_deref_mut() else {
            return;
        };
        let start = process.start;
        if resumed {
            // A node that continues the old log alone overrides the others.
            self.overrides.push((node, start, fresh));
            let override_id = fresh;
            self.watch.see(now, node, Seen::Overridden { override_id });
            return;
        }
        let local = process.engine.replicator.local();
        let (history, seqno) = match local.is_known() {
            true => (local.uuid, local.seqno),
            false => (fresh, 0),
        };
        if local.is_known() {
            self.overrides.push((node, start, fresh));
        }
        process.server.founds(Gtid {
            uuid: local.uuid,
            seqno,
        });
        (self.watch).see(now, node, Seen::Founded { history, seqno });
    }

    fn see_resumed(&mut self, node: NodeId) {
        let process = self.machines[node].process.as_deref();
        let link = process.and_then(|process| process.engine.link());
        let is_whole = |link: &&Link| link.storage.resumed().is_some() && !link.group.is_amnesiac();
        let end = link.filter(is_whole).map(|link| link.group.end());
        self.watch.see(self.now_us, node, Seen::Resumed { end });
    }

    /// Shows the contents of an earlier process's log to the invariants.
    fn see_log(&mut self, node: NodeId) {
        let Some(process) = self.machines[node].process.as_deref_mut() else {
            return;
        };
        let Some(link) = process.engine.link() else {
            return;
        };
        let Some(checkpoint) = link.storage.resumed() else {
            return;
        };
        let positions = checkpoint.position + 1..=link.group.end();
        let entries = positions.filter_map(|at| LogReader::read(&link.storage, at).ok()?);
        let entries: Vec<Entry> = entries.collect();
        let began = Seen::BeganAnew {
            checkpoint: checkpoint.clone(),
        };
        self.watch.see(self.now_us, node, began);
        for entry in entries {
            if let Body::Configuration(configuration) = &entry.body {
                let at = (entry.position, configuration.clone());
                process.configurations.push(at);
            }
            self.watch.see(self.now_us, node, Seen::Appended { entry });
        }
    }

    /// disconnect(): the process asks to leave, and waits for a limited time.
    pub(crate) fn leave(&mut self, node: NodeId) {
        let now = self.now_us;
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        if process.leaving_us.is_some() {
            return;
        }
        process.leaving_us = Some(now);
        let start = process.start;
        self.input(node, start, crate::machine::Input::Leave);
        let at = now + LEAVE_TIMEOUT_US;
        self.queue.push(at, Happening::LeaveEnds(node, start));
    }

    /// Ends a leave that the cluster has not confirmed in time: the process disconnects without confirmation.
    pub(crate) fn leave_ends(&mut self, node: NodeId, start: u64) {
        let (now, now_ms) = (self.now_us, self.now_ms(node));
        let Some(process) = self.machines[node].running(start) else {
            return;
        };
        if process.engine.link().is_none() {
            return;
        }
        let since = process.leaving_us.map_or(0, |at| now - at);
        if since >= LEAVE_TIMEOUT_US + CLOSE_TIMEOUT_US {
            return self.stop(node);
        }
        if !process.progress.closed && since < LEAVE_TIMEOUT_US * 2 {
            let event = trireme_replicator::Event::Left;
            process.engine.node(now_ms, event);
            self.settle(node);
        }
        let at = now + CLOSE_TIMEOUT_US;
        self.queue.push(at, Happening::LeaveEnds(node, start));
    }

    /// Ends the process if its time has come.
    pub(crate) fn meet_fate(&mut self, node: NodeId) {
        let now = self.now_us;
        let disk = &self.machines[node].disk;
        let (reads_fail, failed_syncs) = (disk.is_failing_reads(), disk.failed_syncs());
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        if process.server.has_died() {
            self.tell(|| format!("n{} dies of what it applies", node + 1));
            self.machines[node].back_us = now + RESTART_US;
            return self.crash(node, false);
        }
        let progress = &mut process.progress;
        if let Some(text) = progress.fatal.take() {
            self.coverage.fatals += 1;
            // A failed flush may have lost written entries, whether or not the process has heard of the failure; a
            // disk that fails to read explains the error, too.
            let is_explained = failed_syncs > process.failed_syncs_before || reads_fail;
            if text.contains("cannot be read back") && !process.cut_off && !is_explained {
                let (name, value, limit) = ("write-sets that cannot be read back", 1, 0);
                self.watch.see(now, node, Seen::Size { name, value, limit });
            }
            self.tell(|| format!("n{} aborts: {text}", node + 1));
            self.machines[node].back_us = now + RESTART_US;
            return self.crash(node, false);
        }
        if let Some(reason) = progress.refused.take().filter(|_| self.plan.heeds_refusals) {
            self.coverage.refusals += 1;
            self.tell(|| format!("n{} is refused: {reason}", node + 1));
            self.follows_advice(node);
            self.machines[node].back_us = now + RESTART_US;
            return self.crash(node, false);
        }
        let connected = process.engine.link().is_some() || process.cut_off;
        if !progress.closed || process.server.appliers_running() > 0 || !connected {
            return;
        }
        if process.returns {
            if self.has_left_to_return(node) {
                self.go_without(node);
            }
            return;
        }
        if process.cut_off {
            return self.is_restarted(node);
        }
        if process.leaving_us.is_none() {
            // The node left by itself: the server shuts down, as after an inconsistency.
            self.coverage.expelled += 1;
            self.machines[node].back_us = now + RESTART_US;
        }
        self.stop(node);
    }

    /// Acts as an operator who reads why the node is refused: moves its log and grastate.dat away, so that it joins
    /// with another node's database.
    pub(crate) fn follows_advice(&mut self, node: NodeId) {
        let machine = &mut self.machines[node];
        machine.saved = SavedState::default();
        (machine.disk, machine.aside) = (MemoryDisk::default(), None);
        if let Some(process) = &mut machine.process {
            process.intact = false;
        }
    }

    /// Ends a process that stops by itself.
    pub(crate) fn stop(&mut self, node: NodeId) {
        self.count_process(node);
        self.leaves_log(node);
        let Some(mut process) = self.machines[node].process.take() else {
            return;
        };
        process.engine.drop_link();
        let datadir = process.server.stop(self.now_us, &mut self.watch);
        self.machines[node].left.intact &= self.plan.recovers;
        self.gone(node, datadir, true);
    }

    /// Kills the process: its unwritten data is lost; with `power_loss`, also its unflushed data.
    pub(crate) fn crash(&mut self, node: NodeId, power_loss: bool) {
        self.count_process(node);
        self.leaves_log(node);
        let now = self.now_us;
        let Some(process) = self.machines[node].process.take() else {
            return;
        };
        self.machines[node].doom.kill();
        let detached = std::mem::take(&mut self.machines[node].detached);
        let lost = detached && self.plan.durability != trireme_log::Durability::Disk;
        self.machines[node].doomed &= !detached;
        self.machines[node].left.intact &= self.keeps_log(power_loss) && !lost;
        let random = &mut self.server_random;
        let datadir = (process.server).crash(power_loss, now, random, &mut self.watch);
        if power_loss {
            self.machines[node].boots += 1;
            self.machines[node].mark.lose_power();
            let disk = &self.machines[node].disk;
            disk.lose_power(|| self.server_random.percent(50));
        }
        self.gone(node, datadir, false);
    }

    /// Notes the state of the log of a process that is about to end.
    pub(crate) fn leaves_log(&mut self, node: NodeId) {
        let machine = &mut self.machines[node];
        let Some(process) = &machine.process else {
            return;
        };
        if let Some(link) = process.engine.link() {
            machine.left = Left {
                intact: process.intact,
                commit: link.group.commit(),
                overrides: link.group.checkpoint().overrides.clone(),
            };
        }
    }

    /// Handles the end of a process.
    fn gone(&mut self, node: NodeId, datadir: crate::server::Datadir, clean: bool) {
        let how = if clean { "has stopped" } else { "is dead" };
        self.tell(|| {
            format!(
                "n{} {how}, its database at {}",
                node + 1,
                datadir.position()
            )
        });
        self.machines[node].dying = None;
        self.machines[node].datadir = Some(datadir);
        self.machines[node].saved.ended(clean);
        self.watch.see(self.now_us, node, Seen::Stopped { clean });
        self.close_links(node);
        self.mount(node);
        let back_us = self.machines[node].back_us.max(self.now_us + 1_000);
        let latest_us = self.plan.calm_us.max(self.now_us + RESTART_US);
        self.queue
            .push(back_us.min(latest_us), Happening::Start(node));
    }
}
