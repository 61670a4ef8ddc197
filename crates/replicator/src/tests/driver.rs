//! A cluster in memory: one list of deliveries for all, handed to each node at its own pace.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use trireme_certification::{KeySetBuilder, KeyType};
use trireme_group::{
    Checkpoint, Configuration, Delivery, Fate, Incarnation, Member, NotNow, Position, ReplicaId,
    SubmissionId, Uuid,
};

use super::server::{Applier, Happened, Server, Session, Toi};
use crate::ControlDigest;
use crate::{
    Action, Answer, Code, Connect, Event, Gtid, History, LastAction, Options, Recorded, Replicator,
    Seqno, Status, Task, TrxId, Unread, Work, WriteSetDraft, flags,
};

pub const HISTORY: Uuid = Uuid([7; 16]);

/// What a node has recorded, as far as it serves it.
#[derive(Default, Clone)]
pub struct Records {
    pub by_seqno: BTreeMap<Seqno, Recorded>,
    pub first: Seqno,
    /// What was delivered, from where it is pinned on.
    pub log: BTreeMap<Position, Delivery>,
    /// What is wrong with it.
    pub damage: Option<Unread>,
}

impl History for Records {
    fn first_seqno(&self) -> Option<Seqno> {
        self.by_seqno
            .range(self.first..)
            .next()
            .map(|(seqno, _)| *seqno)
    }

    fn read(&self, from: Seqno, max_bytes: usize) -> Result<Vec<Recorded>, NotNow> {
        if self.damage == Some(Unread::NotNow) {
            return Err(NotNow);
        }
        if from < self.first || !self.by_seqno.contains_key(&from) {
            return Ok(Vec::new());
        }
        let (mut bytes, mut out) = (0, Vec::new());
        for record in self.by_seqno.range(from..).map(|(_, r)| r) {
            bytes += 100;
            if !out.is_empty() && bytes > max_bytes {
                break;
            }
            out.push(record.clone());
        }
        Ok(out)
    }

    fn read_back(
        &self,
        first: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<(Position, Delivery)>, Unread> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        let (mut bytes, mut out) = (0, Vec::new());
        for (position, delivery) in self.log.range(first..=last) {
            if let Delivery::Submission { payload, .. } = delivery {
                bytes += payload.len();
            }
            if !out.is_empty() && bytes > max_bytes {
                break;
            }
            out.push((*position, delivery.clone()));
        }
        Ok(out)
    }
}

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
    pub parcels: BTreeMap<u64, Bytes>,
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
}

