//! Processes come and go, links break and heal.

use trireme_group::{Event, Incarnation, Recovered, TimeMs, Uuid};

use crate::plan::Fault;
use crate::process::Process;
use crate::world::{Happening, World};

/// Timeout of a graceful leave.
const LEAVE_TIMEOUT_MS: TimeMs = 3_000;

impl World {
    /// A process starts on the node's data directory.
    pub fn start(&mut self, node: usize) -> bool {
        if self.nodes[node].process.is_some() {
            return false;
        }
        let incarnation = Incarnation(self.random.uuid());
        let clock_ms = self.random.within(0..=1_000_000);
        let this = &mut self.nodes[node];
        let kept = this.kept.take();
        let recovered = Recovered {
            promised: this.promised,
            amnesiac: kept.as_ref().map_or(this.starts > 0, |kept| kept.amnesiac),
            lost_views: false,
            log: kept.map(|kept| kept.log),
            ..Recovered::default()
        };
        self.coverage.resumed += u64::from(recovered.log.is_some());
        this.starts += 1;
        let name = format!("n{node}.{}", this.starts);
        self.trace
            .name(this.replica, format!("n{node}"), incarnation, name.clone());
        let me = (this.replica, incarnation, this.weight);
        let first = this.starts == 1;
        this.process = Some(Process::new(
            &self.plan, name, me, recovered, self.now, clock_ms,
        ));
        this.last_incarnation = Some(incarnation);
        self.note(|trace| format!("{} starts", trace.process(incarnation)));
        let at = self.now + self.random.within(1..=200);
        self.at(
            at,
            Some(node),
            Happening::Think {
                process: incarnation,
            },
        );
        if node == 0 && first {
            let history = Uuid([0x42; 16]);
            self.input(
                node,
                Event::Bootstrap {
                    history,
                    overrides: Vec::new(),
                    override_id: None,
                },
            );
        }
        true
    }

    /// The process is gone, by itself or by kill -9; its kernel closes its connections.
    pub fn exit(&mut self, node: usize) {
        let Some(process) = self.nodes[node].process.take() else {
            return;
        };
        self.note(|_| format!("{} is gone", process.name));
        self.coverage.count(process.group.counters());
        self.judge.crashed(process.incarnation);
        self.nodes[node].kept = process.keep(&self.plan, &mut self.random);
        for other in 0..self.nodes.len() {
            let Some(connection) = self.network.connection(node, other).map(|c| c.id) else {
                continue;
            };
            self.network.break_connection(node, other);
            self.network.set_down(node, other, connection);
            let delay = self.notice_delay(node, other);
            self.at(
                self.now + delay,
                Some(other),
                Happening::LinkDown {
                    other: node,
                    connection,
                },
            );
        }
        let back_at = self.nodes[node]
            .back_at
            .max(self.now + 1)
            .min(self.plan.calm_at.max(self.now + 100));
        self.at(back_at, Some(node), Happening::Start);
    }

    /// How long `to` takes to notice that the connection from `from` is broken.
    fn notice_delay(&mut self, from: usize, to: usize) -> TimeMs {
        let cut = self.network.is_cut(from, to);
        let delay = self.network.delay(from, to);
        delay
            + self
                .network
                .random()
                .within(if cut { 500..=5_000 } else { 0..=10 })
    }

    fn break_link(&mut self, a: usize, b: usize) {
        if let Some(connection) = self.network.break_connection(a, b) {
            for (node, other) in [(a, b), (b, a)] {
                let delay = self.notice_delay(other, node);
                self.at(
                    self.now + delay,
                    Some(node),
                    Happening::LinkDown { other, connection },
                );
            }
        }
    }

    /// The two try to connect, and will try again.
    pub fn connect(&mut self, a: usize, b: usize) {
        let again = self.now + self.random.within(20..=200);
        self.at(again, None, Happening::Connect { a, b });
        if self.network.connection(a, b).is_some()
            || self.network.is_cut(a, b)
            || self.network.is_cut(b, a)
        {
            return;
        }
        let now = self.now;
        let living = |node: usize| {
            let process = self.nodes[node].process.as_ref()?;
            Some((process.incarnation, process.paused_until > now))
        };
        match (living(a), living(b)) {
            (Some((a_process, false)), Some((b_process, false))) => {
                let (connection, a_up, b_up) =
                    self.network.connect(now, (a, a_process), (b, b_process));
                self.at(
                    a_up,
                    Some(a),
                    Happening::LinkUp {
                        other: b,
                        connection,
                    },
                );
                self.at(
                    b_up,
                    Some(b),
                    Happening::LinkUp {
                        other: a,
                        connection,
                    },
                );
            }
            // Connection refused: nobody listens there.
            (Some((process, _)), None) => self.refused(a, process, b),
            (None, Some((process, _))) => self.refused(b, process, a),
            _ => {}
        }
    }

