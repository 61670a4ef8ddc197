//! This node as a member: what it reports to the order (Joined, Synced, its applied watermark, that it has caught up),
//! its desyncs (`membership/desyncs.rs`), and its donations (`membership/donor.rs`).

mod desyncs;
mod donor;

use trireme_certification::Seqno;
use trireme_group::{Incarnation, SubmissionId};

use crate::action::{Action, Level, LogAction};
use crate::action_queue::ActionQueue;
use crate::context::Context;
use crate::database::Database;
use crate::executor::Executor;
use crate::flow_control::{self, FlowControl, FlowOutput};
use crate::history::History;
use crate::intake::Intake;
use crate::lifecycle::Lifecycle;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::payload::Payload;
use crate::retention::Retention;
use crate::state_transfer::{Place, StateTransfer};
use crate::submissions::{Sent, Submissions};
use crate::work::Task;

pub(crate) use donor::CANCELED;

/// The parts that this node's reports come from.
pub(crate) struct Membership<'a> {
    pub(crate) context: &'a Context,
    pub(crate) intake: &'a Intake,
    pub(crate) out: &'a mut ActionQueue,
    pub(crate) lifecycle: &'a mut Lifecycle,
    pub(crate) transfer: &'a mut StateTransfer,
    pub(crate) database: &'a mut Database,
    pub(crate) executor: &'a mut Executor,
    pub(crate) submissions: &'a mut Submissions,
    pub(crate) retention: &'a mut Retention,
    pub(crate) flow_control: &'a mut FlowControl,
}

/// Returns the length of the apply queue: the entries that are delivered, and not handed to the server.
pub(crate) fn backlog(executor: &Executor, intake: &Intake) -> usize {
    executor.waiting_applies() + intake.len()
}

