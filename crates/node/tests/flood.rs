//! What a peer sends that makes no sense: a node drops it, says so in a few lines, and goes on.

mod common;

use std::time::{Duration, Instant};

use bytes::Bytes;
use common::Node;
use trireme_node::now_ms;
use trireme_replicator::Level;
use trireme_transport::{
    Frame, HostPort, Identity, Mesh, MeshConfig, MeshEvent, PeerId, Poller, Ready,
};

const TIMEOUT: Duration = Duration::from_secs(20);

fn warnings(node: &Node) -> Vec<String> {
    let log = node.log.borrow();
    let warnings = log.iter().filter(|(level, _)| *level == Level::Warn);
    warnings.map(|(_, text)| text.clone()).collect()
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
    let mut node = Node::start("gcomm://127.0.0.1:1", None);
    let id = node.line.mesh.identity().incarnation;
    let mut stranger = Stranger::calls(&node);
    until(&mut node, &mut stranger, |_, stranger| stranger.is_up());
    send_nonsense(&mut stranger, id, 14_108);
    until(&mut node, &mut stranger, |node, _| {
        !warnings(node).is_empty()
    });
    let warnings = warnings(&node);
    assert_eq!(warnings.len(), 1, "{} warnings", warnings.len());
    assert!(
        warnings[0].contains("frame of unknown kind"),
        "{warnings:?}"
    );
}

/// It calls again, and again.
#[test]
fn a_peer_that_keeps_on_is_a_few_warnings() {
    let mut node = Node::start("gcomm://127.0.0.1:1", None);
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
    assert_eq!(warnings(&node).len(), 5);
    assert!(
        node.log.borrow().len() <= 3 * 5 + 5,
        "{:?}",
        node.log.borrow()
    );
}
