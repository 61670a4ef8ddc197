//! Branches of one history (rule 11): an operator's override made one, and others may have gone on without it.

use trireme_mutants::{Mutant, planted};

use crate::component::Component;
use crate::configuration::Member;
use crate::context::Context;
use crate::forced_views::ForcedViews;
use crate::ids::Incarnation;
use crate::known::{Known, known};
use crate::log::Log;
use crate::message::{Promise, Proof, Standing, Status, Summary};
use crate::peer::Peer;
use crate::peers::Peers;

/// A history has so many overrides at most. All of them are remembered for good: a node from before any of them may come
/// back, and is known by what it lacks. Every node notes them beside its log, where they have to fit (docs/log-format.md).
pub const OVERRIDES_MAX: usize = 512;

/// Why there is no further override, and what to do.
pub fn tell_no_more_overrides() -> String {
    format!(
        "this history has {OVERRIDES_MAX} overrides (pc.bootstrap, --wsrep-new-cluster, pc.ignore_sb, pc.ignore_quorum), \
         which is as many as nodes can remember: another one is refused, and nothing was changed. Let a majority of the \
         last view come back; or found the cluster anew, with the same data and no overrides: stop all nodes, move \
         grastate.dat and the trireme-*.log files away on each, start the one that is furthest with \
         --wsrep-new-cluster, and the others as usual: they join by a state snapshot"
    )
}

/// Reads what there is to know of the branches of the history: the own log's overrides, and those of the peers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branches<'a> {
    pub context: &'a Context,
    pub log: &'a Log,
    pub peers: &'a Peers,
    pub component: &'a Component,
    pub forced_views: &'a ForcedViews,
}

/// Borrows it from a group, beside a part of it that is changed.
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

    /// This member's place in the newest configuration; that of the process before, if it was
    /// restarted and its log says so.
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

    /// True if this component was overruled by an override that it has not taken over yet: it
    /// neither orders nor elects.
    pub(crate) fn is_overridden(self) -> bool {
        let overruled = (self.forced_views).overrule(&self.log.committed().overrides);
        overruled || self.would_fork() || self.gives_up_overrides()
    }

    /// Who is not primary does not become so again without an override that somebody here has committed, be that one
    /// primary or not (rule 11): both would go on, and what one of them acknowledges would be dropped.
    fn would_fork(self) -> bool {
        self.component.is_non_primary()
            && !planted(Mutant::OverrideOfFollowerIgnored)
            && self.overriders().next().is_some()
    }

    /// Connected peers that have committed an override which comes after all in this log.
    pub(crate) fn overriders(self) -> impl Iterator<Item = (Incarnation, &'a Peer, &'a Status)> {
        let own = self.log.overrides();
        let peers = self.peers.connected().filter_map(|(incarnation, peer)| {
            let status = peer.status.as_ref()?;
            Some((incarnation, peer, status))
        });
        peers.filter(move |(incarnation, peer, status)| {
            status.standing != Standing::Outside
                && status.history == self.log.committed().history
                && status.overrides.len() > own.len()
                && status.overrides.starts_with(&own)
                && !self.known().has_twin(peer.replica, *incarnation)
                && !self.outvotes(*incarnation, status)
        })
    }

    /// The peer is primary on a branch without this log's overrides, or has been and now gives way to them: it has no word
    /// here.
    pub(crate) fn has_gone_elsewhere(self, peer: Incarnation) -> bool {
        let status = self.peers.status_of(peer);
        let went = status.is_some_and(|status| {
            let further = status.commit >= self.log.configured_at(); // on this branch it would have the overrides
            let went = status.standing == Standing::Primary || further;
            went && status.history == self.log.committed().history
        });
        went && self.lacks_own_override(peer)
    }

    /// True if the peer has not committed an override that this log includes. If it is on a branch
    /// without it, its positions and ballots mean something else here (rule 11); it gives way when it
    /// hears of the override by this process's status.
    pub(crate) fn lacks_own_override(self, from: Incarnation) -> bool {
        let own = self.binding_overrides();
        self.known()
            .overrides_of(from)
            .is_some_and(|theirs| !theirs.starts_with(own))
    }

    /// The same, of a peer that cannot be about to commit it: it has no seat in the view in force.
    pub(crate) fn is_of_older_branch(self, from: Incarnation) -> bool {
        let peer = self.peers.get(from);
        self.lacks_own_override(from) && !peer.is_some_and(|peer| self.log.has_seat(peer.replica))
    }

    /// True if the peer's log has the same overrides as this one for certain, or the peer has yet to say.
    pub(crate) fn is_of_own_branch(self, from: Incarnation, log: &Summary) -> bool {
        let Some(theirs) = self.known().overrides_of(from) else {
            return true;
        };
        let own = &self.log.committed().overrides;
        if planted(Mutant::OverridesIgnored) || theirs == own {
            return true;
        }
        // It has committed an override that is only in the log here, or the other way round; or it has missed the override,
        // and its log is the beginning of this one: it keeps what it has.
        let ahead = theirs.starts_with(own) && self.log.overrides().starts_with(theirs);
        let is_part = self.log.tail().ballot_at(log.end) == Some(log.end_ballot);
        let behind = own.starts_with(theirs) && (log.holds(self.log.committed()) || is_part);
        ahead || behind
    }

    /// What the promise says of this log's branch. Positions and configurations of another one are no evidence:
    /// of its giver only the vote counts, as that of one who may have forgotten what it acknowledged here
    /// (rule 4). None: it knows of an override that this log lacks, so that this candidate is the one to yield.
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
            // It is asked to lead if its log is the better one.
            let better = log.last() > self.log.last();
            return Some(promise).filter(|_| better && theirs.starts_with(own));
        }
        if self.log.tail().may_go_on_from(log) && !is_outvoted {
            return Some(promise); // a member that has missed the override
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
