//! Branches of one history: a forced view begins one (rule 11). Members outside of it may go on with another branch.
//!
//! In: the forced-view histories of this log and of the peers. Out: whether this component is overruled, whether a peer
//! is on another branch, and which part of its promise counts. This module only reads; it owns no state.

use trireme_mutants::{Mutant, planted};

use crate::component::Component;
use crate::configuration::Member;
use crate::context::Context;
use crate::forced_views::ForcedViews;
use crate::ids::{Incarnation, Position};
use crate::known::{Known, known};
use crate::log::Log;
use crate::matching::Matching;
use crate::message::{ComponentState, Promise, Proof, Status, Summary};
use crate::peer::Peer;
use crate::peers::Peers;
use crate::vote::Vote;

/// The greatest number of forced views in one history. Every node remembers all of them for ever: a node from before
/// any of them may come back, and the others recognise it by the ids that it lacks. Every node also writes them beside
/// its log, where they must fit (docs/log-format.md).
pub const OVERRIDES_MAX: usize = 512;

/// Returns the error text for one forced view too many: the reason and the remedy.
pub fn tell_no_more_overrides() -> String {
    format!(
        "this history has {OVERRIDES_MAX} overrides (pc.bootstrap, --wsrep-new-cluster, pc.ignore_sb, \
         pc.ignore_quorum, and one whenever a cluster goes on although half of the votes or more may have forgotten \
         entries, as after a loss of power with repl.durability=os), the most that nodes can store: this node refuses \
         another one, and has changed nothing. Bring back a majority of the last view, in which members with half of \
         the votes have forgotten nothing. Or found the cluster anew, with the same data and without overrides: \
         stop all nodes, move grastate.dat and the trireme-*.log files away on each, start the node with the highest \
         position with --wsrep-new-cluster, then the others as usual: they join by a state snapshot"
    )
}

/// A view on the parts that know of branches: the forced views in the local log, and those of the peers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branches<'a> {
    pub context: &'a Context,
    pub log: &'a Log,
    pub peers: &'a Peers,
    pub component: &'a Component,
    pub forced_views: &'a ForcedViews,
}

/// Borrows [`Branches`] from a group, so that the caller can change another part of the group meanwhile.
macro_rules! branches {
    ($group:expr) => {
        $crate::branches::Branches {
            context: &$group.context,
            log: &$group.log,
            peers: &$group.peers,
            component: &$group.component,
            forced_views: &$group.forced_views,
        }
    };
}
pub(crate) use branches;

