//! The cluster of a fuzzing run: cores with logs in memory, connections that keep the order of messages, and the
//! events.

use std::collections::{BTreeMap, VecDeque};

use super::counts::Counts;
use super::dice::Dice;
use super::liar::Liar;
use crate::checkpoint::Checkpoint;
use crate::codec::{
    decode, decode_checkpoint, decode_entry, encode, encode_checkpoint, encode_entry,
};
use crate::config::Config;
use crate::configuration::Member;
use crate::entry::Entry;
use crate::event::{Action, Event, Recovered, RecoveredLog};
use crate::group::Group;
use crate::ids::{Incarnation, Position, ReplicaId, Term, TimeMs, Uuid};
use crate::log_reader::{LogReader, NotNow};
use crate::message::{ComponentState, Message};

/// A log in memory: entries above a checkpoint.
#[derive(Default)]
struct Log {
    base: Checkpoint,
    entries: Vec<Entry>,
}

impl LogReader for Log {
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow> {
        let index = position.checked_sub(self.base.position + 1);
        Ok(index.and_then(|index| self.entries.get(usize::try_from(index).ok()?).cloned()))
    }
}

struct Node {
    group: Group,
    log: Log,
    promised: Term,
    starts: u8,
    submitted: u64,
    bulk_payloads: u64,
    /// Numbers of bulk payloads that may be submitted.
    spread: Vec<u64>,
}

struct World<'a> {
    dice: Dice<'a>,
    now: TimeMs,
    nodes: Vec<Node>,
    liar: usize,
    /// Messages on their way, by sender and recipient. Without an entry, the two are not connected.
    ways: BTreeMap<(usize, usize), VecDeque<Message>>,
    /// All processes that were ever started.
    known: Vec<Member>,
    counts: Counts,
    overrides: u8,
}

/// Runs a cluster through the events that the bytes decide.
pub fn run(bytes: &[u8]) -> Counts {
    let mut dice = Dice(bytes);
    let nodes = 3 + dice.below(3);
    let mut world = World {
        now: 10_000,
        nodes: Vec::new(),
        liar: dice.below(nodes),
        ways: BTreeMap::new(),
        known: Vec::new(),
        counts: Counts::default(),
        overrides: 0,
        dice,
    };
    for index in 0..nodes {
        let durable = world.dice.one_in(2);
        world.start(index, Recovered::default(), Log::default(), durable);
    }
    for one in 0..nodes {
        for other in one + 1..nodes {
            world.connect(one, other);
        }
    }
    let history = Uuid([7; 16]);
    let event = Event::Bootstrap {
        history,
        overrides: Vec::new(),
        override_id: None,
    };
    world.event(0, event);
    // The members form a view before the liar lies.
    for _ in 0..20 {
        world.now += 50;
        for index in 0..nodes {
            world.event(index, Event::Tick);
        }
        world.deliver_all();
    }
    world.join_all();
    while !world.dice.is_empty() {
        world.step();
    }
    world.counts
}

fn member(index: usize, starts: u8) -> Member {
    Member {
        replica: ReplicaId(Uuid([100 + index as u8; 16])),
        incarnation: Incarnation(Uuid([1 + index as u8 + 8 * starts; 16])),
        full_weight: 1,
        name: format!("node{index}"),
        ..Member::default()
    }
}

