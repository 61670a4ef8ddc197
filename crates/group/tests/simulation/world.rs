//! Simulated time, and the driver's duties towards every core.

use std::collections::BTreeMap;

use bytes::Bytes;
use trireme_group::{
    Action, Ballot, Body, Counters, Delivery, Event, Fate, HardState, Incarnation, Message,
    Position, ReplicaId, Standing, TimeMs, decode, encode,
};

use crate::judge::{self, JOINED, Judge};
use crate::network::{Network, Parcel};
use crate::plan::Plan;
use crate::process::{Answer, Process};
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
        parcel: Parcel,
    },
    /// For this process only, not for its successor.
    Input {
        process: Incarnation,
        event: Event,
    },
    Appended {
        process: Incarnation,
        position: Position,
        ballot: Ballot,
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
    pub promised: Ballot,
    pub starts: u64,
    pub weight: u8,
    pub process: Option<Process>,
    pub last_incarnation: Option<Incarnation>,
    /// When a crashed or left node is to run again.
    pub back_at: TimeMs,
}

/// What happened in a run, to know that the seeds reach what they are to test.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage {
    pub crashes: u64,
    pub leaves: u64,
    pub forced_exits: u64,
    pub resets: u64,
    pub truncations: u64,
    pub withdrawn: u64,
    pub unknown: u64,
    pub late_commits: u64,
    pub non_primary: u64,
    pub acknowledged: u64,
    pub reads: u64,
    pub views: u64,
    pub offices_taken: u64,
    pub voided: u64,
}

impl Coverage {
    pub fn add(&mut self, other: Coverage) {
        for (mine, theirs) in self.counts().into_iter().zip(other.clone().counts()) {
            *mine += *theirs;
        }
    }

    fn counts(&mut self) -> [&mut u64; 14] {
        [
            &mut self.crashes,
            &mut self.leaves,
            &mut self.forced_exits,
            &mut self.resets,
            &mut self.truncations,
            &mut self.withdrawn,
            &mut self.unknown,
            &mut self.late_commits,
            &mut self.non_primary,
            &mut self.acknowledged,
            &mut self.reads,
            &mut self.views,
            &mut self.offices_taken,
            &mut self.voided,
        ]
    }

    /// Many seeds together reach everything.
    pub fn is_complete(mut self) {
        let text = format!("{self:?}");
        assert!(
            self.counts().into_iter().all(|count| *count > 0),
            "the seeds do not reach everything: {text}"
        );
    }
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
            promised: Ballot::default(),
            starts: 0,
            weight: 1,
            process: None,
            last_incarnation: None,
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

