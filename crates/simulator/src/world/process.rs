//! The inputs of one process. It handles one after the other, each to its end, as under the provider's lock. While a
//! process is at work, or paused, its inputs wait.

use trireme_group::Event;

use super::outlet::Outlet;
use super::{Happening, World};
use crate::machine::{Input, Machine};
use crate::network::Sent;
use crate::seen::{NodeId, Seen, TimeUs};
use crate::server::{Ctx, Next};

/// Borrows the parts of a node that its engine's host effects need; evaluates to (process's engine, outlet).
macro_rules! parts {
    ($world:expr, $node:expr) => {
        parts!($world, $node, return)
    };
    ($world:expr, $node:expr, $otherwise:expr) => {{
        let Machine {
            process: Some(process),
            promised,
            last_log,
            saved,
            votes_fail,
            doom,
            disk,
            ..
        } = &mut $world.machines[$node]
        else {
            $otherwise;
        };
        let process = &mut **process;
        let outlet = Outlet {
            now_us: $world.now_us,
            node: $node,
            incarnation: process.incarnation,
            server: &mut process.server,
            progress: &mut process.progress,
            promised,
            last_log,
            saved,
            votes_fail: *votes_fail,
            outbox: &mut $world.outbox,
            doom: &*doom,
            disk: &*disk,
            configurations: &mut process.configurations,
            control_shown: &mut process.control_shown,
            views: &mut $world.views,
            watch: &mut $world.watch,
        };
        (&mut process.engine, outlet)
    }};
}

impl World {
    /// Gives an input to a process, now or as soon as the process is free.
    pub(crate) fn input(&mut self, node: NodeId, start: u64, input: Input) {
        let now = self.now_us;
        let machine = &mut self.machines[node];
        let process = if input.is_of_connection() {
            machine.running(start)
        } else {
            machine.alive(start)
        };
        let Some(process) = process else {
            return self.missed(node, input);
        };
        if process.free_us > now || process.reacting {
            process.inbox.push_back(input);
            if !process.reacting {
                process.reacting = true;
                let at = process.free_us;
                self.queue.push(at, Happening::React(node, start));
            }
            return;
        }
        self.take(node, input);
        self.settle(node);
    }

    /// Handles the inbox of a process that is free again: all its inputs are one batch, as for the reactor.
    pub(crate) fn react(&mut self, node: NodeId, start: u64) {
        let now = self.now_us;
        let Some(process) = self.machines[node].alive(start) else {
            return;
        };
        if process.free_us > now {
            let at = process.free_us;
            return self.queue.push(at, Happening::React(node, start));
        }
        process.reacting = false;
        let mut inbox = std::mem::take(&mut process.inbox);
        for input in inbox.drain(..) {
            if self.machines[node].process.is_none() {
                self.missed(node, input); // the process died of the input before
                continue;
            }
            self.take(node, input);
            self.carry_out(node);
        }
        if let Some(process) = self.machines[node].alive(start) {
            process.inbox = inbox; // kept for its capacity
        }
        self.advance_time(node);
        self.settle(node);
    }

    /// Handles a deadline, if it is still the planned one.
    pub(crate) fn tick(&mut self, node: NodeId, start: u64) {
        let now = self.now_us;
        let Some(process) = self.machines[node].running(start) else {
            return;
        };
        if process.tick_us != now {
            return;
        }
        process.tick_us = TimeUs::MAX;
        if process.free_us > now || process.reacting {
            // The process looks at its clock when it is free.
            if !process.reacting {
                process.reacting = true;
                let at = process.free_us;
                self.queue.push(at, Happening::React(node, start));
            }
            return;
        }
        self.advance_time(node);
        self.settle(node);
    }

    fn advance_time(&mut self, node: NodeId) {
        let now_ms = self.now_ms(node);
        if let Some(process) = &mut self.machines[node].process {
            process.progress.in_reactor = true;
            process.engine.tick(now_ms);
        }
    }

    /// The reading of the node's clock.
    pub(crate) fn now_ms(&self, node: NodeId) -> u64 {
        self.machines[node].clock.now_ms(self.now_us)
    }

