//! Yielding forced views (rule 11): they give way to a primary component that has formed without them.
//!
//! `pc.ignore_sb` and `pc.ignore_quorum` make forced views whose id ends with "auto", without an operator who has
//! looked at the cluster. A bootstrap without grastate.dat makes one that ends with "boot", for which nobody vouches. A
//! non-primary node follows a "boot" view all the same: an operator, or a my.cnf, ordered it. This module only reads.

use trireme_mutants::{Mutant, planted};

use crate::branches::Branches;
use crate::configuration::{Configuration, Member};
use crate::ids::{Incarnation, Uuid};
use crate::message::{ComponentState, Status};
use crate::peer::Peer;
use crate::split::common;

/// The end of a forced view's id, if `pc.ignore_sb` or `pc.ignore_quorum` made it.
const MARK: [u8; 4] = *b"auto";

/// The end of a forced view's id, if a bootstrap without grastate.dat made it.
const UNVOUCHED: [u8; 4] = *b"boot";

impl<'a> Branches<'a> {
    /// The forced views of this log, without the last ones if these yield to a connected primary component.
    pub(crate) fn binding_overrides(self) -> &'a [Uuid] {
        let own = &self.log.committed().overrides;
        let yielding = own.last().is_some_and(yields);
        if !yielding || planted(Mutant::MajorityYieldsToIgnoredQuorum) {
            return own;
        }
        let statuses = self.peers.connected().filter_map(|(incarnation, peer)| {
            let status = peer.status.as_ref()?;
            (!self.known().has_duplicate(peer.replica, incarnation)).then_some(status)
        });
        let kept = statuses.filter_map(|status| self.kept_before(status)).min();
        &own[..kept.unwrap_or(own.len())]
    }

    /// The number of own forced views that this process keeps if it gives way to a peer with this status. None: it does
    /// not give way.
    fn kept_before(self, status: &Status) -> Option<usize> {
        let own = &self.log.committed().overrides;
        let kept = common(own, &status.overrides);
        let theirs_binds = status.overrides.get(kept).is_none_or(|id| !yields(id));
        // A component that still lists this process as a member may be about to lose its majority.
        let is_without_me =
            self.forced_views.has_given_way() || !status.members.contains(&self.context.me());
        let gives_way = status.component_state == ComponentState::Primary
            && status.history == self.log.committed().history
            && is_without_me
            && own[kept..].iter().all(yields)
            && theirs_binds;
        gives_way.then_some(kept)
    }

    /// True if this process gives up forced views of its log: it neither orders nor elects, and joins the others.
    pub(crate) fn gives_up_overrides(self) -> bool {
        self.binding_overrides().len() < self.log.committed().overrides.len()
    }

    /// True if the peer has gone on with yielding forced views, and a majority here has gone on without it: the peer
    /// must give way.
    pub(crate) fn outvotes(self, from: Incarnation, status: &Status) -> bool {
        let own = &self.log.committed().overrides;
        let alone = status.overrides.starts_with(own)
            && status.overrides.len() > own.len()
            && status.overrides[own.len()..].iter().all(yields);
        if !alone || planted(Mutant::MajorityYieldsToIgnoredQuorum) {
            return false;
        }
        // Nobody vouches for the database behind a "boot" view: a primary component never follows it, and other nodes
        // always do. Its node gives way to each primary component that it hears.
        if status.overrides[own.len()..].iter().any(is_unvouched) {
            return self.component.is_primary();
        }
        let Some(peer) = self.peers.get(from) else {
            return false; // its status has come in
        };
        let seats = |c: &Configuration, replica| c.replica(replica).is_some();
        let committed = &self.log.committed().configuration;
        if self.component.is_outside() || committed.members.is_empty() {
            return false; // it has no component of its own
        }
        // A pending view in this log may already be in force: another member may have committed it, and acknowledged
        // more.
        let is_without = |peer: &Peer| !self.log.in_every_configuration(|c| seats(c, peer.replica));
        let is_bound = |peer: &Peer| {
            seats(committed, self.context.my_replica()) && !seats(committed, peer.replica)
        };
        // A member that has joined those who went on alone is outvoted with them (simulator, seed 118 of `mistakes`).
        let is_with_outvoted = || {
            let mut peers = self.peers.connected();
            peers.any(|(_, other)| {
                let theirs = other.status.as_ref().map(|theirs| &theirs.overrides);
                theirs == Some(&status.overrides) && is_without(other) && is_bound(other)
            })
        };
        let is_deserted = || self.is_deserted_for(&status.overrides);
        is_without(peer) && (is_bound(peer) || !is_deserted())
            || is_with_outvoted() && !is_deserted()
            || self.is_own_branch_primary() && self.has_majority_of_own_branch()
    }

    /// True if so many members are primary with these forced views that the others are no majority.
    fn is_deserted_for(self, overrides: &[Uuid]) -> bool {
        let with_them = |peer: &Peer| {
            let status = peer.status.as_ref().filter(|_| peer.up);
            status.is_some_and(|status| {
                status.component_state == ComponentState::Primary
                    && status.overrides.starts_with(overrides)
            })
        };
        let went = |member: &Member| {
            let mut peers = self.peers.all();
            peers.any(|(_, peer)| peer.replica == member.replica && with_them(peer))
        };
        !self
            .log
            .in_every_configuration(|c| c.is_majority(c.weight_of(|member| !went(member))))
    }

    /// [`Self::outvotes`] for a peer's last status.
    pub(crate) fn outvotes_peer(self, from: Incarnation) -> bool {
        let status = self.peers.status_of(from);
        status.is_some_and(|status| self.outvotes(from, status))
    }

    /// True if this process is primary, or has just heard one that is, with exactly this log's forced views.
    fn is_own_branch_primary(self) -> bool {
        let (committed, now) = (self.log.committed(), self.context.now());
        let within_ms = self.context.config().leader_timeout_ms;
        let is_primary = |status: &Status| {
            status.component_state == ComponentState::Primary
                && status.history == committed.history
                && status.overrides == committed.overrides
        };
        let mut heard =
            (self.peers.connected()).filter(|(_, peer)| now < peer.heard_at + within_ms);
        self.component.is_primary()
            || heard.any(|(_, peer)| peer.status.as_ref().is_some_and(is_primary))
    }

    /// True if the members with exactly this log's forced views are a majority.
    fn has_majority_of_own_branch(self) -> bool {
        let own = &self.log.committed().overrides;
        let is_here = |member: &Member| {
            let peer = self.peers.get(member.incarnation);
            let status = peer
                .filter(|peer| peer.up)
                .and_then(|peer| peer.status.as_ref());
            member.incarnation == self.context.me() || status.is_some_and(|s| s.overrides == *own)
        };
        self.log
            .in_every_configuration(|c| c.is_majority(c.weight_of(is_here)))
    }

    /// True for a voter that has gone on alone, and must be admitted again. A member without a vote is about to join
    /// already.
    pub(crate) fn has_gone_on_alone(self, member: &Member) -> bool {
        member.voter && self.outvotes_peer(member.incarnation)
    }
}

/// Marks an id as that of a forced view that `pc.ignore_sb` or `pc.ignore_quorum` makes.
pub(crate) fn marked_as_automatic(id: Uuid) -> Uuid {
    marked(id, MARK)
}

fn marked(mut id: Uuid, mark: [u8; 4]) -> Uuid {
    id.0[12..].copy_from_slice(&mark);
    id
}

/// Marks an id as that of a bootstrap without grastate.dat.
pub fn unvouched(id: Uuid) -> Uuid {
    marked(id, UNVOUCHED)
}

/// True if a bootstrap without grastate.dat made the forced view with this id.
pub fn is_unvouched(id: &Uuid) -> bool {
    id.0.ends_with(&UNVOUCHED)
}

/// True if the forced view with this id yields.
pub fn yields(id: &Uuid) -> bool {
    id.0.ends_with(&MARK) || is_unvouched(id)
}
