//! A node joins a cluster whose control state is larger than a send queue (64 MiB): many write-sets with many keys each
//! are certified, and not all members have applied them.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use bytes::Bytes;
use trireme_certification::{KeySetBuilder, KeyType};
use trireme_engine::{Channel, Engine, Host, HostAction, NotKept, ServeJob, StageJob, Start};
use trireme_group::{Incarnation, Term, Uuid};
use trireme_log::FlushJob;
use trireme_node::options::Options;
use trireme_node::url::ClusterUrl;
use trireme_node::{Line, Station, now_ms, setup};
use trireme_replicator::{Event, Level, Replicator, Task, WriteSetDraft, flags};
use trireme_transport::{Poller, Ready};

const TIMEOUT: Duration = Duration::from_secs(60);
/// 8 bytes each, in the control state.
const KEYS: usize = 20_000;
const WRITE_SETS: u64 = 500;

/// A node whose server applies no write-set.
struct Node {
    engine: Engine,
    line: Line,
    poller: Poller,
    _dir: tempfile::TempDir,
}

struct Outlet<'a>(&'a mut Line);

impl Host for Outlet<'_> {
    fn send(&mut self, to: &[Incarnation], channel: Channel, bytes: Bytes) {
        self.0.send(to, channel, bytes);
    }
    fn queued_bytes(&self, peer: Incarnation) -> Option<usize> {
        self.0.queued_bytes(peer)
    }
    fn promise(&mut self, _: Term) -> Result<(), NotKept> {
        Ok(())
    }
    fn in_log(&mut self, _: Uuid) -> Result<(), NotKept> {
        Ok(())
    }
    fn in_history(&mut self, history: Uuid) {
        self.0.mesh.set_history(history.0);
    }
    fn refused(&mut self, reason: String) {
        panic!("{reason}");
    }
    fn note(&mut self, _: &str) {}
    fn flush(&mut self, _: FlushJob) {}
    fn stage(&mut self, _: StageJob) {}
    fn serve(&mut self, _: ServeJob) {}
    fn fail(&mut self, text: &str) {
        panic!("{text}");
    }
    fn act(&mut self, _: HostAction) {}
}

impl Station for Node {
    type Outlet<'a> = Outlet<'a>;

    fn line(&mut self) -> Option<&mut Line> {
        Some(&mut self.line)
    }
    fn parts(&mut self) -> (&mut Engine, Outlet<'_>) {
        (&mut self.engine, Outlet(&mut self.line))
    }
    fn log(&self, _: Level, _: &str) {}
}

impl Node {
    fn start(cluster: &str, bootstrap: Option<Uuid>) -> Node {
        let dir = tempfile::tempdir().unwrap();
        let cluster: ClusterUrl = cluster.parse().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let text = format!("gmcast.listen_addr=tcp://{}", free.local_addr().unwrap());
        drop(free);
        let mut options = Options::new(&dir.path().display().to_string(), "", &text).unwrap();
        let options = options.for_connection(&cluster).unwrap();
        let votes = setup::open_votes(&options).unwrap();
        let me = setup::this_member(&options, &votes).unwrap();
        let (mesh, poller) =
            setup::open_mesh("cluster", &cluster, &options, &me, &votes, None).unwrap();
        let start = Start {
            bootstrap,
            ..setup::start(&options, &votes, me)
        };
        let mut engine = Engine::new(Replicator::new(Default::default()));
        engine.connect(now_ms(), start).unwrap();
        Node {
            engine,
            line: Line::new(mesh, votes),
            poller,
            _dir: dir,
        }
    }

    fn turn(&mut self) {
        let mut ready = Ready::default();
        let timeout = Duration::from_millis(1);
        self.poller.wait(Some(timeout), &mut ready).unwrap();
        self.react(&mut ready);
        self.pump();
        while let Some(work) = self.engine.replicator.take_work() {
            if matches!(work.task, Task::Apply(_)) {
                continue;
            }
            let done = Event::WorkDone {
                work: work.id,
                ok: true,
            };
            self.engine.node(now_ms(), done);
            self.pump();
        }
    }

    /// A client asks for the commit of a transaction that has changed many rows of its own.
    fn certify(&mut self, trx: u64) {
        let mut keys = KeySetBuilder::new();
        for row in 0..KEYS {
            let row = format!("{trx} {row}");
            keys.append(&[b"db", b"t", row.as_bytes()], KeyType::Exclusive);
        }
        let both = flags::TRX_START | flags::TRX_END;
        let draft = WriteSetDraft::new(both, trx, trx, &keys, &[b"x"]);
        let event = Event::Certify {
            ticket: trx,
            trx,
            conn: trx,
            draft,
        };
        self.engine.node(now_ms(), event);
        self.pump();
    }

    fn certified(&self) -> u64 {
        self.engine.status().cert_index_size
    }
}

fn until(nodes: &mut [&mut Node], what: &str, done: impl Fn(&[&mut Node]) -> bool) {
    let begin = Instant::now();
    while !done(nodes) {
        assert!(begin.elapsed() < TIMEOUT, "{what}");
        nodes.iter_mut().for_each(|node| node.turn());
    }
}

#[test]
#[ignore = "a minute: ten million keys"]
fn a_control_state_larger_than_a_send_queue_reaches_the_joiner() {
    let mut donor = Node::start("gcomm://", Some(Uuid([7; 16])));
    until(&mut [&mut donor], "the donor founds", |nodes| {
        nodes[0].engine.status().last_committed > 0
    });
    for trx in 1..=WRITE_SETS {
        donor.certify(trx);
        donor.turn();
    }
    let keys = WRITE_SETS * KEYS as u64;
    until(&mut [&mut donor], "all is certified", |nodes| {
        nodes[0].certified() >= keys
    });
    let address = donor.line.mesh.local_addr();
    let mut joiner = Node::start(&format!("gcomm://{address}"), None);
    until(&mut [&mut donor, &mut joiner], "it arrives", |nodes| {
        nodes[1].certified() >= keys
    });
}
