//! Whether the leader's silence is this member's affair (rule 2): who stands for the office and in which order, and whether
//! it was taken needlessly.

use crate::group::Group;
use crate::ids::{ReplicaId, TimeMs};
use crate::message::Wish;

impl Group {
    /// When this follower stands for the office, if nothing is heard of the sequencer until then; None: never.
    pub(crate) fn stands_at(&self) -> Option<TimeMs> {
        let follows = self.role.is_follower();
        (follows && self.may_stand()).then(|| {
            let holder = self.vote.promised().replica;
            let is_gone = self.peers.is_dead(holder) || self.log.latest().replica(holder).is_none();
            (self.election_timer).stands_at(self.context.config(), is_gone, self.rank())
        })
    }

    /// Voters stand; a restarted process for the seat that its log says it has (rule 14).
    fn may_stand(&self) -> bool {
        !self.component.is_outside()
            && !self.branches().is_overridden()
            && !self.component.is_leaving()
            && !self.may_be_a_copy()
            && self.branches().own_seat().is_some_and(|m| m.weight > 0)
    }

    /// Candidates try one after another, in this order; who is missed is not among them.
    pub(crate) fn rank(&self) -> TimeMs {
        let (own, holder) = (self.branches().own_seat(), self.vote.promised().replica);
        let members = &self.log.latest().members;
        let before = members
            .iter()
            .take_while(|m| own.is_some_and(|own| own.incarnation != m.incarnation));
        let index = before.filter(|m| m.replica != holder).count();
        let last = match self.context.config().wish {
            Wish::Never => members.len(),
            Wish::Auto | Wish::Prefer => 0,
        };
        (index + last) as TimeMs
    }

    /// The replica answers an election: if its office was taken by that, it was taken needlessly.
    pub(crate) fn was_alive(&mut self, replica: ReplicaId) {
        let now = self.context.now();
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let recent_ms = self.context.config().office_timeout_ms;
        if leader.was_needless(replica, now, recent_ms) {
            self.out.count(|c| c.offices_needless += 1);
        }
    }
}