    fn trace_line(&mut self, line: String, milestone: bool) {
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
            let ballot = self.nodes[node].process.as_ref().map(|p| p.group.ballot());
            let mut touched = self.happens(node, happening);
            // A batch: what happens to the same process at the same time.
            while self.random.percent(70) {
                let Some(entry) = self.queue.first_entry() else {
                    break;
                };
                if (entry.key().0, entry.key().1) != (at, owner) {
                    break;
                }
                let happening = entry.remove();
                touched |= self.happens(node, happening);
            }
            if touched {
                self.flush(node, ballot.unwrap_or_default());
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
            Happening::Arrival { from, parcel } => {
                let Some(sender) = self.network.receive(from, node, parcel.connection) else {
                    return false;
                };
                let message = decode(parcel.bytes).expect("harness: what was encoded decodes");
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
                ballot,
            } if process == me => {
                let process = self.process(node);
                // Cut off or written anew meanwhile: the log would not say so.
                if process
                    .log
                    .get(position)
                    .is_none_or(|entry| entry.ballot != ballot)
                {
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

    pub fn input(&mut self, node: usize, event: Event) -> bool {
        if self.trace.on {
            let line = format!(
                "{} {}",
                self.process(node).name.clone(),
                self.trace.event(&event)
            );
            let routine = match &event {
                Event::Message { message, .. } => Trace::is_routine(message),
                Event::Tick | Event::Appended { .. } => true,
                Event::Read { .. } | Event::PeerDead { .. } => true,
                _ => false,
            };
            self.trace_line(line, !routine);
        }
        let now = self.now;
        let process = self.process(node);
        process.group.handle(now + process.clock_ms, event);
        true
    }

    /// Submits, as the next number.
    pub fn submit(&mut self, node: usize, payload: Bytes) -> u64 {
        let now = self.now;
        let process = self.process(node);
        process.last_number += 1;
        let number = process.last_number;
        process.submissions.insert(number, Answer::Waiting);
        process
            .group
            .submit(now + process.clock_ms, number, payload);
        if self.trace.on {
            let line = format!("{} submits {number}", self.process(node).name);
            self.trace_line(line, false);
        }
        number
    }

    pub fn read(&mut self, node: usize) {
        let must_see = self.judge.last_acknowledged();
        let process = self.process(node);
        process.last_token += 1;
        let token = process.last_token;
        process.reads.insert(token, must_see);
        self.input(node, Event::Read { token });
    }

    pub fn schedule_tick(&mut self, node: usize) {
        let now = self.now;
        let process = self.process(node);
        let due = process
            .group
            .next_deadline()
            .saturating_sub(process.clock_ms)
            .max(now + 1);
        if process.tick_at.is_none_or(|at| due < at) {
            process.tick_at = Some(due);
            let process = process.incarnation;
            self.at(due, Some(node), Happening::Tick { process });
        }
    }

    /// Ends a batch and carries out what comes of it; until nothing does.
    pub fn flush(&mut self, node: usize, mut ballot: Ballot) {
        loop {
            let mut actions = Vec::new();
            let Some(process) = &mut self.nodes[node].process else {
                return;
            };
            process.group.flush(&process.log, &mut actions);
            for action in actions {
                self.carry_out(node, action, ballot);
            }
            let process = self.process(node);
            assert!(
                process.entrance.is_none(),
                "{} does not deliver its checkpoint's view",
                process.name
            );
            let upto = process.group.commit();
            self.judge_commits(node, upto, ballot);
            let committed = self.process(node).committed;
            let joined = self.judge.joined_at(committed);
            let process = self.process(node);
            let standing = process.group.standing();
            if process.standing != standing {
                process.standing = standing;
                let line = format!("{} is {standing:?}", process.name);
                self.coverage.non_primary += u64::from(standing == Standing::NonPrimary);
                self.note(|_| line);
            }
            let process = self.process(node);
            if process.joined == joined {
                break;
            }
            process.joined = joined.clone();
            ballot = process.group.ballot();
            self.input(
                node,
                Event::Joined {
                    members: joined.into_iter().collect(),
                },
            );
        }
        self.schedule_tick(node);
    }

    fn carry_out(&mut self, node: usize, action: Action, ballot: Ballot) {
        if self.trace.on {
            let line = format!(
                "{}   {}",
                self.process(node).name.clone(),
                self.trace.action(&action)
            );
            let routine = match &action {
                Action::Send { message, .. } => Trace::is_routine(message),
                Action::Append { entry } => entry.submission().is_some(),
                Action::Deliver { delivery, .. } => matches!(delivery, Delivery::Submission { .. }),
                Action::ReadPoint { .. } | Action::ReadFailed { .. } | Action::Failed { .. } => {
                    true
                }
                _ => false,
            };
            self.trace_line(line, !routine);
        }
        let disk_ms = self.random.within(0..=self.plan.disk_ms);
        let now = self.now;
        let process = self.nodes[node]
            .process
            .as_mut()
            .expect("actions come from a process");
        let me = process.incarnation;
        match action {
            Action::Send { to, message } => self.send(node, &to, &message),
            Action::Append { entry } => {
                let (position, ballot) = (entry.position, entry.ballot);
                let proposes =
                    matches!(entry.body, Body::Configuration(_)) && process.group.is_sequencer();
                process.log.append(entry);
                if proposes {
                    judge::one_change_at_a_time(
                        &process.name,
                        process.log.above(process.group.commit()),
                    );
                }
                if self.plan.append_is_durable {
                    process.durable = position;
                } else {
                    let at = process.disk(now, disk_ms);
                    self.at(
                        at,
                        Some(node),
                        Happening::Appended {
                            process: me,
                            position,
                            ballot,
                        },
                    );
                }
            }
            Action::Truncate { after } => {
                assert!(
                    after >= process.committed,
                    "rule 1: {} truncates what it has delivered",
                    process.name
                );
                process.log.truncate(after);
                process.durable = process.durable.min(after);
                self.coverage.truncations += 1;
            }
            Action::Reset { checkpoint } => {
                if let Some(upto) = process.deliveries.last().map(|(position, _)| *position) {
                    self.judge_commits(node, upto, ballot);
                }
                let process = self.nodes[node].process.as_mut().expect("as above");
                self.judge
                    .reset(&process.name, process.committed, &checkpoint);
                process.log.reset(&checkpoint);
                process.committed = checkpoint.position;
                process.durable = checkpoint.position;
                let seat = checkpoint.configuration.member(me);
                process.voter = seat.is_some_and(|m| m.voter);
                process.entrance = seat.map(|_| checkpoint.configuration.clone());
                self.coverage.resets += 1;
                self.at(now, Some(node), Happening::SayJoined { process: me });
            }
            Action::Persist(state) => {
                let at = process.disk(now, disk_ms);
                self.at(at, Some(node), Happening::Persisted { process: me, state });
            }
            Action::Deliver { position, delivery } => match process.entrance.take() {
                Some(view) => {
                    let expected = (process.committed, Delivery::Configuration(view));
                    assert_eq!(
                        (position, delivery),
                        expected,
                        "the view of {}'s checkpoint",
                        process.name
                    );
                }
                None => process.deliveries.push((position, delivery)),
            },
            Action::NonPrimary { component } => {
                let sorted = component
                    .windows(2)
                    .all(|pair| pair[0].incarnation < pair[1].incarnation);
                let me = component.iter().any(|m| m.incarnation == me);
                assert!(
                    sorted && me,
                    "rule 20: {} lists a component without itself or unsorted",
                    process.name
                );
            }
            Action::Failed { id, fate } => {
                assert_eq!(
                    id.incarnation, me,
                    "{} answers for another member",
                    process.name
                );
                self.judge.failed(&process.name, id, fate);
                let answer = match fate {
                    Fate::Withdrawn => Answer::Withdrawn,
                    Fate::Unknown => Answer::Unknown,
                };
                let before = process.submissions.insert(id.number, answer);
                assert_eq!(
                    before,
                    Some(Answer::Waiting),
                    "{}: {id} is answered twice",
                    process.name
                );
                process.saying_joined = false;
                self.coverage.withdrawn += u64::from(fate == Fate::Withdrawn);
                self.coverage.unknown += u64::from(fate == Fate::Unknown);
                self.at(now + 300, Some(node), Happening::SayJoined { process: me });
            }
            Action::ReadPoint { token, position } => {
                let must_see = process
                    .reads
                    .remove(&token)
                    .expect("rule 17: a read is answered twice");
                self.judge
                    .reads_are_current(&process.name, must_see, position);
                self.coverage.reads += 1;
            }
            Action::ReadFailed { token } => {
                process
                    .reads
                    .remove(&token)
                    .expect("rule 17: a read is answered twice");
            }
            Action::Left => {
                self.coverage.leaves += 1;
                let delay = self.random.within(0..=5);
                self.at(now + delay, Some(node), Happening::Exit { process: me });
            }
            Action::Refused { reason } => panic!("{} is refused: {reason}", process.name),
            Action::Note { .. } => {}
        }
    }

    fn send(&mut self, node: usize, to: &[Incarnation], message: &Message) {
        let process = self.nodes[node]
            .process
            .as_ref()
            .expect("actions come from a process");
        match message {
            Message::Ack {
                ballot, position, ..
            } if *position > 0 => {
                judge::promises_are_persisted(&process.name, *ballot, process.persisted);
                judge::acknowledgements_are_durable(&process.name, *position, process.durable);
            }
            Message::Append(append) => {
                judge::acknowledgements_are_durable(&process.name, append.ack, process.durable);
            }
            Message::Status(status) if status.ack > 0 => {
                judge::acknowledgements_are_durable(&process.name, status.ack, process.durable);
            }
            Message::Promise(promise) => {
                judge::promises_are_persisted(&process.name, promise.ballot, process.persisted);
            }
            Message::Prepare { ballot, .. } => {
                judge::promises_are_persisted(&process.name, *ballot, process.persisted);
            }
            _ => {}
        }
        let bytes = encode(message);
        for peer in to {
            let target = self
                .nodes
                .iter()
                .position(|n| n.last_incarnation == Some(*peer));
            let Some(target) = target else { continue };
            if let Some((at, parcel)) =
                self.network
                    .send(self.now, node, target, *peer, bytes.clone())
            {
                self.at(at, Some(target), Happening::Arrival { from: node, parcel });
            }
        }
    }

    /// Holds everything that the process has committed since the last time against the truth.
    fn judge_commits(&mut self, node: usize, upto: Position, ballot: Ballot) {
        let process = self.nodes[node]
            .process
            .as_mut()
            .expect("actions come from a process");
        let me = process.incarnation;
        let mut deliveries = std::mem::take(&mut process.deliveries)
            .into_iter()
            .peekable();
        let mut say_joined = false;
        while process.committed < upto {
            let position = process.committed + 1;
            let delivery = deliveries
                .next_if(|(at, _)| *at == position)
                .map(|(_, delivery)| delivery);
            let entry = process
                .log
                .get(position)
                .expect("rule 1: what is committed is in the log");
            self.judge
                .committed(&process.name, ballot, entry, delivery.as_ref());
            process.committed = position;
            match delivery {
                Some(Delivery::Configuration(configuration)) => {
                    let seat = configuration.member(me);
                    process.voter = seat.is_some_and(|m| m.voter);
                    process.intact |= process.voter;
                    say_joined |= seat.is_some_and(|m| !m.voter);
                    self.coverage.views += 1;
                }
                Some(Delivery::Submission { id, payload }) if id.incarnation == me => {
                    process.saying_joined &= payload != JOINED;
                    match process.submissions.remove(&id.number) {
                        Some(Answer::Waiting) => {
                            self.judge.acknowledged(id, position);
                            self.coverage.acknowledged += 1;
                        }
                        Some(Answer::Unknown) => self.coverage.late_commits += 1,
                        other => panic!(
                            "rule 7: {} delivers its own {id}, which was {other:?}",
                            process.name
                        ),
                    }
                }
                _ => {}
            }
        }
        let left = deliveries.next();
        assert!(
            left.is_none(),
            "rule 1: {} delivers {left:?} beyond its commit point {upto}",
            process.name
        );
        if say_joined {
            let at = self.now + self.random.within(0..=self.plan.joining_ms);
            self.at(at, Some(node), Happening::SayJoined { process: me });
        }
    }

    fn say_joined(&mut self, node: usize) -> bool {
        let process = self.process(node);
        let me = process.incarnation;
        let learner = process
            .group
            .configuration()
            .member(me)
            .is_some_and(|m| !m.voter);
        if process.leaving || process.saying_joined || !learner || process.joined.contains(&me) {
            return false;
        }
        if process.group.standing() != Standing::Primary {
            let at = self.now + 300;
            self.at(at, Some(node), Happening::SayJoined { process: me });
            return false;
        }
        process.saying_joined = true;
        self.submit(node, Bytes::from_static(JOINED));
        true
    }

    /// Clients do their work, and come again.
    fn think(&mut self, node: usize) -> bool {
        if !self.busy {
            return false;
        }
        let plan = self.plan.nodes[node].clone();
        let again = self.now + 1 + self.random.within(0..=2 * plan.think_ms);
        let process = self.process(node);
        let me = process.incarnation;
        let (primary, waiting) = (
            process.group.standing() == Standing::Primary,
            process.waiting(),
        );
        self.at(again, Some(node), Happening::Think { process: me });
        if waiting >= 30 || !(primary || self.random.percent(5)) {
            return false;
        }
        for _ in 0..self.random.within(1..=plan.burst) {
            let length = match plan.large_payloads && self.random.percent(20) {
                true => self.random.within(1_000..=5_000),
                false => self.random.within(8..=40),
            };
            let mut payload = self.random.next().to_le_bytes().to_vec();
            payload.resize(length as usize, 0x2e);
            self.submit(node, payload.into());
        }
        if self.random.percent(20) {
            self.read(node);
        }
        true
    }

    pub fn count(&mut self, counters: Counters) {
        self.coverage.offices_taken += counters.offices_taken;
        self.coverage.voided += counters.voided;
    }
}
