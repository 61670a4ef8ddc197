//! Simulated time, and the driver's duties towards every core.

use std::collections::BTreeMap;

use trireme_group::{Event, HardState, Incarnation, Position, ReplicaId, Term, TimeMs, decode};

use crate::coverage::Coverage;
use crate::judge::Judge;
use crate::kept::Kept;
use crate::network::{BulkPayload, Network};
use crate::plan::Plan;
use crate::process::Process;
use crate::random::Random;
use crate::trace::Trace;

/// Something that happens to a process, or to the world.
#[derive(Debug)]
pub enum Happening {
    Start,
    Fault(usize),
    FaultEnds(usize),
    Connect {
        a: usize,
        b: usize,
    },
    LinkUp {
        other: usize,
        connection: u64,
    },
    LinkDown {
        other: usize,
        connection: u64,
    },
    Arrival {
        from: usize,
        bulk: BulkPayload,
    },
    /// For this process only, not for its successor.
    Input {
        process: Incarnation,
        event: Event,
    },
    Appended {
        process: Incarnation,
        position: Position,
        write: u64,
    },
    Persisted {
        process: Incarnation,
        state: HardState,
    },
    Tick {
        process: Incarnation,
    },
    Think {
        process: Incarnation,
    },
    SayJoined {
        process: Incarnation,
    },
    Exit {
        process: Incarnation,
    },
}

/// Order of what happens at one time: the world first, then by node; a process that was paused
/// reads its sockets before it believes its timers.
type Key = (TimeMs, usize, bool, u64);

/// A data directory, and the process that may run on it.
#[derive(Debug)]
pub struct Node {
    pub replica: ReplicaId,
    pub promised: Term,
    pub starts: u64,
    pub weight: u8,
    pub process: Option<Process>,
    pub last_incarnation: Option<Incarnation>,
    /// What the next process finds.
    pub kept: Option<Kept>,
    /// When a crashed or left node is to run again.
    pub back_at: TimeMs,
}

/// The whole simulation of one plan.
pub struct World {
    pub plan: Plan,
    pub now: TimeMs,
    queue: BTreeMap<Key, Happening>,
    last_key: u64,
    pub nodes: Vec<Node>,
    pub network: Network,
    pub judge: Judge,
    pub random: Random,
    pub trace: Trace,
    pub coverage: Coverage,
    /// When and by which node submissions were acknowledged.
    pub acknowledged: Vec<(TimeMs, usize)>,
    /// Load runs.
    pub busy: bool,
    /// Which of the plan's faults took place.
    pub active: Vec<bool>,
}

impl World {
    pub fn new(plan: Plan, traced: bool) -> World {
        let mut random = Random::new(plan.seed, 3);
        let node = |random: &mut Random| Node {
            replica: ReplicaId(random.uuid()),
            promised: Term::default(),
            starts: 0,
            weight: 1,
            process: None,
            last_incarnation: None,
            kept: None,
            back_at: 0,
        };
        let size = plan.nodes.len();
        let mut world = World {
            now: 0,
            queue: BTreeMap::new(),
            last_key: 0,
            nodes: (0..size).map(|_| node(&mut random)).collect(),
            network: Network::new(&plan),
            judge: Judge::default(),
            random,
            trace: Trace::new(traced),
            coverage: Coverage::default(),
            acknowledged: Vec::new(),
            busy: true,
            active: vec![false; plan.faults.len()],
            plan,
        };
        for node in 0..size {
            let at = world.plan.nodes[node].start_at.min(world.plan.calm_at);
            world.at(at, Some(node), Happening::Start);
            for b in node + 1..size {
                world.at(0, None, Happening::Connect { a: node, b });
            }
        }
        for fault in 0..world.plan.faults.len() {
            let at = world.plan.faults[fault].0;
            world.at(at, None, Happening::Fault(fault));
        }
        world
    }

    pub fn at(&mut self, time: TimeMs, node: Option<usize>, happening: Happening) {
        self.last_key += 1;
        let timer = matches!(happening, Happening::Tick { .. });
        self.queue.insert(
            (
                time.max(self.now),
                node.map_or(0, |n| n + 1),
                timer,
                self.last_key,
            ),
            happening,
        );
    }

    /// Adds a milestone to the trace.
    pub fn note(&mut self, line: impl FnOnce(&Trace) -> String) {
        if self.trace.on {
            let line = line(&self.trace);
            self.trace_line(line, true);
        }
    }

