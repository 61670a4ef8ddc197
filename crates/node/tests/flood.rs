//! What a peer sends that makes no sense: a node drops it, says so in a few lines, and goes on.

use std::cell::RefCell;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use bytes::Bytes;
use trireme_engine::{Channel, Engine, Host, HostAction, NotKept, ServeJob, StageJob};
use trireme_group::{Incarnation, Term, Uuid};
use trireme_log::FlushJob;
use trireme_node::options::Options;
use trireme_node::url::ClusterUrl;
use trireme_node::{Line, Station, now_ms, setup};
use trireme_replicator::{Level, Replicator};
use trireme_transport::{
    Frame, HostPort, Identity, Mesh, MeshConfig, MeshEvent, PeerId, Poller, Ready,
};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A node without a server, and what it has logged.
struct Node {
    engine: Engine,
    line: Line,
    poller: Poller,
    log: RefCell<Vec<(Level, String)>>,
    _dir: tempfile::TempDir,
}

struct Outlet<'a>(&'a mut Line, &'a RefCell<Vec<(Level, String)>>);

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
    fn in_history(&mut self, _: Uuid) {}
    fn refused(&mut self, _: String) {}
    fn note(&mut self, text: &str) {
        self.1.borrow_mut().push((Level::Info, text.to_owned()));
    }
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
        (&mut self.engine, Outlet(&mut self.line, &self.log))
    }
    fn log(&self, level: Level, text: &str) {
        self.log.borrow_mut().push((level, text.to_owned()));
    }
}

impl Node {
    fn start() -> Node {
        let dir = tempfile::tempdir().unwrap();
        let cluster: ClusterUrl = "gcomm://127.0.0.1:1".parse().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let text = format!("gmcast.listen_addr=tcp://{}", free.local_addr().unwrap());
        drop(free);
        let mut options = Options::new(&dir.path().display().to_string(), "", &text).unwrap();
        let options = options.for_connection(&cluster).unwrap();
        let votes = setup::open_votes(&options).unwrap();
        let me = setup::this_member(&options, &votes).unwrap();
        let (mesh, poller) =
            setup::open_mesh("cluster", &cluster, &options, &me, &votes, None).unwrap();
        let start = setup::start(&options, &votes, me);
        let mut engine = Engine::new(Replicator::new(Default::default()));
        engine.connect(now_ms(), start).unwrap();
        Node {
            engine,
            line: Line::new(mesh, votes),
            poller,
            log: RefCell::default(),
            _dir: dir,
        }
    }

    fn turn(&mut self) {
        let mut ready = Ready::default();
        let timeout = Duration::from_millis(1);
        self.poller.wait(Some(timeout), &mut ready).unwrap();
        self.react(&mut ready);
        self.pump();
    }

    fn warnings(&self) -> Vec<String> {
        let log = self.log.borrow();
        let warnings = log.iter().filter(|(level, _)| *level == Level::Warn);
        warnings.map(|(_, text)| text.clone()).collect()
    }
}

/// A process that knows how to shake hands, and nothing else.
struct Stranger {
    mesh: Mesh,
    poller: Poller,
    events: Vec<MeshEvent>,
}

impl Stranger {
    fn calls(node: &Node) -> Stranger {
        let any = |port| HostPort::parse(&format!("127.0.0.1:{port}"), None).unwrap();
        let config = MeshConfig::new(any(0), vec![any(node.line.mesh.local_addr().port)]);
        let identity = Identity {
            replica: [9; 16],
            incarnation: [9; 16],
            name: "stranger".to_owned(),
            group_name: "cluster".to_owned(),
            listen_addr: "127.0.0.1:0".to_owned(),
            history: [0; 16],
            segment: 0,
            extra: Vec::new(),
        };
        let (mesh, poller) = Mesh::bind(config, identity).unwrap();
        Stranger {
            mesh,
            poller,
            events: Vec::new(),
        }
    }

    fn turn(&mut self) {
        let mut ready = Ready::default();
        let timeout = Duration::from_millis(1);
        self.poller.wait(Some(timeout), &mut ready).unwrap();
        let now = now_ms();
        self.mesh.handle_ready(&mut ready, now, &mut self.events);
        self.mesh.tick(now, &mut self.events);
        self.mesh.flush();
    }

    fn is_up(&self) -> bool {
        self.mesh.peers().next().is_some()
    }
}

fn until(node: &mut Node, stranger: &mut Stranger, done: impl Fn(&Node, &Stranger) -> bool) {
    let begin = Instant::now();
    while !done(node, stranger) {
        assert!(begin.elapsed() < TIMEOUT, "{:?}", node.log.borrow());
        node.turn();
        stranger.turn();
    }
}

fn send_nonsense(stranger: &mut Stranger, to: PeerId, frames: usize) {
    for _ in 0..frames {
        let frame = Frame::new(&[], Some(Bytes::new())).unwrap();
        let _ = stranger.mesh.send(to, frame);
    }
    stranger.mesh.flush();
}

/// Measured before: 14,108 warnings for one batch of empty frames.
#[test]
fn a_batch_of_nonsense_is_one_warning() {
    let mut node = Node::start();
    let id = node.line.mesh.identity().incarnation;
    let mut stranger = Stranger::calls(&node);
    until(&mut node, &mut stranger, |_, stranger| stranger.is_up());
    send_nonsense(&mut stranger, id, 14_108);
    until(&mut node, &mut stranger, |node, _| {
        !node.warnings().is_empty()
    });
    let warnings = node.warnings();
    assert_eq!(warnings.len(), 1, "{} warnings", warnings.len());
    assert!(
        warnings[0].contains("frame of unknown kind"),
        "{warnings:?}"
    );
}

/// It calls again, and again.
#[test]
fn a_peer_that_keeps_on_is_a_few_warnings() {
    let mut node = Node::start();
    let id = node.line.mesh.identity().incarnation;
    let mut stranger = Stranger::calls(&node);
    let begin = Instant::now();
    let mut floods = 0;
    while floods < 12 {
        assert!(begin.elapsed() < TIMEOUT, "{floods} floods");
        node.turn();
        stranger.turn();
        if stranger.is_up() {
            send_nonsense(&mut stranger, id, 100);
            until(&mut node, &mut stranger, |_, stranger| !stranger.is_up());
            floods += 1;
            // Pauses between calls grow; this one does not wait for them.
            let address = HostPort::parse(&node.line.mesh.local_addr().to_string(), None).unwrap();
            stranger.mesh.set_isolated(true);
            stranger.mesh.set_isolated(false);
            stranger.mesh.add_seed(address);
        }
    }
    assert_eq!(node.warnings().len(), 5);
    assert!(
        node.log.borrow().len() <= 3 * 5 + 5,
        "{:?}",
        node.log.borrow()
    );
}
