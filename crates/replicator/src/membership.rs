//! Reports of this node to the group, to the order and to the log: the members with a vote, Joined, Synced, its
//! desyncs, its applied watermark, and the entries that the log must keep.

use trireme_group::{Incarnation, Position, SubmissionId};

use crate::action::{Action, Level, LogAction};
use crate::flow_control;
use crate::history::History;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::replicator::Replicator;
use crate::retention::log_is_deep_enough;
use crate::state_transfer::Place;
use crate::submissions::Sent;

impl Replicator {
    /// Tells the group the members with a vote, when they have changed (rule 3).
    pub(crate) fn tell_joined(&mut self) {
        let Some(control) = self.context.control() else {
            return;
        };
        if self.transfer.is_over() {
            return;
        }
        self.out.tell_joined(control);
    }

    /// Reports this node's changes to the order: Joined, Synced, its desyncs.
    pub(crate) fn pursue_membership(&mut self, history: &dyn History) {
        let may_say = self.submissions.may_say(self.context.now_ms());
        if !self.lifecycle.takes_part() || self.transfer.place() != Place::Active || !may_say {
            return;
        }
        self.settle_desyncs();
        self.settle_undecided();
        self.owed_donation();
        match self.context.my_node_state() {
            Some(NodeState::Joiner)
                if self.has_joined() && log_is_deep_enough(&self.context, history) =>
            {
                self.end_doubt();
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

    /// Reports this node's applied watermark, when that is due.
    pub(crate) fn report_applied(&mut self) {
        let (may_write, low) = (self.may_write(), self.executor.low());
        let least_seen = self.submissions.least_seen();
        if let Some(watermark) = (self.retention).report(&self.context, may_write, low, least_seen)
        {
            self.submit_once(Sent::Applied, &Message::Applied(watermark));
        }
    }

    /// Tells the log the entries that this node still needs, and those that the others may lack.
    pub(crate) fn pin_log(&mut self) {
        if self.transfer.place() != Place::Active {
            return; // the database may follow from the own log
        }
        if let Some(pin) = self.retention.pin(&self.context, self.executor.low()) {
            self.out.push(Action::Log(LogAction::Pin {
                keep_from: pin.keep_from,
                unreported: pin.unreported,
            }));
        }
    }

    /// Hands a control message to the order, unless it is in flight, or the group has just refused one.
    pub(crate) fn submit_once(&mut self, sent: Sent, message: &Message) {
        let submit = (self.submissions).submit_once(self.context.now_ms(), sent, message);
        self.out.extend(submit);
    }

    /// Updates flow control, and sends the write-sets that waited for it.
    pub(crate) fn watch_flow(&mut self) {
        let queue = self.queue();
        for output in (self.flow_control).watch(&self.context, &self.lifecycle, queue) {
            self.carry_out_flow(output);
        }
        self.send_held();
        let writers_wait = self.submissions.is_any_held();
        let output = (self.flow_control).charge(&self.context, &self.lifecycle, writers_wait);
        if let Some(output) = output {
            self.carry_out_flow(output);
        }
    }

    /// Returns the length of the apply queue.
    pub(crate) fn queue(&self) -> usize {
        self.executor.waiting_applies() + self.intake.len()
    }

    /// Handles the order's decision on a proposal to leave out a member.
    pub(crate) fn left_out(&mut self, id: SubmissionId, member: Option<Incarnation>) {
        let Some(member) = member else { return };
        let why = match id.incarnation == member {
            false => format!(
                "writers at {} waited for it",
                self.context.name_of(id.incarnation)
            ),
            true => "as before".to_owned(),
        };
        let text = if member == self.context.me() {
            self.flow_control.was_left_out(self.context.now_ms());
            format!(
                "this node does not keep pace, {why}: the group has set it to desynced, out of flow control, until it has \
                 caught up. {} write-sets wait to be applied here; look for a lock, a slow disk or processor, or raise \
                 wsrep_slave_threads",
                self.queue()
            )
        } else {
            format!(
                "member {} does not keep pace, {why}: the group has set it to desynced, out of flow control, until it has \
                 caught up",
                self.context.name_of(member),
            )
        };
        self.log(Level::Info, text);
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
        self.log(Level::Info, text);
    }

    /// Returns true if so few entries are left to apply, here and on their way here, that the node may count as synced.
    pub(crate) fn has_caught_up(&self) -> bool {
        let left = (self.intake.to_come()).saturating_add(self.queue() as u64);
        flow_control::has_caught_up(&self.context, left)
    }

    /// Returns true if the group has left this node out, and it has caught up.
    fn may_come_back(&self) -> bool {
        self.flow_control.may_come_back(&self.context) && self.has_caught_up()
    }

    /// Notes the group's commit point; None: the group does not know it. It may be beyond the last delivery here, if
    /// this node's log lacks entries, or if they are still being read from the log. Returns true if it is known again:
    /// then the node must check its state.
    pub fn note_commit(&mut self, position: Option<Position>) -> bool {
        self.intake.note_commit(position)
    }
}
