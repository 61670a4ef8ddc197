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
    /// The forced views of this log, without the last ones if these yield to a primary component that this process hears.
    /// A peer that has fallen silent may have followed these views since (simulator, seed 6100000326 of `mistakes`).
    pub(crate) fn binding_overrides(self) -> &'a [Uuid] {
        let own = &self.log.committed().overrides;
        let yielding = own.last().is_some_and(yields);
        if !yielding || planted(Mutant::MajorityYieldsToIgnoredQuorum) {
            return own;
        }
        let config = self.context.config();
        let statuses = self.peers.connected().filter_map(|(incarnation, peer)| {
            // A peer that is just silent may have followed these views before they were in this log (seed 7300010875).
            let within_ms = match self.forced_views.are_older_than(peer.heard_at) {
                true => config.suspect_timeout_ms,
                false => config.leader_timeout_ms,
            };
            let is_heard =
                self.known().hears(within_ms, peer) || planted(Mutant::SilentPeerOutvotes);
            let counts = is_heard && !self.known().has_duplicate(peer.replica, incarnation);
            peer.status.as_ref().filter(|_| counts)
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

    /// The last forced views of this log, if they yield to a primary component that this process hears.
    pub(crate) fn yielding_overrides(self) -> &'a [Uuid] {
        &self.log.committed().overrides[self.binding_overrides().len()..]
    }

    /// The forced views of another branch that come after those of this log.
    pub(crate) fn beyond_own(self, theirs: &[Uuid]) -> &[Uuid] {
        let own = &self.log.committed().overrides[..];
        theirs.strip_prefix(own).unwrap_or_default()
    }

    /// True if this process must not follow the peer, which has gone on with yielding forced views: these views are
    /// outvoted, or a view that may be in force lacks the peer, and its members can still form a majority.
    pub(crate) fn outvotes(self, from: Incarnation, status: &Status) -> bool {
        let theirs = &status.overrides;
        let is_without = |peer| self.is_without(peer) && !self.is_deserted_for(theirs);
        self.outvotes_branch(theirs)
            || self.may_outvote(theirs) && self.peers.get(from).is_some_and(is_without)
    }

    /// True if this process must not follow any component with these yielding forced views. Either a view that may be in
    /// force here has voted one of their nodes out (seed 124105 of `mistakes`: not only the committed one), and its members
    /// can still form a majority; a member that has joined them since is outvoted with them (seed 118). Or a component
    /// without these views goes on, or they have lost against one before.
    pub(crate) fn outvotes_branch(self, theirs: &[Uuid]) -> bool {
        // Nobody vouches for the database behind a "boot" view: a primary component never follows it, and other nodes
        // always do. Its node gives way to each primary component that it hears.
        let Some(alone) = self.went_alone(theirs) else {
            return false;
        };
        if alone.iter().any(is_unvouched) {
            return self.component.is_primary();
        }
        let is_voted_out = |peer: &Peer| {
            let overrides = peer.status.as_ref().map(|status| &status.overrides[..]);
            overrides == Some(theirs) && self.is_without(peer)
        };
        let has_voted_one_out = || {
            let committed = &self.log.committed().configuration;
            committed.replica(self.context.my_replica()).is_some()
                && self.peers.connected().any(|(_, peer)| is_voted_out(peer))
        };
        let have_lost = || alone.iter().any(|id| self.forced_views.has_given_up(id));
        self.may_outvote(theirs)
            && ((has_voted_one_out() || have_lost()) && !self.is_deserted_for(theirs)
                || self.goes_on_here())
    }

    /// True if forced views of `pc.ignore_sb` or `pc.ignore_quorum` come after those of this log, and this process has a
    /// component that can outvote them.
    fn may_outvote(self, theirs: &[Uuid]) -> bool {
        let has_component = !self.component.is_outside()
            && !(self.log.committed().configuration.members).is_empty();
        let alone = self.went_alone(theirs);
        has_component && alone.is_some_and(|ids| !ids.iter().any(is_unvouched))
    }

    /// The forced views after those of this log, if there are any and all yield.
    fn went_alone(self, theirs: &[Uuid]) -> Option<&[Uuid]> {
        let beyond = self.beyond_own(theirs);
        let yield_all = !beyond.is_empty() && beyond.iter().all(yields);
        (yield_all && !planted(Mutant::MajorityYieldsToIgnoredQuorum)).then_some(beyond)
    }

    /// True if the peer, which was a member before, has no vote in a configuration that may be in force: one that is
    /// pending here may be committed elsewhere. One without a vote may have been voted out and let in again, and has not
    /// got this log yet. A new node is in none of them, and nobody has gone on without it (simulator, seed 38689 of
    /// `mistakes`).
    fn is_without(self, peer: &Peer) -> bool {
        let has_seat = |c: &Configuration| {
            let seat = c.replica(peer.replica);
            seat.is_some_and(|seat| seat.voter || planted(Mutant::LearnersSeatCounts))
        };
        let was_member = self.log.committed().numbers.knows(peer.replica);
        was_member && !self.log.in_every_configuration(has_seat)
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

    /// True if the peer is primary with yielding forced views that this process must not follow: the peer gives way when
    /// a majority is primary without them.
    pub(crate) fn is_primary_alone(self, peer: Incarnation) -> bool {
        let status = self.peers.status_of(peer);
        status.is_some_and(|s| s.component_state == ComponentState::Primary)
            && self.outvotes_peer(peer)
    }

    /// True if a component with exactly this log's forced views goes on: this process hears its majority, or is not
    /// primary and has just heard a primary member. Such a member gives way itself if it has lost the majority.
    fn goes_on_here(self) -> bool {
        match self.component.is_primary() {
            true => self.has_majority_of_own_branch(),
            false => self.hears_primary_of_own_branch(),
        }
    }

    fn hears_primary_of_own_branch(self) -> bool {
        let committed = self.log.committed();
        let within_ms = self.context.config().leader_timeout_ms;
        let is_primary = |status: &Status| {
            status.component_state == ComponentState::Primary
                && status.history == committed.history
                && status.overrides == committed.overrides
        };
        let mut heard =
            (self.peers.connected()).filter(|(_, peer)| self.known().hears(within_ms, peer));
        heard.any(|(_, peer)| peer.status.as_ref().is_some_and(is_primary))
    }

    /// True if the members with exactly this log's forced views, as far as they are heard, are a majority.
    fn has_majority_of_own_branch(self) -> bool {
        let own = &self.log.committed().overrides;
        let within_ms = self.context.config().suspect_timeout_ms;
        let is_here = |member: &Member| {
            let peer = (self.peers.get(member.incarnation))
                .filter(|peer| self.known().hears(within_ms, peer));
            let status = peer.and_then(|peer| peer.status.as_ref());
            member.incarnation == self.context.me() || status.is_some_and(|s| s.overrides == *own)
        };
        self.log
            .in_every_configuration(|c| c.is_majority(c.weight_of(is_here)))
    }

    /// True for a member that has gone on alone, and must be admitted again. One without a vote that is not primary is
    /// about to join already.
    pub(crate) fn has_gone_on_alone(self, member: &Member) -> bool {
        let status = self.peers.status_of(member.incarnation);
        let is_primary = status.is_some_and(|s| s.component_state == ComponentState::Primary);
        (member.voter || is_primary) && self.outvotes_peer(member.incarnation)
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

/// True if `pc.ignore_sb` or `pc.ignore_quorum` makes the forced view with this id.
pub(crate) fn is_automatic(id: &Uuid) -> bool {
    id.0.ends_with(&MARK)
}

/// True if the forced view with this id yields.
pub fn yields(id: &Uuid) -> bool {
    is_automatic(id) || is_unvouched(id)
}
