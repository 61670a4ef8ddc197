//! The surroundings that a step of the server may use.

use std::ops::ControlFlow;

use trireme_engine::Engine;
use trireme_group::ComponentState;
use trireme_replicator::{Event, LocalState, NoHistory, Seqno};

use super::plan::Span;
use super::transfer::Transfer;
use crate::random::Random;
use crate::seen::{NodeId, Seen, TimeUs};
use crate::watch::Watch;

/// One thread of one server; the numbers are small and dense.
pub type ThreadId = usize;

/// The next action of a thread after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next step is due after so many microseconds, or when the thread becomes runnable, whichever comes first.
    After(TimeUs),
    /// The thread waits: an answer, a lock or work makes it runnable.
    Blocked,
    /// The thread has ended.
    Ended,
}

/// The result of one stage of a step: the thread goes on at once, or stops (`Break`) with this next action.
pub(super) type Stride = ControlFlow<Next>;

/// The thread goes on at once.
pub(super) const GO_ON: Stride = ControlFlow::Continue(());

/// The thread waits until it becomes runnable.
pub(super) const BLOCKED: Stride = ControlFlow::Break(Next::Blocked);

/// The surroundings of a step.
pub struct Ctx<'a> {
    /// The world's time.
    pub now_us: TimeUs,
    /// This node's clock.
    pub now_ms: u64,
    /// The node of the server.
    pub node: NodeId,
    /// The node's engine; a step does not pump it.
    pub engine: &'a mut Engine,
    /// The server's random numbers.
    pub random: &'a mut Random,
    /// The watch, which sees all events.
    pub watch: &'a mut Watch,
    /// True if the cluster can do without this node.
    pub may_fail: bool,
    /// True if a fault keeps this node from its disk, or from a majority of its view, at present.
    pub is_hindered: bool,
    /// The list to which a donor adds a transfer that has begun.
    pub transfers: &'a mut Vec<Transfer>,
}

impl Ctx<'_> {
    /// The end of the node's log, if the node is primary and synced, and has nothing left to commit or to apply. An
    /// open error vote counts as work left: one of its voters may be a process that is leaving. So does a disk that hangs:
    /// an entry with a large payload, for which a read may wait, comes only when the payload is staged there (seed
    /// 3600058994). So do cut links to so many nodes that the others are no majority: a node that hears these now and
    /// then stays primary (seed 3600094076).
    pub(super) fn rests_at(&self) -> Option<u64> {
        let link = self.engine.link()?;
        let status = self.engine.status();
        let rests = link.group.component_state() == ComponentState::Primary
            && link.group.commit() == link.group.end()
            && status.local_state == LocalState::Synced
            && status.local_recv_queue.now == 0
            && !self.is_hindered
            && self.engine.replicator.last_seqno() == Some(status.last_committed);
        rests.then(|| link.group.end())
    }

    /// Reports an event.
    pub fn see(&mut self, what: Seen) {
        self.watch.see(self.now_us, self.node, what);
    }

    /// Calls the provider.
    pub fn call(&mut self, event: Event) {
        self.engine.node(self.now_ms, event);
    }

    /// The result of last_committed_id().
    pub fn last_committed(&self) -> Seqno {
        self.engine.replicator.last_committed().seqno
    }

    /// True if the provider has found this node inconsistent: it leaves, and skips work that it has not begun.
    pub(super) fn is_inconsistent(&self) -> bool {
        let status = self.engine.replicator.status(&NoHistory);
        status.local_state == LocalState::Inconsistent
    }

    /// Sleeps for a random time of the span.
    pub(super) fn sleep(&mut self, span: Span) -> Stride {
        ControlFlow::Break(Next::After(span.draw(self.random)))
    }

    /// Sometimes delays a thread between two actions, so that other threads come between.
    pub(super) fn breath(&mut self, span: Span) -> Stride {
        if self.random.percent(40) {
            self.sleep(span)
        } else {
            GO_ON
        }
    }
}
