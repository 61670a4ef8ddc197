//! The parts that elections change, and their result. `election` has the candidate, `elector` the elector. `evidence`
//! is for elections that the intact voters are too few for.

use std::collections::BTreeSet;

use trireme_mutants::{Mutant, planted};

use crate::branches::{Branches, branches, tell_no_more_overrides};
use crate::component::Component;
use crate::context::Context;
use crate::dissemination::Dissemination;
use crate::election_timer::ElectionTimer;
use crate::entry::Entry;
use crate::forced_views::ForcedViews;
use crate::ids::{Incarnation, Position, ReplicaId, SubmissionId, Uuid};
use crate::known::{Known, known};
use crate::log::Log;
use crate::matching::Matching;
use crate::message::Message;
use crate::outbox::Outbox;
use crate::peers::Peers;
use crate::promises::Promises;
use crate::reads::Reads;
use crate::role::Role;
use crate::vote::Vote;

/// The parts that elections change.
pub(crate) struct Elections<'a> {
    pub(crate) context: &'a Context,
    pub(crate) peers: &'a Peers,
    pub(crate) forced_views: &'a ForcedViews,
    pub(crate) dissemination: &'a Dissemination,
    pub(crate) vote: &'a mut Vote,
    pub(crate) log: &'a mut Log,
    pub(crate) matching: &'a mut Matching,
    pub(crate) role: &'a mut Role,
    pub(crate) election_timer: &'a mut ElectionTimer,
    pub(crate) component: &'a mut Component,
    pub(crate) reads: &'a mut Reads,
    pub(crate) out: &'a mut Outbox,
}

/// Lends a group's parts to [`Elections`].
macro_rules! elections {
    ($group:expr) => {
        $crate::known::lend!(
            elections::Elections,
            $group,
            reads: [context, peers, forced_views, dissemination],
            changes: [vote, log, matching, role, election_timer, component, reads, out]
        )
    };
}
pub(crate) use elections;

/// An election that this member has won: it must lead now.
#[derive(Debug)]
pub(crate) struct Won {
    pub(crate) promises: Promises,
    /// The last position that is known to be committed.
    pub(crate) commit: Position,
    /// The id of the forced view to be made.
    pub(crate) forced: Option<Uuid>,
    /// The replica of the leader that was missed.
    pub(crate) missed: Option<ReplicaId>,
    /// Submissions whose clients were told that they failed for certain: their payloads are not ordered any more.
    pub(crate) withdrawn: BTreeSet<SubmissionId>,
    /// Positions of entries that a void must replace.
    pub(crate) void: BTreeSet<Position>,
}

impl Won {
    /// The last position of the winner's log that counts. A forced view that the promises prove never made lies above,
    /// and would decide on all later commits (rule 11). None: the winner's log was no evidence.
    pub(crate) fn end_of(&self, winner: ReplicaId) -> Option<Position> {
        let own = self.promises.of(winner)?;
        (!planted(Mutant::UnmadeViewKept)).then_some(own.summary.end)
    }

    /// For an entry that a void must replace, returns the last submission that the void covers.
    pub(crate) fn voided(&self, entry: &Entry) -> Option<SubmissionId> {
        let id = entry.submission()?;
        let mut origins = self.withdrawn.iter().rev();
        let last = origins.find(|last| last.incarnation == id.incarnation);
        last.filter(|_| self.void.contains(&entry.position))
            .copied()
    }
}

impl Elections<'_> {
    // ---- what it knows ----

    pub(crate) fn known(&self) -> Known<'_> {
        known!(self)
    }

    pub(crate) fn branches(&self) -> Branches<'_> {
        branches!(self)
    }

    pub(crate) fn me(&self) -> Incarnation {
        self.context.me()
    }

    pub(crate) fn my_replica(&self) -> ReplicaId {
        self.context.my_replica()
    }

    pub(crate) fn send(&mut self, to: Incarnation, message: Message) {
        self.out.send(self.peers, vec![to], message);
    }

    /// The leader of the promised term, if it has said that it leads.
    pub(crate) fn leader_in_term(&self) -> Option<Incarnation> {
        self.known().leader_of(self.vote.promised())
    }

    // ---- forced views ----

    /// True if the history may have one more forced view. Otherwise raises an alarm with the reason, once in 10 s: the
    /// next attempt may come at once.
    pub(crate) fn has_room_for_override(&mut self) -> bool {
        let is_full = self.branches().is_full_of_overrides();
        if is_full {
            let (me, now) = (self.me(), self.context.now());
            self.out.alarm(me, now, tell_no_more_overrides);
        }
        !is_full
    }

    /// Makes the id of a forced view without an operator: unique by term number and process.
    pub(crate) fn automatic_override(&self) -> Uuid {
        let mut bytes = self.me().0.0;
        let number = self.vote.promised().number + 1;
        for (byte, number) in bytes.iter_mut().zip(number.to_be_bytes()) {
            *byte ^= number;
        }
        Uuid(bytes)
    }
}
