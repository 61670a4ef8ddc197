//! A cluster in memory: one list of deliveries for all, handed to each node at its own pace.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use trireme_certification::{KeySetBuilder, KeyType};
use trireme_group::{
    Checkpoint, Configuration, Delivery, Fate, Incarnation, Member, NotNow, Position, ReplicaId,
    SubmissionId, Uuid,
};

use super::records::Records;
use super::server::Server;
use crate::ControlDigest;
use crate::History;
use crate::{
    Action, Connect, Event, GroupAction, Gtid, HostAction, LastAction, LogAction, Options, Pull,
    Recorded, Replicator, Seqno, Status, TrxId, Unread, WriteSetDraft, flags, ist_chunk, ist_part,
};

pub const HISTORY: Uuid = Uuid([7; 16]);

pub struct Node {
    pub replicator: Replicator,
    pub incarnation: Incarnation,
    pub server: Server,
    pub records: Records,
    pub actions: Vec<Action>,
    /// What its processes before have noted (rule 13).
    pub last_action: LastAction,
    /// Likewise (rule 11).
    pub overrides: Vec<(Uuid, Seqno)>,
    /// How many recv() threads there are.
    pub threads: usize,
    /// Index of the next delivery.
    pub next: usize,
    /// Where it stands, in the group: it gets only what is above.
    pub base: Position,
    pub inbox: VecDeque<(Incarnation, Bytes)>,
    /// What the others are to hold before it is submitted.
    pub bulk_payloads: BTreeMap<u64, Bytes>,
    /// Fails what it submits, when it has no majority.
    pub primary: bool,
    pub logs: Vec<String>,
    pub fatal: Option<String>,
    pub left: bool,
    pub closed: bool,
    /// Without a server.
    pub arbitrator: bool,
}

pub struct Cluster {
    pub now_ms: u64,
    pub order: Vec<(Position, Delivery)>,
    pub configuration: Configuration,
    pub nodes: Vec<Node>,
    /// Control digests by position: equal everywhere.
    pub digests: BTreeMap<Position, ControlDigest>,
    /// False: somebody lies, so that nodes may differ.
    pub believes: bool,
    /// So many were handed to nodes.
    pub events: u64,
}

pub fn incarnation(index: usize) -> Incarnation {
    Incarnation(Uuid([index as u8 + 1; 16]))
}

/// The event that these bytes came from a member on the same branch.
pub fn peer_message(from: Incarnation, bytes: Bytes) -> Event {
    Event::PeerMessage {
        from,
        bytes,
        of_own_branch: true,
    }
}

pub fn member(index: usize) -> Member {
    Member {
        replica: ReplicaId(Uuid([index as u8 + 100; 16])),
        incarnation: incarnation(index),
        weight: 1,
        full_weight: 1,
        voter: true,
        name: format!("node{index}"),
        incoming: format!("127.0.0.1:{}", 3300 + index),
        app_protocol: 4,
        ..Member::default()
    }
}

pub fn draft(trx: TrxId, key: &str, kind: KeyType, data: &[u8]) -> WriteSetDraft {
    let mut keys = KeySetBuilder::new();
    keys.append(&[b"db", b"t", key.as_bytes()], kind);
    WriteSetDraft::new(flags::TRX_START | flags::TRX_END, trx, trx, &keys, &[data])
}

impl Cluster {
    pub fn new() -> Self {
        Cluster {
            now_ms: 1000,
            order: Vec::new(),
            configuration: Configuration::default(),
            nodes: Vec::new(),
            digests: BTreeMap::new(),
            believes: true,
            events: 0,
        }
    }

    /// Nodes that founded and joined a cluster and are synced.
    pub fn of(count: usize) -> Self {
        let mut cluster = Cluster::new();
        cluster.found();
        cluster.grow_to(count);
        cluster
    }

    /// Likewise, with another `cert.max_length`.
    pub fn of_length(count: usize, cert_max_length: u64) -> Self {
        let mut cluster = Cluster::new();
        let node = cluster.start();
        let options = Options {
            cert_max_length,
            ..Options::default()
        };
        cluster.event(node, Event::SetOptions(options));
        cluster.begin(node);
        cluster.grow_to(count);
        cluster
    }

    fn grow_to(&mut self, count: usize) {
        for _ in 1..count {
            let node = self.add(Gtid::UNDEFINED);
            self.nodes[node].server.sst_request = Some(b"rsync".to_vec());
            self.settle();
            self.snapshot_from(0, node);
            self.settle();
        }
    }

