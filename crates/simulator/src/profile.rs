//! A kind of run: what may go wrong in it, and how often.

use trireme_log::Durability;

use crate::fault::Fault;
use crate::fault_kind::{Kind, fork, mistake};
use crate::random::Random;
use crate::seen::TimeUs;

/// A kind of run.
#[derive(Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// How many nodes, one of these.
    pub sizes: &'static [usize],
    /// How long faults go on.
    pub lasts_ms: (u64, u64),
    /// How many faults.
    pub faults: (u64, u64),
    /// Which faults, by their weights.
    pub mix: &'static [(usize, Kind)],
    /// Weights of nodes.
    pub weights: &'static [u8],
    /// Clocks gain or lose up to this.
    pub drift_ppm: u64,
    /// Chance that one node is far away.
    pub far_percent: u64,
    /// Chance that a node joins in the middle of the run.
    pub late_percent: u64,
    /// `repl.durability`, one of these.
    pub durability: &'static [Durability],
    /// Of a million write-sets, so many fail to apply on a node only; one of these for each node.
    pub apply_errors_per_million: &'static [u64],
    /// Of the DDL, so much fails on all nodes alike.
    pub ddl_error_percent: u64,
    /// Mean time between two transactions of a client, one of these.
    pub think_us: [u64; 3],
    /// Leadership begins where it sits badly, and has to leave.
    pub bad_seat: bool,
    /// So many of the nodes, the last ones, have no database.
    pub arbitrators: usize,
    /// Of the transactions of several rows, so many are streamed: sent in fragments.
    pub streaming_percent: u64,
    /// Nobody is told to bootstrap (`pc.bootstrap_expect`).
    pub founds_together: bool,
    /// Many write-sets count as large: a majority fetches them before they are ordered.
    pub parcels: bool,
    /// What waits to be applied is mostly in the log only.
    pub queues_in_log: bool,
    /// One member lies to the others.
    pub liar: bool,
}

impl Profile {
    /// Its sizes, for a person: "3, 4".
    pub fn sizes_text(&self) -> String {
        let sizes: std::collections::BTreeSet<_> = self.sizes.iter().collect();
        let sizes: Vec<String> = sizes.iter().map(|size| size.to_string()).collect();
        sizes.join(", ")
    }

    /// Makes up a fault, or a few that belong together.
    pub fn add_fault(
        &self,
        size: usize,
        calm_us: TimeUs,
        random: &mut Random,
        faults: &mut Vec<(TimeUs, Fault)>,
    ) {
        let total: usize = self.mix.iter().map(|(weight, _)| weight).sum();
        let mut left = random.below(total.max(1));
        let drawn = self.mix.iter().find(|(weight, _)| {
            let found = left < *weight;
            left = left.saturating_sub(*weight);
            found
        });
        let Some((_, kind)) = drawn else {
            return;
        };
        let mut at = random.within(500_000..=calm_us - 200_000);
        let first = kind.fault(size, random);
        if *kind == Kind::Override {
            // Nobody has a majority; then the operator helps.
            let for_us = random.within(2_500_000..=6_000_000);
            let all: Vec<_> = (0..size).collect();
            let shattered = Fault::Cut {
                from: all.clone(),
                to: all,
                both: false,
                reset: random.percent(50),
                for_us,
            };
            at = at.min(calm_us.saturating_sub(for_us)).max(1);
            faults.push((at, shattered));
            faults.push((at + random.within(1_500_000..=for_us), first));
        } else if [Kind::Beside, Kind::IgnoreSplitBrain, Kind::IgnoreQuorum].contains(kind) {
            mistake(first, size, calm_us, random, faults);
        } else if *kind == Kind::Fork {
            fork(size, calm_us, random, faults);
        } else if *kind == Kind::Flapping {
            for _ in 0..random.within(2..=8) {
                let period_us = first.lasts_us() + random.within(10_000..=500_000);
                faults.push((at, first.clone()));
                at = (at + period_us).min(calm_us - 1);
            }
        } else {
            faults.push((at, first));
        }
    }
}
