//! Cores on a network without delay, unless asked for, cut and connected by hand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use crate::config::Config;
use crate::configuration::Member;
use crate::entry::Entry;
use crate::event::{Action, Delivery, Event, Recovered};
use crate::group::Group;
use crate::ids::{Incarnation, Position, ReplicaId, SubmissionId, TimeMs, Uuid};
use crate::log_reader::{EntryHead, LogReader, NotNow};
use crate::message::{ComponentState, Message};

pub const HISTORY: Uuid = Uuid([7; 16]);

/// What is on disk: entries from 1 on, or above a checkpoint.
#[derive(Default)]
pub struct Log {
    entries: Vec<Entry>,
    /// It cannot be read for now.
    pub busy: bool,
    /// No payload above this length may be read as a whole.
    pub whole_max: Option<usize>,
}

impl Log {
    fn find(&self, position: Position) -> Result<Option<&Entry>, NotNow> {
        match self.busy {
            true => Err(NotNow),
            false => Ok(self.entries.iter().find(|e| e.position == position)),
        }
    }

    /// This entry cannot be read any more.
    pub fn lose(&mut self, position: Position) {
        self.entries.retain(|entry| entry.position != position);
    }
}

impl LogReader for Log {
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow> {
        let entry = self.find(position)?.cloned();
        let bytes = entry.as_ref().map_or(0, Entry::payload_bytes);
        assert!(self.whole_max.is_none_or(|max| bytes <= max), "{position}");
        Ok(entry)
    }

    fn len_bytes(&self, position: Position) -> Option<usize> {
        let entry = self.find(position).ok()??;
        Some(entry.size_bytes())
    }

    fn head(&self, position: Position) -> Result<Option<EntryHead>, NotNow> {
        Ok(self.find(position)?.cloned().map(EntryHead::from))
    }

    fn read_part(
        &self,
        position: Position,
        id: SubmissionId,
        offset: u32,
        len: u32,
    ) -> Result<Option<Bytes>, NotNow> {
        let entry = self.find(position)?;
        Ok(entry.and_then(|entry| entry.payload_part(id, offset, len)))
    }
}

pub struct Node {
    pub group: Group,
    pub log: Log,
    /// False: it is dead.
    alive: bool,
    /// What came out, but for what a driver does by itself.
    pub actions: Vec<Action>,
}

pub struct Cores {
    pub now: TimeMs,
    pub nodes: Vec<Node>,
    /// Ways (from, to) on which everything is lost.
    pub cut: BTreeSet<(usize, usize)>,
    /// How finely time passes.
    pub step_ms: TimeMs,
    /// How long a message takes on a way (from, to).
    pub lines_ms: BTreeMap<(usize, usize), TimeMs>,
    /// Nobody writes what is to be staged.
    pub slow_disks: bool,
    /// How long each of these takes to write its next promise. Meanwhile it does nothing else.
    pub promise_ms: BTreeMap<usize, TimeMs>,
    /// Messages that are lost.
    pub lost: fn(&Message) -> bool,
    mail: VecDeque<(usize, Incarnation, Message)>,
    /// On its way until then.
    travelling: VecDeque<(TimeMs, usize, Incarnation, Message)>,
    /// What arrived, by recipient.
    pub arrived: Vec<(usize, Message)>,
}

pub fn replica(node: usize) -> ReplicaId {
    ReplicaId(Uuid([node as u8 + 100; 16]))
}

pub fn member(node: usize) -> Member {
    Member {
        replica: replica(node),
        incarnation: Incarnation(Uuid([node as u8 + 1; 16])),
        full_weight: 1,
        name: format!("node{node}"),
        ..Member::default()
    }
}

/// The votes of the members, as this node knows them.
pub fn votes(cores: &Cores, node: usize) -> Vec<u8> {
    let members = &cores.nodes[node].group.configuration().members;
    members.iter().map(|m| m.weight).collect()
}

impl Cores {
    /// Node 0 has founded the group and holds leadership; all have their votes.
    pub fn of(count: usize) -> Cores {
        let mut cores = Cores::none();
        for node in 0..count {
            cores.start(member(node), Recovered::default());
        }
        cores.found();
        assert!(cores.nodes[0].group.is_leader());
        for node in 0..count {
            let configuration = cores.nodes[node].group.configuration();
            assert_eq!(configuration.total_weight(), count as u64);
            assert_eq!(cores.component_state(node), ComponentState::Primary);
        }
        cores
    }

    /// Node 0 founds the group, and all join.
    pub fn found(&mut self) {
        let founds = Event::Bootstrap {
            history: HISTORY,
            overrides: Vec::new(),
            override_id: None,
        };
        self.event(0, founds);
        self.pass(1_000);
        self.all_joined();
    }

