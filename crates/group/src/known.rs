//! The shared state that every part may read: context, local log, and peers. It also answers which process speaks for a
//! replica (rule 14). This module only reads.

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::context::Context;
use crate::ids::{Incarnation, ReplicaId, SubmissionId, Term, TimeMs, Uuid};
use crate::log::Log;
use crate::message::Status;
use crate::peer::Peer;
use crate::peers::Peers;

/// A submission number this far beyond the origin's last ordered one is invalid.
const NUMBERS_AHEAD_MAX: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub context: &'a Context,
    pub log: &'a Log,
    pub peers: &'a Peers,
}

/// Borrows [`Known`] from a group, so that the caller can change another part of the group meanwhile.
macro_rules! known {
    ($group:expr) => {
        $crate::known::Known {
            context: &$group.context,
            log: &$group.log,
            peers: &$group.peers,
        }
    };
}
pub(crate) use known;

/// Borrows parts of a group: some that the borrower reads, and some that it may change.
macro_rules! lend {
    ($module:ident::$lent:ident, $group:expr, reads: [$($read:ident),*], changes: [$($changed:ident),*]) => {
        $crate::$module::$lent {
            $($read: &$group.$read,)*
            $($changed: &mut $group.$changed,)*
        }
    };
}
pub(crate) use lend;

impl<'a> Known<'a> {
    pub(crate) fn now(self) -> TimeMs {
        self.context.now()
    }

    pub(crate) fn me(self) -> Incarnation {
        self.context.me()
    }

    pub(crate) fn my_replica(self) -> ReplicaId {
        self.context.my_replica()
    }

    /// True for a duplicate replica that has no say: another process with this replica id is connected, and the newest
    /// view does not list this one (a copied data directory). If the view lists neither, neither counts, since nobody
    /// can say which is the copy. For another process of this node's own replica id, always true.
    pub(crate) fn has_duplicate(self, replica: ReplicaId, incarnation: Incarnation) -> bool {
        let seat = self.log.latest().replica(replica);
        let seated = seat.is_some_and(|member| member.incarnation == incarnation);
        let own = replica == self.my_replica() && incarnation != self.me();
        let another = || {
            let mut connected = self.peers.connected();
            connected.any(|(known, peer)| peer.replica == replica && known != incarnation)
        };
        own || !seated && another()
    }

    /// The connected process that speaks for the replica, with its peer state.
    pub(crate) fn speaker(self, replica: ReplicaId) -> Option<(Incarnation, &'a Peer)> {
        let mut up = self.peers.connected();
        up.find(|(incarnation, peer)| {
            peer.replica == replica && !self.has_duplicate(replica, *incarnation)
        })
    }

    /// The connected process that speaks for the replica.
    pub(crate) fn voice(self, replica: ReplicaId) -> Option<Incarnation> {
        self.speaker(replica).map(|(incarnation, _)| incarnation)
    }

    /// The connected process that leads in this term, if it has said so.
    pub(crate) fn leader_of(self, term: Term) -> Option<Incarnation> {
        let leader = self.voice(term.replica)?;
        let status = self.peers.status_of(leader)?;
        (status.leader && status.term == term).then_some(leader)
    }

    /// True if this process has heard the peer within this time.
    pub(crate) fn hears(self, within_ms: TimeMs, peer: &Peer) -> bool {
        peer.up && self.now() < peer.heard_at + within_ms
    }

    /// True if this process has heard a majority of the configuration within this time; it counts itself.
    pub(crate) fn hears_majority(self, within_ms: TimeMs, configuration: &Configuration) -> bool {
        self.hears_majority_among(|_| true, within_ms, configuration)
    }

    /// The same, if only these processes count, and itself.
    pub(crate) fn hears_majority_among(
        self,
        counts: impl Fn(Incarnation) -> bool,
        within_ms: TimeMs,
        configuration: &Configuration,
    ) -> bool {
        let heard = |member: &Member| {
            let mut speaker = self.speaker(member.replica).into_iter();
            member.replica == self.my_replica()
                || speaker.any(|(name, peer)| self.hears(within_ms, peer) && counts(name))
        };
        configuration.is_majority(configuration.weight_of(heard))
    }

    /// True if this process has heard a majority of every configuration that may be in force within this time.
    pub(crate) fn hears_every_majority(self, within_ms: TimeMs) -> bool {
        (self.log).in_every_configuration(|c| self.hears_majority(within_ms, c))
    }

    /// True if the peer is a foreign process: both have a cluster UUID, and the two differ.
    pub(crate) fn is_foreign(self, from: Incarnation) -> bool {
        let own = self.log.committed().history;
        let theirs = self.peers.status_of(from).map_or(own, |s| s.history);
        !own.is_nil() && !theirs.is_nil() && own != theirs
    }

    /// The forced views that the peer says it has committed; None if it has sent no status.
    pub(crate) fn overrides_of(self, from: Incarnation) -> Option<&'a Vec<Uuid>> {
        let status: Option<&'a Status> = self.peers.status_of(from);
        status.map(|status| &status.overrides)
    }

    /// The members other than this one.
    pub(crate) fn others(self) -> Vec<Incarnation> {
        let members = self.log.latest().members.iter();
        let names = members.map(|m| m.incarnation);
        names.filter(|m| *m != self.me()).collect()
    }

    /// The last submission number of `origin` in the local log.
    pub(crate) fn tail_number(self, origin: Incarnation) -> u64 {
        let committed = self.log.committed();
        let last = committed.last_number(self.my_replica(), origin);
        let tail = self.log.tail().above(committed.position);
        let ids = tail.filter_map(|entry| entry.submission());
        ids.filter(|id| id.incarnation == origin)
            .map(|id| id.number)
            .fold(last.unwrap_or(0), u64::max)
    }

    /// True for a valid submission of a member that this log does not show as ordered. A void takes no memory, and may
    /// be far ahead: its origin counts on, also on another branch.
    pub(crate) fn expects_submission(self, id: SubmissionId, is_void: bool) -> bool {
        let (from, number) = (id.incarnation, id.number);
        let Some(replica) = self.peers.replica_of(from) else {
            return false; // the sender has been looked up
        };
        let ordered = self.log.committed().last_number(replica, from).unwrap_or(0);
        let believable = number > ordered && (is_void || number <= ordered + NUMBERS_AHEAD_MAX);
        let seated = self.log.latest().member(from).is_some();
        believable && (seated || planted(Mutant::EvictedDelivered))
    }

    /// True for the origin's next submission in the order.
    pub(crate) fn is_next_submission(self, id: SubmissionId) -> bool {
        let replica = self.peers.replica_of(id.incarnation);
        let last = |replica| self.log.committed().last_number(replica, id.incarnation);
        let committed = replica.and_then(last).unwrap_or(0);
        id.number <= committed.max(self.tail_number(id.incarnation)) + 1
    }
}
