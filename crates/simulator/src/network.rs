//! Connections between processes: streams that keep their order until they break. Links can be slow, cut and healed.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::plan::Plan;
use crate::random::Random;
use crate::seen::{NodeId, TimeUs};

/// Number of the first direction's stream of random numbers; the other directions' follow.
const FIRST_STREAM: u64 = 1_000;

/// The id of a connection, unique in a run.
pub type ConnectionId = u64;

/// A frame under way.
#[derive(Debug, Clone)]
pub struct BulkPayload {
    /// The connection of the frame.
    pub connection: ConnectionId,
    /// Time of sending.
    pub sent_us: TimeUs,
    /// The frame.
    pub bytes: Bytes,
}

/// One connection between two nodes' processes; end 0 belongs to the node with the lower index.
#[derive(Debug)]
struct Connection {
    id: ConnectionId,
    /// The process of its node at each end.
    starts: [u64; 2],
    /// True if the process at this end has been told that the connection is up.
    up: [bool; 2],
    /// Time of the break. Frames sent later, or due at an end after `until_us`, are lost.
    broken_us: Option<TimeUs>,
    until_us: [TimeUs; 2],
    /// Time of the last arrival at each end. No later frame arrives before it: streams keep their order.
    arrives_us: [TimeUs; 2],
    /// Frames sent to each end while the direction was cut.
    held: [VecDeque<BulkPayload>; 2],
    /// The queue to this end was full: frames were dropped.
    overflowed: [bool; 2],
}

/// One direction between two nodes, whether or not there is a connection.
#[derive(Debug, Clone)]
struct Direction {
    /// The random numbers for the fate of its frames.
    random: Random,
    delay_us: u64,
    /// Numbers of faults that now cut it, fill its queue, duplicate its frames; and the extra delay.
    cuts: u32,
    stuffed: u32,
    doubled: u32,
    slow_us: u64,
}

/// The fate of a frame that was sent.
#[derive(Debug)]
pub enum Sent {
    /// It arrives at the first time and, if there is a second one, again then.
    Arrives(BulkPayload, TimeUs, Option<TimeUs>),
    /// The direction is cut: the frame may arrive when the cut ends.
    Held,
    /// There is no connection, or the queue is full.
    Dropped,
}

/// All directions and connections.
#[derive(Debug)]
pub struct Network {
    /// One stream for all directions, as in older schedules; None: each direction has its own.
    shared: Option<Random>,
    size: usize,
    jitter_us: u64,
    queue_frames: usize,
    directions: Vec<Direction>,
    connections: Vec<Option<Connection>>,
    last_id: ConnectionId,
}

impl Network {
    /// A network without connections.
    pub fn new(plan: &Plan) -> Network {
        let size = plan.nodes.len();
        let direction = |(index, delay): (usize, &u64)| Direction {
            random: Random::new(plan.seed, FIRST_STREAM + index as u64),
            delay_us: *delay,
            cuts: 0,
            stuffed: 0,
            doubled: 0,
            slow_us: 0,
        };
        let delays = plan.delay_us.iter().flatten().enumerate();
        Network {
            shared: (!plan.links_apart).then(|| Random::new(plan.seed, 2)),
            size,
            jitter_us: plan.jitter_us,
            queue_frames: plan.queue_frames,
            directions: delays.map(direction).collect(),
            connections: (0..size * size).map(|_| None).collect(),
            last_id: 0,
        }
    }

    /// The connection of a pair, and the number of the end at `node`.
    fn pair(&mut self, other: NodeId, node: NodeId) -> (&mut Option<Connection>, usize) {
        let index = self.index(other, node);
        (&mut self.connections[index], usize::from(node > other))
    }

    fn index(&self, a: NodeId, b: NodeId) -> usize {
        a.min(b) * self.size + a.max(b)
    }

    /// The random numbers for the next frame of this direction.
    fn random(&mut self, from: NodeId, to: NodeId) -> &mut Random {
        match &mut self.shared {
            Some(shared) => shared,
            None => &mut self.directions[from * self.size + to].random,
        }
    }

    fn direction(&mut self, from: NodeId, to: NodeId) -> &mut Direction {
        &mut self.directions[from * self.size + to]
    }