    /// Nobody is there yet.
    pub fn none() -> Cores {
        Cores {
            now: 10_000,
            nodes: Vec::new(),
            cut: BTreeSet::new(),
            step_ms: 50,
            lines_ms: BTreeMap::new(),
            slow_disks: false,
            promise_ms: BTreeMap::new(),
            lost: |_| false,
            mail: VecDeque::new(),
            travelling: VecDeque::new(),
            arrived: Vec::new(),
        }
    }

    /// All entries in a node's log.
    pub fn log_of(&self, node: usize) -> Vec<Entry> {
        self.nodes[node].log.entries.clone()
    }

    /// A process starts and is connected with all others.
    pub fn start(&mut self, me: Member, recovered: Recovered) -> usize {
        self.start_with(Config::new(me), recovered)
    }

    /// What a recovered log leaves on disk is in it here; the group does not get it.
    pub fn start_with(&mut self, config: Config, mut recovered: Recovered) -> usize {
        let node = self.nodes.len();
        let mut entries = Vec::new();
        if let Some(log) = &mut recovered.log {
            entries = log.entries.clone();
            let left = log.entries.iter_mut().filter(|e| e.position <= log.left);
            left.for_each(Entry::drop_payload);
        }
        self.nodes.push(Node {
            group: Group::new(config, recovered, self.now),
            log: Log {
                entries,
                ..Log::default()
            },
            alive: true,
            actions: Vec::new(),
        });
        for other in 0..node {
            if self.nodes[other].alive {
                self.connected(node, other);
                self.connected(other, node);
            }
        }
        node
    }

    fn connected(&mut self, node: usize, peer: usize) {
        let peer = &self.nodes[peer].group;
        let (replica, incarnation) = (peer.my_replica(), peer.me());
        let event = Event::PeerUp {
            replica,
            incarnation,
        };
        self.nodes[node].group.handle(self.now, event);
    }

    /// The connection of these two breaks off and is made anew, before anybody is missed.
    pub fn reconnect(&mut self, one: usize, other: usize) {
        for (node, peer) in [(one, other), (other, one)] {
            let incarnation = self.incarnation(peer);
            self.event(node, Event::PeerDown { incarnation });
            self.connected(node, peer);
        }
        self.settle();
    }