    /// Hands one input to the process.
    fn take(&mut self, node: NodeId, input: Input) {
        let now_us = self.now_us;
        let now_ms = self.now_ms(node);
        if let Some(process) = &mut self.machines[node].process {
            process.progress.in_reactor = input.is_for_reactor();
        }
        match input {
            Input::Frame(from, bulk) => {
                let Some(start) = self.network.receive(now_us, from, node, &bulk) else {
                    return;
                };
                let sender = self.machines[from].incarnation(start);
                let Some(process) = &mut self.machines[node].process else {
                    return;
                };
                let taken = process.engine.frame(now_ms, sender, &bulk.bytes);
                if let Err(why) = taken {
                    self.drop_peer(node, from, &why);
                }
            }
            Input::LinkUp(other, connection) => self.link_up(node, other, connection),
            Input::LinkDown(other, connection) => self.link_down(node, other, connection),
            Input::Group(event) => self.group(node, *event),
            Input::Step(thread, at) => self.step(node, thread, at),
            Input::ScriptEnded(cargo) => {
                if let Some(process) = &mut self.machines[node].process {
                    process.server.script_ended(cargo);
                }
            }
            Input::DonationEnded(thread, ok) => {
                if let Some(process) = &mut self.machines[node].process {
                    process.server.donation_ended(thread, ok);
                }
            }
            Input::Flushed(flush) => {
                if let Some(process) = &mut self.machines[node].process {
                    process.engine.flushed(now_ms, flush.end());
                }
            }
            Input::OwnFlush => self.flush_in_reactor(node),
            Input::Staged(job) => {
                if let Some(process) = &mut self.machines[node].process {
                    let next = process.engine.staged(now_ms, job.end());
                    process.progress.stages.extend(next);
                }
            }
            Input::Served(job) => {
                if let Some(process) = &mut self.machines[node].process {
                    process.engine.served(job.end());
                }
            }
            Input::Leave => {
                if let Some(process) = &mut self.machines[node].process {
                    process.server.disconnecting();
                    let event = trireme_replicator::Event::Disconnect;
                    process.engine.node(now_ms, event);
                }
            }
        }
    }

    pub(crate) fn group(&mut self, node: NodeId, event: Event) {
        let now_ms = self.now_ms(node);
        if let Some(process) = &mut self.machines[node].process {
            process.engine.group(now_ms, event);
        }
    }

    fn step(&mut self, node: NodeId, thread: usize, at: TimeUs) {
        let (now_us, now_ms) = (self.now_us, self.now_ms(node));
        let process = self.machines[node].process.as_ref();
        let may_fail = process.is_some_and(|p| p.server.may_fail())
            && self.survivable(node)
            && self.others_have_state(node);
        let is_hindered = self.machines[node].hangs_until_us > now_us || self.lacks_majority(node);
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        if process.steps_us[thread] != at {
            return;
        }
        process.steps_us[thread] = 0;
        let mut ctx = Ctx {
            now_us,
            now_ms,
            node,
            engine: &mut process.engine,
            random: &mut self.server_random,
            watch: &mut self.watch,
            may_fail,
            is_hindered,
            transfers: &mut self.transfers,
        };
        let next = process.server.step(thread, &mut ctx);
        self.coverage.steps += 1;
        if let Next::After(us) = next {
            self.plan_step(node, thread, now_us + us.max(1));
        }
    }

    fn plan_step(&mut self, node: NodeId, thread: usize, at: TimeUs) {
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        if process.steps_us.len() <= thread {
            process.steps_us.resize(thread + 1, 0);
        }
        process.steps_us[thread] = at;
        let happening = Happening::To(node, process.start, Input::Step(thread, at));
        self.queue.push(at, happening);
    }

    /// Carries out the replicator's actions, which must happen before its next event.
    fn carry_out(&mut self, node: NodeId) {
        let now_ms = self.now_ms(node);
        let done = {
            let (engine, mut outlet) = parts!(self, node);
            let doom = outlet.doom;
            doom.within(|| engine.carry_out(now_ms, &mut outlet))
        };
        if done.is_none() {
            self.dies_within(node);
        }
    }

    /// Carries out everything that follows from the inputs. False: the process died meanwhile.
    fn pump(&mut self, node: NodeId) -> bool {
        let now_ms = self.now_ms(node);
        let done = 'done: {
            let (engine, mut outlet) = parts!(self, node, break 'done None);
            let doom = outlet.doom;
            doom.within(|| engine.pump(now_ms, &mut outlet))
        };
        if done.is_none() && self.machines[node].process.is_some() {
            self.dies_within(node);
        }
        done.is_some()
    }

    /// Ends a batch: carries out everything, then looks at the result.
    pub(crate) fn settle(&mut self, node: NodeId) {
        if !self.pump(node) || self.renew_own_flush(node) && !self.pump(node) {
            return;
        }
        self.charge(node);
        self.plan_disk_work(node);
        self.see_failure(node);
        self.release_frames(node);
        if self.machines[node].doom.is_dead() && self.machines[node].process.is_some() {
            return self.dies_within(node);
        }
        self.plan_steps(node);
        self.take_reforming(node);
        self.take_views(node);
        self.show_component_state(node);
        self.show_moved_control(node);
        self.plan_tick(node);
        for transfer in std::mem::take(&mut self.transfers) {
            self.begin_transfer(node, transfer);
        }
        self.meet_fate(node);
    }

