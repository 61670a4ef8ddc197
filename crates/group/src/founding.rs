//! Founding a cluster without choosing a node (`pc.bootstrap_expect`; `docs/protocol.md`, "Founding without choosing a
//! node").
//!
//! In: the processes at the listed addresses, and the term that each has promised. Out: the term to promise, and the
//! decision that this node founds. A node supports a founder by promising its term, flushed; so it supports one at a
//! time. Blank nodes repeat their promised term with every heartbeat, so a lost message does no harm.

use std::collections::BTreeSet;

use trireme_mutants::{Mutant, planted};

use crate::component::Component;
use crate::ids::{Incarnation, ReplicaId, Term, TimeMs};
use crate::known::Known;
use crate::message::ComponentState;
use crate::peer::Peer;
use crate::reminder::Reminder;
use crate::vote::Vote;

/// The last `Expects` message of a blank peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Expects {
    pub nodes: u32,
    pub promised: Term,
}

/// The knowledge of a blank node (one without a history) about the nodes that found the cluster with it.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Founding {
    /// Processes that answer at the addresses of `wsrep_cluster_address`.
    members: Vec<Incarnation>,
    /// Addresses where no connected process answers.
    missing: Vec<String>,
    reminder: Reminder,
}

/// This node's promised term, whether it is on disk, and whether this process is in no view and may still join one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Support {
    pub promised: Term,
    pub is_persisted: bool,
    pub is_outside: bool,
}

impl Support {
    pub(crate) fn of(vote: &Vote, component: &Component) -> Support {
        Support {
            promised: vote.promised(),
            is_persisted: vote.is_persisted(),
            is_outside: component.is_outside() && !component.is_going(),
        }
    }
}

/// A request of a blank node to the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundingOutput {
    /// Log the reason for which this node waits.
    Note(String),
    /// Promise this term.
    Promise(Term),
    /// Found the history, with the support of this many nodes.
    Found { nodes: usize },
}

impl Founding {
    pub(crate) fn new(now: TimeMs) -> Founding {
        Founding {
            members: Vec::new(),
            missing: Vec::new(),
            reminder: Reminder::later(now),
        }
    }

    /// Takes the processes at the listed addresses, if this node is blank.
    pub(crate) fn list(
        &mut self,
        known: Known,
        support: Support,
        members: Vec<Incarnation>,
        missing: Vec<String>,
    ) -> Option<FoundingOutput> {
        if !is_blank(known, support) {
            return None;
        }
        (self.members, self.missing) = (members, missing);
        self.pursue(known, support)
    }

    /// Returns what to tell these peers: the expected number of nodes and this node's promised term, if that is on
    /// disk.
    pub(crate) fn announce(
        known: Known,
        support: Support,
        to: Vec<Incarnation>,
    ) -> Option<(Vec<Incarnation>, Expects)> {
        let expects = Expects {
            nodes: known.context.config().expect,
            promised: support.promised,
        };
        let is_said = is_blank(known, support) && support.is_persisted;
        is_said.then_some((to, expects))
    }

    /// Stands, supports another node, or founds, as far as the known facts allow.
    pub(crate) fn pursue(&self, known: Known, support: Support) -> Option<FoundingOutput> {
        if !is_blank(known, support) || hears_history(known) {
            return None;
        }
        let me = known.my_replica();
        match self.founders(known) {
            Some(all) if all.first() == Some(&me) => stand(known, support, &all),
            Some(all) => back(known, support, *all.first()?),
            None => self.give_way(known, support),
        }
    }

    /// Every 10 s, logs the reason for which this blank node waits (rule 18).
    pub(crate) fn remind(&mut self, known: Known, support: Support) -> Option<FoundingOutput> {
        let is_due = is_blank(known, support) && self.reminder.is_due(known.now());
        is_due.then(|| FoundingOutput::Note(self.tell(known, support)))
    }

    /// Returns the reason for which this blank node waits, as text.
    pub(crate) fn tell(&self, known: Known, support: Support) -> String {
        format!(
            "no cluster yet (pc.bootstrap_expect={}): {}",
            known.context.config().expect,
            self.what_it_waits_for(known, support)
        )
    }

