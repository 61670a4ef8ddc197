//! A node's steps, one at a time (each says whether anything happened), and all until nothing moves.

use trireme_group::{Delivery, Position};

use super::driver::{Cluster, peer_message};
use super::server::{Applier, Happened};
use crate::{Event, Task, TrxId, Work};

impl Cluster {
    pub fn deliver(&mut self, node: usize) -> bool {
        let at = &self.nodes[node];
        if at.left || at.fatal.is_some() || !at.primary {
            return false;
        }
        let Some(entry) = self.next_entry(node) else {
            return false;
        };
        self.hand(node, entry, true);
        true
    }

    /// The node's log gets the next entry.
    pub fn next_entry(&mut self, node: usize) -> Option<(Position, Delivery)> {
        let at = &mut self.nodes[node];
        let (position, delivery) = self.order.get(at.next).cloned()?;
        at.next += 1;
        at.records.log.insert(position, delivery.clone());
        Some((position, delivery))
    }

    /// The group delivers an entry to the node, and is primary by then, or is not.
    pub fn hand(
        &mut self,
        node: usize,
        (position, delivery): (Position, Delivery),
        in_primary: bool,
    ) {
        let delivered = Event::Delivered {
            position,
            delivery,
            in_primary,
        };
        self.event(node, delivered);
    }

    pub fn receive(&mut self, node: usize) -> bool {
        let Some((from, bytes)) = self.nodes[node].inbox.pop_front() else {
            return false;
        };
        self.event(node, peer_message(from, bytes));
        true
    }

    /// An idle recv() thread looks for work.
    pub fn take_work(&mut self, node: usize) -> bool {
        let at = &mut self.nodes[node];
        if at.server.appliers.len() >= at.threads {
            return false;
        }
        match at.replicator.take_work() {
            None => false,
            Some(Work {
                task: Task::Exit { code },
                ..
            }) => {
                at.server.happened.push(Happened::Exit(code));
                at.threads -= 1;
                at.threads > 0
            }
            Some(work) => {
                at.server.appliers.push(Applier::Started(work));
                true
            }
        }
    }

    pub fn step_applier(&mut self, node: usize, index: usize) -> bool {
        let at = &mut self.nodes[node];
        let low = at.replicator.last_committed().seqno;
        let Some(event) = at.server.step_applier(index, low) else {
            return false;
        };
        self.event(node, event);
        true
    }

    pub fn step_session(&mut self, node: usize, trx: TrxId) -> bool {
        let Some(event) = self.nodes[node].server.step_session(trx) else {
            return false;
        };
        self.event(node, event);
        true
    }

    pub fn step_toi(&mut self, node: usize, conn: u64) -> bool {
        let Some((before, _)) = self.nodes[node].server.tois.get(&conn).cloned() else {
            return false;
        };
        if let Some(event) = self.nodes[node].server.step_toi(conn) {
            self.event(node, event);
        }
        self.nodes[node].server.tois[&conn].0 != before
    }

    /// The time that a node has asked for has come, if it is now.
    pub fn tick_now(&mut self, node: usize) -> bool {
        let due = self.nodes[node].replicator.next_deadline_ms();
        let is_due = due.is_some_and(|at| at <= self.now_ms);
        if is_due {
            self.event(node, Event::Tick);
        }
        is_due
    }

    /// Everything that can happen without time passing happens.
    pub fn settle_now(&mut self) {
        loop {
            let mut any = false;
            for node in 0..self.nodes.len() {
                if self.nodes[node].fatal.is_some() {
                    continue;
                }
                any |= self.deliver(node) | self.receive(node) | self.take_work(node);
                any |= self.tick_now(node);
                for index in (0..self.nodes[node].server.appliers.len()).rev() {
                    any |= self.step_applier(node, index);
                }
                for trx in self.nodes[node]
                    .server
                    .sessions
                    .keys()
                    .copied()
                    .collect::<Vec<_>>()
                {
                    any |= self.step_session(node, trx);
                }
                for conn in self.nodes[node]
                    .server
                    .tois
                    .keys()
                    .copied()
                    .collect::<Vec<_>>()
                {
                    any |= self.step_toi(node, conn);
                }
            }
            if !any {
                return;
            }
        }
    }

    /// Everything happens, and a few seconds pass.
    pub fn settle(&mut self) {
        for _ in 0..20 {
            self.settle_now();
            self.pass(250);
        }
        self.settle_now();
    }

    /// Until who does not move is believed to be slow (flow control).
    pub fn outlast_a_stumble(&mut self) {
        self.settle_now();
        self.pass(60);
        self.settle_now();
    }

    pub fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        for node in 0..self.nodes.len() {
            self.event(node, Event::Tick);
        }
    }
}
