//! Clients that insert rows, and change to another node when their own goes away.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use trireme_testbed::Cluster;
use trireme_testbed::sql::{Sql, SqlError};

use super::error::LatencyError;
use super::load::Commit;
use crate::frame::LabError;

/// The table of the inserts. Its key is client and number.
pub const TABLE: &str = "sbtest.restarted";

/// The time limit of a statement. Only a hanging server needs longer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// The error for a row that exists already: an earlier attempt was committed, but its answer was lost.
const DUPLICATE_KEY: u16 = 1062;

/// The results of one client.
pub struct Seen {
    /// The acknowledged inserts; the nth one has the number n.
    pub commits: Vec<Commit>,
    /// The statements and connections that failed, by kind.
    pub failed: BTreeMap<String, u64>,
}

/// Clients at work, one per node. Dropping it tells them to end.
pub struct Roaming {
    clients: Vec<JoinHandle<Seen>>,
    shared: Arc<Shared>,
}

struct Shared {
    sockets: Vec<PathBuf>,
    /// The number of returns of each node.
    returns: Vec<AtomicUsize>,
    stop: AtomicBool,
}

impl Roaming {
    /// Starts a client at each node.
    pub fn start(cluster: &Cluster) -> Self {
        let nodes = cluster.nodes();
        let shared = Arc::new(Shared {
            sockets: nodes.iter().map(|node| node.socket()).collect(),
            returns: nodes.iter().map(|_| AtomicUsize::new(0)).collect(),
            stop: AtomicBool::new(false),
        });
        let start = |home| {
            let client = Client {
                home,
                at: home,
                returns_seen: 0,
                sql: None,
                shared: Arc::clone(&shared),
                failed: BTreeMap::new(),
            };
            thread::spawn(|| client.run())
        };
        Self {
            clients: (0..nodes.len()).map(start).collect(),
            shared,
        }
    }

    /// Tells the client of node `i` to work there again.
    pub fn is_back(&self, i: usize) {
        self.shared.returns[i].fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the clients, and returns their results.
    pub fn end(mut self) -> Result<Vec<Seen>, LatencyError> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let clients = self.clients.drain(..);
        let seen = clients.map(|client| client.join().map_err(|_| LabError::Client.into()));
        seen.collect()
    }
}

impl Drop for Roaming {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

struct Client {
    home: usize,
    at: usize,
    /// The number of returns of its own node when the client was last there.
    returns_seen: usize,
    sql: Option<Sql>,
    shared: Arc<Shared>,
    failed: BTreeMap<String, u64>,
}

/// The outcome of an attempt.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Done,
    Again,
    OtherNode,
}

impl Client {
    fn run(mut self) -> Seen {
        let mut commits = Vec::new();
        while !self.stopped() {
            self.return_home();
            let due = Instant::now();
            let number = commits.len() + 1;
            if !self.insert(number) {
                break;
            }
            let done = Instant::now();
            commits.push(Commit { due, done });
        }
        Seen {
            commits,
            failed: self.failed,
        }
    }

    fn return_home(&mut self) {
        let returns = self.shared.returns[self.home].load(Ordering::Relaxed);
        if returns > self.returns_seen {
            self.returns_seen = returns;
            if self.at != self.home {
                self.at = self.home;
                self.sql = None;
            }
        }
    }

    /// Inserts a row at any node. Returns false if the load ends before that.
    fn insert(&mut self, number: usize) -> bool {
        let client = self.home;
        let statement =
            format!("INSERT INTO {TABLE} VALUES ({client}, {number}, '{number:0>100}')");
        while !self.stopped() {
            let outcome = self.attempt(&statement);
            match self.judge(&outcome) {
                Next::Done => return true,
                Next::Again => {}
                Next::OtherNode => {
                    self.sql = None;
                    self.at = (self.at + 1) % self.shared.sockets.len();
                    thread::sleep(PAUSE);
                }
            }
        }
        false
    }

    fn attempt(&mut self, statement: &str) -> Result<(), (&'static str, SqlError)> {
        let sql = match &mut self.sql {
            Some(sql) => sql,
            None => {
                let socket = &self.shared.sockets[self.at];
                let connected = Sql::connect_socket(socket, TIMEOUT);
                self.sql
                    .insert(connected.map_err(|error| ("connect_refused", error))?)
            }
        };
        sql.exec(statement)
            .map(drop)
            .map_err(|error| ("connection_lost", error))
    }

    fn judge(&mut self, outcome: &Result<(), (&'static str, SqlError)>) -> Next {
        let Err((kind, error)) = outcome else {
            return Next::Done;
        };
        if error.code() == Some(DUPLICATE_KEY) {
            return Next::Done;
        }
        let kind = match error.code() {
            Some(code) => format!("error_{code}"),
            None => kind.to_string(),
        };
        *self.failed.entry(kind).or_default() += 1;
        match error.is_conflict() {
            true => Next::Again,
            false => Next::OtherNode,
        }
    }

    fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Client {
        Client {
            home: 1,
            at: 1,
            returns_seen: 0,
            sql: None,
            shared: Arc::new(Shared {
                sockets: ["/nonexistent/a", "/nonexistent/b"]
                    .map(PathBuf::from)
                    .to_vec(),
                returns: vec![AtomicUsize::new(0), AtomicUsize::new(0)],
                stop: AtomicBool::new(false),
            }),
            failed: BTreeMap::new(),
        }
    }

    #[test]
    fn failures_are_counted_by_kind() {
        let mut client = client();
        let server = |code| {
            let message = String::new();
            Err(("connection_lost", SqlError::Server { code, message }))
        };
        assert_eq!(client.judge(&server(1213)), Next::Again);
        assert_eq!(client.judge(&server(1047)), Next::OtherNode);
        // The insert was committed, but its answer was lost.
        assert_eq!(client.judge(&server(1062)), Next::Done);
        let refused = client.attempt("SELECT 1");
        assert_eq!(client.judge(&refused), Next::OtherNode);
        let kinds: Vec<(&str, u64)> = client
            .failed
            .iter()
            .map(|(k, n)| (k.as_str(), *n))
            .collect();
        assert_eq!(
            kinds,
            [("connect_refused", 1), ("error_1047", 1), ("error_1213", 1)]
        );
    }

    #[test]
    fn a_client_returns_when_its_node_is_back() {
        let mut client = client();
        client.at = 0;
        client.return_home();
        assert_eq!(client.at, 0);
        client.shared.returns[1].fetch_add(1, Ordering::Relaxed);
        client.return_home();
        assert_eq!(client.at, 1);
        // Once for each return.
        client.at = 0;
        client.return_home();
        assert_eq!(client.at, 0);
    }
}
