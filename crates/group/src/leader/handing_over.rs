//! The transfer of leadership to another member: one that would lead better, or any if this leader leaves.

use super::Leader;
use crate::ids::{Incarnation, TimeMs};
use crate::known::known;
use crate::leaving::{HANDOVER_MS, Leaving};
use crate::message::{Message, Preference};
use crate::transfer::{Outlooks, TransferOutput};

impl Leader<'_> {
    /// With every heartbeat: decides whether another member would lead better.
    pub(crate) fn reconsider_leadership(&mut self) {
        let Some(start) = self.role.leader().map(|leader| leader.start()) else {
            return;
        };
        if !self.context.config().measures {
            return;
        }
        let is_settled = self.log.committed().position >= start && self.may_order();
        let own_links = self.known().own_outlook(self.component.is_going()).links;
        let term = self.vote.promised();
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let outlooks = Outlooks {
            known: known!(self),
            component: self.component,
            term,
            replication: &leader.replication,
            own_links: &own_links,
            is_settled,
        };
        match leader.transfer.reconsider(outlooks) {
            Some(TransferOutput::Close) => leader.close(true),
            Some(TransferOutput::Keep) => {
                leader.close(false);
                self.out.count(|c| c.leaderships_kept += 1);
                let text = "this node goes on leading: its chosen successor did not take over leadership in time";
                self.out.note(text);
            }
            None => {}
        }
    }

    /// With every batch, behind the last append: asks the successor to take leadership once it was sent the whole log.
    pub(crate) fn offer_leadership(&mut self) {
        let (now, end) = (self.context.now(), self.log.tail().end());
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let has_whole_log = |member| leader.replication.has_sent_all(member, end);
        if let Some((to, why)) = leader.transfer.offer(now, has_whole_log) {
            self.hand_over_to(to, &why);
        }
    }

    /// A leaving leader orders nothing more. It transfers leadership to a member that holds its whole log; after a
    /// while, to the member that holds most of it.
    pub(crate) fn pass_leadership_on(&mut self, leaving: &mut Leaving, voters: &[Incarnation]) {
        let Some(leader) = self.role.leader_mut() else {
            return; // its caller has just seen it
        };
        leader.close(true);
        let leader = &*leader;
        let end = self.log.tail().end();
        let candidates = voters.iter().filter(|m| !leaving.passed_over.contains(m));
        let willing = |m: &Incarnation| {
            let status = self.peers.status_of(*m);
            status.is_none_or(|status| status.outlook.preference != Preference::Never)
        };
        let component_state = |m: &Incarnation| {
            let acked = leader.replication.acked(*m);
            (acked == end, willing(m), acked, *m)
        };
        let best = candidates.map(component_state).max();
        let is_overdue = |since: TimeMs| self.context.now() >= since + HANDOVER_MS;
        let again = leaving.handed_at.is_none_or(is_overdue);
        match best {
            Some((complete, _, _, successor))
                if again && (complete || is_overdue(leaving.since)) =>
            {
                leaving.handed_at = Some(self.context.now());
                leaving.passed_over.push(successor);
                self.hand_over_to(successor, "this member leaves");
            }
            Some(_) => {}
            None => leaving.passed_over.clear(),
        }
    }

    /// Asks a successor to take leadership. `why`: the reason, for the log.
    pub(crate) fn hand_over_to(&mut self, successor: Incarnation, why: &str) {
        let number = self.vote.promised().number + 1;
        let member = self.log.latest().member(successor);
        let name = member.map_or("", |member| member.name.as_str());
        self.out.note(format!(
            "handing leadership over to {successor} ({name}): {why}"
        ));
        self.send(
            successor,
            Message::TakeLeadership {
                number,
                forced: None,
            },
        );
    }
}
