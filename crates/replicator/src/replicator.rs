//! The node.

use trireme_certification::Seqno;

use crate::action::Action;
use crate::event::Event;
use crate::gtid::Gtid;
use crate::history::History;
use crate::options::Options;
use crate::status::Status;
use crate::work::Work;

/// A node. See the crate's page.
pub struct Replicator {
    options: Options,
}

impl Replicator {
    /// A node that is not connected.
    pub fn new(options: Options) -> Self {
        Replicator { options }
    }

    /// Takes in one event. `now_ms` never goes back. What is to be done is appended to `out`, to be
    /// carried out in order, before the next call.
    pub fn handle(&mut self, _now_ms: u64, _event: Event, _history: &dyn History, _out: &mut Vec<Action>) {
        let _ = &self.options;
    }

    /// The next callback for a recv() thread; None if there is none now (wait for
    /// [`Action::WakeAppliers`]).
    pub fn take_work(&mut self) -> Option<Work> {
        None
    }

    /// When [`Event::Tick`] is due at the latest.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        None
    }

    /// last_committed_id(): nil and -1 before the first view.
    pub fn last_committed(&self) -> Gtid {
        Gtid::UNDEFINED
    }

    /// Counters and states. Cheap.
    pub fn status(&self) -> Status {
        todo!()
    }

    /// FLUSH STATUS.
    pub fn reset_counters(&mut self) {}

    /// What all nodes compute alike, with its position (the last one processed), for the log; see
    /// [`crate::Connect::control`]. None while there is none.
    pub fn control_snapshot(&self) -> Option<(u64, bytes::Bytes)> {
        None
    }

    /// A number that is equal on all nodes at equal positions; with the position.
    pub fn control_digest(&self) -> Option<(u64, u64)> {
        None
    }

    /// Last seqno ordered, as far as this node has certified.
    pub fn last_seqno(&self) -> Option<Seqno> {
        None
    }
}