    fn refused(&mut self, node: usize, process: Incarnation, by: usize) {
        if let Some(incarnation) = self.nodes[by].last_incarnation {
            let at = self.now + self.network.delay(by, node);
            self.at(
                at,
                Some(node),
                Happening::Input {
                    process,
                    event: Event::PeerDead { incarnation },
                },
            );
        }
    }

    /// Starts a fault of the plan.
    pub fn fault(&mut self, index: usize) {
        let fault = self.plan.faults[index].1.clone();
        let now = self.now;
        let calm_at = self.plan.calm_at;
        let for_ms = match &fault {
            Fault::Cut {
                from,
                to,
                both,
                for_ms,
                ..
            } => {
                for &from in from {
                    for &to in to {
                        self.network.cut(from, to);
                        if *both {
                            self.network.cut(to, from);
                        }
                    }
                }
                *for_ms
            }
            Fault::Reset { a, b } => {
                self.break_link(*a, *b);
                0
            }
            Fault::Pause { node, for_ms } => {
                let Some(process) = &mut self.nodes[*node].process else {
                    return;
                };
                process.paused_until = process.paused_until.max((now + for_ms).min(calm_at));
                *for_ms
            }
            Fault::Crash { node, for_ms } => {
                if self.nodes[*node].process.is_none() || !self.survivable(*node) {
                    return;
                }
                self.nodes[*node].back_at = now + for_ms;
                self.coverage.crashes += 1;
                self.exit(*node);
                0
            }
            Fault::Blackout { for_ms } => {
                if self.plan.power_loss_percent > 0 {
                    return;
                }
                for node in 0..self.nodes.len() {
                    self.nodes[node].back_at = now + for_ms + self.random.within(0..=500);
                    self.coverage.crashes += 1;
                    self.exit(node);
                }
                0
            }
            Fault::Leave { node, for_ms } => {
                if !self.survivable(*node) {
                    return;
                }
                let Some(process) = &mut self.nodes[*node].process else {
                    return;
                };
                process.leaving = true;
                let process = process.incarnation;
                self.nodes[*node].back_at = now + for_ms;
                self.at(
                    now,
                    Some(*node),
                    Happening::Input {
                        process,
                        event: Event::Leave,
                    },
                );
                self.at(
                    now + LEAVE_TIMEOUT_MS,
                    Some(*node),
                    Happening::Exit { process },
                );
                0
            }
            Fault::Overflow { from, to, for_ms } => {
                self.network.set_overflow(*from, *to, true);
                *for_ms
            }
            Fault::Weight { node, weight } => {
                self.nodes[*node].weight = *weight;
                let Some(process) = &self.nodes[*node].process else {
                    return;
                };
                let process = process.incarnation;
                let event = Event::SetWeight { weight: *weight };
                self.at(now, Some(*node), Happening::Input { process, event });
                0
            }
        };
        self.note(|_| format!("FAULT {fault:?}"));
        self.active[index] = true;
        self.at(
            (now + for_ms).min(calm_at),
            None,
            Happening::FaultEnds(index),
        );
    }

    /// Ends it.
    pub fn fault_ends(&mut self, index: usize) {
        let fault = self.plan.faults[index].1.clone();
        match &fault {
            Fault::Cut {
                from,
                to,
                both,
                reset,
                ..
            } => {
                for &a in from {
                    for &b in to {
                        if *reset {
                            self.break_link(a, b);
                        }
                        self.heal(a, b);
                        if *both {
                            self.heal(b, a);
                        }
                    }
                }
            }
            Fault::Overflow { from, to, .. } => {
                self.network.set_overflow(*from, *to, false);
                let up = self
                    .network
                    .connection(*from, *to)
                    .filter(|c| c.up == [true; 2] && !c.broken);
                let processes = (
                    self.nodes[*from].last_incarnation,
                    self.nodes[*to].last_incarnation,
                );
                if let (Some(_), (Some(process), Some(incarnation))) = (up, processes) {
                    let event = Event::PeerDrained { incarnation };
                    self.at(self.now, Some(*from), Happening::Input { process, event });
                }
            }
            _ => return,
        }
        self.note(|_| format!("ENDS {fault:?}"));
    }

    fn heal(&mut self, from: usize, to: usize) {
        for (at, bulk) in self.network.heal(self.now, from, to) {
            self.at(at, Some(to), Happening::Arrival { from, bulk });
        }
        if let Some(connection) = self
            .network
            .connection(from, to)
            .filter(|c| c.broken)
            .map(|c| c.id)
        {
            let delay = self.notice_delay(from, to);
            self.at(
                self.now + delay,
                Some(to),
                Happening::LinkDown {
                    other: from,
                    connection,
                },
            );
        }
    }
}
