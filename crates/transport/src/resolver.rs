//! Resolves host names on threads of their own, because the system's look-up blocks, for half a minute if a name server
//! is silent. In: a name. Out: its addresses.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::{HostPort, Waker};

/// Maximum of names of the configuration that are looked up at once.
const MAX_SEEDS: usize = 4;
/// The same maximum for names that peers told.
const MAX_LEARNT: usize = 2;
/// Maximum of names of either kind that wait.
const MAX_WAITING: usize = 256;

type LookUp = fn(&HostPort) -> Vec<SocketAddr>;

/// A thread for each look-up that runs, and the names that wait. The names that peers told have threads of their own
/// number, so that they keep no configured name waiting. Dropping it leaves the running look-ups behind: their answers find
/// nobody.
#[derive(Debug)]
pub(crate) struct Resolver {
    look_up: LookUp,
    seeds: Lane,
    learnt: Lane,
    done: Sender<Answer>,
    answers: Receiver<Answer>,
    waker: Waker,
}

/// Names that wait for a thread, the oldest first.
#[derive(Debug)]
struct Lane {
    waiting: VecDeque<HostPort>,
    running: usize,
    max_running: usize,
}

#[derive(Debug)]
struct Answer {
    address: HostPort,
    is_seed: bool,
    found: Vec<SocketAddr>,
}

impl Resolver {
    /// `waker` wakes the reactor when there are answers.
    pub fn new(waker: Waker) -> Self {
        Self::with(waker, |address| {
            let found = (address.host.as_str(), address.port).to_socket_addrs();
            found.map_or_else(|_| Vec::new(), Iterator::collect)
        })
    }

    fn with(waker: Waker, look_up: LookUp) -> Self {
        let (done, answers) = channel();
        Self {
            look_up,
            seeds: Lane::new(MAX_SEEDS),
            learnt: Lane::new(MAX_LEARNT),
            done,
            answers,
            waker,
        }
    }

    /// Requests a look-up; `is_seed`: the name is from the configuration. Returns false if too many names wait.
    pub fn ask(&mut self, address: HostPort, is_seed: bool) -> bool {
        let lane = self.lane(is_seed);
        if lane.waiting.len() >= MAX_WAITING {
            return false;
        }
        lane.waiting.push_back(address);
        self.start_due(is_seed);
        true
    }

    /// Takes no more names; does not wait.
    pub fn stop(&mut self) {
        self.seeds.waiting.clear();
        self.learnt.waiting.clear();
    }

    /// Returns an answer that has come in; it has no addresses if the name does not resolve.
    pub fn next_answer(&mut self) -> Option<(HostPort, Vec<SocketAddr>)> {
        let answer = self.answers.try_recv().ok()?;
        self.lane(answer.is_seed).running -= 1;
        self.start_due(answer.is_seed);
        Some((answer.address, answer.found))
    }

    fn lane(&mut self, is_seed: bool) -> &mut Lane {
        match is_seed {
            true => &mut self.seeds,
            false => &mut self.learnt,
        }
    }

    fn start_due(&mut self, is_seed: bool) {
        while let Some(address) = self.lane(is_seed).next() {
            if self.start(address.clone(), is_seed).is_err() {
                // As if the name were unknown: it is asked for again after a pause.
                self.answer(address, is_seed);
            }
        }
    }

    fn start(&self, address: HostPort, is_seed: bool) -> io::Result<()> {
        let (look_up, done, waker) = (self.look_up, self.done.clone(), self.waker.clone());
        let run = move || {
            let found = look_up(&address);
            let answer = Answer {
                address,
                is_seed,
                found,
            };
            // Fails only if the resolver is gone; then nobody waits.
            let _ = done.send(answer);
            waker.wake();
        };
        let thread = std::thread::Builder::new().name("trireme-dns".to_owned());
        thread.spawn(run).map(drop)
    }

    fn answer(&self, address: HostPort, is_seed: bool) {
        let found = Vec::new();
        let answer = Answer {
            address,
            is_seed,
            found,
        };
        let _ = self.done.send(answer); // the receiver is here
        self.waker.wake();
    }
}

impl Lane {
    fn new(max_running: usize) -> Lane {
        Lane {
            waiting: VecDeque::new(),
            running: 0,
            max_running,
        }
    }

    /// Returns the next name, if it may be looked up now. It counts as running until its answer.
    fn next(&mut self) -> Option<HostPort> {
        if self.running >= self.max_running {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.running += 1;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    static ENDS: AtomicBool = AtomicBool::new(false);
    static BEGUN: AtomicUsize = AtomicUsize::new(0);

    /// Ends all look-ups, also if the test fails.
    struct End;

    impl Drop for End {
        fn drop(&mut self) {
            ENDS.store(true, Ordering::SeqCst);
        }
    }

    fn look_up(address: &HostPort) -> Vec<SocketAddr> {
        BEGUN.fetch_add(1, Ordering::SeqCst);
        while address.host.starts_with("dead") && !ENDS.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        vec![SocketAddr::from(([192, 0, 2, 1], address.port))]
    }

    fn name(host: &str, port: u16) -> HostPort {
        let host = host.to_owned();
        HostPort { host, port }
    }

    fn answer(resolver: &mut Resolver) -> String {
        for _ in 0..10_000 {
            if let Some((address, found)) = resolver.next_answer() {
                assert_eq!(found[0].port(), address.port);
                return address.to_string();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("no answer");
    }

    #[test]
    fn hanging_names_keep_no_seed_waiting() {
        let poll = mio::Poll::new().unwrap();
        let mut resolver = Resolver::with(Waker::of(poll.registry()).unwrap(), look_up);
        let end = End;
        for port in 0..300 {
            let is_taken = resolver.ask(name("dead.learnt", port), false);
            let most = MAX_LEARNT + MAX_WAITING;
            assert_eq!(is_taken, usize::from(port) < most, "{port}");
        }
        for port in 0..3 {
            assert!(resolver.ask(name("dead.seed", port), true));
        }
        assert!(resolver.ask(name("db2", 1), true));
        assert_eq!(answer(&mut resolver), "db2:1");
        assert!(resolver.ask(name("db3", 1), true));
        assert_eq!(answer(&mut resolver), "db3:1");
        let running = (resolver.seeds.running, resolver.learnt.running);
        assert_eq!(running, (3, MAX_LEARNT));
        // Each answer makes room for the next name; names that wait end with the mesh.
        drop(end);
        let mut told: Vec<String> = (0..100).map(|_| answer(&mut resolver)).collect();
        told.retain(|address| address.contains("seed"));
        told.sort();
        assert_eq!(told, ["dead.seed:0", "dead.seed:1", "dead.seed:2"]);
        resolver.stop();
        let begun = BEGUN.load(Ordering::SeqCst);
        drop(resolver);
        assert!(BEGUN.load(Ordering::SeqCst) <= begun + MAX_LEARNT);
    }
}
