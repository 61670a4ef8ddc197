//! A process that is out of descriptors (`RLIMIT_NOFILE`). The only test of its binary: the limit is the process's.

mod common;

use std::fs::File;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use common::{Node, TIMEOUT, config, identity};
use socket2::{Domain, Socket, Type};
use trireme_transport::{Frame, Mesh, MeshEvent, Poller, Ready, RejectReason};

/// A node whose reactor is this thread, so that its turns can be counted.
struct Counted {
    mesh: Mesh,
    poller: Poller,
    start: Instant,
    turns: u32,
    events: Vec<MeshEvent>,
}

impl Counted {
    fn turn(&mut self) {
        let now_ms = self.start.elapsed().as_millis() as u64;
        let due_ms = self.mesh.next_deadline_ms().unwrap_or(u64::MAX);
        let timeout = Duration::from_millis(due_ms.saturating_sub(now_ms).min(200));
        let mut ready = Ready::default();
        self.poller.wait(Some(timeout), &mut ready).unwrap();
        let now_ms = self.start.elapsed().as_millis() as u64;
        self.mesh.handle_ready(&mut ready, now_ms, &mut self.events);
        self.mesh.tick(now_ms, &mut self.events);
        self.mesh.flush();
        self.turns += 1;
    }

    fn until(&mut self, what: &str, holds: impl Fn(&Counted) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < TIMEOUT, "{what}: {:?}", self.events);
            self.turn();
        }
    }

    fn rejections(&self, wanted: RejectReason) -> usize {
        let is_one =
            |e: &&MeshEvent| matches!(e, MeshEvent::Rejected { reason, .. } if *reason == wanted);
        self.events.iter().filter(is_one).count()
    }
}

#[test]
fn a_node_without_a_free_descriptor_keeps_its_peers_and_takes_others_later() {
    let b = Node::start(2, &[]);
    let (mesh, poller) = Mesh::bind(config(&[&b.address]), identity(1)).unwrap();
    let address = mesh.local_addr().to_string();
    let mut a = Counted {
        mesh,
        poller,
        start: Instant::now(),
        turns: 0,
        events: Vec::new(),
    };
    a.until("a and b are meshed", |a| a.mesh.peers().count() == 1);
    // Callers have their sockets; who is called needs one more for each.
    let callers = [(); 3].map(|()| Socket::new(Domain::IPV4, Type::STREAM, None).unwrap());
    let mut taken = Vec::new();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let low = rustix::process::Rlimit {
        current: Some(256),
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, low).unwrap();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    let target: SocketAddr = address.parse().unwrap();
    for caller in &callers {
        caller.connect(&target.into()).unwrap();
        caller.send(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    }
    a.until("it says so", |a| {
        a.rejections(RejectReason::AcceptFailed) == 1
    });

    // It goes on, and does not spin.
    let (turns, begin) = (a.turns, Instant::now());
    let mut heard = 0;
    while begin.elapsed() < Duration::from_secs(1) {
        a.turn();
        if a.turns % 4 == 0 {
            let frame = Frame::new(b"still here", None).unwrap();
            let _ = a.mesh.send(b.id, frame);
            a.mesh.flush();
            assert_eq!(b.wait_frame(identity(1).incarnation), b"still here");
            heard += 1;
        }
    }
    let turns = a.turns - turns;
    assert!(turns < 100, "{turns} turns in a second");
    assert!(heard > 0);
    assert_eq!(a.rejections(RejectReason::AcceptFailed), 1, "one line");

    drop(taken);
    a.until("the callers are heard", |a| {
        a.rejections(RejectReason::ForeignProtocol) >= 1
    });
    let is_down = |e: &MeshEvent| matches!(e, MeshEvent::PeerDown { .. });
    assert!(!a.events.iter().any(is_down), "{:?}", a.events);
}
