//! A stranger plays with a cluster: it has not the secret, or it has no seat. Every kind of frame and message forged,
//! sessions replayed, handshakes broken off. It must hear nothing and change nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trireme_tls::{Handshake, Progress, Role, testing};
use trireme_transport::testing::{frame, in_the_middle};
use trireme_transport::{Hello, Identity, PREAMBLE};

use crate::server::{SECRET, Server, logged, write_secret};
use crate::transaction::Transaction;
use crate::{ALONE, AtEnd};

/// What stands in each row, and nowhere else.
const MARK: &str = "the row of a client";
/// Connections of one stranger at a time.
const HELD_MAX: usize = 16;
/// Strangers at the same time.
const STRANGERS: u64 = 3;

/// Numbers that look random, and are the same for the same seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn bytes(&mut self, limit: u64) -> Vec<u8> {
        let len = self.below(limit);
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

pub fn hello(id: u8) -> Vec<u8> {
    let identity = Identity {
        replica: [id; 16],
        // Greater than any node's: the node decides about the connection.
        incarnation: [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, id, 0, 0, 0, 0, 0, 0, 0, 0, id,
        ],
        name: "stranger".to_owned(),
        group_name: "host".to_owned(),
        listen_addr: "127.0.0.1:1".to_owned(),
        history: [0; 16],
        segment: 0,
        extra: Vec::new(),
    };
    let hello = Hello {
        versions: (1, 1),
        identity,
        proof: None,
    };
    hello.encode()
}

/// A message of the group or the replicator, of any kind: nonsense, or what docs/wire-*.md say.
fn message(dice: &mut Dice) -> Vec<u8> {
    let number = |n: u64| n.to_le_bytes().to_vec();
    let (channel, kind, fields) = match dice.below(8) {
        0 => (1, 1, [number(dice.below(9)), number(0)].concat()), // control state
        1 => (1, 4, number(dice.below(100))),                     // IST
        2 => (1, 9, [number(dice.below(100)), vec![0; 4]].concat()), // IST of a part
        3 => (1, 6, Vec::new()),                                  // flow stop
        4 => {
            // Fetch of what is offered.
            let part = [0u32, 1 << 20].map(u32::to_le_bytes).concat();
            (0, 20, [vec![0], number(dice.below(4)), part].concat())
        }
        // All others with fields that mean nothing.
        5 => (1, dice.below(12) as u8, dice.bytes(300)),
        6 => (0, forged_kind(dice), dice.bytes(300)),
        _ => (
            dice.below(4) as u8,
            dice.below(256) as u8,
            dice.bytes(5_000),
        ),
    };
    [&[channel, 1, kind], &fields[..]].concat()
}

/// Any kind but join: whoever asks to be a member of a cluster without encryption becomes one.
fn forged_kind(dice: &mut Dice) -> u8 {
    match dice.below(26) as u8 {
        13 => 20,
        kind => kind,
    }
}

/// What strangers share.
struct Play {
    to: SocketAddr,
    recorded: Vec<Vec<u8>>,
    ended: AtomicBool,
    connections: AtomicUsize,
    heard_bytes: AtomicUsize,
    held: AtomicUsize,
    /// What was heard that nobody outside may know.
    leaks: Mutex<Vec<String>>,
}