    /// The addresses where no connected process answers.
    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }

    fn is_listed(&self, known: Known) -> bool {
        self.members.contains(&known.me())
    }

    /// The replicas that found the cluster together, with this one; None if not all of them are here, blank, and expect
    /// the same number.
    fn founders(&self, known: Known) -> Option<BTreeSet<ReplicaId>> {
        let nodes = known.context.config().expect;
        let listed = &self.members;
        let replica = |incarnation: &Incarnation| {
            if *incarnation == known.me() {
                return Some(known.my_replica());
            }
            let peer = known.peers.get(*incarnation).filter(|peer| peer.up)?;
            let said = peer.expects.filter(|said| said.nodes == nodes);
            said.map(|_| peer.replica)
        };
        let all: Option<BTreeSet<_>> = listed.iter().map(replica).collect();
        let complete = listed.len() == nodes as usize && self.is_listed(known);
        all.filter(|all| complete && all.len() == listed.len())
    }

    /// A node that stood, and is no longer at an address of its list, founds nothing. It promises a higher term to
    /// nobody, so that its supporters are free again.
    fn give_way(&self, known: Known, support: Support) -> Option<FoundingOutput> {
        let all_others = self.missing.is_empty() && !self.members.is_empty();
        let stood = support.promised.replica == known.my_replica();
        let number = support.promised.number + 1;
        (all_others && !self.is_listed(known) && stood).then_some(FoundingOutput::Promise(Term {
            number,
            ..Term::default()
        }))
    }

    fn what_it_waits_for(&self, known: Known, support: Support) -> String {
        let nodes = known.context.config().expect;
        let up = || known.peers.connected().map(|(_, peer)| peer);
        let history = up().find_map(|peer| peer.status.as_ref().map(|s| s.history));
        if let Some(history) = history.filter(|history| !history.is_nil()) {
            return format!(
                "a node here is in the cluster {history}; waiting until that has a primary component, to join it"
            );
        }
        if !self.missing.is_empty() {
            let missing = self.missing.join(", ");
            return format!(
                "nobody answers at {missing}; all {nodes} nodes must be connected at the same time to found the cluster"
            );
        }
        if !self.is_listed(known) {
            return format!(
                "wsrep_cluster_address has {nodes} addresses, and none is this node's: it waits for the others to \
                 found the cluster"
            );
        }
        let other = up().find_map(|peer| peer.expects.filter(|said| said.nodes != nodes));
        if let Some(other) = other {
            return format!(
                "another node has pc.bootstrap_expect={}: it must be the same on all of them",
                other.nodes
            );
        }
        let Some(all) = self.founders(known) else {
            return "not every address in wsrep_cluster_address leads to another new node with this option: read the \
                logs of the other nodes; if one of them has data, start that one with galera_new_cluster"
                .to_owned();
        };
        let founder = all.first().copied().unwrap_or_default();
        if !may_support(known, support, founder) {
            return format!(
                "this node has promised its support to {}, which may have founded a cluster and is not connected: \
                 start it. If that data directory is lost for good, start one node with galera_new_cluster",
                support.promised.replica
            );
        }
        format!("waiting for the support of all {nodes} nodes for {founder}")
    }
}

/// True for a node without a history that may found one together with others (`pc.bootstrap_expect`).
pub(crate) fn is_blank(known: Known, support: Support) -> bool {
    let is_new = known.log.committed().history.is_nil();
    known.context.config().expect > 0 && support.is_outside && is_new
}

/// True if a connected peer has a history, or has not said: then this node founds nothing.
fn hears_history(known: Known) -> bool {
    let blank = |peer: &Peer| {
        let status = peer.status.as_ref();
        status.is_some_and(|s| s.history.is_nil() && s.component_state == ComponentState::Outside)
    };
    known.peers.connected().any(|(_, peer)| !blank(peer))
}

/// The term that this blank replica says it has promised.
fn promised_by(known: Known, replica: ReplicaId) -> Option<Term> {
    let (_, peer) = known.speaker(replica)?;
    peer.expects.map(|said| said.promised)
}

