//! The membership changes that members request; the next proposal takes all of them.
//!
//! In: requests for admission, for leaving, or for another weight. Out: the next configuration. At most one is pending
//! at a time. The leader removes dead or silent members only if the others have a majority (rule 10). An admitted
//! process has no vote before it has joined (rule 3).

use std::collections::BTreeMap;

use trireme_mutants::{Mutant, planted};

use crate::branches::Branches;
use crate::configuration::{Configuration, Member};
use crate::ids::{Incarnation, TimeMs};
use crate::known::Known;
use crate::limits::MEMBERS_MAX;
use crate::message::Join;
use crate::peer::Peer;

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Changes {
    admit: BTreeMap<Incarnation, Member>,
    leave: Vec<Incarnation>,
    weights: BTreeMap<Incarnation, u8>,
    /// A member, or this leader, declared itself non-primary in the view with this number: the next view must have a
    /// greater number.
    reform: Option<u64>,
}

/// The result of [`Changes::propose`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proposal {
    /// The leader proposes this configuration.
    View(Configuration),
    /// The leader proposes nothing: no member would have a vote.
    NoVoteLeft,
}

impl Changes {
    /// Takes a process's request for admission. Err: the reason for a refusal.
    pub(crate) fn ask_admission(
        &mut self,
        known: Known,
        from: Incarnation,
        join: Join,
    ) -> Result<(), String> {
        self.admissible(known, &join)?;
        let latest = known.log.latest();
        if duplicate(known, &join.member).is_some() {
            // Silent, and still connected: this may be its node, started again behind a network that had failed. It
            // asks again; by then the duplicate is heard, or gone.
            return Ok(());
        }
        if latest.member(from).is_none() {
            self.admit.insert(from, join.member);
            return Ok(());
        }
        // View numbers of another branch mean nothing here.
        let is_of_branch = join.overrides == known.log.committed().overrides;
        if is_of_branch && join.known_number >= latest.number {
            self.reform(join.known_number);
        }
        Ok(())
    }

    /// The connection to this process is gone, and its request for admission with it.
    pub(crate) fn disconnected(&mut self, from: Incarnation) {
        self.admit.remove(&from);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.admit.len() + self.leave.len() + self.weights.len()
    }

    pub(crate) fn leave(&mut self, member: Incarnation) {
        if !self.leave.contains(&member) {
            self.leave.push(member);
        }
    }

    pub(crate) fn weigh(&mut self, member: Incarnation, weight: u8) {
        self.weights.insert(member, weight);
    }

    /// Requests a view with a greater number than `left`.
    pub(crate) fn reform(&mut self, left: u64) {
        self.reform = self.reform.max(Some(left));
    }

    /// Err: the reason why the cluster refuses this process. It refuses another history, a fork (rule 11) and a copied
    /// data directory (rule 14).
    fn admissible(&self, known: Known, join: &Join) -> Result<(), String> {
        let (history, overrides) = (
            known.log.committed().history,
            &known.log.committed().overrides,
        );
        if !join.history.is_nil() && join.history != history {
            return Err(format!(
                "this node has the cluster UUID {}, the cluster has {history}: if the node belongs to this cluster, \
                 move its grastate.dat and trireme-*.log files away to join by a state snapshot, which drops this \
                 node's own data",
                join.history
            ));
        }
        if !overrides.starts_with(&join.overrides) {
            let mut only_there = join.overrides.iter().filter(|id| !overrides.contains(id));
            let forks = only_there.next().copied().unwrap_or_default();
            return Err(format!(
                "an override ({forks}) that the cluster does not know has forked this node's history. To give that \
                 branch up: first stop all nodes with that override, since one of them could admit this node again; \
                 then move grastate.dat and the trireme-*.log files away on each to rejoin by a state snapshot, which \
                 drops their own commits since the fork"
            ));
        }
        if known.log.latest().members.len() + self.admit.len() >= MEMBERS_MAX {
            return Err(format!(
                "the cluster has {MEMBERS_MAX} members, the most that it may have; stop another member first"
            ));
        }
        if let Some(duplicate) = duplicate(known, &join.member).filter(|m| is_here(known, m)) {
            return Err(format!(
                "member {} ({}) runs with the same replica id {}: this is a copied data directory; remove its \
                 trireme state files and grastate.dat",
                duplicate.name, duplicate.address, duplicate.replica
            ));
        }
        if join.member.replica == known.my_replica() {
            return Err(format!(
                "replica id {} is this node's own: a copied data directory",
                join.member.replica
            ));
        }
        Ok(())
    }