impl Membership<'_> {
    fn may_write(&self) -> bool {
        (self.lifecycle).may_write(self.context, self.transfer)
    }

    /// Hands a control message to the order, unless it is in flight, or the group has just refused one.
    fn submit_once(&mut self, sent: Sent, message: &Message) {
        (self.submissions).submit_once(self.context.now_ms(), sent, message, self.out);
    }

    // --- reports to the order

    /// Reports this node's changes to the order: Joined, Synced, its desyncs.
    pub(crate) fn pursue(&mut self, history: &dyn History) {
        let may_say = self.submissions.may_say(self.context.now_ms());
        if !self.lifecycle.takes_part() || self.transfer.place() != Place::Active || !may_say {
            return;
        }
        self.settle_desyncs();
        self.settle_undecided();
        self.report_donation();
        match self.context.my_node_state() {
            Some(NodeState::Joiner)
                if self.has_joined() && self.retention.is_deep_enough(self.context, history) =>
            {
                if let Some(gtid) = self.database.end_doubt() {
                    self.out.action_passed(gtid);
                }
                self.submit_once(Sent::Joined, &Message::Joined);
            }
            Some(NodeState::Joined)
                if !self.context.abstains() && self.has_caught_up() && self.has_sent() =>
            {
                self.submit_once(Sent::Synced, &Message::Synced);
            }
            Some(NodeState::Donor) if self.may_come_back() => {
                self.submit_once(Sent::CaughtUp, &Message::CaughtUp);
            }
            _ => {}
        }
    }

    /// Submits an entry behind the undecided submissions: its place in the order reveals their fate.
    fn settle_undecided(&mut self) {
        if self.submissions.has_undecided() {
            let low = self.executor.low();
            self.submit_once(Sent::Applied, &Message::Applied(low));
        }
    }

    /// Returns true if this joiner may write: it has the entries that were ordered before its transfer ended, and before
    /// its donor's report. A state lacks the fragments that its donor abandoned, so nothing here holds the rows that they
    /// lock elsewhere. Their rollback comes before the report (rule 7).
    fn has_joined(&self) -> bool {
        self.executor.low() >= self.transfer.joined_at()
    }

    /// Tells the server that it is synced, once after each return to that state. Not outside the primary component: the
    /// server would serve clients, with rows of any age.
    pub(crate) fn tell_synced(&mut self) {
        let synced = self.context.my_node_state() == Some(NodeState::Synced);
        if synced && self.lifecycle.is_primary() && self.lifecycle.show_synced() {
            (self.transfer).queue((Task::Synced, None, Payload::None), self.executor);
        }
    }

    /// Reports this node's applied watermark, when that is due.
    pub(crate) fn report_applied(&mut self) {
        if !self.retention.report_is_due(self.context) {
            return;
        }
        let (may_write, low) = (self.may_write(), self.executor.low());
        let least_seen = self.submissions.least_seen();
        let watermark: Option<Seqno> =
            (self.retention).report(self.context, may_write, low, least_seen);
        if let Some(watermark) = watermark {
            self.submit_once(Sent::Applied, &Message::Applied(watermark));
        }
    }

    /// Tells the log the entries that this node still needs, and those that the others may lack.
    pub(crate) fn pin_log(&mut self) {
        if self.transfer.place() != Place::Active {
            return; // the database may follow from the own log
        }
        if let Some(pin) = self.retention.pin(self.context, self.executor.low()) {
            self.out.push(Action::Log(LogAction::Pin {
                keep_from: pin.keep_from,
                unreported: pin.unreported,
            }));
        }
    }

    // --- flow control

    /// Watches the apply queue and the peers' requests.
    pub(crate) fn watch_flow(&mut self) {
        let queue = backlog(self.executor, self.intake);
        for output in (self.flow_control).watch(self.context, self.lifecycle, queue) {
            self.carry_out_flow(output);
        }
    }

    /// Charges the member that holds up own writers. To be called when all permitted write-sets have gone.
    pub(crate) fn charge_flow(&mut self) {
        let writers_wait = self.submissions.is_any_held();
        let output = (self.flow_control).charge(self.context, self.lifecycle, writers_wait);
        if let Some(output) = output {
            self.carry_out_flow(output);
        }
    }

    fn carry_out_flow(&mut self, output: FlowOutput) {
        match output {
            FlowOutput::Send(to, message) => self.out.send(to, &message),
            FlowOutput::LeaveOut(member) => {
                self.submit_once(Sent::LeaveOut(member), &Message::LeaveOut(member));
            }
        }
    }

    /// Handles the order's decision on a proposal to leave out a member.
    pub(crate) fn left_out(&mut self, id: SubmissionId, member: Option<Incarnation>) {
        let Some(member) = member else { return };
        let why = match id.incarnation == member {
            false => format!(
                "writers at {} waited for it",
                self.context.name_of(id.incarnation)
            ),
            true => "it proposed itself, soon after the last time".to_owned(),
        };
        let text = if member == self.context.me() {
            self.flow_control.was_left_out(self.context.now_ms());
            format!(
                "this node does not keep pace, {why}: the group has set it to desynced, out of flow control, until it has \
                 caught up. {} write-sets wait to be applied here; look for a lock, a slow disk or processor, or raise \
                 wsrep_slave_threads",
                backlog(self.executor, self.intake)
            )
        } else {
            format!(
                "member {} does not keep pace, {why}: the group has set it to desynced, out of flow control, until it has \
                 caught up",
                self.context.name_of(member),
            )
        };
        self.out.log(Level::Info, text);
    }

    /// Handles that a member that was left out takes part in flow control again.
    pub(crate) fn back_in_step(&mut self, from: Incarnation) {
        if from == self.context.me() {
            self.flow_control.is_back(self.context.now_ms());
            self.tell_synced();
        }
        let text = format!(
            "member {} has caught up and takes part in flow control again",
            self.context.name_of(from)
        );
        self.out.log(Level::Info, text);
    }

    /// Returns true if so few entries are left to apply, here and on their way here, that the node may count as synced.
    fn has_caught_up(&self) -> bool {
        let queue = backlog(self.executor, self.intake) as u64;
        let left = (self.intake.to_come()).saturating_add(queue);
        flow_control::has_caught_up(self.context, left)
    }

    /// Returns true if the group has left this node out, and it has caught up.
    fn may_come_back(&self) -> bool {
        self.flow_control.may_come_back(self.context) && self.has_caught_up()
    }
}
