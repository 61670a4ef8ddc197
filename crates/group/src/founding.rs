//! The first view of a cluster that nobody has chosen a founder for (`pc.bootstrap_expect`,
//! `docs/protocol.md`, "Founding without choosing a node").
//!
//! A support is a promised ballot: durable, and one at a time. Blank nodes tell each other theirs again
//! and again, so nothing has to be asked for, and nothing that is lost has to be noticed.

use std::collections::BTreeSet;

use trireme_mutants::{Mutant, planted};

use crate::event::Action;
use crate::group::Group;
use crate::ids::{Ballot, Incarnation, ReplicaId};
use crate::message::{Message, Standing};
use crate::peer::Peer;

/// Who answers at the addresses of the configuration's list.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Listed {
    pub members: Vec<Incarnation>,
    pub missing: Vec<String>,
}

/// What a blank peer has said of itself.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Expects {
    nodes: u32,
    promised: Ballot,
}

impl Group {
    /// True if this node has no history, and may found one with others (`pc.bootstrap_expect`).
    pub fn is_blank(&self) -> bool {
        let has_place = self.leaving.is_none() && !self.gone;
        self.context.config().expect > 0
            && has_place
            && self.standing == Standing::Outside
            && self.log.committed().history.is_nil()
    }

    pub(crate) fn listed(&mut self, members: Vec<Incarnation>, missing: Vec<String>) {
        if self.is_blank() {
            self.listed = Listed { members, missing };
            self.pursue_founding();
        }
    }

    pub(crate) fn expects(&mut self, from: Incarnation, nodes: u32, promised: Ballot) {
        self.number_seen = self.number_seen.max(promised.number);
        self.peers.expects(from, Expects { nodes, promised });
        self.pursue_founding();
    }

    /// Tells what this node expects, and whom it supports, if that is on disk.
    pub(crate) fn tell_expectation(&mut self, to: Vec<Incarnation>) {
        if self.is_blank() && self.persisted >= self.promised {
            let message = Message::Expects {
                nodes: self.context.config().expect,
                promised: self.promised,
            };
            self.send_all(to, message);
        }
    }

    /// Stands, supports, or founds, as what is known allows.
    pub(crate) fn pursue_founding(&mut self) {
        if !self.is_blank() || self.hears_history() {
            return;
        }
        let me = self.my_replica();
        match self.founders() {
            Some(all) if all.first() == Some(&me) => self.stand_as_founder(&all),
            Some(all) => self.support(all.first().copied()),
            None => self.give_way(),
        }
    }

    fn is_listed(&self) -> bool {
        self.listed.members.contains(&self.me())
    }

    /// Somebody here has a history, or has not said yet: nothing is founded beside it.
    fn hears_history(&self) -> bool {
        let blank = |peer: &Peer| {
            let status = peer.status.as_ref();
            status.is_some_and(|s| s.history.is_nil() && s.standing == Standing::Outside)
        };
        self.peers.connected().any(|(_, peer)| !blank(peer))
    }

    /// The replicas that are to found the cluster together, this one among them; None: not all of them
    /// are here, blank, and of one mind.
    fn founders(&self) -> Option<BTreeSet<ReplicaId>> {
        let nodes = self.context.config().expect;
        let listed = &self.listed.members;
        let replica = |incarnation: &Incarnation| {
            if *incarnation == self.me() {
                return Some(self.my_replica());
            }
            let peer = self.peers.get(*incarnation).filter(|peer| peer.up)?;
            let said = peer.expects.filter(|said| said.nodes == nodes);
            said.map(|_| peer.replica)
        };
        let all: Option<BTreeSet<_>> = listed.iter().map(replica).collect();
        let complete = listed.len() == nodes as usize && self.is_listed();
        all.filter(|all| complete && all.len() == listed.len())
    }

    /// The ballot that this blank replica was heard to have promised.
    fn promised_by(&self, replica: ReplicaId) -> Option<Ballot> {
        let peer = self.known().speaker(replica)?.1;
        peer.expects.map(|said| said.promised)
    }