impl World<'_> {
    fn start(&mut self, index: usize, recovered: Recovered, log: Log, durable: bool) {
        let before = self.nodes.get(index).map_or(0, |node| node.starts + 1);
        let me = member(index, before % 10);
        self.known.push(me.clone());
        let config = Config {
            append_is_durable: durable,
            large_bytes: 100,
            part_bytes: 64,
            staged_bytes: 200,
            tail_bytes: 4_000,
            window_bytes: 2_000,
            bulk_bytes: 2_000,
            ignore_split_brain: index == 1,
            ..Config::new(me)
        };
        let promised = recovered.promised;
        let node = Node {
            group: Group::new(config, recovered, self.now),
            log,
            promised,
            starts: before,
            submitted: 0,
            bulk_payloads: 0,
            spread: Vec::new(),
        };
        match self.nodes.get_mut(index) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        self.flush(index);
    }

    fn connect(&mut self, one: usize, other: usize) {
        for (from, to) in [(one, other), (other, one)] {
            self.ways.insert((from, to), VecDeque::new());
        }
        for (from, to) in [(one, other), (other, one)] {
            let (replica, incarnation) = {
                let peer = &self.nodes[from].group;
                (peer.my_replica(), peer.me())
            };
            let event = Event::PeerUp {
                replica,
                incarnation,
            };
            self.event(to, event);
        }
    }

    fn disconnect(&mut self, one: usize, other: usize) {
        for (from, to) in [(one, other), (other, one)] {
            if self.ways.remove(&(from, to)).is_some() {
                let incarnation = self.nodes[from].group.me();
                self.event(to, Event::PeerDown { incarnation });
            }
        }
    }

    fn event(&mut self, index: usize, event: Event) {
        self.counts.events += 1;
        self.nodes[index].group.handle(self.now, event);
        self.flush(index);
    }

    fn join_all(&mut self) {
        for index in 0..self.nodes.len() {
            let group = &self.nodes[index].group;
            let members = group.configuration().members.iter();
            let members = members.map(|m| m.incarnation).collect();
            let position = group.commit();
            self.event(index, Event::Joined { position, members });
        }
    }

    fn deliver_all(&mut self) {
        while let Some(way) = (self.ways.iter().find(|(_, way)| !way.is_empty())).map(|(k, _)| *k) {
            self.deliver(way, false);
        }
    }

    fn deliver(&mut self, way: (usize, usize), lies: bool) {
        let mail = self.ways.get_mut(&way).and_then(VecDeque::pop_front);
        let Some(mut message) = mail else { return };
        let (from, to) = way;
        if lies {
            self.lie(to, |liar| {
                liar.change(&mut message);
                message
            });
        } else {
            let from = self.nodes[from].group.me();
            self.event(to, Event::Message { from, message });
        }
    }

    /// The liar sends the message that `say` makes.
    fn lie(&mut self, to: usize, say: impl FnOnce(&mut Liar) -> Message) {
        let mut liar = Liar {
            dice: &mut self.dice,
            me: &self.nodes[self.liar].group,
            to: &self.nodes[to].group,
            known: &self.known,
        };
        let message = say(&mut liar);
        let from = self.nodes[self.liar].group.me();
        let recipient = &self.nodes[to].group;
        let is_heard = recipient.peers.get(from).is_some() && recipient.accepts(from, &message);
        self.counts.lies += 1;
        self.counts.believed += u64::from(is_heard);
        self.event(to, Event::Message { from, message });
    }

    fn step(&mut self) {
        let count = self.nodes.len();
        let index = self.dice.below(count);
        let other = (index + 1 + self.dice.below(count - 1)) % count;
        match self.dice.below(64) {
            0..=17 => {
                let to = (self.liar + 1 + self.dice.below(count - 1)) % count;
                self.lie(to, |liar| liar.make());
            }
            18..=45 => {
                let lies = index == self.liar && self.dice.one_in(2);
                self.deliver((index, other), lies);
            }
            46..=51 => {
                let ms = [1, 50, 100, 450, 2_000, 6_000][self.dice.below(6)];
                self.now += ms;
                self.event(index, Event::Tick);
            }
            52 => {
                self.now += 50;
                for index in 0..count {
                    self.event(index, Event::Tick);
                }
                for way in self.ways.keys().copied().collect::<Vec<_>>() {
                    for _ in 0..4 {
                        self.deliver(way, false);
                    }
                }
            }
            53..=55 => self.submit(index),
            56 => self.disconnect(index, other),
            57 | 58 => {
                if !self.ways.contains_key(&(index, other)) {
                    self.connect(index, other);
                }
            }
            59 => self.join_all(),
            60 => self.restart(index),
            61 => {
                let position = self.nodes[index].group.end();
                self.event(index, Event::Appended { position });
            }
            62 => self.large(index),
            _ => self.wish(index, other),
        }
    }

    fn submit(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.submitted += 1;
        let payload = vec![index as u8; 10];
        node.group.submit(self.now, node.submitted, payload.into());
        self.flush(index);
    }

    fn large(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if let Some(bulk) = node.spread.pop() {
            node.submitted += 1;
            let head = vec![8; 10].into();
            (node.group).submit_bulk(self.now, node.submitted, bulk, head);
        } else {
            node.bulk_payloads += 1;
            let digest = crc32c::crc32c(&[0; 290]);
            let payload = vec![0; 300].into();
            node.group
                .spread(self.now, node.bulk_payloads, payload, 10, digest);
        }
        self.flush(index);
    }

    fn wish(&mut self, index: usize, other: usize) {
        let incarnation = self.nodes[other].group.me();
        let event = match self.dice.below(8) {
            0 => Event::Leave,
            1 => Event::SetWeight {
                weight: self.dice.byte() % 4,
            },
            2 | 3 => {
                self.overrides = self.overrides.wrapping_add(1);
                Event::ForcePrimary {
                    override_id: Uuid([self.overrides; 16]),
                }
            }
            4 => Event::Read { token: 1 },
            5 => Event::PeerDead { incarnation },
            6 => Event::PeerDrained { incarnation },
            _ => {
                self.nodes[index].group.recall(1);
                Event::Tick
            }
        };
        self.event(index, event);
    }

    /// kill -9, and a new process on the same data directory.
    fn restart(&mut self, index: usize) {
        for other in 0..self.nodes.len() {
            if other != index {
                self.disconnect(index, other);
            }
        }
        let durable = self.nodes[index].group.context.config().append_is_durable;
        let node = &mut self.nodes[index];
        let mut log = std::mem::take(&mut node.log);
        let begin = log.base.position;
        let known = node.group.commit().max(begin);
        let entries: Vec<Entry> = (log.entries.iter())
            .map(|entry| decode_entry(encode_entry(entry)).expect("the log can be read"))
            .collect();
        let mut recovered = RecoveredLog {
            checkpoint: log.base.clone(),
            left: begin + self.dice.below(entries.len() + 1) as Position,
            entries,
            commit: known - self.dice.below((known - begin) as usize + 1) as Position,
        };
        assert_eq!(
            recovered.check(),
            Ok(()),
            "a member writes what it can read"
        );
        if self.dice.one_in(4) && !log.base.history.is_nil() {
            self.damage(index, &mut recovered);
            log.base = recovered.checkpoint.clone();
            log.entries = recovered.entries.clone();
        }
        let node = &mut self.nodes[index];
        let left = recovered.left;
        let old = recovered.entries.iter_mut().filter(|e| e.position <= left);
        old.for_each(Entry::drop_payload);
        let begun = !log.base.history.is_nil();
        let recovered = Recovered {
            lost_views: false,
            promised: node.promised,
            amnesiac: self.dice.one_in(4),
            log: Some(recovered).filter(|_| begun),
            ..Recovered::default()
        };
        let log = if begun { log } else { Log::default() };
        self.start(index, recovered, log, durable);
        for other in 0..self.nodes.len() {
            if other != index && !self.dice.one_in(8) {
                self.connect(index, other);
            }
        }
    }

    /// Changes a log as if it had valid checksums and other contents. A log that no member can have written is not
    /// opened.
    fn damage(&mut self, index: usize, log: &mut RecoveredLog) {
        let group = &self.nodes[index].group;
        let mut liar = Liar {
            dice: &mut self.dice,
            me: group,
            to: group,
            known: &self.known,
        };
        let before = log.clone();
        for _ in 0..=liar.dice.below(3) {
            liar.damage(log);
        }
        let is_opened = log.check().is_ok();
        self.counts.damaged += 1;
        self.counts.opened += u64::from(is_opened);
        if !is_opened {
            *log = before;
        }
    }

    /// Carries out the core's actions. Asserts that its messages and its checkpoint can be decoded again.
    fn flush(&mut self, index: usize) {
        let mut again = true;
        while std::mem::take(&mut again) {
            let mut out = Vec::new();
            let node = &mut self.nodes[index];
            let before = node.group.commit();
            node.group.flush(&node.log, &mut out);
            self.counts.committed += node.group.commit().saturating_sub(before);
            for action in out {
                again |= self.carry_out(index, action);
            }
        }
        let group = &self.nodes[index].group;
        assert!(group.next_deadline() > 0);
        let checkpoint = group.checkpoint();
        let bytes = encode_checkpoint(checkpoint);
        assert_eq!(decode_checkpoint(bytes).as_ref(), Ok(checkpoint));
        // The first state of a history lies beside the log before anything else.
        let node = &mut self.nodes[index];
        if node.log.base.history.is_nil() && node.group.component_state() != ComponentState::Outside
        {
            node.log.base.history = node.group.history();
        }
    }

    /// Returns true if the core was given an event by that.
    fn carry_out(&mut self, index: usize, action: Action) -> bool {
        let node = &mut self.nodes[index];
        match action {
            Action::Send { to, message } => {
                assert_eq!(decode(encode(&message)).as_ref(), Ok(&message));
                for to in to {
                    let is_it = |node: &Node| node.group.me() == to;
                    let to = self.nodes.iter().position(is_it);
                    let way = to.and_then(|to| self.ways.get_mut(&(index, to)));
                    if let Some(way) = way.filter(|way| way.len() < 200) {
                        way.push_back(message.clone());
                    }
                }
            }
            Action::Append { entry } => {
                let next = node.log.base.position + node.log.entries.len() as Position + 1;
                assert_eq!(entry.position, next, "the log has no gap");
                node.log.entries.push(entry);
            }
            Action::Truncate { after } => {
                node.log.entries.retain(|entry| entry.position <= after);
            }
            Action::Reset { checkpoint } => {
                let entries = Vec::new();
                node.log = Log {
                    base: checkpoint,
                    entries,
                };
            }
            Action::Persist { promised } => {
                node.promised = promised;
                if !self.dice.one_in(8) {
                    node.group.handle(self.now, Event::Persisted { promised });
                    return true;
                }
            }
            Action::Stage {
                bulk,
                offset,
                bytes,
            } => {
                let until = offset + bytes.len() as u32;
                let event = Event::StagedUpTo { bulk, until };
                node.group.handle(self.now, event);
                return true;
            }
            Action::Spread { bulk } => node.spread.push(bulk),
            _ => {}
        }
        false
    }
}