    /// Makes one configuration of all requests that are due, if none is pending. `since`: a member's silence counts
    /// from this time on. `is_intact`: this member has forgotten nothing that it acknowledged.
    pub(crate) fn propose(
        &mut self,
        branches: Branches,
        since: TimeMs,
        is_intact: bool,
    ) -> Option<Proposal> {
        let (known, log) = (branches.known(), branches.log);
        if log.uncommitted().next().is_some() && !planted(Mutant::TwoPendingViews) {
            return None;
        }
        let current = match planted(Mutant::TwoPendingViews) {
            true => log.latest(),
            false => &log.committed().configuration,
        };
        if !self.may_differ(current, branches, since) {
            return None;
        }
        let mut requested = std::mem::take(self);
        // A process without a history, which asked for admission here, may have joined another cluster since.
        requested
            .admit
            .retain(|joiner, _| !known.is_foreign(*joiner));
        let mut changes = requested.clone();
        if current.member(known.me()).is_none() && current.replica(known.my_replica()).is_some() {
            // This restarted process was elected for its log before a view admitted it.
            let me = Member {
                voter: is_intact,
                ..known.context.config().me.clone()
            };
            changes.admit.insert(me.incarnation, me);
        }
        let mut next = changes.applied(current, branches, since);
        next.ensure_vote(known.my_replica());
        if next.total_weight() == 0 {
            return Some(Proposal::NoVoteLeft);
        }
        if next == *current || next.members.iter().all(|m| m.incarnation != known.me()) {
            return None;
        }
        let config = known.context.config();
        let timeout_ms = match planted(Mutant::SilentMemberCounts) {
            true => config.suspect_timeout_ms,
            false => config.leader_timeout_ms,
        };
        if known.hears_majority(timeout_ms, &next) && can_elect(known, &next) {
            return Some(Proposal::View(next));
        }
        // No majority would commit this configuration now, and a proposal cannot be taken back: if a silent member whose
        // vote it needs never returns, one that leaves or restarts could not help any more. When the silent members have
        // been silent for long enough, the proposal removes them.
        *self = requested;
        None
    }

    /// Returns false if the next configuration is certainly this one. It allocates nothing: the leader asks after each
    /// event.
    fn may_differ(&self, current: &Configuration, branches: Branches, since: TimeMs) -> bool {
        let changes = |m: &Member| {
            is_gone(branches, since, m) || vote(branches, m, true) != (m.voter, m.weight)
        };
        let is_requested = !self.admit.is_empty()
            || !self.leave.is_empty()
            || !self.weights.is_empty()
            || self.reform.is_some();
        is_requested
            || current.override_id.is_some()
            || current.total_weight() == 0
            || current.member(branches.context.me()).is_none()
            || current.members.iter().any(changes)
    }

    /// Returns the configuration that follows `current`.
    fn applied(self, current: &Configuration, branches: Branches, since: TimeMs) -> Configuration {
        let mut next = Configuration {
            override_id: None,
            fork_after: 0,
            ..current.clone()
        };
        remove_the_gone(branches, since, &mut next);
        next.members
            .retain(|m| !self.leave.contains(&m.incarnation));
        for (incarnation, member) in self.admit {
            next.members.retain(|m| m.replica != member.replica);
            if current.member(incarnation).is_none() {
                // A process whose replica lost nothing that it acknowledged keeps that replica's vote (rules 3, 14).
                let seat = current.replica(member.replica);
                let voter = member.voter && seat.is_some_and(|seat| seat.voter);
                next.members.push(Member {
                    weight: 0,
                    voter,
                    ..member
                });
            }
        }
        for member in &mut next.members {
            if let Some(weight) = self.weights.get(&member.incarnation) {
                member.full_weight = *weight;
            }
            let is_member = current.member(member.incarnation).is_some();
            (member.voter, member.weight) = vote(branches, member, is_member);
        }
        next.sort();
        let outlived = self.reform.is_some_and(|left| current.number <= left);
        if !next.same_members(current) || outlived {
            next.number += 1;
        }
        next
    }
}

/// Returns the connected member of the same replica, another process.
fn duplicate<'a>(known: Known<'a>, joiner: &Member) -> Option<&'a Member> {
    let mut members = known.log.latest().members.iter();
    members.find(|m| {
        m.replica == joiner.replica
            && m.incarnation != joiner.incarnation
            && known.peers.is_up(m.incarnation)
    })
}

/// True if the members could elect a leader under this configuration. A replica whose process was restarted counts
/// against that: the new process may be amnesiac (rule 4), and a view must admit it first.
fn can_elect(known: Known, configuration: &Configuration) -> bool {
    let is_intact = |m: &Member| is_here(known, m) || successors(known, m).next().is_none();
    configuration.is_half(configuration.weight_of(is_intact))
}

/// True if the process that the configuration lists for this replica is heard. Another process of the same replica runs
/// on a copy of the data directory (rule 14).
fn is_here(known: Known, seat: &Member) -> bool {
    let timeout_ms = known.context.config().leader_timeout_ms;
    let heard = |peer: &Peer| known.hears(timeout_ms, peer);
    seat.incarnation == known.me() || known.peers.get(seat.incarnation).is_some_and(heard)
}

