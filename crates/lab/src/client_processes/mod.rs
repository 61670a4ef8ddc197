//! The load of one point: several sysbench processes at once, each with its own schema and node.
//!
//! A [`ClientProcesses`] gives the number of clients and the work of each. [`measure`] runs them on a system, and
//! compares the rows of all schemas on all nodes. [`template`] makes the data directory with which the servers start.

mod client;
mod outcome;
mod template;

use std::time::{Duration, Instant};

use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::node::Node;
use trireme_testbed::sysbench::{Load, Sysbench, SysbenchError};
use trireme_testbed::systems::{self, Deployed};

use crate::cpu::CpuTimes;
use crate::frame::{LabError, Measured};
use client::{Client, Ended};
use outcome::add_up;
pub use outcome::{Latencies, Outcome, SATURATED, is_limited};
pub use template::template;

/// The interval between two looks at the processes.
const LOOK: Duration = Duration::from_millis(50);

/// Client processes that run `oltp_read_write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientProcesses {
    /// The number of processes.
    pub clients: usize,
    /// The threads of each process; each has its own connection.
    pub threads: usize,
    /// The transactions per second that each process offers; `None`: as many as possible. With a rate, the latency of a
    /// transaction begins when it is due, even if no thread is free for it.
    pub rate: Option<u32>,
    /// The tables of each process, which no other process uses.
    pub schema: Schema,
}

/// The tables of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// The number of tables.
    pub tables: usize,
    /// The rows of each table.
    pub rows: usize,
}

/// The times of load at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Load before the measurement, in seconds.
    pub warmup: u64,
    /// The measurement, in seconds.
    pub seconds: u64,
    /// The seed of the first client's random numbers; each further client takes the next number.
    pub seed: u32,
}

impl Span {
    /// Returns the outcome of the measurement and its processor time. `run` runs the load for so many seconds from a
    /// seed, and `cpu` returns the processor time so far. If the warm-up breaks off, its outcome is returned as the
    /// measurement, because a further run would break off, too.
    fn measure(
        self,
        run: impl Fn(u64, u32) -> Outcome,
        cpu: impl Fn() -> CpuTimes,
    ) -> (Outcome, CpuTimes) {
        let timed = |seconds, seed| {
            let before = cpu();
            let outcome = run(seconds, seed);
            (outcome, cpu().since(before))
        };
        if self.warmup > 0 {
            // Its own random numbers, so that the measurement does not repeat the warm-up.
            let warmup = timed(self.warmup, self.seed.wrapping_add(1_000_000));
            if warmup.0.saturated > 0 || warmup.0.failure.is_some() {
                return warmup;
            }
        }
        timed(self.seconds, self.seed)
    }
}

impl ClientProcesses {
    /// The connections of all processes together.
    pub fn connections(&self) -> usize {
        self.clients * self.threads
    }

    /// The transactions per second that all processes together offer; `None`: as many as possible.
    fn offered(&self) -> Option<f64> {
        let rate = f64::from(self.rate?);
        Some(rate * self.clients as f64)
    }

    /// The schemas, in the order of the processes.
    pub fn databases(&self) -> Vec<String> {
        (0..self.clients).map(database).collect()
    }

    /// Runs the load for `seconds`: the first client on the first node, and so on. If there are more clients than
    /// nodes, the next client takes the first node again.
    ///
    /// # Panics
    /// If there are no nodes.
    pub fn run(&self, nodes: &[Node], seconds: u64, seed: u32) -> Outcome {
        let clock = Instant::now();
        let mut running = Vec::new();
        for (i, (node, seed)) in nodes
            .iter()
            .cycle()
            .zip(seed..)
            .take(self.clients)
            .enumerate()
        {
            let load = self.schema.load(database(i), self.threads, self.rate);
            match load.start(node, Some(Duration::from_secs(seconds)), seed) {
                Ok(process) => running.push(Running::new(process)),
                Err(error) => return add_up(vec![Client::failed(error.into())], seconds),
            }
        }
        let watched = watch(&mut running, clock);
        let clients = running.into_iter().map(Running::stop).collect();
        outcome_of(clients, seconds, watched)
    }
}

/// The outcome of a run of `seconds`, also if the user has interrupted it.
fn outcome_of(clients: Vec<Client>, seconds: u64, watched: Result<(), Interrupted>) -> Outcome {
    let mut outcome = add_up(clients, seconds);
    if let Err(interrupted) = watched {
        outcome.failure = Some(interrupted.into());
    }
    outcome
}

/// Fails if one of the systems cannot be measured on up to `most_nodes` nodes. Clients write to all nodes, and the
/// experiments set wsrep's options; MariaDB's plain server knows these, but is only one node.
pub fn check_systems(systems: &[String], most_nodes: usize) -> Result<(), LabError> {
    let fits = |name: &str| match name {
        "plain" | "plain-binlog" => most_nodes == 1,
        // An unknown name causes an error elsewhere.
        _ => systems::has_wsrep(name) || !systems::NAMES.contains(&name),
    };
    match systems.iter().find(|name| !fits(name)) {
        Some(name) => Err(LabError::DoesNotFit(name.clone())),
        None => Ok(()),
    }
}

