//! Clients that update single rows, and note for each commit when it was due and when it was done.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::figures::by_second;
use super::site::ROWS;
use crate::frame::Measured;
use trireme_testbed::cluster::Cluster;
use trireme_testbed::sql::{Sql, SqlError};

/// The time limit of a statement. It is longer than any stall, so that a client waits for its commit.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The pause between attempts on a node that refuses or does not answer.
const PAUSE: Duration = Duration::from_millis(2);

/// One committed update.
#[derive(Debug, Clone, Copy)]
pub struct Commit {
    /// The moment when it should have begun: with a rate, the scheduled time; otherwise the end of the one before.
    pub due: Instant,
    /// The moment when the client had the answer.
    pub done: Instant,
}

/// The commits of one client.
#[derive(Default)]
struct Notes(Mutex<Vec<Commit>>);

/// How long the end of a load waits for its clients.
const END: Duration = Duration::from_secs(5);

/// Clients at work. Dropping it tells them to end, and waits for them for [`END`] at most: with an update on its way,
/// nodes would not hold the same rows. A client that waits for its commit ends when its server answers or dies.
pub struct Load {
    notes: Vec<(usize, Arc<Notes>)>,
    clients: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Load {
    /// Starts `clients` on each of `nodes`. With a `rate`, all clients together begin that many updates per second,
    /// even if earlier ones are not done. Without a rate, each client begins the next update when the last one is done.
    /// No two clients update the same row, so there are no conflicts.
    pub fn start(cluster: &Cluster, nodes: &[usize], clients: usize, rate: Option<f64>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let total = nodes.len() * clients;
        let (mut notes, mut at_work) = (Vec::new(), Vec::new());
        for number in 0..total {
            let node = nodes[number / clients];
            let own = Arc::new(Notes::default());
            notes.push((node, Arc::clone(&own)));
            let client = Client {
                socket: cluster.node(node).socket(),
                rows: Rows::of_client(number, total),
                interval: rate.map(|rate| Duration::from_secs_f64(total as f64 / rate)),
                offset: rate.map_or(Duration::ZERO, |rate| {
                    Duration::from_secs_f64(number as f64 / rate)
                }),
                notes: own,
                stop: Arc::clone(&stop),
            };
            at_work.push(thread::spawn(|| client.run()));
        }
        Self {
            notes,
            clients: at_work,
            stop,
        }
    }

    /// Keeps the seconds from now on in `measured`, until the result is dropped.
    pub fn keep_in<'a>(&self, measured: &'a mut Measured) -> Kept<'a> {
        Kept {
            notes: self.notes.clone(),
            from: Instant::now(),
            measured,
        }
    }

    /// The commits of each client so far, in order, with the client's node.
    pub fn commits(&self) -> Vec<(usize, Vec<Commit>)> {
        let clients = self.notes.iter();
        clients
            .map(|(node, notes)| (*node, notes.lock().clone()))
            .collect()
    }
}

/// Keeps the seconds of a trial that ends early. When it is dropped, it notes the commits of each whole second since its
/// begin.
#[must_use]
pub struct Kept<'a> {
    notes: Vec<(usize, Arc<Notes>)>,
    from: Instant,
    measured: &'a mut Measured,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let clients = self.notes.iter();
        let commits: Vec<Commit> = clients.flat_map(|(_, n)| n.lock().clone()).collect();
        let seconds = self.from.elapsed().as_secs() as usize;
        self.measured.per_second = by_second(&commits, self.from, seconds);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let end = Instant::now() + END;
        let is_over = || self.clients.iter().all(JoinHandle::is_finished);
        while !is_over() && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Notes {
    fn lock(&self) -> MutexGuard<'_, Vec<Commit>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The rows of one client, in turn and without end.
struct Rows {
    next: usize,
    first: usize,
    step: usize,
}

impl Rows {
    fn of_client(number: usize, clients: usize) -> Self {
        Self {
            next: number,
            first: number,
            step: clients,
        }
    }
}

impl Iterator for Rows {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let row = self.next;
        self.next += self.step;
        if self.next >= ROWS {
            self.next = self.first;
        }
        Some(row + 1)
    }
}

struct Client {
    socket: PathBuf,
    rows: Rows,
    interval: Option<Duration>,
    offset: Duration,
    notes: Arc<Notes>,
    stop: Arc<AtomicBool>,
}

impl Client {
    fn run(mut self) {
        let mut sql = None;
        let mut due = Instant::now() + self.offset;
        let mut update = 0_u64;
        loop {
            match self.interval {
                Some(_) => thread::sleep(due.saturating_duration_since(Instant::now())),
                None => due = Instant::now(),
            }
            update += 1;
            let row = self.rows.next().unwrap_or(1);
            let statement = format!("UPDATE sbtest.sbtest1 SET pad = '{update}' WHERE id = {row}");
            while !self.stopped() {
                match attempt(&mut sql, &self.socket, &statement) {
                    Ok(()) => break,
                    Err(error) if error.is_conflict() => {}
                    Err(SqlError::Server { .. }) => thread::sleep(PAUSE),
                    Err(_) => {
                        sql = None;
                        thread::sleep(PAUSE);
                    }
                }
            }
            if self.stopped() {
                return;
            }
            let done = Instant::now();
            self.notes.lock().push(Commit { due, done });
            due += self.interval.unwrap_or_default();
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn attempt(sql: &mut Option<Sql>, socket: &Path, statement: &str) -> Result<(), SqlError> {
    let connection = match sql {
        Some(connection) => connection,
        None => sql.insert(Sql::connect_socket(socket, TIMEOUT)?),
    };
    connection.exec(statement).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_ends_early_keeps_its_whole_seconds() {
        let mut measured = Measured::default();
        let from = Instant::now() - Duration::from_millis(2500);
        let commit = |ms| Commit {
            due: from,
            done: from + Duration::from_millis(ms),
        };
        let notes = Notes(Mutex::new([10, 20, 1500, 2400].map(commit).to_vec()));
        let load = Load {
            clients: Vec::new(),
            notes: vec![(0, Arc::new(notes))],
            stop: Arc::default(),
        };
        let mut kept = load.keep_in(&mut measured);
        kept.from = from;
        drop(kept);
        assert_eq!(measured.per_second, [2, 1]);
    }

    #[test]
    fn clients_share_no_row() {
        let rows = |number| -> Vec<usize> { Rows::of_client(number, 3).take(2 * ROWS).collect() };
        let mut seen: Vec<usize> = Vec::new();
        for number in 0..3 {
            let mut own = rows(number);
            own.sort_unstable();
            own.dedup();
            seen.extend(own);
        }
        seen.sort_unstable();
        assert_eq!(seen, (1..=ROWS).collect::<Vec<_>>());
    }
}