impl Play {
    fn call(&self) -> Option<TcpStream> {
        // The node may be out of patience with callers for a moment.
        let stream = TcpStream::connect(self.to).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_millis(30)))
            .ok()?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        Some(stream)
    }

    /// Listens for a moment.
    fn hear(&self, stream: &mut TcpStream) {
        let (mut heard, mut buffer) = (Vec::new(), [0; 16 << 10]);
        while let Ok(len @ 1..) = stream.read(&mut buffer) {
            heard.extend_from_slice(&buffer[..len]);
            if heard.len() > 8 << 20 {
                break;
            }
        }
        self.heard_bytes.fetch_add(heard.len(), Ordering::Relaxed);
        if heard
            .windows(MARK.len())
            .any(|bytes| bytes == MARK.as_bytes())
        {
            let text = String::from_utf8_lossy(&heard[..heard.len().min(200)]).into_owned();
            self.leaks.lock().unwrap().push(text);
        }
    }

    fn say(&self, bytes: &[u8]) {
        if let Some(mut stream) = self.call() {
            // It is free to hang up.
            let _ = stream.write_all(bytes);
            self.hear(&mut stream);
        }
    }

    /// One idea of a stranger's.
    fn once(&self, dice: &mut Dice, held: &mut Vec<TcpStream>) {
        let kind = dice.below(256) as u8;
        match dice.below(9) {
            0 => self.say(&dice.bytes(3_000)),
            1 => self.say(&[&PREAMBLE[..], &frame(kind, &dice.bytes(9_000))].concat()),
            // A length that is never filled.
            2 => self.say(&[&PREAMBLE[..], &[0xff; 4], &[0; 4], &[16]].concat()),
            3 => {
                // TLS records with nonsense in them.
                let body = dice.bytes(600);
                let len = (body.len() as u16).to_be_bytes();
                self.say(&[&[0x16, 3, 1], &len[..], &body].concat());
            }
            4 => self.replay(dice),
            5 => self.shake(dice),
            6 => self.join(dice),
            // Silent, or half a handshake, for a while.
            _ => {
                if let Some(mut stream) = self.call() {
                    let _ = stream.write_all(&hello(1)[..dice.below(9) as usize]); // as above
                    held.push(stream);
                }
                if held.len() > HELD_MAX {
                    held.remove(0);
                }
                self.held.fetch_max(held.len(), Ordering::Relaxed);
            }
        }
    }

    /// A session of a member, as it was heard on its way: whole, cut, or with a changed bit.
    fn replay(&self, dice: &mut Dice) {
        if self.recorded.is_empty() {
            return;
        }
        let at = dice.below(self.recorded.len() as u64) as usize;
        let mut bytes = self.recorded[at].clone();
        match dice.below(3) {
            0 => bytes.truncate(1 + dice.below(bytes.len() as u64) as usize),
            1 => {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << dice.below(8);
            }
            _ => {}
        }
        self.say(&bytes);
    }

    /// TLS with a secret that is not the cluster's.
    fn shake(&self, dice: &mut Dice) {
        let Some(stream) = self.call() else { return };
        stream.set_nonblocking(true).unwrap();
        let guess = format!("{SECRET}{}", dice.below(100));
        let credentials = testing::secret(&guess);
        let mut handshake = Handshake::new(&credentials, Role::Dialer, stream).unwrap();
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            match handshake.step() {
                Ok(Progress::Waiting(waiting)) => handshake = waiting,
                Ok(Progress::Done(_)) => {
                    return self.leaks.lock().unwrap().push("a session".to_owned());
                }
                Err(_) => return,
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// A whole handshake of the mesh, and whatever comes to mind behind it.
    fn join(&self, dice: &mut Dice) {
        let Some(mut stream) = self.call() else {
            return;
        };
        let id = dice.below(200) as u8;
        let greeting = [&PREAMBLE[..], &frame(1, &hello(id)), &frame(2, &[0])].concat();
        let mut said = stream.write_all(&greeting);
        for _ in 0..dice.below(20) {
            said = said.and_then(|()| stream.write_all(&frame(16, &message(dice))));
            if dice.below(3) == 0 {
                self.hear(&mut stream);
            }
        }
        drop(said); // the node is free to hang up
        self.hear(&mut stream);
    }

    fn go_on(&self, seed: u64) {
        let (mut dice, mut held) = (Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)), Vec::new());
        while !self.ended.load(Ordering::Relaxed) {
            self.once(&mut dice, &mut held);
        }
    }
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Lets strangers play with two nodes for so long, while a client writes.
fn play(options: &str, lasts: Duration) {
    let _alone = ALONE.lock();
    let [a, b] = ["a", "b"].map(|name| Server::start(name, options).expect("init"));
    a.connect("gcomm://");
    let to = SocketAddr::from(([127, 0, 0, 1], a.port));
    let (middle, sessions) = in_the_middle(to, |_, _, _| {});
    b.connect(&format!("gcomm://{middle}"));
    let run = |i: usize| Transaction::new(&a, &format!("{i}"), &format!("{MARK} {i}")).run();
    assert!((0..20).all(run));
    let recorded = sessions.lock().unwrap().clone();
    // Without encryption, whoever repeats what a member has said is that member.
    let is_worthless = |session: &Vec<u8>| !session.is_empty() && !options.is_empty();
    let recorded = recorded.into_iter().map(|[called, _]| called);
    let play = Play {
        to,
        recorded: recorded.filter(is_worthless).collect(),
        ended: AtomicBool::new(false),
        connections: AtomicUsize::new(0),
        heard_bytes: AtomicUsize::new(0),
        held: AtomicUsize::new(0),
        leaks: Mutex::default(),
    };
    let views = |server: &Server| server.state().views.clone();
    let before = (
        views(&a),
        a.status("trireme_term"),
        resident_bytes(),
        descriptors(),
    );
    let (mut rows, mut most) = (20, (0, 0));
    thread::scope(|scope| {
        let _ends = AtEnd(|| play.ended.store(true, Ordering::Relaxed));
        for seed in 1..=STRANGERS {
            let play = &play;
            scope.spawn(move || play.go_on(seed));
        }
        let until = Instant::now() + lasts;
        while Instant::now() < until {
            assert!(run(rows), "a commit failed");
            rows += 1;
            most = (most.0.max(resident_bytes()), most.1.max(descriptors()));
            thread::sleep(Duration::from_millis(20));
        }
    });
    let grown = most.0.saturating_sub(before.2) >> 20;
    let opened = most.1.saturating_sub(before.3);
    println!(
        "{} connections, {} recorded sessions, {} bytes heard, {rows} rows, RSS + {grown} MiB, descriptors + {opened}",
        play.connections.load(Ordering::Relaxed),
        play.recorded.len(),
        play.heard_bytes.load(Ordering::Relaxed),
    );
    assert_eq!(*play.leaks.lock().unwrap(), Vec::<String>::new());
    assert_eq!((views(&a), a.status("trireme_term")), (before.0, before.1));
    b.wait_for("all rows", |state| state.rows.len() >= rows);
    assert!(logged("panic").is_empty(), "{:?}", logged("panic"));
    assert!(grown <= 64, "{grown} MiB more");
    // Its own ends of the connections are in this process, too.
    let own = STRANGERS as usize * (play.held.load(Ordering::Relaxed) + 1);
    assert!(opened <= 128 + own, "{opened} descriptors more");
    assert!(play.connections.load(Ordering::Relaxed) > 20);
}

