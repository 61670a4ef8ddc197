//! What every part may read: the context, the own log, and the peers; and what follows from them about who speaks for whom
//! (rule 14).

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::context::Context;
use crate::ids::{Ballot, Incarnation, ReplicaId, SubmissionId, TimeMs, Uuid};
use crate::log::Log;
use crate::message::Status;
use crate::peer::Peer;
use crate::peers::Peers;

/// An origin that runs further ahead of the order than this is not believed.
const NUMBERS_AHEAD_MAX: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub context: &'a Context,
    pub log: &'a Log,
    pub peers: &'a Peers,
}

/// Borrows them from a group, beside a part of it that is changed.
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

    /// Another process with this replica id is connected, and the view does not say that it is this one that
    /// counts: a copied data directory. Of two that have no seat none counts, since nobody can say which is the copy.
    pub(crate) fn has_twin(self, replica: ReplicaId, incarnation: Incarnation) -> bool {
        let seat = self.log.latest().replica(replica);
        let seated = seat.is_some_and(|member| member.incarnation == incarnation);
        let own = replica == self.my_replica() && incarnation != self.me();
        let another = || {
            let mut connected = self.peers.connected();
            connected.any(|(known, peer)| peer.replica == replica && known != incarnation)
        };
        own || !seated && another()
    }

    /// The connected process that speaks for the replica, and what is known of it.
    pub(crate) fn speaker(self, replica: ReplicaId) -> Option<(Incarnation, &'a Peer)> {
        let mut up = self.peers.connected();
        up.find(|(incarnation, peer)| {
            peer.replica == replica && !self.has_twin(replica, *incarnation)
        })
    }

    /// The connected process that speaks for the replica.
    pub(crate) fn voice(self, replica: ReplicaId) -> Option<Incarnation> {
        self.speaker(replica).map(|(incarnation, _)| incarnation)
    }

    /// The connected process that leads in this ballot, if it has said so.
    pub(crate) fn leader_of(self, ballot: Ballot) -> Option<Incarnation> {
        let leader = self.voice(ballot.replica)?;
        let status = self.peers.status_of(leader)?;
        (status.leader && status.ballot == ballot).then_some(leader)
    }

    /// True if members that weigh a majority were heard within this time, oneself included.
    pub(crate) fn hears_majority(self, within_ms: TimeMs, configuration: &Configuration) -> bool {
        let heard = |member: &Member| {
            member.replica == self.my_replica()
                || self
                    .speaker(member.replica)
                    .is_some_and(|(_, peer)| self.now() < peer.heard_at + within_ms)
        };
        configuration.is_majority(configuration.weight_of(heard))
    }

    /// True if the peer goes on with another history than this process.
    pub(crate) fn is_foreign(self, from: Incarnation) -> bool {
        let own = self.log.committed().history;
        let theirs = self.peers.status_of(from).map_or(own, |s| s.history);
        !own.is_nil() && !theirs.is_nil() && own != theirs
    }

    /// The overrides that a peer has said it has committed.
    pub(crate) fn overrides_of(self, from: Incarnation) -> Option<&'a Vec<Uuid>> {
        let status: Option<&'a Status> = self.peers.status_of(from);
        status.map(|status| &status.overrides)
    }

    /// Members beside this one.
    pub(crate) fn others(self) -> Vec<Incarnation> {
        let members = self.log.latest().members.iter();
        let names = members.map(|m| m.incarnation);
        names.filter(|m| *m != self.me()).collect()
    }

    /// The last of `origin`'s numbers in the own log.
    pub(crate) fn tail_number(self, origin: Incarnation) -> u64 {
        let committed = self.log.committed();
        let last = committed.last_number(self.my_replica(), origin);
        let tail = self.log.tail().above(committed.position);
        let ids = tail.filter_map(|entry| entry.submission());
        ids.filter(|id| id.incarnation == origin)
            .map(|id| id.number)
            .fold(last.unwrap_or(0), u64::max)
    }

    /// True for a submission of a member that is not ordered yet, as far as is known.
    pub(crate) fn expects_submission(self, id: SubmissionId) -> bool {
        let (from, number) = (id.incarnation, id.number);
        let Some(replica) = self.peers.replica_of(from) else {
            return false; // the sender has been looked up
        };
        let ordered = self.log.committed().last_number(replica, from).unwrap_or(0);
        let believable = number > ordered && number <= ordered + NUMBERS_AHEAD_MAX;
        let seated = self.log.latest().member(from).is_some();
        believable && (seated || planted(Mutant::EvictedDelivered))
    }

    /// True for what is ordered before everything else of its origin.
    pub(crate) fn is_next_submission(self, id: SubmissionId) -> bool {
        let replica = self.peers.replica_of(id.incarnation);
        let last = |replica| self.log.committed().last_number(replica, id.incarnation);
        let committed = replica.and_then(last).unwrap_or(0);
        id.number <= committed.max(self.tail_number(id.incarnation)) + 1
    }
}
