//! Clients under way: each inserts rows on its own node until it is told to stop, and remembers when it could.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use trireme_testbed::Sql;
use trireme_testbed::sql::SqlError;

use super::trial::{Trial, await_true};

/// A statement without answer for so long has failed.
const ANSWER: Duration = Duration::from_secs(20);

/// A thread that sleeps 2 ms and wakes so late was kept from running by the machine.
const STALL: Duration = Duration::from_millis(20);

/// Running clients. They end when this is dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Record>>,
    machine: Option<JoinHandle<Vec<(Instant, Instant)>>>,
}

/// What one client, or all together, saw.
#[derive(Default)]
pub struct Record {
    /// Times of the acknowledged commits.
    pub commits: Vec<Instant>,
    /// Errors other than lost conflicts, with their number.
    pub errors: BTreeMap<String, usize>,
    /// When the machine stood still: no fault of the cluster.
    stalls: Vec<(Instant, Instant)>,
}

impl Load {
    /// Makes table `d.load`, and starts one client on each of `nodes`.
    pub fn start(trial: &Trial, nodes: &[usize]) -> Self {
        let id = "id BIGINT AUTO_INCREMENT PRIMARY KEY";
        let table = format!("CREATE TABLE IF NOT EXISTS d.load ({id}, node INT, v INT)");
        trial.exec(nodes[0], &table);
        for i in nodes {
            let is_there = || {
                let made = trial.client(*i).value("SELECT COUNT(*) FROM d.load");
                made.is_ok()
            };
            assert!(
                await_true(Duration::from_secs(10), is_there),
                "d.load on node {i}"
            );
        }
        let stop = Arc::new(AtomicBool::new(false));
        let clients = nodes.iter().map(|i| {
            let (socket, stop, i) = (trial.node(*i).socket(), Arc::clone(&stop), *i);
            thread::spawn(move || insert_until(&stop, socket, i))
        });
        Self {
            clients: clients.collect(),
            machine: Some(thread::spawn({
                let stop = Arc::clone(&stop);
                move || stalls_until(&stop)
            })),
            stop,
        }
    }

    /// Stops the clients; returns what they saw together.
    pub fn stop(mut self) -> Record {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Record::default();
        for client in self.clients.drain(..) {
            let one = client.join().expect("a client does not panic");
            all.commits.extend(one.commits);
            for (error, count) in one.errors {
                *all.errors.entry(error).or_default() += count;
            }
        }
        all.commits.sort_unstable();
        let stalls = self.machine.take().map(JoinHandle::join);
        all.stalls = stalls.and_then(Result::ok).unwrap_or_default();
        all
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}

impl Record {
    /// Longest time without any commit between `from` and `until`, but for the time in which the machine stood still.
    pub fn longest_gap(&self, from: Instant, until: Instant) -> Duration {
        let between = self.commits.iter().filter(|t| (from..until).contains(*t));
        let times: Vec<Instant> = [from]
            .into_iter()
            .chain(between.copied())
            .chain([until])
            .collect();
        let gaps = times.windows(2).map(|pair| (pair[0], pair[1]));
        let of_cluster = gaps.map(|gap| (gap.1 - gap.0).saturating_sub(self.stalled_within(gap)));
        of_cluster.max().unwrap_or_default()
    }

    fn stalled_within(&self, gap: (Instant, Instant)) -> Duration {
        let common = |stall: &(Instant, Instant)| {
            (stall.1.min(gap.1)).saturating_duration_since(stall.0.max(gap.0))
        };
        self.stalls.iter().map(common).sum()
    }

    /// There were commits, and nothing failed but conflicts.
    pub fn assert_undisturbed(&self) {
        assert!(
            self.errors.is_empty(),
            "the clients got errors: {:?}",
            self.errors
        );
        assert!(!self.commits.is_empty(), "the clients committed nothing");
    }
}

fn stalls_until(stop: &AtomicBool) -> Vec<(Instant, Instant)> {
    let mut stalls = Vec::new();
    let mut before = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(2));
        let now = Instant::now();
        if now - before > STALL {
            stalls.push((before, now));
        }
        before = now;
    }
    stalls
}

fn insert_until(stop: &AtomicBool, socket: PathBuf, i: usize) -> Record {
    let mut record = Record::default();
    let mut connection = None;
    while !stop.load(Ordering::Relaxed) {
        match insert(&mut connection, &socket, i) {
            Ok(()) => record.commits.push(Instant::now()),
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                *record
                    .errors
                    .entry(format!("node{}: {error}", i + 1))
                    .or_default() += 1;
                connection = None;
                thread::sleep(Duration::from_millis(50));
            }
        }
        // A steady trickle: the machine has other things to do.
        thread::sleep(Duration::from_millis(2));
    }
    record
}

fn insert(connection: &mut Option<Sql>, socket: &Path, i: usize) -> Result<(), SqlError> {
    let sql = match connection {
        Some(sql) => sql,
        None => connection.insert(Sql::connect_socket(socket, ANSWER)?),
    };
    sql.exec(&format!("INSERT INTO d.load (node, v) VALUES ({i}, 0)"))?;
    Ok(())
}

/// Lost a conflict, or the table was changed meanwhile (1412): a client tries again.
fn is_passing(error: &SqlError) -> bool {
    error.is_conflict() || error.code() == Some(1412)
}