/// Returns the connected processes of the member's replica, other than the process that the configuration lists.
fn successors<'a>(known: Known<'a>, seat: &'a Member) -> impl Iterator<Item = &'a Peer> {
    let connected = known.peers.connected();
    let another =
        connected.filter(|(name, peer)| peer.replica == seat.replica && *name != seat.incarnation);
    another.map(|(_, peer)| peer)
}

/// Returns true if this member has JOINED, and its vote, in the next configuration. Only a member of the current one
/// gets a vote: a process that the next one admits has yet to join.
fn vote(branches: Branches, member: &Member, is_member: bool) -> (bool, u8) {
    let joined = is_member && branches.component.has_joined(member.incarnation);
    let voter = member.voter || joined || planted(Mutant::JoinerVotesAtOnce);
    (voter, if voter { member.full_weight } else { 0 })
}

/// Removes members that are gone, if the remaining members keep the majority (rule 10).
fn remove_the_gone(branches: Branches, since: TimeMs, next: &mut Configuration) {
    let gone = |m: &Member| is_gone(branches, since, m);
    if next.is_majority(next.weight_of(|m| !gone(m))) {
        next.members.retain(|m| !gone(m));
    }
}

/// Returns true if this member is proven dead, or silent for too long. If the replica's process has restarted, its new
/// process takes the place, if it lives.
fn is_gone(branches: Branches, since: TimeMs, member: &Member) -> bool {
    let (known, now) = (branches.known(), branches.context.now());
    let timeout_ms = known.context.config().removal_timeout_ms();
    let is_silent = match known.peers.get(member.incarnation) {
        Some(peer) if peer.dead || branches.has_gone_on_alone(member) => true,
        Some(peer) => now >= peer.heard_at.max(since) + timeout_ms,
        None => now >= since + timeout_ms,
    };
    let speaks = |peer: &Peer| known.hears(timeout_ms, peer);
    is_silent && member.replica != known.my_replica() && !successors(known, member).any(speaks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::Component;
    use crate::config::Config;
    use crate::context::Context;
    use crate::forced_views::ForcedViews;
    use crate::ids::{ReplicaId, Uuid};
    use crate::log::Log;
    use crate::message::Status;
    use crate::peers::Peers;

    const HISTORY: Uuid = Uuid([9; 16]);

    fn member(n: u8) -> Member {
        Member {
            replica: ReplicaId(Uuid([n; 16])),
            incarnation: Incarnation(Uuid([n; 16])),
            full_weight: 1,
            ..Member::default()
        }
    }

    /// Member 1 leads alone; member 2 is connected. The view after these changes.
    fn after(changes: &mut Changes, view: Vec<Member>, joined: &[u8]) -> Option<Configuration> {
        let context = Context::new(Config::new(member(1)), 0);
        let (mut log, mut peers) = (Log::default(), Peers::default());
        let configuration = Configuration {
            members: view,
            ..Configuration::default()
        };
        log.found(HISTORY, Vec::new(), configuration);
        peers.connect(member(2).replica, member(2).incarnation, 0);
        peers.said(member(2).incarnation, &Status::default());
        let mut component = Component::new(0);
        component.set_joined(joined.iter().map(|n| member(*n).incarnation).collect());
        let branches = Branches {
            context: &context,
            log: &log,
            peers: &peers,
            component: &component,
            forced_views: &ForcedViews::default(),
        };
        match changes.propose(branches, 0, true)? {
            Proposal::View(next) => Some(next),
            Proposal::NoVoteLeft => panic!("member 1 has a vote"),
        }
    }

    fn voter(n: u8) -> Member {
        Member {
            weight: 1,
            voter: true,
            ..member(n)
        }
    }

    #[test]
    fn who_is_admitted_has_no_vote_before_it_has_joined() {
        let mut changes = Changes::default();
        changes.admit.insert(member(2).incarnation, member(2));
        let admitted = after(&mut changes, vec![voter(1)], &[2]).expect("a new view");
        assert_eq!(admitted.members, [voter(1), member(2)]);
        assert_eq!(admitted.number, 1);
        let joined = after(&mut Changes::default(), admitted.members, &[2]);
        let joined = joined.expect("another weight");
        assert_eq!(joined.members, [voter(1), voter(2)]);
        assert_eq!(joined.number, 0, "no new view");
    }

    #[test]
    fn nothing_is_proposed_without_a_wish() {
        let mut changes = Changes::default();
        assert_eq!(after(&mut changes, vec![voter(1)], &[]), None);
        changes.reform(0);
        let reformed = after(&mut changes, vec![voter(1)], &[]);
        assert_eq!(reformed.map(|view| view.number), Some(1));
        changes.leave(member(2).incarnation);
        let left = after(&mut changes, vec![voter(1), voter(2)], &[]);
        assert_eq!(left.map(|view| view.members), Some(vec![voter(1)]));
    }
}
