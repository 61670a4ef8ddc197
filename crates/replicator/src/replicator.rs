//! The state of a node, and the functions that all of its parts share. Events come in through `dispatch.rs`.

use trireme_certification::Seqno;
use trireme_group::Incarnation;
use trireme_mutants::{Mutant, planted};

use crate::action::{Answer, Level};
use crate::action_queue::ActionQueue;
use crate::callers::Callers;
use crate::context::Context;
use crate::counters::Counters;
use crate::database::Database;
use crate::event::Ticket;
use crate::executor::Executor;
use crate::flow_control::FlowControl;
use crate::gtid::Gtid;
use crate::intake::Intake;
use crate::lifecycle::Lifecycle;
use crate::log_reader::LogReader;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::options::Options;
use crate::peer_message::PeerMessage;
use crate::retention::Retention;
use crate::state_transfer::{Place, StateTransfer};
use crate::submissions::{Sent, Submissions};
use crate::voting::Voting;

/// A node. See the crate's documentation.
pub struct Replicator {
    pub(crate) context: Context,
    /// Actions of this call.
    pub(crate) out: ActionQueue,
    pub(crate) counters: Counters,

    // --- this connection
    pub(crate) transfer: StateTransfer,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) database: Database,

    // --- the order
    pub(crate) intake: Intake,
    pub(crate) log_reader: LogReader,
    pub(crate) retention: Retention,
    pub(crate) executor: Executor,

    // --- own business
    pub(crate) submissions: Submissions,
    pub(crate) voting: Voting,
    pub(crate) callers: Callers,
    pub(crate) flow_control: FlowControl,
}

impl Replicator {
    /// Returns a node that is not connected.
    pub fn new(options: Options) -> Self {
        Replicator {
            context: Context::new(options),
            out: ActionQueue::default(),
            counters: Counters::default(),
            transfer: StateTransfer::closed(),
            lifecycle: Lifecycle::default(),
            database: Database::unknown(),
            intake: Intake::default(),
            log_reader: LogReader::default(),
            retention: Retention::default(),
            executor: Executor::new(),
            submissions: Submissions::default(),
            voting: Voting::default(),
            callers: Callers::default(),
            flow_control: FlowControl::default(),
        }
    }

    // --- small functions that all parts use

    pub(crate) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.out.answer(ticket, answer);
    }

    pub(crate) fn log(&mut self, level: Level, text: impl Into<String>) {
        self.out.log(level, text.into());
    }

    pub(crate) fn fatal(&mut self, text: impl Into<String>) {
        self.out.fatal(text.into());
    }

    pub(crate) fn send(&mut self, to: Incarnation, message: &PeerMessage) {
        self.out.send(to, message);
    }

    /// Hands a control message to the order.
    pub(crate) fn submit(&mut self, sent: Sent, message: &Message) {
        let submit = self.submissions.submit(sent, message);
        self.out.push(submit);
    }

    /// Returns true if the order would accept a write-set of this node.
    pub(crate) fn may_write(&self) -> bool {
        let in_step = |s| s != NodeState::Joiner && self.transfer.place() == Place::Active;
        let joined = |s| in_step(s) || planted(Mutant::JoinerWrites);
        self.context.my_node_state().is_some_and(joined) && self.lifecycle.takes_part()
    }

    pub(crate) fn gtid_of(&self, seqno: Seqno) -> Gtid {
        self.executor.gtid_of(seqno)
    }

    /// Returns the database's position when this connection began; seqno -1: unknown.
    pub fn local(&self) -> Gtid {
        self.database.local()
    }

    /// last_committed_id(): nil and -1 before the first view.
    pub fn last_committed(&self) -> Gtid {
        self.executor.last_committed()
    }
}
