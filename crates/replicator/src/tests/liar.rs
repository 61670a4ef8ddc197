//! A member that lies, in the order and beside it: whatever it says, no other member panics, and what they say in answer
//! can be encoded and read again. What happens is decided by bytes, as in `trireme_group::fuzzing`.

use bytes::Bytes;
use trireme_certification::{KeyType, Seqno};
use trireme_group::fuzzing::Dice;
use trireme_group::{Configuration, Delivery, Incarnation, SubmissionId, Uuid};

use super::driver::{Cluster, draft, incarnation, peer_message};
use crate::Event;
use crate::control::Control;
use crate::fuzzing::change;
use crate::gtid::Gtid;
use crate::history::{Recorded, RecordedPart};
use crate::message::Message;
use crate::peer_message::{PeerMessage, SnapshotChunk};

const NODES: usize = 3;
const LIAR: usize = 2;

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Events handed to nodes.
    pub events: u64,
    /// Things said that are not true: in the order, or beside it.
    pub lies: u64,
    /// Those of them that can be read.
    pub read: u64,
    /// Seqnos applied by all nodes.
    pub applied: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.events += other.events;
        self.lies += other.lies;
        self.read += other.read;
        self.applied += other.applied;
    }
}

struct World<'a> {
    dice: Dice<'a>,
    cluster: Cluster,
    counts: Counts,
    conn: u64,
    joined: bool,
}

/// Lives through what the bytes say.
pub fn run(bytes: &[u8]) -> Counts {
    let mut cluster = Cluster::of(NODES);
    cluster.believes = false;
    (cluster.nodes.iter_mut()).for_each(|node| node.server.is_lied_to = true);
    let mut world = World {
        dice: Dice(bytes),
        cluster,
        counts: Counts::default(),
        conn: 1000,
        joined: false,
    };
    while !world.dice.is_empty() {
        world.step();
    }
    let nodes = world.cluster.nodes.iter();
    world.counts.applied = nodes.map(|node| node.server.commits.len() as u64).sum();
    world.counts.events = world.cluster.events;
    world.counts
}

