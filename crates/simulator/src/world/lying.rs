//! A member that lies. Fields of its messages are changed, differently for each recipient, and the recipient believes
//! them. All nodes are the real ones, also the liar's own. No node may panic.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use bytes::Bytes;
use trireme_engine::{Channel, Engine};
use trireme_group::fuzzing::{Dice, lie, lie_in_payloads};
use trireme_group::{decode, encode};
use trireme_replicator::fuzzing::change;

use super::{Happening, World};
use crate::run::last_panic;
use crate::seen::NodeId;

/// Minimum percentage of lies among the liar's messages to replicators: most schedules have only a few such messages.
const SELDOM_PERCENT: u64 = 30;
/// Number of random bytes that decide one lie.
const DICE_BYTES: usize = 256;
/// The path of the simulated server. An assertion there that fails after a lie is the liar's work.
const SERVER: &str = "crates/simulator/src/server/";

impl World {
    /// The frame that the node really sends: a lie, if the node is the liar and lies now.
    pub(crate) fn lie(&mut self, node: NodeId, to: NodeId, frame: Bytes) -> Bytes {
        let Some(liar) = self.plan.liar.filter(|liar| liar.node == node) else {
            return frame;
        };
        let channel = frame.first().and_then(|byte| Channel::of(*byte));
        let percent = match channel {
            Some(Channel::Replicator) => liar.percent.max(SELDOM_PERCENT),
            _ => liar.percent,
        };
        if self.calm || !self.lie_random.percent(percent) {
            return frame;
        }
        let numbers = (0..DICE_BYTES / 8).flat_map(|_| self.lie_random.next().to_le_bytes());
        let bytes: Vec<u8> = numbers.collect();
        let (Some(me), Some(other)) = (self.engine(node), self.engine(to)) else {
            return frame;
        };
        let Some(lie) = changed(&mut Dice(&bytes), me, other, &frame) else {
            return frame;
        };
        self.coverage.lies += 1;
        lie
    }

    fn engine(&self, node: NodeId) -> Option<&Engine> {
        let process = self.machines[node].process.as_ref()?;
        Some(&process.engine)
    }

    /// Ends a connection over which an unreadable frame came, as a provider does.
    pub(crate) fn drop_peer(&mut self, node: NodeId, from: NodeId, why: &str) {
        let lies = self.plan.liar.is_some_and(|liar| liar.node == from);
        assert!(lies, "n{} {why}, and does not lie", from + 1);
        self.coverage.unreadable += 1;
        self.break_link(node, from);
    }

    /// Kills a server whose assertion fails because of a lie; passes on any other panic, since it is a node's own.
    pub(super) fn happens_among_liars(&mut self, happening: Happening) {
        let node = match &happening {
            Happening::To(node, ..) | Happening::React(node, _) | Happening::Tick(node, _) => *node,
            _ => return self.happens(happening),
        };
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.happens(happening))) else {
            return;
        };
        if !last_panic().contains(SERVER) {
            resume_unwind(panic);
        }
        self.coverage.deceived += 1;
        self.tell(|| format!("n{}: {}", node + 1, last_panic().replace('\n', " ")));
        self.dies_within(node);
    }
}

/// A changed frame; None if the recipient would not believe the change.
fn changed(dice: &mut Dice, me: &Engine, to: &Engine, frame: &Bytes) -> Option<Bytes> {
    let channel = *frame.first()?;
    let body = frame.slice(1..);
    let lie = match Channel::of(channel)? {
        Channel::Replicator => change::peer_message(dice, &me.replicator, &body),
        Channel::Group | Channel::Bulk => {
            let message = decode(body).ok()?;
            let (me, to) = (&me.link()?.group, &to.link()?.group);
            let lie = match dice.one_in(4) {
                true => lie_in_payloads(me, to, &message, |payload| change::payload(dice, payload)),
                false => lie(dice, me, to, &message),
            };
            encode(&lie?)
        }
    };
    Some([&[channel], &lie[..]].concat().into())
}
