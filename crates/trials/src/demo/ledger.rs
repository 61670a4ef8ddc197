//! One client per node that inserts numbered rows and notes each acknowledgement. In the end every acknowledged row
//! must exist. The longest time between two acknowledgements shows how long a failure stopped the other nodes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::DemoError;
use trireme_testbed::ClusterError;
use trireme_testbed::cluster::Cluster;
use trireme_testbed::sql::{Sql, SqlError};
use trireme_testbed::verify::VerifyError;

/// The database of the ledger's table.
pub const DATABASE: &str = "demo";

/// Time between two inserts of one client: the ledger is a pulse, not a load.
const PAUSE: Duration = Duration::from_millis(20);

/// Time limit of a client for its server.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A row: (node from 1, number from 1).
pub type Entry = (usize, u64);

/// Creates the empty table.
pub fn prepare(cluster: &Cluster) -> Result<(), DemoError> {
    let node = cluster.node(0);
    let mut sql = node.sql().map_err(ClusterError::from)?;
    let statements = [
        format!("CREATE DATABASE {DATABASE}"),
        format!("CREATE TABLE {DATABASE}.ledger (node INT, n BIGINT, PRIMARY KEY (node, n))"),
    ];
    for statement in &statements {
        sql.exec(statement).map_err(|source| VerifyError::Sql {
            node: node.name.clone(),
            source,
        })?;
    }
    Ok(())
}

/// Fails if an acknowledged entry is missing on any node.
pub fn check(cluster: &Cluster, acknowledged: &BTreeSet<Entry>) -> Result<(), DemoError> {
    for node in cluster.nodes() {
        let mut sql = node.sql().map_err(ClusterError::from)?;
        let rows = sql
            .query(&format!("SELECT node, n FROM {DATABASE}.ledger"))
            .map_err(|source| VerifyError::Sql {
                node: node.name.clone(),
                source,
            })?;
        let present: BTreeSet<Entry> = rows
            .iter()
            .filter_map(|row| match row.as_slice() {
                [Some(node), Some(n)] => Some((node.parse().ok()?, n.parse().ok()?)),
                _ => None,
            })
            .collect();
        let missing: Vec<&Entry> = acknowledged.difference(&present).collect();
        if let Some((origin, n)) = missing.first() {
            return Err(DemoError::Lost {
                acknowledged: acknowledged.len(),
                missing: missing.len(),
                example: format!("insert {n} of node{origin}, on {}", node.name),
            });
        }
    }
    Ok(())
}

/// The acknowledged inserts of one client, in order, with their times.
type Acknowledged = Arc<Mutex<Vec<(u64, Instant)>>>;

/// The running clients.
pub struct Ledger {
    stop: Arc<AtomicBool>,
    acknowledged: Vec<Acknowledged>,
    clients: Vec<JoinHandle<()>>,
}

impl Ledger {
    /// Starts a client per node.
    pub fn start(cluster: &Cluster) -> Self {
        let mut ledger = Self {
            stop: Arc::new(AtomicBool::new(false)),
            acknowledged: Vec::new(),
            clients: Vec::new(),
        };
        for (i, node) in cluster.nodes().iter().enumerate() {
            let acknowledged = Acknowledged::default();
            let client = Client {
                node: i + 1,
                port: node.ports.mysql,
                stop: Arc::clone(&ledger.stop),
                acknowledged: Arc::clone(&acknowledged),
            };
            ledger.acknowledged.push(acknowledged);
            ledger.clients.push(thread::spawn(move || client.run()));
        }
        ledger
    }

    /// True if node `i` (from 0) has acknowledged an insert after `since`.
    pub fn has_commit_since(&self, i: usize, since: Instant) -> bool {
        lock(&self.acknowledged[i])
            .last()
            .is_some_and(|(_, at)| *at > since)
    }

    /// The longest time between two acknowledgements of one node, between `from` and `to`. Ignores the node `except`.
    pub fn longest_gap(&self, from: Instant, to: Instant, except: usize) -> Duration {
        let others = self
            .acknowledged
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != except);
        let gaps = others.map(|(_, times)| {
            let times: Vec<Instant> = lock(times).iter().map(|(_, at)| *at).collect();
            longest_gap(&times, from, to)
        });
        gaps.max().unwrap_or_default()
    }

    /// Ends the clients and returns all acknowledged rows.
    pub fn finish(mut self) -> BTreeSet<Entry> {
        self.end();
        let nodes = self.acknowledged.iter().enumerate();
        nodes
            .flat_map(|(i, all)| {
                lock(all)
                    .iter()
                    .map(|(n, _)| (i + 1, *n))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            // A client that panicked acknowledged nothing more.
            let _ = client.join();
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.end();
    }
}

struct Client {
    node: usize,
    port: u16,
    stop: Arc<AtomicBool>,
    acknowledged: Acknowledged,
}

impl Client {
    fn run(self) {
        let mut sql: Option<Sql> = None;
        let mut n = 0;
        while !self.stop.load(Ordering::Relaxed) {
            // Each attempt takes a new number: the outcome of a failed attempt is unknown.
            n += 1;
            match self.insert(&mut sql, n) {
                Ok(()) => lock(&self.acknowledged).push((n, Instant::now())),
                Err(SqlError::Server { .. }) => {}
                // The node is down; try again later.
                Err(_) => {
                    sql = None;
                    thread::sleep(10 * PAUSE);
                }
            }
            thread::sleep(PAUSE);
        }
    }

    fn insert(&self, sql: &mut Option<Sql>, n: u64) -> Result<(), SqlError> {
        let connection = match sql {
            Some(connection) => connection,
            None => sql.insert(Sql::connect_tcp(self.port, TIMEOUT)?),
        };
        connection
            .exec(&format!(
                "INSERT INTO {DATABASE}.ledger VALUES ({}, {n})",
                self.node
            ))
            .map(|_| ())
    }
}

fn longest_gap(times: &[Instant], from: Instant, to: Instant) -> Duration {
    let inside = times.iter().copied().filter(|at| *at > from && *at < to);
    let mut last = from;
    let mut longest = Duration::ZERO;
    for at in inside.chain([to]) {
        longest = longest.max(at - last);
        last = at;
    }
    longest
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_counts_both_ends() {
        let zero = Instant::now();
        let at = |s| zero + Duration::from_secs(s);
        assert_eq!(
            longest_gap(&[at(2), at(3)], at(0), at(4)),
            Duration::from_secs(2)
        );
        assert_eq!(
            longest_gap(&[at(1), at(6)], at(0), at(7)),
            Duration::from_secs(5)
        );
        assert_eq!(longest_gap(&[at(1)], at(0), at(9)), Duration::from_secs(8));
        assert_eq!(longest_gap(&[at(20)], at(0), at(9)), Duration::from_secs(9));
    }
}
