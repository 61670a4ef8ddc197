//! Connections. Each direction keeps the order of messages and loses none until the connection breaks. Then a prefix
//! of the messages under way still arrives.

use std::collections::VecDeque;
use std::sync::Arc;

use trireme_group::Incarnation;

use crate::process::BulkPayload;

/// Number of nodes.
pub const NODES: usize = 3;

/// One direction of a connection, as its receiver sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Channel {
    pub phase: Phase,
    /// The process that sends.
    pub peer: Incarnation,
    /// True once the receiver was told that the connection is up.
    pub told: bool,
    pub bulk_payloads: VecDeque<Arc<BulkPayload>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The receiver knows of no connection.
    #[default]
    Closed,
    Open,
    /// No messages are added; the receiver has not noticed the break yet.
    Broken,
}

/// All channels: `[from][to]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Network([[Channel; NODES]; NODES]);

impl Network {
    pub fn channel(&self, from: usize, to: usize) -> &Channel {
        &self.0[from][to]
    }

    pub fn may_connect(&self, a: usize, b: usize) -> bool {
        [(a, b), (b, a)]
            .iter()
            .all(|(from, to)| self.0[*from][*to].phase == Phase::Closed)
    }

    /// A new connection between the processes that run on two nodes.
    pub fn connect(
        &mut self,
        (a, a_process): (usize, Incarnation),
        (b, b_process): (usize, Incarnation),
    ) {
        for (from, to, peer) in [(a, b, a_process), (b, a, b_process)] {
            self.0[from][to] = Channel {
                phase: Phase::Open,
                peer,
                ..Channel::default()
            };
        }
    }

    pub fn is_connected(&self, a: usize, b: usize) -> bool {
        self.0[a][b].phase == Phase::Open || self.0[b][a].phase == Phase::Open
    }

    /// Breaks the connection. An end that was not told that it is up never hears of it.
    pub fn break_off(&mut self, a: usize, b: usize) {
        for (from, to) in [(a, b), (b, a)] {
            let channel = &mut self.0[from][to];
            if channel.phase == Phase::Open && channel.told {
                channel.phase = Phase::Broken;
            } else if channel.phase == Phase::Open {
                *channel = Channel::default();
            }
        }
    }

    /// Removes the channel: the receiver is gone, or has noticed the break.
    pub fn close(&mut self, from: usize, to: usize) {
        self.0[from][to] = Channel::default();
    }

    pub fn send(&mut self, from: usize, to: usize, bulk: Arc<BulkPayload>) {
        let channel = &mut self.0[from][to];
        if channel.phase == Phase::Open {
            channel.bulk_payloads.push_back(bulk);
        }
    }

    /// Hands the next thing to the receiver: the news that the connection is up, or a batch of messages.
    pub fn receive(&mut self, from: usize, to: usize) {
        let channel = &mut self.0[from][to];
        if channel.told {
            channel.bulk_payloads.pop_front();
        }
        channel.told = true;
    }

    /// True if something is under way that the receiver can get.
    pub fn has_arrivals(&self, from: usize, to: usize) -> bool {
        let channel = &self.0[from][to];
        channel.phase != Phase::Closed && (!channel.told || !channel.bulk_payloads.is_empty())
    }
}
