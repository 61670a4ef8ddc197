//! A node as the provider will have it: the mesh under a lock, and a reactor thread.

// Each test binary uses its part.
#![allow(dead_code)]

pub mod stranger;

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use trireme_transport::*;

pub const TIMEOUT: Duration = Duration::from_secs(20);

pub struct Core {
    pub mesh: Mesh,
    pub events: Vec<MeshEvent>,
    /// The most events of one turn.
    pub most_at_once: usize,
}

pub struct Node {
    pub id: PeerId,
    pub address: HostPort,
    core: Arc<Mutex<Core>>,
    stop: Arc<AtomicBool>,
    reactor: Option<JoinHandle<()>>,
}

pub fn local(port: u16) -> HostPort {
    HostPort {
        host: "127.0.0.1".to_owned(),
        port,
    }
}

pub fn config(seeds: &[&HostPort]) -> MeshConfig {
    let mut config = MeshConfig::new(local(0), seeds.iter().map(|s| (*s).clone()).collect());
    config.handshake_timeout_ms = 500;
    config
}

pub fn identity(id: u8) -> Identity {
    Identity {
        replica: [id; 16],
        incarnation: [id; 16],
        name: format!("node{id}"),
        group_name: "cluster".to_owned(),
        listen_addr: "127.0.0.1:0".to_owned(),
        history: [0; 16],
        segment: 0,
        extra: vec![id],
    }
}

/// An allowlist, which may hang.
pub fn allowlist(ask: impl Fn(&str) -> bool + Send + Sync + 'static) -> AllowAddress {
    Arc::new(ask)
}

/// A node's configuration with TLS.
pub fn secure(seeds: &[&HostPort], security: &Security) -> MeshConfig {
    MeshConfig {
        security: security.clone(),
        ..config(seeds)
    }
}

/// Everything until the other side closes.
pub fn read_out(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is as good as an end.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// Two nodes that are connected.
pub fn meshed(security: &Security) -> (Node, Node) {
    let a = Node::with(secure(&[], security), identity(1));
    let b = Node::with(secure(&[&a.address], security), identity(2));
    wait_meshed(&[&a, &b]);
    (a, b)
}

impl Node {
    pub fn start(id: u8, seeds: &[&HostPort]) -> Self {
        Self::with(config(seeds), identity(id))
    }

    /// A replica has the same key each time.
    pub fn with(mut config: MeshConfig, identity: Identity) -> Self {
        let key = || stranger::key(identity.replica[0]);
        config.key.get_or_insert_with(key);
        let id = identity.incarnation;
        let (mesh, mut poller) = Mesh::bind(config, identity).unwrap();
        let address = HostPort::parse(&mesh.identity().listen_addr, None).unwrap();
        let core = Arc::new(Mutex::new(Core {
            mesh,
            events: Vec::new(),
            most_at_once: 0,
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(&core), Arc::clone(&stop));
        let run = move || {
            let start = Instant::now();
            let now_ms = || start.elapsed().as_millis() as u64;
            let mut ready = Ready::default();
            while !stopped.load(Ordering::Relaxed) {
                let deadline_ms = shared.lock().unwrap().mesh.next_deadline_ms();
                let timeout =
                    deadline_ms.map(|d| Duration::from_millis(d.saturating_sub(now_ms())));
                poller.wait(timeout, &mut ready).unwrap();
                let core = &mut *shared.lock().unwrap();
                let before = core.events.len();
                core.mesh
                    .handle_ready(&mut ready, now_ms(), &mut core.events);
                core.mesh.tick(now_ms(), &mut core.events);
                core.mesh.flush();
                core.most_at_once = core.most_at_once.max(core.events.len() - before);
            }
        };
        let reactor = Some(std::thread::spawn(run));
        Self {
            id,
            address,
            core,
            stop,
            reactor,
        }
    }

    /// A caller without a mesh.
    pub fn call(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address.literal().unwrap()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// The same, from 127.0.0.`host`.
    pub fn call_from(&self, host: u8) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let from = SocketAddr::from(([127, 0, 0, host], 0));
        socket.bind(&from.into()).unwrap();
        let to = self.address.literal().unwrap();
        socket.connect(&to.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    pub fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap()
    }

    pub fn send(&self, to: PeerId, bytes: &[u8]) -> SendOutcome {
        let mut core = self.lock();
        let outcome = core.mesh.send(to, Frame::new(bytes, None).unwrap());
        core.mesh.flush();
        outcome
    }

    pub fn linked(&self) -> Vec<PeerId> {
        self.lock()
            .mesh
            .peers()
            .map(|peer| peer.incarnation)
            .collect()
    }

    /// Waits for an event, and takes out all up to it.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&MeshEvent) -> bool) -> MeshEvent {
        let mut found = None;
        wait_until(&format!("{what} at {:02x}", self.id[0]), || {
            let mut core = self.lock();
            let at = core.events.iter().position(&wanted);
            found = at.and_then(|at| core.events.drain(..=at).next_back());
            found.is_some()
        });
        found.unwrap()
    }

    pub fn wait_frame(&self, from: PeerId) -> Vec<u8> {
        match self.wait_for(
            "frame",
            |e| matches!(e, MeshEvent::Frame { from: f, .. } if *f == from),
        ) {
            MeshEvent::Frame { bytes, .. } => bytes.to_vec(),
            _ => unreachable!(),
        }
    }

    pub fn wait_rejected(&self, reason: RejectReason) -> String {
        match self.wait_for(
            "rejection",
            |e| matches!(e, MeshEvent::Rejected { reason: r, .. } if *r == reason),
        ) {
            MeshEvent::Rejected { text, .. } => text,
            _ => unreachable!(),
        }
    }

    pub fn wait_down(&self, peer: PeerId) -> DownReason {
        match self.wait_for(
            "down",
            |e| matches!(e, MeshEvent::PeerDown { incarnation: i, .. } if *i == peer),
        ) {
            MeshEvent::PeerDown { reason, .. } => reason,
            _ => unreachable!(),
        }
    }

    /// How many events so far meet a condition.
    pub fn count(&self, wanted: impl Fn(&MeshEvent) -> bool) -> usize {
        self.lock().events.iter().filter(|e| wanted(e)).count()
    }

    /// As a killed process: nothing more is written, the port closes.
    pub fn kill(mut self) {
        self.halt();
    }

    fn halt(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.lock().mesh.waker().wake();
        if let Some(reactor) = self.reactor.take() {
            reactor.join().unwrap();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.halt();
        }
    }
}

pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < TIMEOUT, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until each node is linked with all others, and stays so with one connection per pair.
pub fn wait_meshed(nodes: &[&Node]) {
    for node in nodes {
        wait_until(&format!("{:02x} linked with all", node.id[0]), || {
            node.linked().len() == nodes.len() - 1
        });
    }
}
