//! Processes whose word does not count here: a second one on one data directory (rule 14), and those of
//! another cluster.

use trireme_mutants::{Mutant, planted};

use crate::event::Action;
use crate::group::Group;
use crate::ids::{Incarnation, ReplicaId};
use crate::message::{Message, Status};

impl Group {
    // ---- two processes on one data directory ----

    /// Another process with this replica id is connected, and the view does not say that it is this one that
    /// counts: a copied data directory. Of two that have no seat none counts, since nobody can say which is the copy.
    pub(crate) fn has_twin(&self, replica: ReplicaId, incarnation: Incarnation) -> bool {
        let seated = self
            .latest()
            .replica(replica)
            .is_some_and(|member| member.incarnation == incarnation);
        let own = replica == self.my_replica() && incarnation != self.me();
        let another = || {
            self.peers
                .iter()
                .any(|(known, peer)| peer.up && peer.replica == replica && *known != incarnation)
        };
        own || !seated && another()
    }

    /// The connected process that speaks for the replica.
    pub(crate) fn voice(&self, replica: ReplicaId) -> Option<Incarnation> {
        let mut up = self
            .peers
            .iter()
            .filter(|(_, peer)| peer.up && peer.replica == replica);
        up.find(|(incarnation, peer)| !self.has_twin(peer.replica, **incarnation))
            .map(|(incarnation, _)| *incarnation)
    }

    /// True for a message that acts or votes for a replica that another process speaks for.
    pub(crate) fn is_a_twins(&self, from: Incarnation, message: &Message) -> bool {
        let twin = || {
            let peer = self.peers.get(&from);
            peer.is_some_and(|peer| self.has_twin(peer.replica, from))
        };
        message.speaks_for_replica() && twin() && !planted(Mutant::TwinsVote)
    }

    /// True if this process may be one on a copied data directory: it neither votes nor seeks the office.
    pub(crate) fn may_be_a_copy(&self) -> bool {
        let copy = self.is_copy || self.has_twin(self.my_replica(), self.me());
        copy && !planted(Mutant::TwinsVote)
    }

    /// The own data directory's seat is another, living, process's: this one has no vote until a view seats it, also
    /// when that one is not connected any more.
    pub(crate) fn meet_own_twin(&mut self, from: Incarnation, status: &Status) {
        let twin = self
            .peers
            .get(&from)
            .is_some_and(|peer| peer.replica == self.my_replica());
        let seated = self.latest().member(self.me()).is_some();
        if !twin || seated || self.is_copy || !status.members.contains(&from) {
            return;
        }
        self.is_copy = true;
        let text = format!(
            "process {from}, which is in a view, runs with this node's replica id {}: this is a copied data directory, and \
             has no vote; remove its trireme state files and grastate.dat",
            self.my_replica().0
        );
        self.out.push(Action::Note { text });
    }

    // ---- another cluster ----

    /// True if the peer goes on with another history than this process.
    pub(crate) fn is_foreign(&self, from: Incarnation) -> bool {
        let own = self.committed.history;
        let status = self.peers.get(&from).and_then(|peer| peer.status.as_ref());
        let theirs = status.map_or(own, |status| status.history);
        !own.is_nil() && !theirs.is_nil() && own != theirs
    }

    /// Its positions, ballots and promises mean nothing here. What it is, it may go on to say; and it may ask for
    /// admission, to be told why not.
    pub(crate) fn foreign_message(&mut self, from: Incarnation, message: Message) {
        match message {
            Message::Status(status) => self.status(from, status),
            Message::Join(join) => self.join_requested(from, join),
            _ => {
                let own = self.committed.history;
                let Some(peer) = self.peers.get_mut(&from) else {
                    return; // `is_foreign` has looked it up
                };
                if !std::mem::replace(&mut peer.told_foreign, true) {
                    let theirs = peer.status.as_ref().map(|s| s.history).unwrap_or_default();
                    let text = format!(
                        "ignoring {from}, which is in the cluster {theirs} while this node is in {own}: give the two \
                         clusters different wsrep_cluster_name and addresses"
                    );
                    self.out.push(Action::Note { text });
                }
            }
        }
    }
}