    /// A process starts; it is not in the group yet.
    pub fn start(&mut self) -> usize {
        let index = self.nodes.len();
        let server = Server {
            is_lied_to: !self.believes,
            ..Server::default()
        };
        self.nodes.push(Node {
            replicator: Replicator::new(Options::default()),
            incarnation: incarnation(index),
            server,
            records: Records::default(),
            actions: Vec::new(),
            last_action: LastAction::NONE,
            overrides: Vec::new(),
            threads: 0,
            next: 0,
            base: 0,
            inbox: VecDeque::new(),
            bulk_payloads: BTreeMap::new(),
            primary: true,
            logs: Vec::new(),
            fatal: None,
            left: false,
            closed: false,
            arbitrator: false,
        });
        index
    }

    pub fn connect(
        &mut self,
        node: usize,
        local: Gtid,
        bootstrap: Option<Uuid>,
        server_running: bool,
    ) {
        self.nodes[node].closed = false;
        self.nodes[node].threads = 4;
        self.nodes[node].left = false;
        let connect = Connect {
            incarnation: self.nodes[node].incarnation,
            me: self.member_state(node),
            local,
            last_action: self.nodes[node].last_action,
            bootstrap,
            server_running,
            control: None,
            overrides: self.nodes[node].overrides.clone(),
        };
        self.event(node, Event::Connect(Box::new(connect)));
    }

    /// The first node bootstraps.
    pub fn found(&mut self) {
        let node = self.start();
        self.begin(node);
    }

    fn begin(&mut self, node: usize) {
        self.connect(node, Gtid::UNDEFINED, Some(HISTORY), false);
        self.reconfigure(|c| c.members.push(member(node)));
        self.settle();
    }

    /// A node with this database joins.
    pub fn add(&mut self, local: Gtid) -> usize {
        let node = self.start();
        self.join(node, local, false);
        node
    }

    /// A process without a server joins.
    pub fn add_arbitrator(&mut self) -> usize {
        let node = self.start();
        self.nodes[node].arbitrator = true;
        self.join(node, Gtid::UNDEFINED, false);
        node
    }

    /// A node as the others see it.
    fn member_state(&self, node: usize) -> Member {
        Member {
            incarnation: self.nodes[node].incarnation,
            arbitrator: self.nodes[node].arbitrator,
            ..member(node)
        }
    }

    pub fn join(&mut self, node: usize, local: Gtid, server_running: bool) {
        self.connect(node, local, None, server_running);
        self.reset(node);
        let mut member_state = self.member_state(node);
        (member_state.weight, member_state.voter) = (0, false);
        self.reconfigure(|c| c.members.push(member_state));
    }

