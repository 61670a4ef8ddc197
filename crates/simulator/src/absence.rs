//! A member that falls silent for good, when everybody has recovered from the faults. Others restart meanwhile. A
//! majority needs nobody else (docs/guarantees.md, 4 and 5): they serve again without the silent member.

use trireme_log::Durability;

use crate::plan::Plan;
use crate::random::Random;
use crate::seen::{NodeId, TimeUs};

/// Percentage of the plans with an absence.
const PERCENT: u64 = 20;
/// The stream of random numbers of a seed.
const STREAM: u64 = 17;
/// A view that was proposed before the leader missed the silent member may need its vote for ever (decision 3).
const LEAST_US: TimeUs = 600_000;
/// Longest time from the silence, or from a restart, to the next restart: sometimes the silent member is removed before.
const LONGEST_US: TimeUs = 6_000_000;

/// The absence of one plan.
#[derive(Clone, Debug)]
pub struct Absence {
    /// The silent member.
    pub node: NodeId,
    /// Its links are cut. Else its process stands still, with all links up.
    pub is_cut_off: bool,
    /// The others that restart, each so long after the time before.
    pub restarts: Vec<(TimeUs, Restart)>,
}

/// A restart.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    /// The node.
    pub node: NodeId,
    /// Its process is killed. Else it leaves.
    pub is_killed: bool,
    /// Time until the next process starts.
    pub for_us: TimeUs,
}

impl Absence {
    /// Draws the absence of this plan, if it has one.
    pub(crate) fn of(plan: &Plan) -> Option<Absence> {
        let random = &mut Random::new(plan.seed, STREAM);
        if !random.percent(PERCENT) {
            return None;
        }
        let node = random.below(plan.nodes.len());
        let others: Vec<NodeId> = (0..plan.nodes.len()).filter(|n| *n != node).collect();
        let is_cut_off = random.percent(50);
        // A process that comes back without its log needs the silent member's word. One that ends within a DDL, or a vote on
        // it, needs another database (decisions 13, 22).
        let is_data = |n: &&NodeId| !plan.nodes[**n].arbitrator;
        let may_restart = plan.recovers && others.iter().filter(is_data).count() > 1;
        let may_die = plan.durability != Durability::Memory;
        let count = if may_restart { random.below(3) } else { 0 };
        let restarts = (0..count).map(|_| {
            let after_us = random.within(LEAST_US..=LONGEST_US);
            let restart = Restart {
                node: random.pick(&others),
                is_killed: random.percent(50) && may_die,
                for_us: random.within(0..=1_000_000),
            };
            (after_us, restart)
        });
        Some(Absence {
            node,
            is_cut_off,
            restarts: restarts.collect(),
        })
    }
}