fn with_secret(lasts: Duration) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("secret");
    write_secret(&file, &[SECRET]);
    play(&format!("repl.secret_file={}", file.display()), lasts);
}

#[test]
fn a_stranger_without_the_secret_hears_nothing_and_changes_nothing() {
    with_secret(Duration::from_secs(4));
}

#[test]
fn a_stranger_that_is_no_member_is_given_nothing() {
    play("", Duration::from_secs(4));
}

/// A member's process is known by its data directory, too. Without encryption its link can be taken for a moment, and no
/// more: what it is refused with, and that the member is there again.
#[test]
fn who_names_a_members_process_and_has_another_data_directory_is_refused() {
    let _alone = ALONE.lock();
    let [a, b] = ["kept", "named"].map(|name| Server::start(name, "").expect("init"));
    Server::found(&[&a, &b]);
    let mut impostor = Hello::decode(&hello(9)).unwrap();
    impostor.identity.incarnation = incarnation_of(&b);
    thread::sleep(Duration::from_millis(1_100)); // later it is no crossing of calls
    let mut stream = TcpStream::connect(("127.0.0.1", a.port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    // The older data directory's process decides about the connection: it is told that there is none.
    assert!(incarnation_of(&a) < incarnation_of(&b));
    let greeting = [frame(1, &impostor.encode()), frame(2, &[0])].concat();
    stream
        .write_all(&[&PREAMBLE[..], &greeting].concat())
        .unwrap();
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard); // a reset is as good as an end
    let heard = String::from_utf8_lossy(&heard).into_owned();
    assert!(heard.contains("it says to be member"), "{heard}");
    assert!(Transaction::new(&a, "k", "after").run());
    b.wait_for("the row", |state| !state.rows.is_empty());
    assert_eq!(a.state().views.last().map(|view| view.2), Some(2));
}

fn incarnation_of(server: &Server) -> [u8; 16] {
    let said = logged(&format!("(127.0.0.1:{}, ", server.port));
    let uuid = said[0]
        .1
        .split_once(&format!("{}, ", server.port))
        .unwrap()
        .1;
    let digits: String = uuid[..36].split('-').collect();
    std::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
}

/// cargo test -p trireme-provider --test alone ten_minutes -- --ignored --nocapture
#[test]
#[ignore = "ten minutes"]
fn a_stranger_without_the_secret_plays_for_ten_minutes() {
    with_secret(Duration::from_secs(600));
}
