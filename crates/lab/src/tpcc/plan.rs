//! The user's choices, and the cells that follow from them.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use trireme_testbed::systems::{self, Durability, Writers};

use super::loader;
use crate::frame::{Absent, Cell, FrameOptions, Preset};

/// The value of the factor `part` for cells that load the tables through the system.
pub const LOAD: &str = "load";
/// The value of the factor `part` for cells that run transactions.
pub const RUN: &str = "run";

/// The nodes that take the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// The first node.
    One,
    /// All nodes, connections in turns.
    All,
}

impl Target {
    /// The value of the factor `to`.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::All => "all",
        }
    }
}

/// The isolation of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// InnoDB's default.
    RepeatableRead,
    /// The level of the second article.
    ReadCommitted,
}

impl Isolation {
    /// The level as in `SET TRANSACTION ISOLATION LEVEL`.
    pub fn sql(self) -> &'static str {
        match self {
            Self::RepeatableRead => "REPEATABLE READ",
            Self::ReadCommitted => "READ COMMITTED",
        }
    }
}

/// The moment when a commit is on stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flush {
    /// Some time after the answer.
    Lazy,
    /// Before the answer, on the client's node.
    Origin,
    /// Before the answer, on every node that acknowledges. Galera has no such setting.
    Full,
}

impl Flush {
    /// The demand on a system.
    pub fn durability(self) -> Durability {
        match self {
            Self::Lazy => Durability::Lazy,
            Self::Origin => Durability::Origin,
            Self::Full => Durability::Full,
        }
    }
}

/// TPC-C's five transaction types: what do more nodes and more connections give, and what do conflicts cost?
///
/// Repeats "Yes! It works with Amazon EC2" (2008) and "Percona XtraDB Cluster 8.0 scaling" (2020) with a driver of its own:
/// the standard's mix without keying or think time. Every run has fresh data; systems take turns; after every run the
/// standard's consistency conditions must hold, and all nodes must hold the same rows.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct Plan {
    /// The choices of every experiment.
    #[command(flatten)]
    pub frame: FrameOptions,
    /// Cluster sizes [default: 1,3,5; quick: 1,3; article: 1,2,3,4,5].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=16), conflicts_with = "resume")]
    pub nodes: Vec<u16>,
    /// Numbers of connections in all [default: 8,64; quick: 8; article: 1,2,4,8,16,32,64,128,256].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=280), conflicts_with = "resume")]
    pub connections: Vec<u16>,
    /// Sizes of the database in warehouses, 110 MB each [default: 10; quick: 2; article: 15].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "resume")]
    pub warehouses: Vec<u32>,
    /// The nodes that take the load [default: both; quick: all].
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "resume")]
    pub to: Vec<Target>,
    /// The isolation level of the transactions [default: repeatable-read; article: read-committed].
    #[arg(long, value_enum, conflicts_with = "resume")]
    pub isolation: Option<Isolation>,
    /// The moment when a commit is on stable storage.
    #[arg(long, value_enum, default_value = "origin", conflicts_with = "resume")]
    pub durability: Flush,
    /// Length of a measurement [default: box 30, quick 6, article 300].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "resume")]
    pub seconds: Option<u64>,
    /// Load before each measurement, not counted [default: box 20, quick 2, article 10].
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub warmup_seconds: Option<u64>,
}

impl Plan {
    fn preset(&self) -> Preset {
        self.frame.preset()
    }

    pub(super) fn nodes(&self) -> Vec<u16> {
        match (self.nodes.as_slice(), self.preset()) {
            ([], Preset::Quick) => vec![1, 3],
            ([], Preset::Box) => vec![1, 3, 5],
            ([], Preset::Article) => vec![1, 2, 3, 4, 5],
            (chosen, _) => sorted(chosen),
        }
    }

    fn connections(&self) -> Vec<u16> {
        match (self.connections.as_slice(), self.preset()) {
            ([], Preset::Quick) => vec![8],
            ([], Preset::Box) => vec![8, 64],
            ([], Preset::Article) => (0..=8).map(|n| 1 << n).collect(),
            (chosen, _) => sorted(chosen),
        }
    }

    pub(super) fn warehouses(&self) -> Vec<u32> {
        match (self.warehouses.as_slice(), self.preset()) {
            ([], Preset::Quick) => vec![2],
            ([], Preset::Box) => vec![10],
            ([], Preset::Article) => vec![15],
            (chosen, _) => sorted(chosen),
        }
    }

    fn targets(&self) -> Vec<Target> {
        match (self.to.as_slice(), self.preset()) {
            ([], Preset::Quick) => vec![Target::All],
            ([], Preset::Box | Preset::Article) => vec![Target::One, Target::All],
            (chosen, _) => chosen.to_vec(),
        }
    }

