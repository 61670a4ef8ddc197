//! What a step of the server may use.

use std::ops::ControlFlow;

use trireme_engine::Engine;
use trireme_group::Standing;
use trireme_replicator::{Event, LocalState, NoHistory, Seqno};

use super::plan::Span;
use super::transfer::Transfer;
use crate::random::Random;
use crate::seen::{NodeId, Seen, TimeUs};
use crate::watch::Watch;

/// One thread of one server: small and dense.
pub type ThreadId = usize;

/// What a thread does after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its next step is due after so many microseconds, or when it becomes runnable, whichever is first.
    After(TimeUs),
    /// It waits: an answer, a lock or work makes it runnable.
    Blocked,
    /// It is gone.
    Ended,
}

/// One stage of a thread's step: the thread goes on at once, or (`Break`) stops with this.
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
    /// Whose server it is.
    pub node: NodeId,
    /// The node's engine; nothing is pumped within a step.
    pub engine: &'a mut Engine,
    /// The server's randomness.
    pub random: &'a mut Random,
    /// Who is told what happens.
    pub watch: &'a mut Watch,
    /// The cluster can do without this node.
    pub may_fail: bool,
    /// A donor puts a transfer here that has begun.
    pub transfers: &'a mut Vec<Transfer>,
}

impl Ctx<'_> {
    /// Where the node's log ends, if the node is primary and synced, and has nothing left to commit or to apply. A seqno that
    /// waits for the members' votes is left: one of them may be a process that is leaving.
    pub(super) fn rests_at(&self) -> Option<u64> {
        let link = self.engine.link()?;
        let status = self.engine.status();
        let rests = link.group.standing() == Standing::Primary
            && link.group.commit() == link.group.end()
            && status.local_state == LocalState::Synced
            && status.local_recv_queue.now == 0
            && self.engine.replicator.last_seqno() == Some(status.last_committed);
        rests.then(|| link.group.end())
    }

    /// Tells what happened.
    pub fn see(&mut self, what: Seen) {
        self.watch.see(self.now_us, self.node, what);
    }

    /// Calls the provider.
    pub fn call(&mut self, event: Event) {
        self.engine.node(self.now_ms, event);
    }

    /// last_committed_id().
    pub fn last_committed(&self) -> Seqno {
        self.engine.replicator.last_committed().seqno
    }

    /// The provider has found this node inconsistent: it leaves, and skips what it has not begun.
    pub(super) fn is_inconsistent(&self) -> bool {
        let status = self.engine.replicator.status(&NoHistory);
        status.local_state == LocalState::Inconsistent
    }

    /// Sleeps for a time of the span.
    pub(super) fn sleep(&mut self, span: Span) -> Stride {
        ControlFlow::Break(Next::After(span.draw(self.random)))
    }

    /// Now and then a thread is held up between two things that it does, so that others come between.
    pub(super) fn breath(&mut self, span: Span) -> Stride {
        if self.random.percent(40) {
            self.sleep(span)
        } else {
            GO_ON
        }
    }
}