/// True if this node may support `founder`: its present promise cannot lead to another founding.
fn may_support(known: Known, support: Support, founder: ReplicaId) -> bool {
    let holder = support.promised.replica;
    let free = holder == ReplicaId::default();
    let gave_way = || (promised_by(known, holder)).is_some_and(|other| other > support.promised);
    free || planted(Mutant::SupportMovesFreely)
        || holder == founder
        || holder == known.my_replica()
        || gave_way()
}

fn stand(known: Known, support: Support, all: &BTreeSet<ReplicaId>) -> Option<FoundingOutput> {
    let me = known.my_replica();
    let promised = support.promised;
    let others = || all.iter().filter(|replica| **replica != me);
    let heard = others().filter_map(|replica| promised_by(known, *replica));
    let highest = heard.max().unwrap_or_default();
    if promised.replica != me || highest > promised {
        let number = promised.number.max(highest.number) + 1;
        let replica = me;
        // `pursue` is called again when the promise is on disk.
        let own = FoundingOutput::Promise(Term { number, replica });
        return may_support(known, support, me).then_some(own);
    }
    let supports = |replica: &&ReplicaId| promised_by(known, **replica) == Some(promised);
    let count = 1 + others().filter(supports).count();
    let enough = match planted(Mutant::FounderWithoutAll) {
        true => count * 2 > all.len(),
        false => count == all.len(),
    };
    let nodes = all.len();
    (enough && support.is_persisted).then_some(FoundingOutput::Found { nodes })
}

/// Promises the founder's term.
fn back(known: Known, support: Support, founder: ReplicaId) -> Option<FoundingOutput> {
    let asked = promised_by(known, founder)?;
    let is_new = asked.replica == founder && asked > support.promised;
    (is_new && may_support(known, support, founder)).then_some(FoundingOutput::Promise(asked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::configuration::Member;
    use crate::context::Context;
    use crate::ids::Uuid;
    use crate::log::Log;
    use crate::message::Status;
    use crate::peers::Peers;

    fn replica(n: u8) -> ReplicaId {
        ReplicaId(Uuid([n; 16]))
    }

    fn process(n: u8) -> Incarnation {
        Incarnation(Uuid([n; 16]))
    }

    fn term(number: u64, of: u8) -> Term {
        let replica = replica(of);
        Term { number, replica }
    }

    /// Returns the decision of node `me` of two. `other`: the other node, with the term that it says it has promised.
    fn decide(me: u8, other: (u8, Term), promised: Term) -> Option<FoundingOutput> {
        let member = Member {
            replica: replica(me),
            incarnation: process(me),
            ..Member::default()
        };
        let config = Config {
            expect: 2,
            ..Config::new(member)
        };
        let (context, log, mut peers) = (Context::new(config, 0), Log::default(), Peers::default());
        let (peer, supports) = other;
        peers.connect(replica(peer), process(peer), 0);
        peers.said(process(peer), &Status::default());
        let expects = Expects {
            nodes: 2,
            promised: supports,
        };
        peers.expects(process(peer), expects);
        let known = Known {
            context: &context,
            log: &log,
            peers: &peers,
        };
        let mut founding = Founding::new(0);
        let support = Support {
            promised,
            is_persisted: true,
            is_outside: true,
        };
        let listed = vec![process(me), process(peer)];
        founding.list(known, support, listed, Vec::new())
    }

    #[test]
    fn the_first_stands_the_other_supports_and_with_all_it_founds() {
        let none = Term::default();
        let stands = Some(FoundingOutput::Promise(term(1, 1)));
        assert_eq!(decide(1, (2, none), none), stands);
        assert_eq!(decide(2, (1, none), none), None, "the first has not stood");
        assert_eq!(decide(2, (1, term(1, 1)), none), stands);
        assert_eq!(decide(1, (2, none), term(1, 1)), None, "not all support");
        let founds = Some(FoundingOutput::Found { nodes: 2 });
        assert_eq!(decide(1, (2, term(1, 1)), term(1, 1)), founds);
    }

    #[test]
    fn a_support_stays_where_it_was_given() {
        assert_eq!(decide(2, (1, term(5, 1)), term(4, 3)), None);
    }
}