    /// The group's log begins anew at this node.
    pub fn reset(&mut self, node: usize) {
        let base = self.order.last().map_or(0, |(position, _)| *position);
        self.nodes[node].base = base;
        self.nodes[node].next = self.order.len();
        self.event(node, Event::LogEnds);
        self.nodes[node].records.log.clear();
        let overrides = self
            .order
            .iter()
            .filter_map(|(_, delivery)| match delivery {
                Delivery::Configuration(configuration) => configuration.override_id,
                Delivery::Submission { .. } => None,
            });
        let mut overrides: Vec<Uuid> = overrides.collect();
        overrides.dedup();
        let checkpoint = Checkpoint {
            position: base,
            history: HISTORY,
            overrides,
            ..Checkpoint::default()
        };
        self.event(node, Event::Reset(Box::new(checkpoint)));
    }

    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Configuration)) {
        change(&mut self.configuration);
        self.configuration.number += 1;
        self.configuration.sort();
        self.append(Delivery::Configuration(self.configuration.clone()));
        let members = self.configuration.members.iter();
        let all: Vec<_> = members.map(|m| m.incarnation).collect();
        for node in 0..self.nodes.len() {
            self.event(node, Event::Connected(all.clone()));
        }
    }

    pub fn append(&mut self, delivery: Delivery) {
        // Now and then the group uses a position itself.
        let last = self.order.last().map_or(0, |(position, _)| *position);
        let position = last + if last % 5 == 0 { 2 } else { 1 };
        self.order.push((position, delivery));
    }

    /// Hands one event to a node and carries out what comes back.
    pub fn event(&mut self, node: usize, event: Event) {
        let mut out = Vec::new();
        self.events += 1;
        let at = &mut self.nodes[node];
        at.replicator
            .handle(self.now_ms, event, &at.records, &mut out);
        let digest = (self.believes).then(|| at.replicator.control_digest());
        if let Some(digest) = digest.flatten() {
            let position = digest.position;
            let known = *self.digests.entry(position).or_insert(digest);
            assert_eq!(known, digest, "node {node} differs at position {position}");
        }
        for action in out {
            self.carry_out(node, action);
        }
    }

    fn carry_out(&mut self, node: usize, action: Action) {
        let from = self.nodes[node].incarnation;
        self.nodes[node].server.answered(&action);
        match &action {
            Action::Group(GroupAction::Submit { number, payload }) => {
                let id = SubmissionId {
                    incarnation: from,
                    number: *number,
                };
                if !self.nodes[node].primary {
                    self.event(
                        node,
                        Event::Failed {
                            id,
                            fate: Fate::Withdrawn,
                        },
                    );
                } else if self.configuration.index_of(from).is_some() {
                    self.append(Delivery::Submission {
                        id,
                        payload: payload.clone(),
                    });
                }
            }
            Action::Group(GroupAction::Spread { bulk, payload, .. }) => {
                self.nodes[node]
                    .bulk_payloads
                    .insert(*bulk, payload.clone());
            }
            Action::Group(GroupAction::Recall { bulk }) => {
                self.nodes[node].bulk_payloads.remove(bulk);
            }
            Action::Group(GroupAction::SubmitBulk { number, bulk, head }) => {
                let rest = self.nodes[node]
                    .bulk_payloads
                    .remove(bulk)
                    .expect("handed in");
                let payload = [head, &rest[head.len()..]].concat().into();
                let number = *number;
                self.carry_out(node, Action::Group(GroupAction::Submit { number, payload }));
            }
            Action::SendTo { to, bytes } => {
                if let Some(peer) = self.nodes.iter_mut().find(|n| n.incarnation == *to) {
                    peer.inbox.push_back((from, bytes.clone()));
                }
            }
            Action::Serve(pull) => self.serve(node, *pull),
            Action::SendControlState { to, parts } => {
                for bytes in parts.clone() {
                    self.carry_out(node, Action::SendTo { to: *to, bytes });
                }
            }
            Action::Group(GroupAction::Read { token }) => {
                let position = self.order.last().map_or(0, |(position, _)| *position);
                self.event(
                    node,
                    Event::ReadPoint {
                        token: *token,
                        position,
                    },
                );
            }
            Action::Log(LogAction::RecordOutcome {
                position,
                seqno,
                depends_on,
                failed,
            }) => {
                let entry = self
                    .order
                    .iter()
                    .find(|(at, _)| at == position)
                    .expect("recorded what was delivered");
                let record = Recorded {
                    position: *position,
                    seqno: *seqno,
                    depends_on: *depends_on,
                    failed: *failed,
                    delivery: entry.1.clone(),
                };
                self.nodes[node].records.by_seqno.insert(*seqno, record);
            }
            Action::Group(GroupAction::Leave) => {
                self.nodes[node].left = true;
                self.reconfigure(|c| c.members.retain(|m| m.incarnation != from));
                self.event(node, Event::Left);
            }
            Action::Log(LogAction::Pin {
                keep_from,
                unreported,
            }) => {
                // Nothing is known of the others' logs.
                let lacking = unreported.iter().map(|(_, from)| *from);
                let keep_from = lacking.chain([*keep_from]).min().unwrap_or_default();
                let log = &mut self.nodes[node].records.log;
                *log = log.split_off(&keep_from);
            }
            Action::Host(HostAction::Closed) => self.nodes[node].closed = true,
            Action::Host(HostAction::Log { text, .. }) => self.nodes[node].logs.push(text.clone()),
            Action::Host(HostAction::Fatal { text }) => self.nodes[node].fatal = Some(text.clone()),
            _ => {}
        }
        self.nodes[node].actions.push(action);
    }

    /// Reads what a peer has pulled, as an engine does.
    fn serve(&mut self, node: usize, pull: Pull) {
        let Pull { to, seqno, .. } = pull;
        let records = &self.nodes[node].records;
        let found = match records.read_part(seqno, pull.offset, pull.part_bytes) {
            Ok(Some(part)) => Ok(Some(ist_part(part))),
            Ok(None) => match records.read(seqno, pull.chunk_bytes) {
                Ok(found) if found.is_empty() => Ok(None),
                Ok(found) => Ok(Some(ist_chunk(seqno, found))),
                Err(NotNow) => Err(NotNow),
            },
            Err(Unread::NotNow) => Err(NotNow),
            Err(Unread::Lost(_)) => Ok(None),
        };
        match found {
            Ok(Some(bytes)) => self.carry_out(node, Action::SendTo { to, bytes }),
            Ok(None) => self.event(node, Event::Unserved { to, seqno }),
            Err(NotNow) => {}
        }
    }

    pub fn status(&self, node: usize) -> Status {
        let at = &self.nodes[node];
        at.replicator.status(&at.records)
    }

    /// Payloads that wait take no more memory than this on any node.
    pub fn bound_queues(&mut self, queue_bytes: usize) {
        for node in 0..self.nodes.len() {
            let options = Options {
                queue_bytes,
                ..Options::default()
            };
            self.event(node, Event::SetOptions(options));
        }
    }
}
