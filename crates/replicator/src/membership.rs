//! What the group and the order must know of this node: who may vote; Joined, Synced, caught up.

use crate::action::Action;
use crate::history::History;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::replicator::{Replicator, Stage};
use crate::submissions::Sent;

impl Replicator {
    /// Tells the group who may vote, when that has changed (rule 3).
    pub(crate) fn tell_joined(&mut self) {
        let Some(control) = &self.control else { return };
        let told = self.joined_told.iter().flatten().copied();
        let is_known = self.joined_told.is_some() && control.joined().eq(told);
        if !is_known && !matches!(self.stage, Stage::Closed | Stage::Final) {
            let members: Vec<_> = control.joined().collect();
            let position = control.position;
            self.joined_told = Some(members.clone());
            self.out.push(Action::SetJoined { position, members });
        }
    }

    /// Says what the order must know of this node: Joined, Synced, its desyncs.
    pub(crate) fn pursue_membership(&mut self, history: &dyn History) {
        if !self.primary || self.leaving || !matches!(self.stage, Stage::Active) || !self.may_say()
        {
            return;
        }
        self.settle_desyncs();
        self.settle_undecided();
        self.owed_donation();
        match self.my_state() {
            Some(NodeState::Joiner) if self.has_joined() && self.log_is_deep_enough(history) => {
                self.end_doubt();
                self.submit_once(Sent::Joined, &Message::Joined);
            }
            Some(NodeState::Joined)
                if !self.abstains() && self.has_caught_up() && self.has_sent() =>
            {
                self.submit_once(Sent::Synced, &Message::Synced);
            }
            Some(NodeState::Donor) if self.may_come_back() => {
                self.submit_once(Sent::CaughtUp, &Message::CaughtUp);
            }
            _ => {}
        }
    }

    /// False for a while after the group has refused a submission.
    pub(crate) fn may_say(&self) -> bool {
        self.now_ms >= self.say_again_at_ms
    }

    pub(crate) fn submit_once(&mut self, sent: Sent, message: &Message) {
        if self.may_say() && !self.submissions.is_in_flight(sent) {
            self.submit(sent, message);
        }
    }
}
