//! The user's choices, and the cells that follow from them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use trireme_testbed::systems;

use super::points::{Part, Point, best_threads};
use crate::frame::{Cell, FrameOptions, Preset, Record};

/// The threads per node in the article: the best number of its plain server.
pub const ARTICLE_THREADS: u16 = 6;

/// The system for the sweep of the number of threads, which is also the reference for the others.
pub const PLAIN: &str = "plain";

/// `--sweep` was given without the server to sweep.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--sweep tries numbers of threads on the plain server: add plain to --systems, or leave --sweep out and give the number: --threads N"
)]
pub struct NothingToSweep;

/// sysbench's read-write transactions on all nodes at once: how far does a cluster scale, and what do deadlocks take?
///
/// Repeats "How Much Can Galera Sysbench?" (2008): the best number of threads is found on the plain server, then every node
/// gets as many. One sysbench connects to all nodes in turns. Systems take turns; after every run all nodes must hold the same
/// rows.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct Plan {
    /// The choices of every experiment.
    #[command(flatten)]
    pub frame: FrameOptions,
    /// Cluster sizes [default: 1,2,3,4; quick: 1,2,4].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=16), conflicts_with = "resume")]
    pub nodes: Vec<u16>,
    /// Table sizes [default: 10000,50000,100000; quick: 10000,100000].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "resume")]
    pub rows: Vec<u32>,
    /// Client threads per node [default: the plain server's best of --sweep; 6 if plain is not among --systems].
    #[arg(long, alias = "threads-per-node", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with = "resume")]
    pub threads: Option<u16>,
    /// Numbers of threads to try on the plain server [default: 1,2,4,6,8,12,16; quick: 2,4,8].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with_all = ["resume", "threads"])]
    pub sweep: Vec<u16>,
    /// Length of a measurement [default: box 30, quick 3, article 300].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub seconds: Option<u64>,
    /// Load before each measurement, not counted [default: 10; quick: 1].
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub warmup_seconds: Option<u64>,
}

impl Plan {
    fn preset(&self) -> Preset {
        self.frame.preset()
    }

    pub(super) fn nodes(&self) -> Vec<u16> {
        match (self.nodes.as_slice(), self.preset()) {
            ([], Preset::Quick) => vec![1, 2, 4],
            ([], Preset::Box | Preset::Article) => vec![1, 2, 3, 4],
            (chosen, _) => sorted(chosen),
        }
    }

    pub(super) fn most_nodes(&self) -> usize {
        self.nodes().into_iter().max().unwrap_or(1).into()
    }

    pub(super) fn rows(&self) -> Vec<u32> {
        match (self.rows.as_slice(), self.preset()) {
            ([], Preset::Quick) => vec![10_000, 100_000],
            ([], Preset::Box | Preset::Article) => vec![10_000, 50_000, 100_000],
            (chosen, _) => sorted(chosen),
        }
    }

    pub(super) fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(match self.preset() {
            Preset::Quick => 3,
            Preset::Box => 30,
            Preset::Article => 300,
        })
    }

    pub(super) fn warmup(&self) -> Duration {
        let preset = match self.preset() {
            Preset::Quick => 1,
            Preset::Box | Preset::Article => 10,
        };
        Duration::from_secs(self.warmup_seconds.unwrap_or(preset))
    }

    fn has(&self, system: &str) -> bool {
        self.frame.systems.iter().any(|name| name == system)
    }

    /// Fails if there is no server on which the user's numbers of threads could be tried.
    pub(super) fn check(&self) -> Result<(), NothingToSweep> {
        match self.sweep.is_empty() || self.has(PLAIN) {
            true => Ok(()),
            false => Err(NothingToSweep),
        }
    }

    /// The numbers of threads to try; none if the user gave the number.
    fn sweep(&self) -> Vec<u16> {
        if self.threads.is_some() || !self.has(PLAIN) {
            return Vec::new();
        }
        match (self.sweep.as_slice(), self.preset()) {
            ([], Preset::Quick) => vec![2, 4, 8],
            ([], Preset::Box | Preset::Article) => vec![1, 2, 4, 6, 8, 12, 16],
            (chosen, _) => sorted(chosen),
        }
    }

    /// The threads per node: the user's number, or the best one of the sweep; None until the sweep is done.
    pub(super) fn threads(&self, records: &[Record]) -> Option<u16> {
        let sweep = self.sweep_cells();
        let done = |cell: &Cell| records.iter().any(|r| r.complete && r.cell == *cell);
        match self.threads {
            Some(given) => Some(given),
            None if sweep.is_empty() => Some(ARTICLE_THREADS),
            None if sweep.iter().all(done) => best_threads(records),
            None => None,
        }
    }

    /// The sweep on the plain server, with the largest table.
    pub(super) fn sweep_cells(&self) -> Vec<Cell> {
        let rows = self.rows().into_iter().max().unwrap_or(1);
        let mut cells = Vec::new();
        for repetition in 1..=self.frame.repetitions() {
            for threads in self.sweep() {
                let point = Point {
                    part: Part::Sweep,
                    rows,
                    nodes: 1,
                    threads,
                };
                cells.push(point.cell(PLAIN, repetition));
            }
        }
        cells
    }

    /// All other cells. Systems take turns at each point.
    pub(super) fn run_cells(&self, threads: u16) -> Vec<Cell> {
        let mut cells = Vec::new();
        let mut sizes = self.nodes();
        // A single server is the reference for clusters of any size.
        if !sizes.contains(&1) {
            sizes.insert(0, 1);
        }
        for repetition in 1..=self.frame.repetitions() {
            for rows in self.rows() {
                for &nodes in &sizes {
                    let point = Point {
                        part: Part::Run,
                        rows,
                        nodes,
                        threads,
                    };
                    let runs = |system: &&String| {
                        systems::sizes(system).contains(&nodes.into())
                            && (systems::is_single(system) || self.nodes().contains(&nodes))
                    };
                    let systems = self.frame.systems.iter().filter(runs);
                    cells.extend(systems.map(|system| point.cell(system, repetition)));
                }
            }
        }
        cells
    }
}

fn sorted<T: Ord + Copy>(levels: &[T]) -> Vec<T> {
    let mut levels = levels.to_vec();
    levels.sort_unstable();
    levels.dedup();
    levels
}
