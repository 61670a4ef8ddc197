//! A cluster that is founded without a chosen node (`pc.bootstrap_expect`): the address lists of the nodes, and an
//! operator who changes them.

use trireme_engine::Expected;
use trireme_group::Uuid;

use crate::fault::Fault;
use crate::plan::Plan;
use crate::profile::Profile;
use crate::random::Random;
use crate::seen::{NodeId, TimeUs};

/// The founding has ended, in one way or another, by about this time.
const FOUNDING_US: TimeUs = 4_000_000;

/// The configurations of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founding {
    /// `pc.bootstrap_expect`.
    pub nodes: usize,
    /// `wsrep_cluster_address` of processes that start before the change ...
    pub first: Vec<NodeId>,
    /// ... and of later ones; one node may be replaced by another.
    pub then: Vec<NodeId>,
    /// Time of the change.
    pub changed_us: TimeUs,
}

impl Founding {
    /// The list of a process that starts now.
    pub fn list(&self, now_us: TimeUs) -> &[NodeId] {
        match now_us < self.changed_us {
            true => &self.first,
            false => &self.then,
        }
    }

    /// The expectation of a process that founds this history if it is the one that founds.
    pub fn expected(&self, history: Uuid) -> Expected {
        Expected {
            nodes: self.nodes as u32,
            history,
        }
    }
}

impl Plan {
    /// Makes a plan in which no node is told to bootstrap, with faults while the nodes find each other.
    pub(crate) fn found_together(&mut self, profile: &Profile, random: &mut Random) {
        let size = self.nodes.len();
        let nodes = random.shuffled(size);
        let all_but = |left_out: NodeId| (0..size).filter(|node| *node != left_out).collect();
        let changes = size > 2 && random.percent(60);
        self.founding = Some(match changes {
            true => Founding {
                nodes: size - 1,
                first: all_but(nodes[0]),
                then: all_but(nodes[1]),
                changed_us: random.within(500_000..=FOUNDING_US),
            },
            false => Founding {
                nodes: size,
                first: (0..size).collect(),
                then: (0..size).collect(),
                changed_us: 0,
            },
        });
        self.recovers = true;
        for node in &mut self.nodes {
            node.start_us = random.within(0..=FOUNDING_US / 3);
            // In-doubt DDL would leave the only database waiting for an operator (rule 13).
            node.server.load.ddl_per_mille = 0;
        }
        for _ in 0..random.within(0..=7) {
            let mut faults: Vec<(TimeUs, Fault)> = Vec::new();
            profile.add_fault(size, self.calm_us, random, &mut faults);
            let at = random.within(0..=FOUNDING_US.min(self.calm_us));
            self.faults
                .extend(faults.into_iter().map(|(_, fault)| (at, fault)));
        }
        self.faults.sort_by_key(|(at, _)| *at);
    }
}