    /// True if no founding can come of what was promised, unless it is this replica's.
    fn may_support(&self, founder: ReplicaId) -> bool {
        let holder = self.promised.replica;
        let free = holder == ReplicaId::default();
        let gave_way = || (self.promised_by(holder)).is_some_and(|other| other > self.promised);
        free || planted(Mutant::SupportMovesFreely)
            || holder == founder
            || holder == self.my_replica()
            || gave_way()
    }

    fn stand_as_founder(&mut self, all: &BTreeSet<ReplicaId>) {
        let me = self.my_replica();
        let others = || all.iter().filter(|replica| **replica != me);
        let heard = others().filter_map(|replica| self.promised_by(*replica));
        let highest = heard.max().unwrap_or_default();
        if self.promised.replica != me || highest > self.promised {
            if self.may_support(me) {
                let number = self.promised.number.max(highest.number) + 1;
                self.promise_ballot(Ballot {
                    number,
                    replica: me,
                });
            }
            return; // goes on when that is on disk
        }
        let supports = |replica: &&ReplicaId| self.promised_by(**replica) == Some(self.promised);
        let support = 1 + others().filter(supports).count();
        let enough = match planted(Mutant::FounderWithoutAll) {
            true => support * 2 > all.len(),
            false => support == all.len(),
        };
        if enough && self.persisted >= self.promised {
            let text = format!(
                "founding a cluster with the support of all {} nodes that pc.bootstrap_expect names",
                all.len()
            );
            self.out.push(Action::Note { text });
            self.context.config_mut().expect = 0;
            self.out.push(Action::Found);
        }
    }

    fn support(&mut self, founder: Option<ReplicaId>) {
        let Some(founder) = founder else { return };
        let asked = self.promised_by(founder);
        let asked = asked.filter(|asked| asked.replica == founder && *asked > self.promised);
        if let Some(ballot) = asked {
            if self.may_support(founder) {
                self.promise_ballot(ballot);
            }
        }
    }

    /// A node that stood once, and is at no address of its list any more, founds nothing: those who have
    /// supported it are free to go on.
    fn give_way(&mut self) {
        let all_others = self.listed.missing.is_empty() && !self.listed.members.is_empty();
        if all_others && !self.is_listed() && self.promised.replica == self.my_replica() {
            let number = self.promised.number + 1;
            self.promise_ballot(Ballot {
                number,
                ..Ballot::default()
            });
        }
    }

    /// A blank node says what it waits for (rule 18).
    pub(crate) fn tell_what_founding_waits_for(&mut self) {
        if !self.is_blank() || !self.missing_reminder.is_due(self.context.now()) {
            return;
        }
        let text = format!(
            "no cluster yet (pc.bootstrap_expect={}): {}",
            self.context.config().expect,
            self.what_founding_waits_for()
        );
        self.out.push(Action::Note { text });
    }

    fn what_founding_waits_for(&self) -> String {
        let nodes = self.context.config().expect;
        let up = || self.peers.connected().map(|(_, peer)| peer);
        let history = up().find_map(|peer| peer.status.as_ref().map(|s| s.history));
        if let Some(history) = history.filter(|history| !history.is_nil()) {
            return format!(
                "a node here is in the cluster {history}; waiting until that has a primary component, to join it"
            );
        }
        if !self.listed.missing.is_empty() {
            let missing = self.listed.missing.join(", ");
            return format!("nobody answers at {missing}; all {nodes} nodes have to be there once");
        }
        if !self.is_listed() {
            return format!(
                "this node is at none of the {nodes} addresses in wsrep_cluster_address: it waits for the others to found one"
            );
        }
        let other = up().find_map(|peer| peer.expects.filter(|said| said.nodes != nodes));
        if let Some(other) = other {
            return format!(
                "another node has pc.bootstrap_expect={}: it must be the same on all of them",
                other.nodes
            );
        }
        let Some(all) = self.founders() else {
            return "not all nodes at the addresses in wsrep_cluster_address are new, have the option, and are \
                    different ones: look at the logs of the others; one with data is started with galera_new_cluster"
                .to_owned();
        };
        let founder = all.first().copied().unwrap_or_default();
        if !self.may_support(founder) {
            return format!(
                "this node has promised its support to {}, which may have founded a cluster and is not here. If that \
                 data directory is lost for good, start one node with galera_new_cluster",
                self.promised.replica
            );
        }
        format!("waiting for the support of all {nodes} nodes for {founder}")
    }
}
