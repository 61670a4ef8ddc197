//! Clients without keying or think time, each on its own connection.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trireme_testbed::sql::SqlError;
use trireme_testbed::systems::Deployed;
use trireme_testbed::{Node, interrupt};

use super::input::{Input, Kind};
use super::random::Random;
use super::scale::Scale;
use super::tally::Tally;
use super::transactions::{Ended, Session, Transactions};
use crate::cpu::CpuTimes;
use crate::frame::LabError;

/// The time limit of a statement. Only a hanging server needs longer: the lock wait timeout is 50 s.
const STATEMENT: Duration = Duration::from_secs(60);

/// The load of one measurement.
#[derive(Debug, Clone)]
pub struct Work {
    /// The connections in all.
    pub connections: usize,
    /// The number of nodes, from the first, to which the connections go in turns.
    pub nodes: usize,
    /// The load before the measurement.
    pub warmup: Duration,
    /// The whole seconds of the measurement.
    pub seconds: u64,
    /// The isolation level, as in `SET TRANSACTION ISOLATION LEVEL`.
    pub isolation: &'static str,
    /// The size of the data.
    pub scale: Scale,
    /// The seed of the input of all transactions.
    pub seed: u64,
}

impl Work {
    /// The end of the measurement, from the begin of the warm-up on.
    fn end(&self) -> Duration {
        self.warmup + Duration::from_secs(self.seconds)
    }
}

/// The result of the clients.
pub struct Outcome {
    /// The counts of all clients.
    pub tally: Tally,
    /// The commits of each client in the measurement.
    pub commits: Vec<u64>,
    /// The processor time of the measurement.
    pub cpu: CpuTimes,
    /// The reason why the run ended early, if it did.
    pub failure: Option<LabError>,
}

/// Runs all clients until the end of the measurement.
pub fn run(deployed: &Deployed, work: &Work) -> Outcome {
    let nodes = &deployed.writers()[..work.nodes];
    let shared = Shared {
        work,
        stop: AtomicBool::new(false),
        running: AtomicUsize::new(work.connections),
        // Counts the clients and this thread.
        ready: Barrier::new(work.connections + 1),
    };
    thread::scope(|scope| {
        let shared = &shared;
        let clients: Vec<_> = (0..work.connections)
            .map(|i| scope.spawn(move || client(&nodes[i % nodes.len()], i, shared)))
            .collect();
        shared.ready.wait();
        shared.wait(work.warmup);
        let before = CpuTimes::of(deployed);
        shared.wait(Duration::from_secs(work.seconds));
        let cpu = CpuTimes::of(deployed).since(before);
        let mut outcome = Outcome {
            tally: Tally::new(work.seconds as usize),
            commits: Vec::new(),
            cpu,
            failure: interrupt::check().err().map(LabError::from),
        };
        for client in clients {
            let failure = match client.join() {
                Ok((tally, failure)) => {
                    outcome.tally.add(&tally);
                    outcome.commits.push(tally.committed());
                    failure
                }
                Err(_) => Some(LabError::Client),
            };
            outcome.failure = outcome.failure.or(failure);
        }
        outcome
    })
}

struct Shared<'a> {
    work: &'a Work,
    stop: AtomicBool,
    running: AtomicUsize,
    ready: Barrier,
}

impl Shared<'_> {
    /// Waits for a time, or until all clients have ended. An interrupt ends the clients.
    fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end && self.running.load(Ordering::Relaxed) > 0 {
            if interrupt::check().is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
            let left = end.saturating_duration_since(Instant::now());
            thread::sleep(left.min(Duration::from_millis(20)));
        }
    }
}

