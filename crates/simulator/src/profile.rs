//! A kind of run: its possible faults, and their frequency.

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
    /// Possible numbers of nodes.
    pub sizes: &'static [usize],
    /// Range of the duration of the faults, in milliseconds.
    pub lasts_ms: (u64, u64),
    /// Range of the number of faults.
    pub faults: (u64, u64),
    /// The kinds of faults, with their weights.
    pub mix: &'static [(usize, Kind)],
    /// Possible weights of nodes.
    pub weights: &'static [u8],
    /// Maximum drift of a clock.
    pub drift_ppm: u64,
    /// Probability, in percent, that one node is far away.
    pub far_percent: u64,
    /// Probability, in percent, that a node joins in the middle of the run.
    pub late_percent: u64,
    /// Possible values of `repl.durability`.
    pub durability: &'static [Durability],
    /// Possible rates, per node: of a million write-sets, so many fail to apply on this node only.
    pub apply_errors_per_million: &'static [u64],
    /// Percentage of the DDL that fails on all nodes alike.
    pub ddl_error_percent: u64,
    /// Possible mean times between two transactions of a client.
    pub think_us: [u64; 3],
    /// The first leader is a bad one, and leadership has to move.
    pub bad_seat: bool,
    /// Number of nodes without a database; they are the last ones.
    pub arbitrators: usize,
    /// Arbitrators have their votes before the first fault: `unflushed_ms` is short, and the faults come later.
    pub arbitrators_vote: bool,
    /// Percentage of the transactions with several rows that are streamed, in fragments.
    pub streaming_percent: u64,
    /// No node is told to bootstrap (`pc.bootstrap_expect`).
    pub founds_together: bool,
    /// Percentage of the faults that end a node's connection after which it gives up connects.
    pub gives_up_percent: u64,
    /// Many write-sets are bulk payloads: a majority fetches them before they are ordered.
    pub bulk_payloads: bool,
    /// Most payloads that wait to be applied are in the log only.
    pub queues_in_log: bool,
    /// One member lies to the others.
    pub liar: bool,
}

impl Profile {
    /// Its sizes as text: "3, 4".
    pub fn sizes_text(&self) -> String {
        let sizes: std::collections::BTreeSet<_> = self.sizes.iter().collect();
        let sizes: Vec<String> = sizes.iter().map(|size| size.to_string()).collect();
        sizes.join(", ")
    }

    /// Adds a random fault, or a few that belong together.
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
            // First no part has a majority, then the operator acts.
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
