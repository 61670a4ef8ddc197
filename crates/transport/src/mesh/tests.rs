//! Calls to a name that stands for several nodes, whose first node answers in vain.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::SockRef;

use super::*;
use crate::{FrameKind, PREAMBLE, testing};

const POLL: Duration = Duration::from_millis(5);
/// Up to 20 s: a busy machine gets there, too.
const POLLS: usize = 4_000;

fn identity(id: u8, group_name: &str) -> Identity {
    Identity {
        replica: [id; 16],
        incarnation: [id; 16],
        name: String::new(),
        group_name: group_name.to_owned(),
        listen_addr: "127.0.0.1:1".to_owned(),
        history: [0; 16],
        segment: 0,
        extra: Vec::new(),
    }
}

fn config() -> MeshConfig {
    MeshConfig::new(HostPort::parse("127.0.0.1:0", None).unwrap(), Vec::new())
}

/// A node that calls a name with two addresses. Its clock stands still, so that no pause ends.
struct Caller {
    mesh: Mesh,
    poller: Poller,
    nodes: [TcpListener; 2],
}

impl Caller {
    fn new() -> Caller {
        let (mut mesh, poller) = Mesh::bind(config(), identity(1, "cluster")).unwrap();
        let nodes = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        for node in &nodes {
            node.set_nonblocking(true).unwrap();
        }
        let found: Vec<SocketAddr> = (nodes.iter())
            .map(|node| node.local_addr().unwrap())
            .collect();
        let name = HostPort::parse("all:1", None).unwrap();
        mesh.book.add_seed(name.clone(), 0);
        mesh.book.resolving(&name);
        mesh.resolved(name, found);
        Caller {
            mesh,
            poller,
            nodes,
        }
    }

    /// Works until `done` returns something, or for a while.
    fn work<T>(&mut self, done: impl Fn(&Self) -> Option<T>) -> Option<T> {
        let (mut ready, mut events) = (Ready::default(), Vec::new());
        for _ in 0..POLLS {
            self.poller.wait(Some(POLL), &mut ready).unwrap();
            self.mesh.handle_ready(&mut ready, 0, &mut events);
            let found = done(self);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Returns the socket of a node that was called, when the caller waits for its Hello.
    fn called(&mut self, at: usize) -> Option<TcpStream> {
        let (stream, _) = self.work(|caller| caller.nodes[at].accept().ok())?;
        self.work(|caller| {
            let mut connections = caller.mesh.connections.iter();
            connections.find(|(_, c)| c.state == State::AwaitHello)?;
            Some(())
        })?;
        Some(stream)
    }

    /// Returns true if the second node is called after `answer` by the first.
    fn calls_next_after(answer: impl Fn(TcpStream) -> Option<TcpStream>) -> bool {
        let mut caller = Caller::new();
        let _open = answer(caller.called(0).unwrap());
        caller.called(1).is_some()
    }

    /// Returns the time of the next call after both nodes gave the answer.
    fn next_call_ms(answer: impl Fn(TcpStream) -> Option<TcpStream>) -> Option<u64> {
        let mut caller = Caller::new();
        let _open = [0, 1].map(|at| answer(caller.called(at).unwrap()));
        caller.work(|caller| caller.mesh.book.next_call_ms(|_| false))
    }
}

fn say(mut stream: TcpStream, bytes: &[u8]) -> Option<TcpStream> {
    stream.write_all(bytes).unwrap();
    Some(stream)
}

/// The preamble and a frame.
fn frame(kind: FrameKind, payload: &[u8]) -> Vec<u8> {
    [&PREAMBLE[..], &testing::frame(kind as u8, payload)].concat()
}

fn refuse(stream: TcpStream, code: RefusalCode) -> Option<TcpStream> {
    let text = String::new();
    say(
        stream,
        &frame(FrameKind::Refuse, &Refusal { code, text }.encode()),
    )
}

fn close(stream: TcpStream) -> Option<TcpStream> {
    stream.shutdown(Shutdown::Write).unwrap();
    Some(stream)
}

fn reset(stream: TcpStream) -> Option<TcpStream> {
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    None
}

fn speak_otherwise(stream: TcpStream) -> Option<TcpStream> {
    say(stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")
}

/// This node refuses it.
fn be_of_another_cluster(stream: TcpStream) -> Option<TcpStream> {
    let hello = Hello {
        versions: (1, 1),
        identity: identity(2, "elsewhere"),
        proof: None,
    };
    say(stream, &frame(FrameKind::Hello, &hello.encode()))
}

#[test]
fn a_connection_that_ends_in_the_handshake_leads_to_the_next_node() {
    assert!(Caller::calls_next_after(close));
    assert!(Caller::calls_next_after(reset));
    let min_ms = config().retry_min_ms;
    assert_eq!(Caller::next_call_ms(close), Some(min_ms));
}

#[test]
fn an_unwanted_node_leads_to_the_next_one() {
    assert!(Caller::calls_next_after(speak_otherwise));
    assert!(Caller::calls_next_after(be_of_another_cluster));
    for code in [
        RefusalCode::GroupName,
        RefusalCode::Version,
        RefusalCode::History,
        RefusalCode::Identity,
        RefusalCode::Application,
    ] {
        assert!(
            Caller::calls_next_after(|stream| refuse(stream, code)),
            "{code:?}"
        );
    }
    let slow_ms = config().retry_slow_ms;
    assert_eq!(Caller::next_call_ms(speak_otherwise), Some(slow_ms));
    assert_eq!(Caller::next_call_ms(be_of_another_cluster), Some(slow_ms));
}

#[test]
fn the_address_of_a_link_is_known_once_its_replica_is_listed() {
    let (mut mesh, mut poller) = Mesh::bind(config(), identity(1, "cluster")).unwrap();
    let mut caller = TcpStream::connect(mesh.local_addr().literal().unwrap()).unwrap();
    let hello = Hello {
        versions: (1, 1),
        identity: identity(2, "cluster"),
        proof: None,
    };
    let hello = frame(FrameKind::Hello, &hello.encode());
    let state = frame(FrameKind::State, &[0]).split_off(PREAMBLE.len());
    caller.write_all(&[hello, state].concat()).unwrap();
    let (mut ready, mut events) = (Ready::default(), Vec::new());
    let mut polls = 0..POLLS;
    while mesh.peers().next().is_none() {
        polls.next().expect("a link");
        poller.wait(Some(POLL), &mut ready).unwrap();
        mesh.handle_ready(&mut ready, 0, &mut events);
    }
    let ip = IpAddr::from([127, 0, 0, 1]);
    let mut knows = |members| {
        mesh.set_members(members, true);
        mesh.members.has_met(&ip)
    };
    assert!(!knows(None));
    assert!(!knows(Some(BTreeSet::from([[3; 16]]))));
    assert!(knows(Some(BTreeSet::from([[2; 16], [3; 16]]))));
}
