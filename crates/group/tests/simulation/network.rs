//! Connections between processes: ordered, lossless until they break, slow, cut and healed.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use trireme_group::{Incarnation, TimeMs};

use crate::plan::Plan;
use crate::random::Random;

/// One connection between two nodes' processes; end 0 belongs to the node with the lower index.
#[derive(Debug)]
pub struct Connection {
    pub id: u64,
    pub processes: [Incarnation; 2],
    /// The process at this end has been told that the connection is up.
    pub up: [bool; 2],
    /// Broken: nothing more passes; the ends hear of it when they do.
    pub broken: bool,
    /// Streams keep their order: nothing arrives at an end before this time.
    arrives_at: [TimeMs; 2],
    /// Sent to an end while the link was cut.
    held: [VecDeque<Bytes>; 2],
}

/// Something on its way to an end of a connection.
#[derive(Debug)]
pub struct BulkPayload {
    pub connection: u64,
    pub bytes: Bytes,
}

/// All links and connections.
#[derive(Debug)]
pub struct Network {
    random: Random,
    delay_ms: Vec<Vec<TimeMs>>,
    jitter_ms: TimeMs,
    /// How many faults cut the link from one node to another.
    cuts: Vec<Vec<u32>>,
    overflows: Vec<Vec<u32>>,
    connections: BTreeMap<(usize, usize), Connection>,
    last_id: u64,
}

/// The pair's key, and which end the first one is.
fn pair(a: usize, b: usize) -> ((usize, usize), usize) {
    ((a.min(b), a.max(b)), usize::from(a > b))
}

impl Network {
    pub fn new(plan: &Plan) -> Network {
        let size = plan.nodes.len();
        Network {
            random: Random::new(plan.seed, 2),
            delay_ms: plan.delay_ms.clone(),
            jitter_ms: plan.jitter_ms,
            cuts: vec![vec![0; size]; size],
            overflows: vec![vec![0; size]; size],
            connections: BTreeMap::new(),
            last_id: 0,
        }
    }

    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cuts[from][to] > 0
    }

    pub fn cut(&mut self, from: usize, to: usize) {
        self.cuts[from][to] += 1;
    }

    pub fn set_overflow(&mut self, from: usize, to: usize, on: bool) {
        let count = &mut self.overflows[from][to];
        *count = if on { *count + 1 } else { *count - 1 };
    }

    pub fn is_overflowing(&self, from: usize, to: usize) -> bool {
        self.overflows[from][to] > 0
    }

    pub fn delay(&mut self, from: usize, to: usize) -> TimeMs {
        self.delay_ms[from][to] + self.random.within(0..=self.jitter_ms)
    }

    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub fn connection(&self, a: usize, b: usize) -> Option<&Connection> {
        self.connections.get(&pair(a, b).0)
    }

    /// A new connection; returns when each of (a, b) learns of it.
    pub fn connect(
        &mut self,
        now: TimeMs,
        (a, a_process): (usize, Incarnation),
        (b, b_process): (usize, Incarnation),
    ) -> (u64, TimeMs, TimeMs) {
        let (key, a_end) = pair(a, b);
        let (a_up, b_up) = (now + self.delay(b, a), now + self.delay(a, b));
        let order = |a: TimeMs, b: TimeMs| if a_end == 0 { [a, b] } else { [b, a] };
        self.last_id += 1;
        let connection = Connection {
            id: self.last_id,
            processes: if a_end == 0 {
                [a_process, b_process]
            } else {
                [b_process, a_process]
            },
            up: [false; 2],
            broken: false,
            arrives_at: order(a_up, b_up),
            held: Default::default(),
        };
        assert!(
            self.connections.insert(key, connection).is_none(),
            "one connection per pair"
        );
        (self.last_id, a_up, b_up)
    }

    /// The process at `node` learns that its connection is up. None: it broke meanwhile.
    pub fn set_up(&mut self, node: usize, other: usize, id: u64) -> Option<Incarnation> {
        let (key, end) = pair(node, other);
        let connection = self
            .connections
            .get_mut(&key)
            .filter(|c| c.id == id && !c.broken)?;
        connection.up[end] = true;
        Some(connection.processes[1 - end])
    }

    /// Breaks the connection; true if there was an unbroken one.
    pub fn break_connection(&mut self, a: usize, b: usize) -> Option<u64> {
        let connection = self
            .connections
            .get_mut(&pair(a, b).0)
            .filter(|c| !c.broken)?;
        connection.broken = true;
        connection.held = Default::default();
        Some(connection.id)
    }

    /// The process at `node` notices. Returns its peer if it had been told that the connection was up.
    pub fn set_down(&mut self, node: usize, other: usize, id: u64) -> Option<Incarnation> {
        let (key, end) = pair(node, other);
        let connection = self.connections.get_mut(&key).filter(|c| c.id == id)?;
        let was_up = std::mem::replace(&mut connection.up[end], false);
        let peer = connection.processes[1 - end];
        if !connection.up[1 - end] {
            self.connections.remove(&key);
        }
        was_up.then_some(peer)
    }

    /// Sends on the connection from one node to another; None: dropped, or held while the link is cut.
    pub fn send(
        &mut self,
        now: TimeMs,
        from: usize,
        to: usize,
        process: Incarnation,
        bytes: Bytes,
    ) -> Option<(TimeMs, BulkPayload)> {
        if self.is_overflowing(from, to) {
            return None;
        }
        let delay = self.delay(from, to);
        let cut = self.is_cut(from, to);
        let (key, end) = pair(to, from);
        let connection = self.connections.get_mut(&key)?;
        if connection.broken || !connection.up[1 - end] || connection.processes[end] != process {
            return None;
        }
        if cut {
            connection.held[end].push_back(bytes);
            return None;
        }
        let at = connection.arrives_at[end].max(now + delay);
        connection.arrives_at[end] = at;
        Some((
            at,
            BulkPayload {
                connection: connection.id,
                bytes,
            },
        ))
    }

    /// Who sent what arrives at `to` now. None: the connection broke on the way.
    pub fn receive(&self, from: usize, to: usize, connection: u64) -> Option<Incarnation> {
        let (key, end) = pair(to, from);
        let connection = self
            .connections
            .get(&key)
            .filter(|c| c.id == connection && !c.broken && c.up[end])?;
        Some(connection.processes[1 - end])
    }

    /// A cut ends; what was held goes on its way.
    pub fn heal(&mut self, now: TimeMs, from: usize, to: usize) -> Vec<(TimeMs, BulkPayload)> {
        self.cuts[from][to] -= 1;
        if self.is_cut(from, to) {
            return Vec::new();
        }
        let retransmitted_at = now + self.random.within(0..=200);
        let (key, end) = pair(to, from);
        let Some(connection) = self.connections.get_mut(&key) else {
            return Vec::new();
        };
        let at = connection.arrives_at[end].max(retransmitted_at);
        connection.arrives_at[end] = at;
        let id = connection.id;
        connection.held[end]
            .drain(..)
            .map(|bytes| {
                (
                    at,
                    BulkPayload {
                        connection: id,
                        bytes,
                    },
                )
            })
            .collect()
    }
}