/// Runs the load on all nodes of a system; then all nodes must hold the same rows in the schemas of all clients. If
/// this fails, the figures so far are kept. A load that the system cannot hold is no failure: then the figure
/// `saturated_clients` is above 0, and the other figures are those of the time before.
pub fn measure(
    load: &ClientProcesses,
    span: Span,
    deployed: &mut Deployed,
    measured: &mut Measured,
) -> Result<(), LabError> {
    let (nodes, planned) = (deployed.writers(), span.seconds);
    let (outcome, spent) = span.measure(
        |seconds, seed| load.run(nodes, seconds, seed),
        || CpuTimes::of(deployed),
    );
    outcome.put(load.offered(), spent, measured);
    let in_common = outcome.check_common_time(planned);
    outcome.failure.map_or(Ok(()), Err)?;
    in_common?;
    let databases = load.databases();
    let databases: Vec<&str> = databases.iter().map(String::as_str).collect();
    deployed.verify(&databases)?;
    Ok(())
}

/// The schema of client `i`.
fn database(i: usize) -> String {
    format!("sbtest{}", i + 1)
}

impl Schema {
    fn load(&self, database: String, threads: usize, rate: Option<u32>) -> Load {
        Load {
            database,
            rate,
            ..Load::read_write(self.tables, self.rows, threads)
        }
    }
}

/// A process, and its output so far.
struct Running {
    /// `None` after the process has ended.
    process: Option<Sysbench>,
    client: Client,
}

impl Running {
    fn new(process: Sysbench) -> Self {
        Self {
            process: Some(process),
            client: Client::new(),
        }
    }

    /// Takes the new reports; returns whether the process has ended. `clock`: the begin of the run.
    fn look(&mut self, clock: Instant) -> bool {
        let Some(mut process) = self.process.take() else {
            return true;
        };
        if !process.has_ended() {
            let reports = process.take_reports();
            self.client.take(reports, clock.elapsed().as_secs_f64());
            self.process = Some(process);
            return false;
        }
        let now = clock.elapsed().as_secs_f64();
        // This waits until all of the output has been read.
        let latencies = process.latencies();
        self.client.take(process.take_reports(), now);
        let ended = match process.finish() {
            Ok(summary) => Ended::Finished(summary, latencies),
            Err(SysbenchError::Saturated { .. }) => Ended::Saturated,
            Err(error) => Ended::Failed(error.into()),
        };
        self.client.end(ended, now);
        true
    }

    /// Ends the process if it is still running.
    fn stop(self) -> Client {
        if let Some(process) = self.process {
            process.stop();
        }
        self.client
    }
}

/// Waits until all processes have finished, or one has broken off: without that one the load would be different.
fn watch(running: &mut [Running], clock: Instant) -> Result<(), Interrupted> {
    loop {
        let looks: Vec<bool> = running.iter_mut().map(|r| r.look(clock)).collect();
        let broken = running.iter().any(|r| r.client.ended.is_broken());
        if broken || looks.into_iter().all(|ended| ended) {
            return Ok(());
        }
        interrupt::sleep(LOOK)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Measures with `saturated` clients that end the warm-up. Returns the seconds of the run that counts, and its
    /// processor time.
    fn measured(saturated: usize) -> (f64, CpuTimes) {
        let span = Span {
            warmup: 2,
            seconds: 5,
            seed: 1,
        };
        let taken_ms = Cell::new(0);
        let run = |seconds: u64, _seed: u32| {
            taken_ms.set(taken_ms.get() + 1000 * seconds);
            let mut outcome = add_up(Vec::new(), seconds);
            outcome.seconds = seconds as f64;
            outcome.saturated = saturated;
            outcome
        };
        let cpu = || CpuTimes {
            servers_ms: taken_ms.get(),
            client_ms: 0,
        };
        let (outcome, spent) = span.measure(run, cpu);
        (outcome.seconds, spent)
    }

    #[test]
    fn an_interrupted_run_keeps_its_seconds() {
        let client = Client::reported(0.25, &[10.0, 10.0], Ended::Stopped);
        let outcome = outcome_of(vec![client], 30, Err(Interrupted));
        assert_eq!(outcome.per_second, [10, 10]);
        assert!(matches!(outcome.failure, Some(LabError::Interrupted(_))));
    }

    #[test]
    fn the_processor_time_is_that_of_the_run_that_counts() {
        let (seconds, spent) = measured(0);
        assert_eq!((seconds, spent.servers_ms), (5.0, 5000));
        // The warm-up is the measurement then.
        let (seconds, spent) = measured(1);
        assert_eq!((seconds, spent.servers_ms), (2.0, 2000));
    }
}
