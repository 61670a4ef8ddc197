//! The work of the handshaker's thread: sockets in several stages, the urgent ones first.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use trireme_mutants::{Mutant, planted};

use super::lobby::{Lobby, Place, Rank, displaced};
use super::stage::{About, Stage, Step};
use super::{Fault, Outcome};

pub(crate) const WAKER: Token = Token(0);

/// Maximum of callers that shake hands at the same time.
const MAX_CALLERS: usize = 64;
/// Maximum of steps of unknown callers before the urgent sockets get their turn again: each step may cost milliseconds.
const STEPS_OF_STRANGERS: usize = 4;
/// Pause after the poller has failed.
const RETRY: Duration = Duration::from_millis(100);

/// One socket.
#[derive(Debug)]
struct Job {
    stage: Stage,
    about: About,
    remote: SocketAddr,
    /// The rank of a caller; `None` for a dialed socket.
    rank: Option<Rank>,
    until: Instant,
    limit: Duration,
}

impl Job {
    fn is_urgent(&self) -> bool {
        self.rank.is_none_or(|rank| rank.is_known)
    }
}

/// Everything that the thread owns.
pub(crate) struct Worker {
    poll: Poll,
    lobby: Arc<Mutex<Lobby>>,
    stop: Arc<AtomicBool>,
    jobs: BTreeMap<usize, Job>,
    /// Jobs whose sockets have an event.
    ready: BTreeSet<usize>,
    next_token: usize,
}

impl Worker {
    pub fn new(poll: Poll, lobby: Arc<Mutex<Lobby>>, stop: Arc<AtomicBool>) -> Worker {
        Worker {
            poll,
            lobby,
            stop,
            jobs: BTreeMap::new(),
            ready: BTreeSet::new(),
            next_token: WAKER.0 + 1,
        }
    }

    /// Works until the thread is stopped, or until `tell` finds no receiver.
    pub fn run(&mut self, tell: impl Fn(Outcome) -> bool) {
        let mut events = Events::with_capacity(256);
        while !self.stop.load(Ordering::Acquire) {
            if let Err(error) = self.poll.poll(&mut events, self.timeout()) {
                if error.kind() != std::io::ErrorKind::Interrupted {
                    std::thread::sleep(RETRY);
                }
                events.clear();
            }
            let told = events
                .iter()
                .map(|event| event.token())
                .filter(|token| *token != WAKER);
            self.ready.extend(told.map(|token| token.0));
            let mut outcomes = Vec::new();
            self.take_over(&mut outcomes);
            self.work(&mut outcomes);
            self.expire(&mut outcomes);
            if !outcomes.into_iter().all(&tell) {
                return;
            }
        }
    }

    fn timeout(&self) -> Option<Duration> {
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        let until = self.jobs.values().map(|job| job.until).min();
        until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Takes over the sockets that the mesh has handed in.
    fn take_over(&mut self, outcomes: &mut Vec<Outcome>) {
        loop {
            let task = self.lobby.lock().unwrap_or_else(|e| e.into_inner()).pop();
            let Some(task) = task else { return };
            let rank = task.target.is_none().then(|| task.rank());
            let (remote, limit) = (task.remote, task.timeout);
            let (stage, about) = Stage::new(task);
            let mut job = Job {
                stage,
                about,
                remote,
                rank,
                until: Instant::now() + limit,
                limit,
            };
            let has_place = rank.is_none_or(|rank| self.make_room(rank));
            let token = self.next_token;
            let is_watched = has_place
                && job
                    .stage
                    .register(self.poll.registry(), Token(token))
                    .is_ok();
            if !is_watched {
                outcomes.push(job.fails(Fault::Displaced));
                continue;
            }
            self.next_token += 1;
            self.jobs.insert(token, job);
        }
    }

    /// Makes room for a caller. Tokens grow, so the jobs are in the order of their age.
    fn make_room(&mut self, rank: Rank) -> bool {
        let callers = self
            .jobs
            .iter()
            .filter_map(|(token, job)| Some((*token, job.rank?)));
        let (tokens, ranks): (Vec<usize>, Vec<Rank>) = callers.unzip();
        match displaced(&ranks, MAX_CALLERS, rank) {
            _ if planted(Mutant::HandshakesUnbounded) => true,
            Place::Free => true,
            Place::Instead(at) => {
                // Closing takes the socket out of the poller. The mesh does not wait for a caller's outcome.
                self.jobs.remove(&tokens[at]);
                self.ready.remove(&tokens[at]);
                true
            }
            Place::Taken => false,
        }
    }

    fn work(&mut self, outcomes: &mut Vec<Outcome>) {
        let ready = std::mem::take(&mut self.ready);
        let is_urgent = |token: &usize| self.jobs.get(token).is_some_and(Job::is_urgent);
        let (urgent, others): (Vec<usize>, Vec<usize>) = ready.into_iter().partition(is_urgent);
        let (now, later) = others.split_at(others.len().min(STEPS_OF_STRANGERS));
        self.ready.extend(later);
        for token in urgent.iter().chain(now) {
            // A job that was displaced meanwhile is skipped.
            if let Some(job) = self.jobs.remove(token) {
                match job.step() {
                    Ok(job) => drop(self.jobs.insert(*token, job)),
                    Err(outcome) => outcomes.push(self.release(outcome)),
                }
            }
        }
    }

    /// Takes a finished stream out of this poller: from here on the mesh's own poller watches it.
    fn release(&self, mut outcome: Outcome) -> Outcome {
        if let Ok(stream) = &mut outcome.result {
            if stream.deregister(self.poll.registry()).is_err() {
                outcome.result = Err(Fault::Displaced);
            }
        }
        outcome
    }

    fn expire(&mut self, outcomes: &mut Vec<Outcome>) {
        let now = Instant::now();
        let late = self.jobs.iter().filter(|(_, job)| job.until <= now);
        let late: Vec<usize> = late.map(|(token, _)| *token).collect();
        for token in late {
            self.ready.remove(&token);
            if let Some(job) = self.jobs.remove(&token) {
                let limit_ms = u64::try_from(job.limit.as_millis()).unwrap_or(u64::MAX);
                let fault = job.stage.timed_out(&job.about, limit_ms);
                outcomes.push(job.fails(fault));
            }
        }
    }
}

impl Job {
    /// Makes a step. `Err`: the job has ended.
    #[allow(clippy::result_large_err)] // the end is no exception
    fn step(self) -> Result<Job, Outcome> {
        let Job { stage, about, .. } = self;
        let result = match stage.step(&about) {
            Step::Waiting(stage) => {
                return Ok(Job {
                    stage,
                    about,
                    ..self
                });
            }
            Step::Done(stream) => Ok(stream),
            Step::Failed(fault) => Err(fault),
        };
        Err(Outcome {
            remote: self.remote,
            target: about.target,
            result,
        })
    }

    /// Ends the job with a fault.
    fn fails(self, fault: Fault) -> Outcome {
        Outcome {
            remote: self.remote,
            target: self.about.target,
            result: Err(fault),
        }
    }
}