    /// kill -9, or power loss: the others see the connection break.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].alive = false;
        let incarnation = self.nodes[node].group.me();
        for other in self.alive() {
            self.event(other, Event::PeerDown { incarnation });
        }
    }

    /// Its listener refuses connections: it is proven dead (rule 10).
    pub fn refuses(&mut self, node: usize) {
        let incarnation = self.nodes[node].group.me();
        for other in self.alive() {
            self.event(other, Event::PeerDead { incarnation });
        }
    }

    /// Nothing gets from one of these to another of those, nor back.
    pub fn part(&mut self, these: &[usize], those: &[usize]) {
        for this in these {
            for that in those {
                self.cut.extend([(*this, *that), (*that, *this)]);
            }
        }
    }

    fn alive(&self) -> Vec<usize> {
        let nodes = 0..self.nodes.len();
        nodes.filter(|node| self.nodes[*node].alive).collect()
    }

    pub fn component_state(&self, node: usize) -> ComponentState {
        self.nodes[node].group.component_state()
    }

    pub fn incarnation(&self, node: usize) -> Incarnation {
        self.nodes[node].group.me()
    }

    /// The members in force at a node, by name.
    pub fn members(&self, node: usize) -> Vec<&str> {
        let members = &self.nodes[node].group.configuration().members;
        members.iter().map(|m| m.name.as_str()).collect()
    }

    pub fn event(&mut self, node: usize, event: Event) {
        self.nodes[node].group.handle(self.now, event);
        self.settle();
    }

    /// A message of `from`'s, true or not.
    pub fn say(&mut self, from: usize, to: usize, message: Message) {
        let from = self.incarnation(from);
        self.event(to, Event::Message { from, message });
    }

    pub fn submit(&mut self, node: usize, number: u64) {
        self.submit_bytes(node, number, format!("{node}/{number}").into());
    }

    pub fn submit_bytes(&mut self, node: usize, number: u64, payload: Bytes) {
        self.nodes[node].group.submit(self.now, number, payload);
        self.settle();
    }

    /// The replicated state says that everybody has joined.
    pub fn all_joined(&mut self) {
        for node in self.alive() {
            let members = self.nodes[node].group.configuration().members.iter();
            let members = members.map(|m| m.incarnation).collect();
            let position = self.nodes[node].group.commit();
            self.event(node, Event::Joined { position, members });
        }
    }

    /// Time passes for these nodes only; the others stand still, but listen.
    pub fn pass_for(&mut self, nodes: &[usize], ms: TimeMs) {
        for _ in 0..ms / self.step_ms {
            self.now += self.step_ms;
            self.arrive();
            for node in nodes {
                self.event(*node, Event::Tick);
            }
        }
    }

    /// Time passes as for a driver that ticks when it was asked to, and not before.
    pub fn pass_when_due(&mut self, nodes: &[usize], ms: TimeMs) {
        for _ in 0..ms {
            self.now += 1;
            self.arrive();
            for node in nodes {
                if self.now >= self.nodes[*node].group.next_deadline() {
                    self.event(*node, Event::Tick);
                }
            }
        }
    }

    pub fn now(&self) -> TimeMs {
        self.now
    }

    /// What `node` has heard that `peer` acknowledges.
    pub fn acked(&self, node: usize, peer: usize) -> Position {
        let group = &self.nodes[node].group;
        group.acks.of_replica(replica(peer), group.vote.promised())
    }

    pub fn pass(&mut self, ms: TimeMs) {
        self.pass_for(&self.alive(), ms);
    }

    /// What was sent on slow lines and is there by now.
    fn arrive(&mut self) {
        let now = self.now;
        let travelling = std::mem::take(&mut self.travelling);
        for (at, from, to, message) in travelling {
            match at <= now {
                true => self.mail.push_back((from, to, message)),
                false => self.travelling.push_back((at, from, to, message)),
            }
        }
        self.settle();
    }

    /// What is in a node's log is on its disk.
    pub fn flushed(&mut self, node: usize) {
        let position = self.nodes[node].group.end();
        self.event(node, Event::Appended { position });
    }

    /// How many submissions a node has delivered.
    pub fn delivered(&self, node: usize) -> u64 {
        let is_submission = |action: &&Action| {
            let submission = |d: &Delivery| matches!(d, Delivery::Submission { .. });
            matches!(action, Action::Deliver { delivery, .. } if submission(delivery))
        };
        self.nodes[node]
            .actions
            .iter()
            .filter(is_submission)
            .count() as u64
    }

    /// Everything arrives that is not on a slow line, and what comes of it.
    pub fn settle(&mut self) {
        loop {
            for node in self.alive() {
                self.flush(node);
            }
            let Some((from, to, message)) = self.mail.pop_front() else {
                return;
            };
            let Some(to) = self
                .alive()
                .into_iter()
                .find(|n| self.incarnation(*n) == to)
            else {
                continue;
            };
            if !self.cut.contains(&(from, to)) {
                self.arrived.push((to, message.clone()));
                let from = self.incarnation(from);
                let event = Event::Message { from, message };
                self.nodes[to].group.handle(self.now, event);
            }
        }
    }

    fn post(&mut self, from: usize, to: Incarnation, message: Message) {
        let mut alive = self.alive().into_iter();
        let target = alive.rfind(|node| self.incarnation(*node) == to);
        let line = target.and_then(|target| self.lines_ms.get(&(from, target)));
        match line {
            Some(ms) => {
                let mail = (self.now + ms, from, to, message);
                self.travelling.push_back(mail);
            }
            None => self.mail.push_back((from, to, message)),
        }
    }

    fn flush(&mut self, node: usize) {
        let mut out = Vec::new();
        let at = &mut self.nodes[node];
        at.group.flush(&at.log, &mut out);
        for action in out {
            let at = &mut self.nodes[node];
            match action {
                Action::Send { to, message } => {
                    let is_lost = (self.lost)(&message);
                    for to in to.into_iter().filter(|_| !is_lost) {
                        self.post(node, to, message.clone());
                    }
                }
                Action::Append { entry } => at.log.entries.push(entry),
                Action::Stage {
                    bulk,
                    offset,
                    bytes,
                } if !self.slow_disks => {
                    let until = offset + bytes.len() as u32;
                    let event = Event::StagedUpTo { bulk, until };
                    at.group.handle(self.now, event);
                }
                Action::Truncate { after } => at.log.entries.retain(|e| e.position <= after),
                Action::Reset { .. } => at.log.entries.clear(),
                Action::Persist { promised } => {
                    at.group.handle(self.now, Event::Persisted { promised });
                    if let Some(ms) = self.promise_ms.remove(&node) {
                        self.now += ms;
                        at.group.handle(self.now, Event::Tick);
                    }
                }
                other => at.actions.push(other),
            }
        }
    }
}
