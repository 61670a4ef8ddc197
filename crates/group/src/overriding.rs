//! Primary without a majority (rule 11): at an operator's word (`pc.bootstrap`), or as one has ordered beforehand
//! (`pc.ignore_sb`, `pc.ignore_quorum`).

use crate::configuration::{Configuration, Member};
use crate::group::Group;
use crate::ids::{Position, Uuid};
use crate::promises::Promises;

impl Group {
    /// `pc.bootstrap`; without effect in a primary component.
    pub(crate) fn force_primary(&mut self, override_id: Uuid) {
        if self.component.is_non_primary() {
            self.force(override_id);
        }
    }

    pub(crate) fn force(&mut self, override_id: Uuid) {
        if self.branches().own_seat().is_none() {
            let text =
                "not made primary: the last view known is without this node, which joins by itself";
            self.out.note(text);
            return;
        }
        if !self.has_room_for_override() {
            return;
        }
        let number = self.vote.promised().number + 1;
        self.ask_promises(number, Some(override_id), None);
    }

    pub(crate) fn may_go_on_alone(&self) -> bool {
        let reachable = |m: &Member| m.incarnation == self.me() || self.peers.is_up(m.incarnation);
        let half = |configuration: &Configuration| {
            configuration.is_half(configuration.weight_of(reachable))
        };
        self.context.config().ignore_quorum
            || self.context.config().ignore_split_brain && self.log.in_every_configuration(half)
    }

    /// An override that the operator ordered beforehand.
    pub(crate) fn go_on_alone(&mut self) {
        self.majority.heard(self.context.now());
        let override_id = self.yielding_override();
        self.force(override_id);
    }

    /// Names an override without an operator: unique by ballot number and process.
    pub(crate) fn automatic_override(&self) -> Uuid {
        let mut bytes = self.me().0.0;
        for (byte, number) in bytes
            .iter_mut()
            .zip((self.vote.promised().number + 1).to_be_bytes())
        {
            *byte ^= number;
        }
        Uuid(bytes)
    }

    /// A configuration of those who have promised.
    pub(crate) fn put_override(
        &mut self,
        override_id: Uuid,
        promises: &Promises,
        fork_after: Position,
    ) {
        let mut next = self.log.latest().clone();
        let me = self.context.config().me.clone();
        match next.members.iter_mut().find(|m| m.replica == me.replica) {
            Some(seat) => *seat = me,
            // It was about to be left out, and has more than the others.
            None => next.members.push(me),
        }
        // Other restarted processes come in by themselves.
        (next.members).retain(|m| promises.giver(m.replica) == Some(m.incarnation));
        for member in &mut next.members {
            member.voter = true;
            member.weight = member.full_weight;
        }
        next.ensure_vote(self.my_replica());
        if next.total_weight() == 0 {
            // A candidate that leaves the office to the best log can leave it to one whose newest view is without its owner.
            let text = "not made primary: nobody of the last view who has a vote has answered";
            self.out.note(text);
            return;
        }
        next.number += 1;
        next.override_id = Some(override_id);
        next.fork_after = fork_after;
        self.out.note(format!(
            "made {} members primary without a majority (override {override_id})",
            next.members.len()
        ));
        self.put_configuration(next);
    }
}