impl World<'_> {
    fn step(&mut self) {
        let node = self.dice.below(self.cluster.nodes.len());
        match self.dice.below(40) {
            0..=9 => drop(self.cluster.deliver(node)),
            10..=12 => drop(self.cluster.receive(node)),
            13 | 14 => {
                let kinds = [
                    KeyType::Shared,
                    KeyType::Reference,
                    KeyType::Update,
                    KeyType::Exclusive,
                ];
                let (key, kind) = (self.dice.below(4), self.dice.below(4));
                (self.cluster).certify(node, ["a", "b", "c", "d"][key], kinds[kind]);
            }
            15..=20 => self.serve(node),
            21 | 22 => {
                let ms = [1, 60, 250, 1_000, 11_000][self.dice.below(5)];
                self.cluster.pass(ms);
            }
            23 => {
                self.conn += 1;
                self.cluster.toi(node, self.conn);
            }
            24..=31 => self.lie_in_the_order(),
            32..=35 => self.lie_beside_it(node),
            36 => self.change_on_the_way(node),
            37 => self.reconfigure(),
            38 => self.join(),
            _ => self.call(node),
        }
    }

    /// The server's threads go on.
    fn serve(&mut self, node: usize) {
        let cluster = &mut self.cluster;
        cluster.take_work(node);
        for index in (0..cluster.nodes[node].server.appliers.len()).rev() {
            cluster.step_applier(node, index);
        }
        let server = &cluster.nodes[node].server;
        let trxs: Vec<_> = server.sessions.keys().copied().collect();
        let tois: Vec<_> = server.tois.keys().copied().collect();
        for trx in trxs {
            cluster.step_session(node, trx);
        }
        for conn in tois {
            cluster.step_toi(node, conn);
        }
    }

    fn call(&mut self, node: usize) {
        let event = |ticket, what| match what {
            0 => Event::Desync { ticket },
            1 => Event::Resync { ticket },
            2 => Event::Pause { ticket },
            3 => Event::Resume { ticket },
            _ => Event::SyncWait { ticket, upto: None },
        };
        let what = self.dice.below(6);
        if what == 5 {
            let donor = (node + 1) % NODES;
            if self.cluster.nodes[node].fatal.is_none() && self.joined && node >= NODES {
                self.cluster.snapshot_from(donor, node);
            }
            return;
        }
        self.cluster.call(node, |ticket| event(ticket, what));
    }

    /// Another process comes, or a member's log begins anew.
    fn join(&mut self) {
        if !std::mem::replace(&mut self.joined, true) {
            let local = match self.dice.below(2) {
                0 => Gtid::UNDEFINED,
                _ => Gtid {
                    uuid: super::driver::HISTORY,
                    seqno: self.dice.below(6) as Seqno,
                },
            };
            let node = self.cluster.add(local);
            self.cluster.nodes[node].server.sst_request = Some(b"rsync".to_vec());
        } else if self.dice.one_in(4) {
            let node = self.dice.below(self.cluster.nodes.len());
            self.cluster.reset(node);
        }
    }

    fn seqno(&mut self) -> Seqno {
        let node = self.dice.below(self.cluster.nodes.len());
        let replicator = &self.cluster.nodes[node].replicator;
        let top = replicator.last_seqno().unwrap_or(0);
        let near = match self.dice.below(4) {
            0 => replicator.last_committed().seqno,
            _ => top,
        };
        match self.dice.below(10) {
            0 => i64::MIN,
            1 => i64::MAX - self.dice.below(3) as i64,
            2 => -1 - self.dice.below(3) as i64,
            3 => self.dice.number() as i64,
            4 => 0,
            _ => near.saturating_add(self.dice.below(5) as i64 - 2),
        }
    }

    fn uuid(&mut self) -> Uuid {
        match self.dice.below(4) {
            0 => self.dice.uuid(),
            _ => super::driver::HISTORY,
        }
    }

    fn member(&mut self) -> Incarnation {
        incarnation(self.dice.below(NODES + 2))
    }

    fn write_set(&mut self) -> Bytes {
        let flags = change::FLAGS[self.dice.below(change::FLAGS.len())];
        let key = ["a", "b", "c"][self.dice.below(3)];
        let trx = self.dice.below(4) as u64;
        let mut draft = draft(trx, key, KeyType::Exclusive, b"lies");
        draft.add_flags(flags);
        let epoch = self.dice.near(0);
        draft.finish(self.seqno(), epoch, self.seqno())
    }

    /// The payload of a submission.
    fn payload(&mut self) -> Bytes {
        let message = match self.dice.below(24) {
            0..=8 => return self.write_set(),
            9 => Message::StateRequest {
                request: b"rsync".to_vec().into(),
                local: Gtid {
                    uuid: self.uuid(),
                    seqno: self.seqno(),
                },
                preference: "node0,node1,".into(),
                bypass: self.dice.below(3) == 0,
            },
            10 => Message::Joined,
            11 => Message::Synced,
            12 => Message::Donated {
                rcode: self.dice.below(3) as i32 - 1,
            },
            13 => Message::Desync,
            14 => Message::Resync,
            15 | 16 => Message::Applied(self.seqno()),
            17 => Message::LeaveOut(self.member()),
            18 => Message::CaughtUp,
            19 => Message::InDoubt(self.seqno()),
            20..=22 => Message::Vote {
                seqno: self.seqno(),
                ballot: self.dice.below(3) as u64,
                policy: self.dice.byte(),
                text: "x".repeat(self.dice.below(100)),
            },
            _ => {
                let len = self.dice.below(60);
                return (0..len).map(|_| self.dice.byte() % 13).collect();
            }
        };
        message.encode()
    }

    /// Something is ordered that its origin has not submitted, or not like that.
    fn lie_in_the_order(&mut self) {
        self.counts.lies += 1;
        let payload = self.payload();
        self.counts.read += u64::from(Message::decode(&payload).is_ok());
        let last = self.cluster.order.len() - 1;
        let is_news = self.cluster.nodes.iter().all(|node| node.next <= last);
        // A leader that lies gives another's submission other contents.
        if let Some((
            _,
            Delivery::Submission {
                payload: before, ..
            },
        )) = self.cluster.order.last_mut().filter(|_| is_news)
        {
            *before = match self.dice.below(2) {
                0 => payload,
                _ => change::payload(&mut self.dice, before),
            };
            return;
        }
        let from = match self.dice.below(3) {
            0 => self.member(),
            _ => incarnation(LIAR),
        };
        let id = SubmissionId {
            incarnation: from,
            number: match self.dice.below(4) {
                0 => self.dice.below(20) as u64,
                _ => 1_000_000 + self.counts.lies,
            },
        };
        self.cluster.append(Delivery::Submission { id, payload });
    }

    fn reconfigure(&mut self) {
        let (what, index) = (self.dice.below(8), self.dice.below(NODES));
        let (id, position) = (self.dice.uuid(), self.dice.near(5));
        let node = super::driver::member(index);
        let change = |c: &mut Configuration| match what {
            0 if c.members.len() > 1 => c.members.retain(|m| m.incarnation != node.incarnation),
            1 | 2 if c.index_of(node.incarnation).is_none() => c.members.push(node),
            3 => (c.override_id, c.fork_after) = (Some(id), position),
            4 => (c.override_id, c.fork_after) = (None, position),
            5 => c.number = c.number.saturating_sub(2),
            6 => c
                .members
                .iter_mut()
                .for_each(|m| m.arbitrator = m.incarnation.0.0[0] % 2 == 0),
            _ => c.members.iter_mut().for_each(|m| m.app_protocol -= 1),
        };
        self.cluster.reconfigure(change);
    }

    fn recorded(&mut self) -> Recorded {
        let node = self.dice.below(self.cluster.nodes.len());
        let records: Vec<_> = (self.cluster.nodes[node].records.by_seqno.values()).collect();
        let known = self.dice.pick(&records).map(|record| (*record).clone());
        let id = SubmissionId {
            incarnation: self.member(),
            number: 5,
        };
        let mut record = known.unwrap_or(Recorded {
            position: 1,
            seqno: 1,
            depends_on: 0,
            failed: false,
            delivery: Delivery::Submission {
                id,
                payload: Bytes::new(),
            },
        });
        match self.dice.below(4) {
            0 | 1 => change::record(&mut self.dice, &mut record),
            2 => {
                let payload = self.payload();
                record.delivery = Delivery::Submission { id, payload };
            }
            _ => {}
        }
        record
    }

    /// What a joiner pulls next, if it does; else something near it.
    fn wanted(&mut self, to: usize) -> Seqno {
        let pulled = self.cluster.nodes[LIAR].inbox.iter().rev();
        let mut pulled = pulled.filter_map(|(_, bytes)| match PeerMessage::decode(bytes.clone()) {
            Ok(PeerMessage::IstPull { from } | PeerMessage::IstPullPart { from, .. }) => Some(from),
            _ => None,
        });
        let wanted = pulled.next().filter(|_| to >= NODES);
        wanted.unwrap_or_else(|| self.seqno())
    }

    fn control(&mut self) -> Option<Bytes> {
        let node = self.dice.below(self.cluster.nodes.len());
        let mut control: Control = self.cluster.nodes[node]
            .replicator
            .context()
            .control()
            .cloned()?;
        change::control(&mut self.dice, &mut control);
        Some(control.encode())
    }

    /// A message of the liar's replicator is another when it arrives.
    fn change_on_the_way(&mut self, to: usize) {
        let mut mail = self.cluster.nodes[to].inbox.iter();
        let Some(index) = mail.position(|(from, _)| *from == incarnation(LIAR)) else {
            return;
        };
        let (_, bytes) = &self.cluster.nodes[to].inbox[index];
        let liar = &self.cluster.nodes[LIAR].replicator;
        let bytes = change::peer_message(&mut self.dice, liar, bytes);
        self.counts.lies += 1;
        self.counts.read += u64::from(PeerMessage::decode(bytes.clone()).is_ok());
        self.cluster.nodes[to].inbox[index].1 = bytes;
    }

    /// The liar sends something to a node's replicator.
    fn lie_beside_it(&mut self, to: usize) {
        let pull = self.cluster.nodes[to].replicator.transfer().pull();
        let round = pull.map_or(1, |pull| pull.round());
        let round = match self.dice.below(4) {
            0 => self.dice.near(round),
            _ => round,
        };
        let message = match self.dice.below(16) {
            0 => PeerMessage::SnapshotRequest {
                round,
                at_least: self.dice.near(3),
            },
            1..=4 => {
                let Some(part) = self.control() else { return };
                let total = part.len() as u64;
                let (offset, total) = match self.dice.below(4) {
                    0 => (self.dice.near(0), self.dice.near(total)),
                    _ => (0, total),
                };
                PeerMessage::SnapshotChunk(SnapshotChunk {
                    round,
                    offset,
                    total,
                    part,
                })
            }
            5 => PeerMessage::SnapshotRefused { round },
            6 => PeerMessage::IstPull { from: self.seqno() },
            7..=9 => {
                let from = self.wanted(to);
                let records = (0..self.dice.below(4)).map(|index| {
                    let mut record = self.recorded();
                    if !self.dice.one_in(4) {
                        record.seqno = from.saturating_add(index as i64);
                    }
                    record
                });
                let records = records.collect();
                PeerMessage::IstChunk { from, records }
            }
            10 => PeerMessage::FlowStop,
            11 => PeerMessage::FlowContinue,
            12 => PeerMessage::FlowPace {
                per_second: self.dice.number() as u32 >> self.dice.below(32),
            },
            13 => PeerMessage::IstPullPart {
                from: self.seqno(),
                offset: self.dice.near(4) as u32,
            },
            _ => {
                let mut record = self.recorded();
                record.seqno = self.wanted(to);
                let bytes = self.payload();
                PeerMessage::IstPart(RecordedPart {
                    record,
                    len: self.dice.near(bytes.len() as u64) as u32,
                    digest: crc32c::crc32c(&bytes),
                    offset: self.dice.near(0) as u32,
                    bytes,
                })
            }
        };
        let bytes = message.encode();
        self.counts.lies += 1;
        self.counts.read += u64::from(PeerMessage::decode(bytes.clone()).is_ok());
        let from = incarnation(LIAR);
        self.cluster.event(to, peer_message(from, bytes));
        // Whatever the node's state is by now, it can be given away.
        if let Some(control) = self.cluster.nodes[to].replicator.context().control() {
            let again = Control::decode(control.encode());
            let error = again.err();
            assert_eq!(error, None, "a control state is read again");
        }
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::fuzzing::bytes_of_seed;

    use super::*;

    const SEEDS: u64 = 100;

    #[test]
    fn no_lie_ends_a_node() {
        let mut all = Counts::default();
        for seed in 1..=SEEDS {
            // A panic is to name its seed.
            let told = std::panic::catch_unwind(|| run(&bytes_of_seed(seed, 4 << 10)));
            let Ok(counts) = told else {
                panic!("seed {seed}");
            };
            all += counts;
        }
        assert!(all.lies > all.events / 20, "{all:?}");
        assert!(all.read >= all.lies / 2, "{all:?}");
        assert!(all.applied > SEEDS * 20, "{all:?}");
    }
}