pub fn incarnation(index: usize) -> Incarnation {
    Incarnation(Uuid([index as u8 + 1; 16]))
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
        self.nodes.push(Node {
            replicator: Replicator::new(Options::default()),
            incarnation: incarnation(index),
            server: Server::default(),
            records: Records::default(),
            actions: Vec::new(),
            last_action: LastAction::NONE,
            overrides: Vec::new(),
            threads: 0,
            next: 0,
            base: 0,
            inbox: VecDeque::new(),
            parcels: BTreeMap::new(),
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
            me: self.seat(node),
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
    fn seat(&self, node: usize) -> Member {
        Member {
            incarnation: self.nodes[node].incarnation,
            arbitrator: self.nodes[node].arbitrator,
            ..member(node)
        }
    }

    pub fn join(&mut self, node: usize, local: Gtid, server_running: bool) {
        self.connect(node, local, None, server_running);
        self.reset(node);
        let mut seat = self.seat(node);
        (seat.weight, seat.voter) = (0, false);
        self.reconfigure(|c| c.members.push(seat));
    }

    /// The group's log begins anew at this node.
    pub fn reset(&mut self, node: usize) {
        let base = self.order.last().map_or(0, |(position, _)| *position);
        self.nodes[node].base = base;
        self.nodes[node].next = self.order.len();
        self.event(node, Event::LogEnds);
        self.nodes[node].records.log.clear();
        let checkpoint = Checkpoint {
            position: base,
            history: HISTORY,
            ..Checkpoint::default()
        };
        self.event(node, Event::Reset(Box::new(checkpoint)));
    }

    pub fn reconfigure(&mut self, change: impl FnOnce(&mut Configuration)) {
        change(&mut self.configuration);
        self.configuration.number += 1;
        self.configuration.sort();
        self.append(Delivery::Configuration(self.configuration.clone()));
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
        let at = &mut self.nodes[node];
        at.replicator
            .handle(self.now_ms, event, &at.records, &mut out);
        if let Some(digest) = at.replicator.control_digest() {
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
            Action::Submit { number, payload } => {
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
            Action::Spread {
                parcel, payload, ..
            } => {
                self.nodes[node].parcels.insert(*parcel, payload.clone());
            }
            Action::Recall { parcel } => {
                self.nodes[node].parcels.remove(parcel);
            }
            Action::SubmitParcel {
                number,
                parcel,
                head,
            } => {
                let rest = self.nodes[node].parcels.remove(parcel).expect("handed in");
                let payload = [head, &rest[head.len()..]].concat().into();
                let number = *number;
                self.carry_out(node, Action::Submit { number, payload });
            }
            Action::SendTo { to, bytes } => {
                if let Some(peer) = self.nodes.iter_mut().find(|n| n.incarnation == *to) {
                    peer.inbox.push_back((from, bytes.clone()));
                }
            }
            Action::Read { token } => {
                let position = self.order.last().map_or(0, |(position, _)| *position);
                self.event(
                    node,
                    Event::ReadPoint {
                        token: *token,
                        position,
                    },
                );
            }
            Action::RecordOutcome {
                position,
                seqno,
                depends_on,
                failed,
            } => {
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
            Action::Leave => {
                self.nodes[node].left = true;
                self.reconfigure(|c| c.members.retain(|m| m.incarnation != from));
                self.event(node, Event::Left);
            }
            Action::PinLog {
                keep_from,
                unreported,
            } => {
                // Nothing is known of the others' logs.
                let lacking = unreported.iter().map(|(_, from)| *from);
                let keep_from = lacking.chain([*keep_from]).min().unwrap_or_default();
                let log = &mut self.nodes[node].records.log;
                *log = log.split_off(&keep_from);
            }
            Action::Closed => self.nodes[node].closed = true,
            Action::Log { text, .. } => self.nodes[node].logs.push(text.clone()),
            Action::Fatal { text } => self.nodes[node].fatal = Some(text.clone()),
            _ => {}
        }
        self.nodes[node].actions.push(action);
    }

    pub fn status(&self, node: usize) -> Status {
        let at = &self.nodes[node];
        at.replicator.status(&at.records)
    }

    // --- single steps; each says whether anything happened

    pub fn deliver(&mut self, node: usize) -> bool {
        let at = &mut self.nodes[node];
        if at.left || at.fatal.is_some() || !at.primary {
            return false;
        }
        let Some((position, delivery)) = self.order.get(at.next).cloned() else {
            return false;
        };
        at.next += 1;
        at.records.log.insert(position, delivery.clone());
        self.event(node, Event::Delivered { position, delivery });
        true
    }

    pub fn receive(&mut self, node: usize) -> bool {
        let Some((from, bytes)) = self.nodes[node].inbox.pop_front() else {
            return false;
        };
        self.event(node, Event::Direct { from, bytes });
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

    pub fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        for node in 0..self.nodes.len() {
            self.event(node, Event::Tick);
        }
    }

    // --- what clients do

    pub fn certify(&mut self, node: usize, key: &str, kind: KeyType) -> TrxId {
        let server = &mut self.nodes[node].server;
        server.next_trx += 1;
        let (trx, ticket) = (server.next_trx, server.ticket());
        let data = format!("{node}/{trx}/{key}").into_bytes();
        server
            .sessions
            .insert(trx, (Session::Certifying(ticket), data.clone()));
        let draft = draft(trx, key, kind, &data);
        self.event(
            node,
            Event::Certify {
                ticket,
                trx,
                conn: trx,
                draft,
            },
        );
        trx
    }

    pub fn toi(&mut self, node: usize, conn: u64) {
        let server = &mut self.nodes[node].server;
        let ticket = server.ticket();
        let data = format!("{node}/toi{conn}").into_bytes();
        server
            .tois
            .insert(conn, (Toi::Starting(ticket), data.clone()));
        let mut keys = KeySetBuilder::new();
        keys.append(&[b"db", b"t"], KeyType::Exclusive);
        let draft = WriteSetDraft::new(
            flags::TRX_START | flags::TRX_END,
            u64::MAX,
            conn,
            &keys,
            &[&data],
        );
        self.event(
            node,
            Event::ToiStart {
                ticket,
                conn,
                draft,
            },
        );
    }

    pub fn abort(&mut self, node: usize, victim: TrxId, bf_seqno: Seqno) -> Code {
        let abort = |ticket| Event::Abort {
            ticket,
            bf_seqno,
            victim,
            executing: false,
        };
        let code = self.call(node, abort).expect("at once").code;
        if let (Code::Ok, -1, Some((session, _))) = (
            code,
            bf_seqno,
            self.nodes[node].server.sessions.get_mut(&victim),
        ) {
            // The server sees the mark before it asks for commit order, or else (any other
            // bf_seqno) the answer there tells it.
            if let Session::Certified(seqno) = *session {
                *session = Session::RolledBack(seqno);
            }
        }
        code
    }

    /// A call; its answer, if it came at once.
    pub fn call(&mut self, node: usize, event: impl FnOnce(u64) -> Event) -> Option<Answer> {
        let ticket = self.nodes[node].server.ticket();
        self.event(node, event(ticket));
        self.nodes[node].server.take(ticket)
    }

    /// The donor's script copies its database to the joiner.
    pub fn snapshot_from(&mut self, donor: usize, joiner: usize) {
        let gtid = self.nodes[donor].replicator.last_committed();
        let (database, commits) = (
            self.nodes[donor].server.database.clone(),
            self.nodes[donor].server.commits.clone(),
        );
        let server = &mut self.nodes[joiner].server;
        (server.database, server.commits) = (database, commits);
        self.call(donor, |ticket| Event::SstSent {
            ticket,
            gtid,
            rcode: 0,
        });
        self.call(joiner, |ticket| Event::SstReceived {
            ticket,
            gtid,
            rcode: 0,
        });
    }

    // --- what must hold

    pub fn outcome(&self, node: usize, trx: TrxId) -> Code {
        match self.nodes[node].server.sessions[&trx].0 {
            Session::Done(code) => code,
            ref other => panic!("transaction {trx} of node {node} hangs: {other:?}"),
        }
    }

    pub fn comment(&self, node: usize) -> &'static str {
        self.status(node).local_state_comment
    }

    /// Nobody waits, everything is applied, all databases are equal.
    pub fn assert_settled(&self) {
        let live: Vec<&Node> = self
            .nodes
            .iter()
            .filter(|n| !n.left && n.fatal.is_none() && !n.arbitrator)
            .collect();
        for node in &live {
            let index = node.incarnation;
            assert!(
                node.server.appliers.is_empty(),
                "{index}: appliers hang: {:?}",
                node.server.appliers
            );
            for (trx, (session, _)) in &node.server.sessions {
                assert!(
                    matches!(session, Session::Done(_)),
                    "{index}: transaction {trx} hangs: {session:?}"
                );
            }
            for (conn, (toi, _)) in &node.server.tois {
                assert!(
                    matches!(toi, Toi::Done(_)),
                    "{index}: action {conn} hangs: {toi:?}"
                );
            }
            let last = node.replicator.last_seqno().expect("in step");
            assert_eq!(
                node.replicator.last_committed().seqno,
                last,
                "{index}: low-water mark stands"
            );
            assert_eq!(
                node.server.database, live[0].server.database,
                "{index}: databases differ"
            );
            let commits: BTreeSet<Seqno> = node.server.commits.iter().copied().collect();
            assert_eq!(
                commits.len() as Seqno,
                last,
                "{index}: not every seqno came to the database"
            );
        }
    }
}

impl Cluster {
    /// The id of the last submission of a node.
    pub fn last_submission(&self, node: usize) -> SubmissionId {
        let number = self.nodes[node]
            .actions
            .iter()
            .rev()
            .find_map(|action| match action {
                Action::Submit { number, .. } => Some(*number),
                _ => None,
            });
        SubmissionId {
            incarnation: self.nodes[node].incarnation,
            number: number.expect("has submitted"),
        }
    }
}