fn client(node: &Node, number: usize, shared: &Shared) -> (Tally, Option<LabError>) {
    let session = Session::open(&node.socket(), shared.work.isolation, STATEMENT);
    shared.ready.wait();
    let mut tally = Tally::new(shared.work.seconds as usize);
    let done = session.and_then(|session| {
        let mut client = Client {
            session,
            random: Random::new(shared.work.seed + number as u64),
            shared,
            began: Instant::now(),
        };
        client.work(&mut tally)
    });
    if done.is_err() {
        shared.stop.store(true, Ordering::Relaxed);
    }
    shared.running.fetch_sub(1, Ordering::Relaxed);
    let failure = done.err().map(|source| LabError::Load {
        node: node.name.clone(),
        source,
    });
    (tally, failure)
}

struct Client<'a, S> {
    session: S,
    random: Random,
    shared: &'a Shared<'a>,
    /// The begin of the warm-up.
    began: Instant,
}

impl<S: Transactions> Client<'_, S> {
    fn work(&mut self, tally: &mut Tally) -> Result<(), SqlError> {
        while !self.is_over() {
            let input = Input::draw(&mut self.random, self.shared.work.scale);
            let start = self.began.elapsed();
            let ended = self.complete(&input, tally)?;
            let at = self.began.elapsed();
            if let Some(ended) = ended {
                tally.ended(input.kind(), ended, self.measured(at), at - start);
            }
            if let Some(age) = self.unfinished(start, at) {
                tally.left(input.kind(), age);
            }
        }
        Ok(())
    }

    /// Retries a transaction until it meets no conflict; None if the time ends before that.
    fn complete(&mut self, input: &Input, tally: &mut Tally) -> Result<Option<Ended>, SqlError> {
        loop {
            match self.session.run(input) {
                Ok(ended) => return Ok(Some(ended)),
                Err(error) if error.is_conflict() => self.conflict(input.kind(), tally)?,
                Err(error) => return Err(error),
            }
            if self.is_over() {
                return Ok(None);
            }
        }
    }

    fn conflict(&mut self, kind: Kind, tally: &mut Tally) -> Result<(), SqlError> {
        if self.measured(self.began.elapsed()).is_some() {
            tally.conflict(kind);
        }
        match self.session.roll_back() {
            // The transaction is rolled back already.
            Err(error) if error.is_conflict() => Ok(()),
            done => done,
        }
    }

    /// The time from the begin of the measurement until `at`; None outside the measurement.
    fn measured(&self, at: Duration) -> Option<Duration> {
        let work = self.shared.work;
        let measured = at.checked_sub(work.warmup)?;
        (at < work.end()).then_some(measured)
    }

    /// The age, at the end of the measurement, of a transaction that the client had from `start` until `at`; None if
    /// the transaction was not in hand then. A run that was stopped has no such end.
    fn unfinished(&self, start: Duration, at: Duration) -> Option<Duration> {
        let end = self.shared.work.end();
        let age = end.checked_sub(start)?;
        (at >= end && !self.is_stopped()).then_some(age)
    }

    fn is_over(&self) -> bool {
        self.is_stopped() || self.began.elapsed() >= self.shared.work.end()
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers in turn with these errors, and then commits.
    struct Fake {
        errors: Vec<u16>,
        /// The time that each attempt takes.
        delay: Duration,
        inputs: Vec<Input>,
        rolled_back: usize,
    }

    impl Transactions for Fake {
        fn run(&mut self, input: &Input) -> Result<Ended, SqlError> {
            self.inputs.push(input.clone());
            thread::sleep(self.delay);
            match self.errors.pop() {
                Some(code) => Err(error(code)),
                None => Ok(Ended::Committed),
            }
        }

        fn roll_back(&mut self) -> Result<(), SqlError> {
            self.rolled_back += 1;
            // Galera says so of a transaction that is rolled back already.
            Err(error(1213))
        }
    }

    fn error(code: u16) -> SqlError {
        SqlError::Server {
            code,
            message: String::new(),
        }
    }

    fn work(seconds: u64) -> Work {
        Work {
            connections: 1,
            nodes: 1,
            warmup: Duration::ZERO,
            seconds,
            isolation: "REPEATABLE READ",
            scale: Scale::small(2),
            seed: 7,
        }
    }

    fn shared(work: &Work) -> Shared<'_> {
        Shared {
            work,
            stop: AtomicBool::new(false),
            running: AtomicUsize::new(1),
            ready: Barrier::new(1),
        }
    }

    /// A client of a server that answers with these errors first.
    fn client<'a>(errors: &[u16], delay: Duration, shared: &'a Shared<'a>) -> Client<'a, Fake> {
        Client {
            session: Fake {
                errors: errors.iter().rev().copied().collect(),
                delay,
                inputs: Vec::new(),
                rolled_back: 0,
            },
            random: Random::new(shared.work.seed),
            shared,
            began: Instant::now(),
        }
    }

    /// Completes a transaction on a server that answers with these errors first. Returns the result, the counted
    /// conflicts and the server.
    fn complete(errors: &[u16]) -> (Result<Option<Ended>, SqlError>, u64, Fake) {
        let work = work(3600);
        let shared = shared(&work);
        let mut client = client(errors, Duration::ZERO, &shared);
        let input = Input::draw(&mut client.random, work.scale);
        let mut tally = Tally::new(10);
        let ended = client.complete(&input, &mut tally);
        assert!(client.session.inputs.iter().all(|tried| *tried == input));
        (ended, tally.kind(input.kind()).conflicts, client.session)
    }

    /// The time until the end of the measurement in the tests of its end.
    const LEFT: Duration = Duration::from_millis(300);

    /// Works until the end of the measurement. Returns the counts and the server.
    fn work_to_the_end(errors: &[u16], delay: Duration, stopped: bool) -> (Tally, Fake) {
        let work = work(1);
        let shared = shared(&work);
        let mut client = client(errors, delay, &shared);
        client.began -= work.end() - LEFT;
        let mut tally = Tally::new(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(LEFT / 2);
                shared.stop.store(stopped, Ordering::Relaxed);
            });
            client.work(&mut tally).unwrap();
        });
        (tally, client.session)
    }

    #[test]
    fn a_conflict_is_tried_again_with_the_same_input() {
        let (ended, conflicts, server) = complete(&[1213, 1020]);
        assert!(matches!(ended, Ok(Some(Ended::Committed))));
        assert_eq!(
            (conflicts, server.inputs.len(), server.rolled_back),
            (2, 3, 2)
        );
    }

    #[test]
    fn another_error_ends_the_client() {
        let (ended, conflicts, server) = complete(&[1213, 1047]);
        assert_eq!(ended.unwrap_err().code(), Some(1047));
        assert_eq!(
            (conflicts, server.inputs.len(), server.rolled_back),
            (1, 2, 1)
        );
    }

    #[test]
    fn what_is_in_hand_at_the_end_is_unfinished() {
        let pause = Duration::from_millis(1);
        let (tally, server) = work_to_the_end(&[1213; 10_000], pause, false);
        assert_eq!((tally.committed(), tally.unfinished()), (0, 1));
        let age = tally.oldest_unfinished();
        assert!(age > LEFT / 2 && age <= LEFT, "{age:?}");
        // The percentiles see it, too.
        let kind = server.inputs[0].kind();
        assert!(tally.kind(kind).response_ms(0.5) > 150.0);

        // A commit after the end counts only for the rows that must be there.
        let (tally, server) = work_to_the_end(&[], LEFT * 2, false);
        assert_eq!((server.inputs.len(), tally.committed()), (1, 0));
        assert_eq!(tally.unfinished(), 1);
        assert!(tally.oldest_unfinished() <= LEFT);
    }

    #[test]
    fn a_run_that_was_stopped_leaves_nothing_unfinished() {
        for delay in [Duration::from_millis(1), LEFT * 2] {
            let (tally, server) = work_to_the_end(&[1213; 10_000], delay, true);
            assert!(server.rolled_back > 0);
            assert_eq!(tally.unfinished(), 0);
        }
    }
}