impl<'a> Branches<'a> {
    pub(crate) fn known(self) -> Known<'a> {
        known!(self)
    }

    /// Returns this process's member entry in the newest configuration. If this process was restarted and no view has
    /// admitted it since, returns the entry of its replica's earlier process.
    pub(crate) fn own_seat(self) -> Option<&'a Member> {
        let latest = self.log.latest();
        let former = || {
            self.component
                .is_resumed()
                .then(|| latest.replica(self.context.my_replica()))
                .flatten()
        };
        latest.member(self.context.me()).or_else(former)
    }

    /// True if this process may run on a copied data directory: then it neither votes nor stands.
    pub(crate) fn may_be_a_copy(self) -> bool {
        let (replica, me) = (self.context.my_replica(), self.context.me());
        let copy = self.component.is_copy() || self.known().has_duplicate(replica, me);
        copy && !planted(Mutant::DuplicatesVote)
    }

    /// True if this process has met the original of which it is a copy. A leader that loses its connection to the
    /// original would take the copy for it, and count it in its majority.
    pub(crate) fn keeps_silent(self) -> bool {
        let speaks = planted(Mutant::DuplicatesVote) || planted(Mutant::CopySpeaks);
        self.component.is_copy() && !speaks
    }

    /// Returns the position that this process acknowledges in the promised term. A follower that may be a copy
    /// acknowledges nothing: its leader may not know that the original lives.
    pub(crate) fn own_ack(self, vote: &Vote, matching: &Matching, is_leader: bool) -> Position {
        let has_vote = is_leader || !self.may_be_a_copy() || planted(Mutant::CopySpeaks);
        match has_vote {
            true => matching.own_ack(vote, self.log, is_leader),
            false => 0,
        }
    }

    /// True if the history has the greatest number of forced views.
    pub(crate) fn is_full_of_overrides(self) -> bool {
        self.log.overrides().len() >= OVERRIDES_MAX
    }

    /// True if a forced view that this component has not adopted yet overrules it: then it neither orders nor elects.
    pub(crate) fn is_overridden(self) -> bool {
        let known = (self.forced_views).beyond(&self.log.committed().overrides);
        let is_overruled = known.is_some_and(|known| !self.outvotes_branch(known));
        is_overruled || self.would_fork() || self.gives_up_overrides()
    }

    /// True if this node is non-primary and a connected peer, primary or not, has committed a forced view that this log
    /// lacks (rule 11). If this node became primary without that view, both branches would go on, and the commits that
    /// one of them acknowledges would be dropped.
    fn would_fork(self) -> bool {
        self.component.is_non_primary()
            && !planted(Mutant::OverrideOfFollowerIgnored)
            && self.overriders().next().is_some()
    }

    /// Returns the connected peers that have committed a forced view which comes after all forced views in this log.
    pub(crate) fn overriders(self) -> impl Iterator<Item = (Incarnation, &'a Peer, &'a Status)> {
        let own = self.log.overrides();
        let peers = self.peers.connected().filter_map(|(incarnation, peer)| {
            let status = peer.status.as_ref()?;
            Some((incarnation, peer, status))
        });
        peers.filter(move |(incarnation, peer, status)| {
            status.component_state != ComponentState::Outside
                && status.history == self.log.committed().history
                && status.overrides.len() > own.len()
                && status.overrides.starts_with(&own)
                && !self.known().has_duplicate(peer.replica, *incarnation)
                && !self.outvotes(*incarnation, status)
        })
    }

    /// True if the peer is, or was, primary on a branch without this log's forced views. It may give way to them by
    /// now. Its messages count for nothing here.
    pub(crate) fn has_gone_elsewhere(self, peer: Incarnation) -> bool {
        let status = self.peers.status_of(peer);
        let went = status.is_some_and(|status| {
            let further = status.commit >= self.log.configured_at(); // on this branch it would have the forced views
            let went = status.component_state == ComponentState::Primary || further;
            went && status.history == self.log.committed().history
        });
        went && self.lacks_own_override(peer)
    }

    /// True if the peer has committed the same forced views as this process, as far as it has told.
    pub(crate) fn has_same_overrides(self, peer: Incarnation) -> bool {
        let theirs = self.known().overrides_of(peer);
        theirs.is_none_or(|theirs| *theirs == self.log.committed().overrides)
    }

    /// True if the peer has not committed a forced view that this log includes. If the peer is on a branch without that
    /// view, its positions and terms mean something else here (rule 11). The peer gives way when this process's status
    /// tells it of the view.
    pub(crate) fn lacks_own_override(self, from: Incarnation) -> bool {
        let own = self.binding_overrides();
        self.known()
            .overrides_of(from)
            .is_some_and(|theirs| !theirs.starts_with(own))
    }

    /// True if the peer lacks a forced view of this log ([`Self::lacks_own_override`]), and cannot be about to commit
    /// it because its replica is not in the configuration in force.
    pub(crate) fn is_of_older_branch(self, from: Incarnation) -> bool {
        let peer = self.peers.get(from);
        self.lacks_own_override(from) && !peer.is_some_and(|peer| self.log.has_seat(peer.replica))
    }

    /// True if the peer's log certainly has the same forced views as this one, or if the peer has sent no status yet.
    pub(crate) fn is_of_own_branch(self, from: Incarnation, log: &Summary) -> bool {
        let Some(theirs) = self.known().overrides_of(from) else {
            return true;
        };
        let own = &self.log.committed().overrides;
        if planted(Mutant::OverridesIgnored) || theirs == own {
            return true;
        }
        // `ahead`: the peer has committed a forced view that is in this log, but not committed here. `behind`: the peer
        // has missed a forced view, and its log holds this commit point or is the beginning of this log: it keeps its
        // entries.
        let ahead = theirs.starts_with(own) && self.log.overrides().starts_with(theirs);
        let is_part = self.log.tail().term_at(log.end) == Some(log.end_term);
        let behind = own.starts_with(theirs) && (log.holds(self.log.committed()) || is_part);
        ahead || behind
    }

    /// Reduces a promise to the part that is evidence on this log's branch. Positions and configurations of another
    /// branch are none: then only the promiser's vote counts, as the vote of an amnesiac replica (rule 4). None: the
    /// promiser knows a forced view that this log lacks, so this candidate must yield.
    pub(crate) fn as_evidence(self, from: Incarnation, promise: Promise) -> Option<Promise> {
        let log = &promise.summary;
        let own = &self.log.committed().overrides;
        let Some(theirs) = self.known().overrides_of(from) else {
            return Some(promise);
        };
        if self.is_of_own_branch(from, log) || planted(Mutant::OtherBranchElects) {
            return Some(promise);
        }
        let is_outvoted = self.outvotes_peer(from);
        if !own.starts_with(theirs) && !is_outvoted {
            // If the promiser's log is the better one, this candidate asks it to lead.
            let better = log.last() > self.log.last();
            return Some(promise).filter(|_| better && theirs.starts_with(own));
        }
        if self.log.tail().may_go_on_from(log) && !is_outvoted {
            return Some(promise); // a member that has missed the forced view
        }
        Some(Promise {
            summary: Summary::default(),
            configurations: Vec::new(),
            amnesiac: true,
            lost_views: true,
            proof: Proof::default(),
            ..promise
        })
    }
}
