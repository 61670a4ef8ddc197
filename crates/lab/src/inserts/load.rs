//! Clients that insert single rows, each on a connection of its own.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use trireme_testbed::sql::SqlError;
use trireme_testbed::{Node, Sql, interrupt};

use crate::frame::LabError;

/// The database of the table.
pub const DATABASE: &str = "lab";

/// The time limit for a statement. Only a hanging server needs longer.
const STATEMENT: Duration = Duration::from_secs(60);

/// The length of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The load runs for a time.
    Time(Duration),
    /// The load runs until the table has so many rows.
    Inserts(u64),
}

/// The result of the clients.
pub struct Outcome {
    /// The acknowledged inserts.
    pub acknowledged: u64,
    /// The acknowledged inserts within the time.
    pub counted: u64,
    /// The time, in seconds.
    pub seconds: f64,
    /// The inserts that lost against another transaction and were retried.
    pub conflicts: u64,
    /// The acknowledged inserts in each second.
    pub per_second: Vec<u64>,
    /// The latency of each insert.
    pub latency_us: Histogram<u64>,
    /// The reason why the load ended early, if it did.
    pub failure: Option<LabError>,
}

/// Makes an empty table, in the place of an old one. It is mysqlslap's table with a key.
pub fn new_table(node: &Node) -> Result<(), LabError> {
    let mut sql = node.sql()?;
    for statement in [
        "DROP DATABASE IF EXISTS lab",
        "CREATE DATABASE lab",
        "CREATE TABLE lab.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, number INT, text VARCHAR(128)) ENGINE=InnoDB",
    ] {
        sql.exec(statement).map_err(|source| failed(node, source))?;
    }
    Ok(())
}

/// Inserts rows through `connections` clients at once.
pub fn run(node: &Node, connections: usize, extent: Extent) -> Outcome {
    let shared = Shared {
        stop: AtomicBool::new(false),
        running: AtomicUsize::new(connections),
        left: AtomicI64::new(match extent {
            Extent::Inserts(n) => n as i64,
            Extent::Time(_) => i64::MAX,
        }),
        // Counts the clients and this thread.
        ready: Barrier::new(connections + 1),
    };
    let limit = match extent {
        Extent::Time(time) => Some(time),
        Extent::Inserts(_) => None,
    };
    let (began, clients) = thread::scope(|scope| {
        let shared = &shared;
        let handles: Vec<_> = (0..connections)
            .map(|_| scope.spawn(move || client(node, shared, limit)))
            .collect();
        shared.ready.wait();
        let began = Instant::now();
        while shared.running.load(Ordering::Relaxed) > 0 {
            if interrupt::check().is_err() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_millis(20));
        }
        let clients: Vec<_> = handles
            .into_iter()
            .map(|handle| handle.join().ok())
            .collect();
        (began, clients)
    });
    add_up(node, clients, began, limit)
}

struct Shared {
    stop: AtomicBool,
    running: AtomicUsize,
    left: AtomicI64,
    ready: Barrier,
}

/// The result of one client.
struct Client {
    acknowledged: u64,
    counted: u64,
    conflicts: u64,
    per_second: Vec<u64>,
    latency_us: Histogram<u64>,
    last: Instant,
    failure: Option<SqlError>,
}

fn client(node: &Node, shared: &Shared, limit: Option<Duration>) -> Client {
    let connected = Sql::connect_socket(&node.socket(), STATEMENT);
    shared.ready.wait();
    let began = Instant::now();
    let mut seen = Client {
        acknowledged: 0,
        counted: 0,
        conflicts: 0,
        per_second: Vec::new(),
        latency_us: histogram(),
        last: began,
        failure: None,
    };
    match connected {
        Ok(mut sql) => {
            while let Some(step) = insert(&mut sql, shared, limit, began, &mut seen).transpose() {
                if let Err(error) = step {
                    seen.failure = Some(error);
                    break;
                }
            }
        }
        Err(error) => seen.failure = Some(error),
    }
    if seen.failure.is_some() {
        shared.stop.store(true, Ordering::Relaxed);
    }
    shared.running.fetch_sub(1, Ordering::Relaxed);
    seen
}

/// Inserts one row; None if the load is over.
fn insert(
    sql: &mut Sql,
    shared: &Shared,
    limit: Option<Duration>,
    began: Instant,
    seen: &mut Client,
) -> Result<Option<()>, SqlError> {
    let start = Instant::now();
    let over = limit.is_some_and(|limit| start - began >= limit);
    if over
        || shared.stop.load(Ordering::Relaxed)
        || shared.left.fetch_sub(1, Ordering::Relaxed) <= 0
    {
        return Ok(None);
    }
    let number = seen.acknowledged.wrapping_mul(2_654_435_761) % 1_000_000_007;
    let statement = format!("INSERT INTO lab.t (number, text) VALUES ({number}, '{number:0>100}')");
    while let Err(error) = sql.exec(&statement) {
        if !error.is_conflict() {
            return Err(error);
        }
        seen.conflicts += 1;
        if shared.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    seen.last = Instant::now();
    seen.acknowledged += 1;
    seen.latency_us
        .saturating_record((seen.last - start).as_micros() as u64);
    let at = seen.last - began;
    if limit.is_none_or(|limit| at <= limit) {
        seen.counted += 1;
        let second = at.as_secs() as usize;
        seen.per_second
            .resize(seen.per_second.len().max(second + 1), 0);
        seen.per_second[second] += 1;
    }
    Ok(Some(()))
}

fn add_up(
    node: &Node,
    clients: Vec<Option<Client>>,
    began: Instant,
    limit: Option<Duration>,
) -> Outcome {
    let mut outcome = Outcome {
        acknowledged: 0,
        counted: 0,
        seconds: 0.0,
        conflicts: 0,
        per_second: Vec::new(),
        latency_us: histogram(),
        failure: interrupt::check().err().map(LabError::from),
    };
    let mut last = began;
    for client in clients {
        let Some(client) = client else {
            outcome.failure.get_or_insert(LabError::Client);
            continue;
        };
        outcome.acknowledged += client.acknowledged;
        outcome.counted += client.counted;
        outcome.conflicts += client.conflicts;
        last = last.max(client.last);
        let seconds = outcome.per_second.len().max(client.per_second.len());
        outcome.per_second.resize(seconds, 0);
        for (sum, n) in outcome.per_second.iter_mut().zip(client.per_second) {
            *sum += n;
        }
        // This cannot fail: both histograms have the same bounds.
        let _ = outcome.latency_us.add(&client.latency_us);
        if let Some(error) = client.failure {
            outcome.failure.get_or_insert_with(|| failed(node, error));
        }
    }
    let lasted = last - began;
    outcome.seconds = match limit {
        Some(limit) if outcome.failure.is_none() => limit,
        _ => lasted,
    }
    .as_secs_f64();
    match limit {
        // A standstill up to the end has seconds, too.
        Some(limit) if outcome.failure.is_none() => {
            outcome.per_second.resize(limit.as_secs() as usize, 0);
        }
        Some(_) => {}
        // The last second is incomplete.
        None => outcome.per_second.truncate(lasted.as_secs() as usize),
    }
    outcome
}

/// A histogram from a microsecond to a minute, exact to 1 %.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 2).expect("the bounds are in order")
}

fn failed(node: &Node, source: SqlError) -> LabError {
    LabError::Load {
        node: node.name.clone(),
        source,
    }
}
