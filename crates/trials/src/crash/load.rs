//! Runs the clients of all nodes, with their shared clock and counters.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::client::{Client, Isolation};
use super::history::{Id, Transaction};
use trireme_testbed::cluster::Cluster;
use trireme_testbed::node::Node;

/// State that all clients share.
pub struct Shared {
    /// Tells the clients to stop.
    pub stop: AtomicBool,
    started: Instant,
    next_id: AtomicU32,
    /// For each node: when its last transaction with an acknowledged append began, in microseconds; 0: none yet.
    last_commit_us: Vec<AtomicU64>,
}

impl Shared {
    /// Time since the load began.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns an element that no client has used yet.
    pub fn next_id(&self) -> Id {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Number of appends tried so far.
    pub fn appends_so_far(&self) -> u32 {
        self.next_id.load(Ordering::Relaxed)
    }

    /// Notes that `node` acknowledged a transaction that began at `began`.
    pub fn note_commit(&self, node: usize, began: Duration) {
        self.last_commit_us[node].fetch_max(began.as_micros() as u64, Ordering::Relaxed);
    }
}

/// Running clients. They end when this is dropped.
pub struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<Vec<Transaction>>>,
}

impl Load {
    /// Starts `clients_per_node` clients on each node.
    pub fn start(
        cluster: &Cluster,
        clients_per_node: u16,
        isolation: Isolation,
        seed: u64,
    ) -> Self {
        let sockets: Vec<PathBuf> = cluster.nodes().iter().map(Node::socket).collect();
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            started: Instant::now(),
            next_id: AtomicU32::new(1),
            last_commit_us: sockets.iter().map(|_| AtomicU64::new(0)).collect(),
        });
        let clients = (0..sockets.len() * usize::from(clients_per_node)).map(|number| {
            let node = number % sockets.len();
            let shared = Arc::clone(&shared);
            let client = Client::new(number, node, &sockets[node], isolation, seed, shared);
            thread::spawn(move || client.run())
        });
        Self {
            clients: clients.collect(),
            shared,
        }
    }

    /// Time since the load began.
    pub fn now(&self) -> Duration {
        self.shared.now()
    }

    /// The state that all clients share, with the load's clock.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// True if every node has acknowledged an append whose transaction began after `since`.
    pub fn all_serve_since(&self, since: Duration) -> bool {
        let since_us = since.as_micros() as u64;
        let mut nodes = self.shared.last_commit_us.iter();
        nodes.all(|last| last.load(Ordering::Relaxed) > since_us)
    }

    /// Stops the clients and returns their history.
    pub fn stop(mut self) -> Vec<Transaction> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let clients = self.clients.drain(..);
        clients
            .flat_map(|client| client.join().expect("a client does not panic"))
            .collect()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}
