//! Processes whose word does not count here: a second one on one data directory (rule 14), and those of
//! another cluster.

use trireme_mutants::{Mutant, planted};

use crate::group::Group;
use crate::ids::Incarnation;
use crate::message::{Message, Status};

impl Group {
    // ---- two processes on one data directory ----

    /// True for a message that acts or votes for a replica that another process speaks for.
    pub(crate) fn is_a_twins(&self, from: Incarnation, message: &Message) -> bool {
        let twin = || {
            let peer = self.peers.get(from);
            peer.is_some_and(|peer| self.known().has_twin(peer.replica, from))
        };
        message.speaks_for_replica() && twin() && !planted(Mutant::TwinsVote)
    }

    /// True if this process may be one on a copied data directory: it neither votes nor seeks the office.
    pub(crate) fn may_be_a_copy(&self) -> bool {
        let copy = self.component.is_copy() || self.known().has_twin(self.my_replica(), self.me());
        copy && !planted(Mutant::TwinsVote)
    }

    /// The own data directory's seat is another, living, process's: this one has no vote until a view seats it, also
    /// when that one is not connected any more.
    pub(crate) fn meet_own_twin(&mut self, from: Incarnation, status: &Status) {
        let twin = self.peers.replica_of(from) == Some(self.my_replica());
        let seated = self.log.latest().member(self.me()).is_some();
        if !twin || seated || self.component.is_copy() || !status.members.contains(&from) {
            return;
        }
        self.component.found_to_be_a_copy();
        let text = format!(
            "process {from}, which is in a view, runs with this node's replica id {}: this is a copied data directory, and \
             has no vote; remove its trireme state files and grastate.dat",
            self.my_replica().0
        );
        self.out.note(text);
    }

    // ---- another cluster ----

    /// Its positions, ballots and promises mean nothing here. What it is, it may go on to say; and it may ask for
    /// admission, to be told why not.
    pub(crate) fn foreign_message(&mut self, from: Incarnation, message: Message) {
        match message {
            Message::Status(status) => self.status(from, status),
            Message::Join(join) => self.join_requested(from, join),
            _ => {
                let own = self.log.committed().history;
                let theirs = self.peers.status_of(from).map(|s| s.history);
                if self.peers.tell_foreign(from) {
                    let theirs = theirs.unwrap_or_default();
                    let text = format!(
                        "ignoring {from}, which is in the cluster {theirs} while this node is in {own}: give the two \
                         clusters different wsrep_cluster_name and addresses"
                    );
                    self.out.note(text);
                }
            }
        }
    }
}