    /// The isolation level. The second article chose its own (`--trx_level=RC`); the first one names none.
    pub(super) fn isolation(&self) -> Isolation {
        self.isolation.unwrap_or(match self.preset() {
            Preset::Quick | Preset::Box => Isolation::RepeatableRead,
            Preset::Article => Isolation::ReadCommitted,
        })
    }

    pub(super) fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(match self.preset() {
            Preset::Quick => 6,
            Preset::Box => 30,
            Preset::Article => 300,
        })
    }

    pub(super) fn warmup(&self) -> Duration {
        let preset = match self.preset() {
            Preset::Quick => 2,
            // The buffer pool is cold: after 10 s the throughput still rose in the first third of the measurement.
            Preset::Box => 20,
            Preset::Article => 10,
        };
        Duration::from_secs(self.warmup_seconds.unwrap_or(preset))
    }

    /// All cells, in the order in which they run: systems take turns at each point.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for repetition in 1..=self.frame.repetitions() {
            for warehouses in self.warehouses() {
                for point in self.points(warehouses) {
                    let systems = self.frame.systems.iter().filter(|s| self.runs(s, &point));
                    cells.extend(systems.map(|system| point.cell(system, repetition)));
                }
            }
        }
        cells
    }

    /// The systems that are measured at no point, with the reason.
    pub(super) fn left_out(&self) -> Vec<Absent> {
        let cells = self.cells();
        let has_runs = |system: &String| {
            let mut own = cells.iter().filter(|cell| cell.system == *system);
            own.any(|cell| cell.level("part") == RUN)
        };
        let systems = self.frame.systems.iter();
        let without = systems.filter(|system| !has_runs(system));
        let absent = |system: &String| Absent {
            system: system.clone(),
            reason: self.why_no_runs(system).to_string(),
        };
        without.map(absent).collect()
    }

    /// The reason why [`Self::runs`] is true at no point.
    fn why_no_runs(&self, system: &str) -> &'static str {
        if self.durability == Flush::Full && !systems::flushes_everywhere(system) {
            "no setting of it makes every node flush before the answer; give another --durability"
        } else if self.nodes().iter().all(|nodes| *nodes == 1) {
            "it is measured with two nodes and more; give other --nodes"
        } else {
            "only its first node takes writes; give --to one"
        }
    }

    fn points(&self, warehouses: u32) -> Vec<Point> {
        let mut points = Vec::new();
        let mut nodes = self.nodes();
        // A single server is the reference for clusters of any size.
        if !nodes.contains(&1) {
            nodes.insert(0, 1);
        }
        let loading = nodes.iter().map(|nodes| Point {
            part: LOAD,
            warehouses,
            nodes: *nodes,
            connections: loader::CONNECTIONS as u16,
            to: Target::One,
        });
        points.extend(loading);
        for connections in self.connections() {
            for nodes in &nodes {
                let targets = match nodes {
                    // With one node, both targets are the same.
                    1 => vec![Target::One],
                    _ => self.targets(),
                };
                points.extend(targets.into_iter().map(|to| Point {
                    part: RUN,
                    warehouses,
                    nodes: *nodes,
                    connections,
                    to,
                }));
            }
        }
        points
    }

    /// Whether a system is measured at a point.
    fn runs(&self, system: &str, point: &Point) -> bool {
        if point.to == Target::All && systems::writers(system) == Writers::First
            || self.durability == Flush::Full && !systems::flushes_everywhere(system)
        {
            return false;
        }
        systems::sizes(system).contains(&point.nodes.into())
            && (systems::is_single(system) || self.nodes().contains(&point.nodes))
    }
}

/// The levels of all factors.
struct Point {
    part: &'static str,
    warehouses: u32,
    nodes: u16,
    connections: u16,
    to: Target,
}

impl Point {
    fn cell(&self, system: &str, repetition: u32) -> Cell {
        let factors = [
            ("part", self.part.to_string()),
            ("warehouses", self.warehouses.to_string()),
            ("nodes", self.nodes.to_string()),
            ("connections", self.connections.to_string()),
            ("to", self.to.name().to_string()),
        ];
        Cell {
            system: system.to_string(),
            factors: factors
                .map(|(name, level)| (name.to_string(), level))
                .into(),
            repetition,
        }
    }
}

fn sorted<T: Ord + Copy>(levels: &[T]) -> Vec<T> {
    let mut levels = levels.to_vec();
    levels.sort_unstable();
    levels.dedup();
    levels
}