    fn release_frames(&mut self, node: NodeId) {
        self.show_acknowledgement(node);
        if self.outbox.is_empty() {
            return;
        }
        let Some(process) = &self.machines[node].process else {
            return;
        };
        let sent_us = process.free_us.max(self.now_us);
        let doom = self.machines[node].doom.clone();
        let mut outbox = std::mem::take(&mut self.outbox);
        for (peer, bytes) in outbox.drain(..) {
            if !doom.does_step() {
                break; // the process dies while it sends
            }
            let known = |machine: &Machine| machine.incarnations.last() == Some(&peer);
            let Some(to) = self.machines.iter().position(known) else {
                continue;
            };
            let to_start = self.machines[to].starts();
            self.coverage.frames += 1;
            let bytes = self.lie(node, to, bytes);
            match self.network.send(sent_us, node, (to, to_start), bytes) {
                Sent::Arrives(bulk, at, again) => {
                    if let Some(again) = again {
                        let input = Input::Frame(node, bulk.clone());
                        let happening = Happening::To(to, to_start, input);
                        self.queue.push(again, happening);
                        self.coverage.duplicates += 1;
                    }
                    let input = Input::Frame(node, bulk);
                    self.queue.push(at, Happening::To(to, to_start, input));
                }
                Sent::Held => {}
                Sent::Dropped => self.coverage.dropped += 1,
            }
        }
        self.outbox = outbox; // kept for its capacity
    }

    fn show_acknowledgement(&mut self, node: NodeId) {
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        let progress = &mut process.progress;
        let said = progress.acknowledged.take();
        if let Some((term, position)) = said.filter(|said| *said > progress.has_acknowledged) {
            progress.has_acknowledged = (term, position);
            let what = Seen::Acknowledged { term, position };
            self.watch.see(self.now_us, node, what);
        }
    }

    fn plan_steps(&mut self, node: NodeId) {
        let mut runnable = std::mem::take(&mut self.runnable);
        if let Some(process) = &mut self.machines[node].process {
            process.server.take_runnable(&mut runnable);
            let from = process.free_us.max(self.now_us);
            let slow = self.machines[node].slow;
            for thread in runnable.drain(..) {
                let delay = self.random.within(1..=self.plan.nodes[node].wake_us) * slow;
                self.plan_step(node, thread, from + delay);
            }
        }
        self.runnable = runnable; // kept for its capacity
    }

    /// Reports that the node has reformed the cluster from the best log of the heard nodes.
    fn take_reforming(&mut self, node: NodeId) {
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        let heard = std::mem::take(&mut process.progress.reforms_with);
        if heard.is_empty() {
            return;
        }
        self.coverage.reformed += 1;
        let machines = self.machines.iter().enumerate();
        let is_heard = |machine: &Machine| {
            let process = machine.process.as_deref();
            process.is_some_and(|process| heard.contains(&process.incarnation))
        };
        let heard = machines.filter(|(_, machine)| is_heard(machine));
        let heard = heard.map(|(node, _)| node).collect();
        self.watch.see(self.now_us, node, Seen::Reformed { heard });
    }

    fn take_views(&mut self, node: NodeId) {
        let mut views = std::mem::take(&mut self.views);
        for (position, configuration) in views.drain(..) {
            self.view_delivered(node, position, configuration);
        }
        self.views = views; // kept for its capacity
    }

    fn show_component_state(&mut self, node: NodeId) {
        let now = self.now_us;
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        let Some(link) = process.engine.link() else {
            return;
        };
        process.commit = link.group.commit();
        let component_state = link.group.component_state();
        if process.component_state != component_state {
            process.component_state = component_state;
            let view = link.group.configuration().number;
            let history = link.group.history();
            let what = Seen::ComponentState {
                component_state,
                view,
                history,
            };
            self.watch.see(now, node, what);
        }
    }

    pub(crate) fn plan_tick(&mut self, node: NodeId) {
        let now = self.now_us;
        let machine = &mut self.machines[node];
        let Some(process) = &mut machine.process else {
            return;
        };
        let Some(due_ms) = process.engine.next_deadline_ms() else {
            return;
        };
        // A passed deadline is planned for the next millisecond, so that time goes on.
        let due = machine.clock.world_us(due_ms).max(now + 500);
        if due < process.tick_us {
            process.tick_us = due;
            self.queue.push(due, Happening::Tick(node, process.start));
        }
    }
}