    /// True if nothing passes now.
    pub fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.directions[from * self.size + to].cuts > 0
    }

    /// True if nothing passes now in one direction or the other.
    pub fn are_cut_apart(&self, a: NodeId, b: NodeId) -> bool {
        self.is_cut(a, b) || self.is_cut(b, a)
    }

    /// Lets nothing pass, until [`Network::heal`].
    pub fn cut(&mut self, from: NodeId, to: NodeId) {
        self.direction(from, to).cuts += 1;
    }

    /// Starts or ends the dropping of frames, as if the sender's queue were full.
    pub fn stuff(&mut self, from: NodeId, to: NodeId, on: bool) {
        let count = &mut self.direction(from, to).stuffed;
        *count = if on { *count + 1 } else { *count - 1 };
    }

    /// Starts or ends the duplication of some frames.
    pub fn double(&mut self, from: NodeId, to: NodeId, on: bool) {
        let count = &mut self.direction(from, to).doubled;
        *count = if on { *count + 1 } else { *count - 1 };
    }

    /// Adds this much to the delay of every frame.
    pub fn slow_down(&mut self, from: NodeId, to: NodeId, by_us: u64) {
        self.direction(from, to).slow_us += by_us;
    }

    /// Takes back a [`Network::slow_down`].
    pub fn speed_up(&mut self, from: NodeId, to: NodeId, by_us: u64) {
        self.direction(from, to).slow_us -= by_us;
    }

    /// The delay of the next frame.
    pub fn delay_us(&mut self, from: NodeId, to: NodeId) -> u64 {
        let direction = &self.directions[from * self.size + to];
        let base_us = direction.delay_us + direction.slow_us;
        let jitter_us = self.jitter_us;
        base_us + self.random(from, to).within(0..=jitter_us)
    }

    /// The time that `to` needs to notice that the connection from `from` is broken.
    pub fn notice_us(&mut self, from: NodeId, to: NodeId) -> u64 {
        let range = if self.is_cut(from, to) {
            500_000..=5_000_000
        } else {
            0..=10_000
        };
        self.delay_us(from, to) + self.random(from, to).within(range)
    }

    /// True if the pair has a connection, or a broken one that not both ends have noticed.
    pub fn is_connected(&self, a: NodeId, b: NodeId) -> bool {
        self.connections[self.index(a, b)].is_some()
    }

    /// Makes a connection; returns its id and the times when a and b learn of it.
    pub fn connect(
        &mut self,
        now: TimeUs,
        (a, a_start): (NodeId, u64),
        (b, b_start): (NodeId, u64),
    ) -> (ConnectionId, TimeUs, TimeUs) {
        let (a_up, b_up) = (now + self.delay_us(b, a), now + self.delay_us(a, b));
        self.last_id += 1;
        let id = self.last_id;
        let (slot, b_end) = self.pair(a, b);
        let order = |a: u64, b: u64| if b_end == 1 { [a, b] } else { [b, a] };
        *slot = Some(Connection {
            id,
            starts: order(a_start, b_start),
            up: [false; 2],
            broken_us: None,
            until_us: [0; 2],
            arrives_us: order(a_up, b_up),
            held: Default::default(),
            overflowed: [false; 2],
        });
        (id, a_up, b_up)
    }

    /// Tells the process at `node` that its connection is up. Returns the number of the other node's process; None:
    /// the connection has broken meanwhile.
    pub fn set_up(&mut self, node: NodeId, other: NodeId, id: ConnectionId) -> Option<u64> {
        let (slot, end) = self.pair(other, node);
        match slot {
            Some(c) if c.id == id && c.broken_us.is_none() => {
                c.up[end] = true;
                Some(c.starts[1 - end])
            }
            _ => None,
        }
    }

    /// The process of the other node to which the process at `node` knows itself connected.
    pub fn peer_of(&mut self, node: NodeId, other: NodeId) -> Option<u64> {
        let (slot, end) = self.pair(other, node);
        let connection = slot.as_ref().filter(|c| c.up[end]);
        connection.map(|c| c.starts[1 - end])
    }

    /// Breaks the connection, if there is an unbroken one. Returns its id and the times when a and b notice. A random
    /// part of the frames under way still arrives.
    pub fn break_connection(
        &mut self,
        now: TimeUs,
        a: NodeId,
        b: NodeId,
    ) -> Option<(ConnectionId, TimeUs, TimeUs)> {
        self.pair(a, b)
            .0
            .as_ref()
            .filter(|c| c.broken_us.is_none())?;
        let lasts_us = [(b, a), (a, b)].map(|(from, to)| {
            let delay_us = self.delay_us(from, to);
            now + self.random(from, to).within(0..=delay_us)
        });
        let noticed_us = [(b, a), (a, b)].map(|(from, to)| now + self.notice_us(from, to));
        let (slot, b_end) = self.pair(a, b);
        let connection = slot.as_mut()?;
        connection.broken_us = Some(now);
        connection.held = Default::default();
        connection.until_us[1 - b_end] = lasts_us[0];
        connection.until_us[b_end] = lasts_us[1];
        let id = connection.id;
        Some((
            id,
            noticed_us[0].max(lasts_us[0]),
            noticed_us[1].max(lasts_us[1]),
        ))
    }

    /// Tells the process at `node` that the connection is broken. Returns the number of the other node's process, if
    /// the process at `node` had been told of the connection.
    pub fn set_down(&mut self, node: NodeId, other: NodeId, id: ConnectionId) -> Option<u64> {
        let (slot, end) = self.pair(other, node);
        let connection = slot.as_mut().filter(|c| c.id == id)?;
        let peer = connection.starts[1 - end];
        let was_up = std::mem::replace(&mut connection.up[end], false);
        if !connection.up[1 - end] {
            *slot = None;
        }
        was_up.then_some(peer)
    }

    /// Sends a frame from one node's process to another's.
    pub fn send(
        &mut self,
        sent_us: TimeUs,
        from: NodeId,
        (to, to_start): (NodeId, u64),
        bytes: Bytes,
    ) -> Sent {
        let delay_us = self.delay_us(from, to);
        let direction = self.direction(from, to);
        let (cut, stuffed, doubled) = (
            direction.cuts > 0,
            direction.stuffed > 0,
            direction.doubled > 0,
        );
        let random = self.random(from, to);
        let again_us = (doubled && random.percent(20))
            .then(|| random.within(0..=1) * random.within(0..=50_000));
        let limit = self.queue_frames;
        let (slot, end) = self.pair(from, to);
        let Some(connection) = slot
            .as_mut()
            .filter(|c| c.broken_us.is_none() && c.up[1 - end] && c.starts[end] == to_start)
        else {
            return Sent::Dropped;
        };
        if stuffed || connection.overflowed[end] {
            connection.overflowed[end] = true;
            return Sent::Dropped;
        }
        let bulk = BulkPayload {
            connection: connection.id,
            sent_us,
            bytes,
        };
        if cut {
            if connection.held[end].len() < limit {
                connection.held[end].push_back(bulk);
                return Sent::Held;
            }
            connection.overflowed[end] = true;
            return Sent::Dropped;
        }
        let at = connection.arrives_us[end].max(sent_us + delay_us);
        connection.arrives_us[end] = at;
        Sent::Arrives(bulk, at, again_us.map(|later| at + later))
    }

    /// The process that sent a frame which arrives at `to` now. None: the connection broke.
    pub fn receive(
        &mut self,
        now: TimeUs,
        from: NodeId,
        to: NodeId,
        bulk: &BulkPayload,
    ) -> Option<u64> {
        let (slot, end) = self.pair(from, to);
        let connection = slot.as_ref().filter(|c| {
            let in_time = |at| bulk.sent_us <= at && now <= c.until_us[end];
            c.id == bulk.connection && c.up[end] && c.broken_us.is_none_or(in_time)
        })?;
        Some(connection.starts[1 - end])
    }

    /// Ends a cut. Returns the held frames with their times of arrival.
    pub fn heal(&mut self, now: TimeUs, from: NodeId, to: NodeId) -> Vec<(TimeUs, BulkPayload)> {
        let direction = self.direction(from, to);
        direction.cuts -= 1;
        if direction.cuts > 0 {
            return Vec::new();
        }
        let at = now + self.random(from, to).within(0..=200_000);
        let (slot, end) = self.pair(from, to);
        let Some(connection) = slot else {
            return Vec::new();
        };
        let at = connection.arrives_us[end].max(at);
        connection.arrives_us[end] = at;
        connection.held[end].drain(..).map(|p| (at, p)).collect()
    }

    /// True once when the queue from one node to another has drained after an overflow.
    pub fn drained(&mut self, from: NodeId, to: NodeId) -> bool {
        let direction = self.direction(from, to);
        if direction.cuts > 0 || direction.stuffed > 0 {
            return false;
        }
        let (slot, end) = self.pair(from, to);
        let Some(connection) = slot.as_mut().filter(|c| c.broken_us.is_none()) else {
            return false;
        };
        std::mem::replace(&mut connection.overflowed[end], false)
    }

    /// The id of the pair's broken connection, if an end that was cut off does not know of the break yet.
    pub fn is_broken(&mut self, a: NodeId, b: NodeId) -> Option<ConnectionId> {
        let connection = self.pair(a, b).0.as_ref()?;
        connection.broken_us.map(|_| connection.id)
    }
}
