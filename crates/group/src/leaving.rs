//! This member leaves, or is left out by a view.

use crate::configuration::Member;
use crate::event::Action;
use crate::group::Group;
use crate::ids::{Incarnation, TimeMs};
use crate::message::{Message, Wish};

/// A leaving sequencer waits this long for its successor's log before it asks the next.
pub(crate) const HANDOVER_MS: TimeMs = 300;
/// Leave requests are repeated.
const LEAVE_RETRY_MS: TimeMs = 200;

/// This member is on its way out.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Leaving {
    pub since: TimeMs,
    /// When the office was last offered to somebody.
    pub handed_at: Option<TimeMs>,
    /// When the sequencer was last asked to let this member go.
    pub asked_at: Option<TimeMs>,
    passed_over: Vec<Incarnation>,
}

impl Leaving {
    pub(crate) fn since(now: TimeMs) -> Leaving {
        Leaving {
            since: now,
            ..Leaving::default()
        }
    }
}

impl Group {
    pub(crate) fn leave(&mut self) {
        if self.component.leave(self.context.now()) {
            self.go_on_leaving();
        }
    }

    /// A leaver votes until the view without it is committed (rule 3).
    pub(crate) fn go_on_leaving(&mut self) {
        let Some(mut leaving) = self.component.take_leaving() else {
            return;
        };
        let me = self.me();
        let reachable = |m: &&Member| self.peers.is_up(m.incarnation);
        let members = self.log.latest().members.iter();
        let voters = members.filter(|m| m.incarnation != me && m.weight > 0);
        let voters: Vec<_> = (voters.filter(reachable).map(|m| m.incarnation)).collect();
        if !self.component.is_primary() || voters.is_empty() {
            self.component.has_left();
            self.out.push(Action::Left);
            return;
        }
        let due = leaving
            .asked_at
            .is_none_or(|at| self.context.now() >= at + LEAVE_RETRY_MS);
        if self.role.is_leader() {
            self.pass_office_on(&mut leaving, &voters);
        } else if due {
            if let Some(sequencer) = self.sequencer_in_office() {
                leaving.asked_at = Some(self.context.now());
                self.send(sequencer, Message::Leave);
            }
        }
        self.component.go_on_leaving(leaving);
    }

    /// A sequencer that leaves orders nothing more, and gives the office to whoever has all of its log; after a while, to
    /// whoever has most of it.
    fn pass_office_on(&mut self, leaving: &mut Leaving, voters: &[Incarnation]) {
        let Some(leader) = self.role.leader_mut() else {
            return; // its caller has just seen it
        };
        leader.close(true);
        let leader = &*leader;
        let end = self.log.tail().end();
        let candidates = voters.iter().filter(|m| !leaving.passed_over.contains(m));
        let willing = |m: &Incarnation| {
            let status = self.peers.status_of(*m);
            status.is_none_or(|status| status.outlook.wish != Wish::Never)
        };
        let standing = |m: &Incarnation| {
            let acked = leader.replication.acked(*m);
            (acked == end, willing(m), acked, *m)
        };
        let best = candidates.map(standing).max();
        let patience_over = |since: TimeMs| self.context.now() >= since + HANDOVER_MS;
        let again = leaving.handed_at.is_none_or(patience_over);
        match best {
            Some((complete, _, _, successor))
                if again && (complete || patience_over(leaving.since)) =>
            {
                leaving.handed_at = Some(self.context.now());
                leaving.passed_over.push(successor);
                self.hand_over_to(successor, "this member leaves");
            }
            Some(_) => {}
            None => leaving.passed_over.clear(),
        }
    }

    /// A configuration without this member is committed.
    pub(crate) fn excluded(&mut self) {
        if let Some(leader) = self.role.leader() {
            // It took over a log that ends with its own removal: the office goes to a member, or to
            // the process that has restarted on its data directory.
            let members = &self.log.committed().configuration;
            let votes = |replica| members.replica(replica).is_some_and(|m| m.weight > 0);
            let voters = (self.peers.connected()).filter(|(_, peer)| votes(peer.replica));
            let best = voters
                .map(|(incarnation, _)| incarnation)
                .max_by_key(|incarnation| leader.replication.acked(*incarnation));
            self.role.follow();
            self.matching.part();
            if let Some(successor) = best {
                self.hand_over_to(successor, "a view is committed without this member");
            }
        }
        if self.component.is_leaving() {
            self.component.has_left();
            self.withdraw_own();
            self.fail_reads();
            self.out.push(Action::Left);
        } else {
            self.declare_non_primary();
            // Any later view that seats it is its way back, also one that its log holds already.
            let number = self.log.committed().configuration.number;
            self.component.left_in(number);
        }
    }
}
