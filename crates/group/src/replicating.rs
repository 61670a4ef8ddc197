//! What the leader sends the members of its log.

use crate::group::Group;
use crate::ids::{Ballot, Incarnation, TimeMs};
use crate::known::known;
use crate::log_reader::LogReader;
use crate::message::Summary;
use crate::replication::{Leading, ToMembers};

/// Borrows what the leader's messages say from a group, beside its role.
macro_rules! leading {
    ($group:expr, $own_ack:expr) => {
        Leading {
            known: known!($group),
            ballot: $group.vote.promised(),
            own_ack: $own_ack,
            submissions: $group.dissemination.submissions(),
        }
    };
}

impl Group {
    /// A member says what its log holds: it is sent entries from where both agree.
    pub(crate) fn summary(&mut self, from: Incarnation, ballot: Ballot, summary: &Summary) {
        if ballot != self.vote.promised() {
            if ballot > self.vote.promised() {
                self.refused(from, ballot);
            }
            return;
        }
        self.start_feeding(from, summary);
    }

    pub(crate) fn start_feeding(&mut self, member: Incarnation, summary: &Summary) {
        let Some(replica) = self.peers.replica_of(member) else {
            return; // whoever sent a summary has been looked up
        };
        let forked = !self.branches().is_of_own_branch(member, summary);
        // Nothing that both logs have for certain: the member gets a checkpoint.
        let next = if summary.end == 0 || forked {
            0
        } else {
            self.log.tail().matching(summary) + 1
        };
        if self.known().has_twin(replica, member) {
            return;
        }
        // A seat may need the word of its restarted process before that one is admitted (rule 14).
        let seated = self.log.has_seat(replica);
        let acked = (self.acks).of_process(replica, member, self.vote.promised());
        let own_ack = self.own_ack();
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        if !seated {
            return leader.replication.keep(member, summary);
        }
        let leading = leading!(self, own_ack);
        let confirmed = (leader.replication).start(leading, (member, replica), next, acked);
        self.send_to_members(confirmed);
    }

    /// Sends every member what it lacks, within its window.
    pub(crate) fn feed(&mut self, log: &dyn LogReader) {
        let own_ack = self.own_ack();
        if let Some(leader) = self.role.leader_mut() {
            let sent = leader.replication.pursue(leading!(self, own_ack), log);
            self.send_to_members(sent);
        }
    }

    /// When the next slice is due for somebody who lacks what is no longer in memory.
    pub(crate) fn feeds_from_log_at(&self) -> Option<TimeMs> {
        let leader = self.role.leader()?;
        leader.replication.reads_log_at(self.known())
    }

    /// Tells members which of their entries the leader holds by now.
    pub(crate) fn tell_own_ack(&mut self) {
        let own_ack = self.own_ack();
        if let Some(leader) = self.role.leader_mut() {
            let told = leader.replication.tell_own_ack(leading!(self, own_ack));
            self.send_to_members([told]);
        }
    }

    fn send_to_members(&mut self, messages: impl IntoIterator<Item = ToMembers>) {
        for (to, message) in messages {
            self.send_all(to, message);
        }
    }
}
