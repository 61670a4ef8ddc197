//! What these tests share: a node on real sockets.

use std::cell::RefCell;
use std::time::Duration;

use bytes::Bytes;
use trireme_engine::{Channel, Engine, Host, HostAction, NotKept, ServeJob, StageJob, Start};
use trireme_group::{Incarnation, Term, Uuid};
use trireme_log::FlushJob;
use trireme_node::options::Options;
use trireme_node::url::ClusterUrl;
use trireme_node::{Line, Station, now_ms, setup};
use trireme_replicator::{Level, Replicator};
use trireme_transport::testing::free_port;
use trireme_transport::{Poller, Ready};

/// A node without a server, and what it has logged.
pub struct Node {
    pub engine: Engine,
    pub line: Line,
    poller: Poller,
    pub log: RefCell<Vec<(Level, String)>>,
    _dir: tempfile::TempDir,
}

pub struct Outlet<'a>(&'a mut Line, &'a RefCell<Vec<(Level, String)>>);

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
    /// Starts a node of this cluster (`wsrep_cluster_address`). `bootstrap`: it founds this history.
    pub fn start(cluster: &str, bootstrap: Option<Uuid>) -> Node {
        let dir = tempfile::tempdir().unwrap();
        let cluster: ClusterUrl = cluster.parse().unwrap();
        let text = format!("gmcast.listen_addr=tcp://127.0.0.1:{}", free_port());
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
            log: RefCell::default(),
            _dir: dir,
        }
    }

    /// Takes in what has come, for a millisecond, and sends.
    pub fn turn(&mut self) {
        let mut ready = Ready::default();
        let timeout = Duration::from_millis(1);
        self.poller.wait(Some(timeout), &mut ready).unwrap();
        self.react(&mut ready);
        self.pump();
    }
}
