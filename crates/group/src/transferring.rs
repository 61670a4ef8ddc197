//! Leadership on its way to another member: what its transfer asks for is carried out.

use crate::group::Group;
use crate::ids::Ballot;
use crate::known::known;
use crate::transfer::{Outlooks, TransferOutput};

impl Group {
    /// With every heartbeat: would another member lead better?
    pub(crate) fn reconsider_office(&mut self) {
        let Some(start) = self.role.leader().map(|leader| leader.start()) else {
            return;
        };
        if !self.context.config().measures {
            return;
        }
        let is_settled = self.log.committed().position >= start && self.may_order();
        let own_links = self.known().own_outlook(self.component.is_going()).links;
        let ballot = self.vote.promised();
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let outlooks = Outlooks {
            known: known!(self),
            component: &self.component,
            ballot,
            replication: &leader.replication,
            own_links: &own_links,
            is_settled,
        };
        match leader.transfer.reconsider(outlooks) {
            Some(TransferOutput::Close) => leader.close(true),
            Some(TransferOutput::Keep) => {
                leader.close(false);
                self.out.count(|c| c.offices_kept += 1);
                let text =
                    "the sequencer's office stays here: its successor did not take it in time";
                self.out.note(text);
            }
            None => {}
        }
    }

    /// With every batch, behind the last of the log: the successor is asked to lead.
    pub(crate) fn offer_office(&mut self) {
        let (now, end) = (self.context.now(), self.log.tail().end());
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let has_whole_log = |member| leader.replication.has_sent_all(member, end);
        if let Some((to, why)) = leader.transfer.offer(now, has_whole_log) {
            self.hand_over_to(to, &why);
        }
    }

    /// Another ballot is promised: whoever was handing its office over is rid of it.
    pub(crate) fn relieved(&mut self, ballot: Ballot) {
        if let Some(leader) = self.role.leader() {
            let elsewhere = ballot.replica != self.my_replica();
            let is_handed = leader.is_closing() && elsewhere;
            (self.out).count(|c| c.offices_handed += u64::from(is_handed));
        }
    }
}
