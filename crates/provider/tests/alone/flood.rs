//! A member's port under flood: a thousand new connections a second, and ten thousand half-open ones. The others go on, and
//! a real member that has lost its connection gets a new one.
//!
//! Members and flood are in one process, and share its processors: an upper bound of what a flood costs. The members have
//! other addresses than the flood, as on a network.

use std::io::{IoSlice, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use trireme_tls::testing::{NOW, Party};
use trireme_tls::{Handshake, Role};
use trireme_transport::PREAMBLE;
use trireme_transport::testing::frame;
use trireme_wsrep_abi::WsrepStatus;

use crate::server::{Place, Server, certificates, free_port, logged};
use crate::transaction::Transaction;
use crate::{ALONE, AtEnd, stranger};

/// New connections per second.
const RATE: u32 = 1_000;
/// Half-open connections.
const HALF_OPEN: usize = 10_000;
/// Addresses that the flood comes from.
const SOURCES: usize = 50;
/// Descriptors that the members and the rest of the tests need.
const OTHER_DESCRIPTORS: usize = 1_000;
/// A flood has opened its connections within this time.
const FILL: Duration = Duration::from_secs(60);
/// A member is connected again within this time.
const RECONNECT: Duration = Duration::from_secs(2);
/// Pause of a client between two commits.
const PACE: Duration = Duration::from_millis(2);
/// How long a member is cut off: less than the group's timeout.
const CUT: Duration = Duration::from_millis(300);

/// A node's log has five lines on a peer's connections in ten seconds, and no more.
const UNLIMITED: Duration = Duration::from_millis(2_000);

/// What a caller says before it falls silent.
type Words = Vec<Vec<u8>>;

/// Nothing; a part of a record; the preamble; nonsense; and the dearest: a whole ClientHello for a node with certificates,
/// a stranger's whole Hello for one without.
fn words() -> Words {
    let ca = Party::authority("flood");
    let (near, mut far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let credentials = ca.issue("flood", NOW).credentials(&ca);
    let handshake = Handshake::new(&credentials, Role::Dialer, near).unwrap();
    drop(handshake.step().expect("it waits for an answer"));
    let mut client_hello = Vec::new();
    far.read_to_end(&mut client_hello).unwrap();
    vec![
        Vec::new(),
        client_hello[..20].to_vec(),
        PREAMBLE.to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        client_hello,
        [&PREAMBLE[..], &frame(1, &stranger::hello(7))].concat(),
    ]
}

/// The callers of one flood.
struct Flood<'a> {
    to: SocketAddr,
    words: &'a Words,
    /// So many connections are held; beyond, the oldest is closed.
    held: usize,
    opened: AtomicUsize,
    ended: AtomicBool,
}

impl Flood<'_> {
    fn new(to: SocketAddr, words: &Words, held: usize) -> Flood<'_> {
        Flood {
            to,
            words,
            held,
            opened: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// One connection, from one of the addresses. None: the system has no descriptor, port or place in the queue for it.
    fn call(&self, number: usize) -> Option<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
        let source = Ipv4Addr::new(127, 0, 2, 1 + (number % SOURCES) as u8);
        socket
            .bind(&SocketAddr::new(IpAddr::V4(source), 0).into())
            .ok()?;
        // A full queue of the listener answers nothing: the flood does not wait for it.
        socket
            .connect_timeout(&self.to.into(), Duration::from_millis(100))
            .ok()?;
        let mut stream = TcpStream::from(socket);
        let words = &self.words[number % self.words.len()];
        // The node is free to hang up.
        let _ = stream.write_vectored(&[IoSlice::new(words)]);
        Some(stream)
    }

    fn go_on(&self, rate: u32) {
        let mut held = std::collections::VecDeque::new();
        let mut due = Instant::now();
        for number in 0.. {
            if self.ended.load(Ordering::Relaxed) {
                return;
            }
            if let Some(stream) = self.call(number) {
                held.push_back(stream);
                self.opened.fetch_add(1, Ordering::Relaxed);
            }
            // Until it is full it is in a hurry.
            let is_full = held.len() > self.held;
            if is_full {
                held.pop_front();
            }
            due += Duration::from_secs(1) / if is_full { rate } else { 4 * rate };
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
}

/// Commits of some clients, until they are told to stop.
#[derive(Default)]
struct Clients {
    ended: AtomicBool,
    took: Mutex<Vec<(Instant, Duration)>>,
}

impl Clients {
    fn write(&self, server: &Server, name: &str) {
        let mut number = 0;
        while !self.ended.load(Ordering::Relaxed) {
            let (key, began) = (format!("{name}-{number}"), Instant::now());
            assert!(Transaction::new(server, &key, "row").run(), "{key}");
            self.took.lock().unwrap().push((began, began.elapsed()));
            number += 1;
            thread::sleep(PACE);
        }
    }

    /// Of the commits that began in the last `window`: how many, and what 99 of 100 did not exceed.
    fn p99(&self, window: Duration) -> (usize, Duration) {
        let from = Instant::now() - window;
        let took = self.took.lock().unwrap();
        let mut took: Vec<Duration> = took
            .iter()
            .filter(|(began, _)| *began >= from)
            .map(|(_, took)| *took)
            .collect();
        took.sort_unstable();
        let at = (took.len() * 99 / 100).min(took.len().saturating_sub(1));
        (took.len(), took.get(at).copied().unwrap_or_default())
    }
}

/// Cuts a member off that nobody can call: how long until the flooded one has taken its call.
fn reconnect(cut: &Server, flooded: &Server) -> Duration {
    let established = || {
        let lines = logged(&format!("({}, ", flooded.address()));
        let lines = lines
            .iter()
            .filter(|(_, line)| line.contains(" established"));
        lines.count()
    };
    thread::sleep(UNLIMITED);
    let before = established();
    assert_eq!(cut.set_options("gmcast.isolate=1"), WsrepStatus::OK);
    thread::sleep(CUT);
    let began = Instant::now();
    assert_eq!(cut.set_options("gmcast.isolate=0"), WsrepStatus::OK);
    while established() == before {
        assert!(began.elapsed() < 5 * RECONNECT, "no connection again");
        thread::sleep(Duration::from_millis(2));
    }
    began.elapsed()
}

/// A free port that the system gives to no call: those of a flood take many, at addresses that 0.0.0.0 includes.
fn port_of_no_call() -> u16 {
    let mut ports = 20_000 + (std::process::id() % 10_000) as u16..32_000;
    let is_free = |port: &u16| TcpListener::bind(("0.0.0.0", *port)).is_ok();
    ports.find(is_free).expect("a free port")
}

/// What a flood has done.
struct Phase {
    what: &'static str,
    opened: usize,
    commits: usize,
    p99: Duration,
    reconnects: Vec<Duration>,
}

/// Quiet, then each flood for so long, while clients write on two members.
fn flooded(options: &str, lasts: Duration, reconnects: usize) -> Vec<Phase> {
    let start = |name, place| Server::start_at(name, place, options).expect("init");
    let a = start("flooded", Place::at("127.0.1.2", free_port()));
    let b = start("other", Place::at("127.0.1.3", free_port()));
    // Nobody can call it: each connection is one that the flooded port has taken.
    let place = Place {
        advertised_ip: "255.255.255.255",
        ..Place::at("0.0.0.0", port_of_no_call())
    };
    let c = start("caller", place);
    Server::found(&[&a, &b]);
    c.connect(&format!("{},{}", a.url(), b.address()));
    let (words, clients) = (words(), Clients::default());
    let to = a.address().parse().unwrap();
    let mut phases = Vec::new();
    thread::scope(|scope| {
        let _ends = AtEnd(|| clients.ended.store(true, Ordering::Relaxed));
        scope.spawn(|| clients.write(&a, "a"));
        scope.spawn(|| clients.write(&b, "b"));
        let mut phase = |what, opened: &dyn Fn() -> usize| {
            let before = opened();
            thread::sleep(lasts);
            let (commits, p99) = clients.p99(lasts);
            let opened = opened() - before;
            let reconnects = (0..reconnects).map(|_| reconnect(&c, &a)).collect();
            phases.push(Phase {
                what,
                opened,
                commits,
                p99,
                reconnects,
            });
        };
        phase("quiet", &|| 0);
        let half_open = HALF_OPEN.min(descriptors_max().saturating_sub(OTHER_DESCRIPTORS));
        for (what, held) in [("connections", 100), ("half-open connections", half_open)] {
            let flood = Flood::new(to, &words, held);
            thread::scope(|scope| {
                let _ends = AtEnd(|| flood.ended.store(true, Ordering::Relaxed));
                scope.spawn(|| flood.go_on(RATE));
                let until = Instant::now() + FILL;
                while flood.opened.load(Ordering::Relaxed) < held {
                    assert!(Instant::now() < until, "not {held} {what} in {FILL:?}");
                    thread::sleep(Duration::from_millis(20));
                }
                phase(what, &|| flood.opened.load(Ordering::Relaxed));
            });
        }
        phase("quiet again", &|| 0);
    });
    phases
}

/// The descriptors that this process may have.
fn descriptors_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    line.split_whitespace()
        .nth(3)
        .unwrap()
        .parse()
        .unwrap_or(HALF_OPEN * 2)
}

fn check(options: &str, lasts: Duration, reconnects: usize) -> Vec<Phase> {
    let _alone = ALONE.lock();
    let phases = flooded(options, lasts, reconnects);
    for phase in &phases {
        println!(
            "{}: {} opened, {} commits, p99 {:?}, a member is back after {:?}",
            phase.what, phase.opened, phase.commits, phase.p99, phase.reconnects
        );
        assert!(phase.commits > 0, "{}", phase.what);
        assert!(
            phase.reconnects.iter().all(|took| *took <= RECONNECT),
            "{}",
            phase.what
        );
    }
    phases
}

#[test]
fn a_flooded_port_with_certificates_takes_its_members_again() {
    let dir = tempfile::tempdir().unwrap();
    check(&certificates(dir.path()), Duration::from_secs(1), 1);
}

#[test]
fn a_flooded_port_without_encryption_takes_its_members_again() {
    check("", Duration::from_secs(1), 1);
}

/// cargo test --release -p trireme-provider --test alone what_a_flood_costs -- --ignored --nocapture
#[test]
#[ignore = "a measurement, on a machine that has nothing else to do"]
fn what_a_flood_costs() {
    let dir = tempfile::tempdir().unwrap();
    for options in [certificates(dir.path()), String::new()] {
        let phases = check(&options, Duration::from_secs(10), 5);
        let quiet = phases[0].p99.max(phases[3].p99);
        for phase in &phases[1..3] {
            assert!(
                phase.p99 <= 2 * quiet,
                "{}: {:?}, quiet {quiet:?}",
                phase.what,
                phase.p99
            );
        }
    }
}