    pub fn trace_line(&mut self, line: String, milestone: bool) {
        self.last_key += 1;
        self.trace.add(
            format!("{:>6} {:>7} {line}", self.now, self.last_key),
            milestone,
        );
    }

    /// Runs until `time`.
    pub fn run_until(&mut self, time: TimeMs) {
        while let Some(entry) = self.queue.first_entry() {
            let (at, owner, timer, key) = *entry.key();
            if at > time {
                break;
            }
            let happening = entry.remove();
            self.now = at;
            let Some(node) = owner.checked_sub(1) else {
                self.world_happening(happening);
                continue;
            };
            let paused_until = self.nodes[node]
                .process
                .as_ref()
                .map_or(0, |p| p.paused_until);
            if paused_until > at {
                self.queue
                    .insert((paused_until, owner, timer, key), happening);
                continue;
            }
            let term = self.nodes[node].process.as_ref().map(|p| p.group.term());
            let mut touched = self.happens(node, happening);
            // A batch: what happens to the same process at the same time.
            while self.random.percent(70) {
                let Some(entry) = self.queue.first_entry() else {
                    break;
                };
                if (entry.key().0, entry.key().1) != (at, owner) {
                    break;
                }
                // Completions come ahead of all else: they are about the log as it is on disk.
                if matches!(entry.get(), Happening::Appended { .. }) {
                    break;
                }
                let happening = entry.remove();
                touched |= self.happens(node, happening);
            }
            if touched {
                self.flush(node, term.unwrap_or_default());
            }
        }
        self.now = time;
    }

    fn world_happening(&mut self, happening: Happening) {
        match happening {
            Happening::Fault(index) => self.fault(index),
            Happening::FaultEnds(index) => self.fault_ends(index),
            Happening::Connect { a, b } => self.connect(a, b),
            other => unreachable!("harness: {other:?} belongs to a node"),
        }
    }

    /// Carries a happening to the node's process; true if its core was touched.
    fn happens(&mut self, node: usize, happening: Happening) -> bool {
        if let Happening::Start = happening {
            return self.start(node);
        }
        if let Happening::LinkDown { other, connection } = happening {
            let peer = self.network.set_down(node, other, connection);
            return peer
                .is_some_and(|incarnation| self.input(node, Event::PeerDown { incarnation }));
        }
        let Some(me) = self.nodes[node].process.as_ref().map(|p| p.incarnation) else {
            return false;
        };
        match happening {
            Happening::LinkUp { other, connection } => {
                let Some(incarnation) = self.network.set_up(node, other, connection) else {
                    return false;
                };
                let replica = self.nodes[other].replica;
                self.input(
                    node,
                    Event::PeerUp {
                        replica,
                        incarnation,
                    },
                )
            }
            Happening::Arrival { from, bulk } => {
                let Some(sender) = self.network.receive(from, node, bulk.connection) else {
                    return false;
                };
                let message = decode(bulk.bytes).expect("harness: what was encoded decodes");
                self.input(
                    node,
                    Event::Message {
                        from: sender,
                        message,
                    },
                )
            }
            Happening::Input { process, event } if process == me => self.input(node, event),
            Happening::Appended {
                process,
                position,
                write,
            } if process == me => {
                let process = self.process(node);
                // What was dropped meanwhile would count for its successor.
                if !process.log.holds(position, write) {
                    return false;
                }
                process.durable = process.durable.max(position);
                self.input(node, Event::Appended { position })
            }
            Happening::Persisted { process, state } if process == me => {
                let promised = state.promised;
                self.nodes[node].promised = promised;
                self.process(node).persisted = promised;
                self.input(node, Event::Persisted { promised })
            }
            Happening::Tick { process } if process == me => {
                let now = self.now;
                let process = self.process(node);
                process.tick_at = None;
                if now + process.clock_ms < process.group.next_deadline() {
                    self.schedule_tick(node);
                    return false;
                }
                self.input(node, Event::Tick)
            }
            Happening::Think { process } if process == me => self.think(node),
            Happening::SayJoined { process } if process == me => self.say_joined(node),
            Happening::Exit { process } if process == me => {
                self.exit(node);
                false
            }
            _ => false,
        }
    }

    pub fn process(&mut self, node: usize) -> &mut Process {
        self.nodes[node]
            .process
            .as_mut()
            .expect("the caller has seen the process")
    }
}
