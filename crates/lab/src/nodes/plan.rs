//! The user's choices, and the points that follow from them.

use serde::{Deserialize, Serialize};

use super::article;
use super::points::{Factor, Point};
use crate::client_processes::{ClientProcesses, Schema, Span};
use crate::frame::{Cell, FrameOptions, Preset};

/// sysbench's own defaults.
pub const SCHEMA: Schema = Schema {
    tables: 1,
    rows: 10_000,
};

/// Many nodes: what does each of them cost, and what do clients, threads, appliers and run time do?
///
/// Repeats "How does Galera Cluster behave with many nodes?" (2025): sysbench client processes, each with a schema and a node
/// of its own. Every factor is a list. Its first level is the base; the others are tried one at a time. All levels of --nodes
/// are measured at the base; the other factors at the largest cluster (--quick: at 3 nodes), threads, appliers and seconds
/// there with the most clients. After every run all nodes must hold the same rows.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct Plan {
    /// The choices of every experiment.
    #[command(flatten)]
    pub frame: FrameOptions,
    /// Cluster sizes [default: 1,3,5,7,9; quick: 1,3,9; article: 1,2,...,9].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=16), conflicts_with = "resume")]
    pub nodes: Vec<u64>,
    /// Client processes [default: 1,3,5; quick: 1,3; article: 1,2,3,4,5].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=64), conflicts_with = "resume")]
    pub clients: Vec<u64>,
    /// Threads of each client process [default: 8,32; quick: 8; article: 8,16,32].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=256), conflicts_with = "resume")]
    pub threads: Vec<u64>,
    /// Applier threads of each node [default: 1,4,8; quick: 1,4].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=64), conflicts_with = "resume")]
    pub appliers: Vec<u64>,
    /// Lengths of a measurement [default: 30,90; quick: 5; article: 180,120].
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "resume")]
    pub seconds: Vec<u64>,
    /// Load before each measurement, not counted [default: 10; quick: 1].
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub warmup_seconds: Option<u64>,
    /// Transactions per second that each client process offers; 0 for as many as it can [default: 0; article: 1000]. A
    /// client whose queue of them fills ends the run, which counts as saturated.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub rate: Option<u32>,
}

/// The article's rate. It was more than the article's servers could take; one node here can take more.
const ARTICLE_RATE: u32 = 1000;

impl Plan {
    /// The levels of a factor, the base first.
    pub fn levels(&self, factor: Factor) -> Vec<u64> {
        let (chosen, [quick, machine, article]): (_, [&[u64]; 3]) = match factor {
            Factor::Nodes => (
                &self.nodes,
                [&[1, 3, 9], &[1, 3, 5, 7, 9], &[1, 2, 3, 4, 5, 6, 7, 8, 9]],
            ),
            Factor::Clients => (&self.clients, [&[1, 3], &[1, 3, 5], &[1, 2, 3, 4, 5]]),
            Factor::Threads => (&self.threads, [&[8], &[8, 32], &[8, 16, 32]]),
            Factor::Appliers => (&self.appliers, [&[1, 4], &[1, 4, 8], &[1, 4, 8]]),
            Factor::Seconds => (&self.seconds, [&[5], &[30, 90], &[180, 120]]),
        };
        match (chosen.as_slice(), self.frame.preset()) {
            ([], Preset::Quick) => quick.to_vec(),
            ([], Preset::Box) => machine.to_vec(),
            ([], Preset::Article) => article.to_vec(),
            (chosen, _) => chosen.to_vec(),
        }
    }

    /// All points, in the order in which they are measured.
    pub fn points(&self) -> Vec<Point> {
        if self.frame.preset() == Preset::Article && self.is_all_default() {
            return article::FIGURES.iter().map(|(point, _)| *point).collect();
        }
        let base = Point::new(Factor::ALL.map(|f| self.levels(f).first().copied().unwrap_or(1)));
        let clients = self.levels(Factor::Clients).into_iter().max().unwrap_or(1);
        let large = base.with(Factor::Nodes, self.large_cluster());
        let mut points = Vec::new();
        for factor in Factor::ALL {
            let from = match factor {
                Factor::Nodes => base,
                Factor::Clients => large,
                _ => large.with(Factor::Clients, clients),
            };
            for level in self.levels(factor) {
                let point = from.with(factor, level);
                if !points.contains(&point) {
                    points.push(point);
                }
            }
        }
        points
    }

    /// The number of nodes at which the other factors are varied.
    fn large_cluster(&self) -> u64 {
        let quick = self.frame.preset() == Preset::Quick && self.nodes.is_empty();
        match quick {
            // Nine nodes take long to start.
            true => 3,
            false => self.levels(Factor::Nodes).into_iter().max().unwrap_or(1),
        }
    }

    fn is_all_default(&self) -> bool {
        let lists = [
            &self.nodes,
            &self.clients,
            &self.threads,
            &self.appliers,
            &self.seconds,
        ];
        lists.iter().all(|list| list.is_empty())
    }

    /// All cells, in the order in which they run.
    pub fn cells(&self) -> Vec<Cell> {
        let mut points = self.points();
        let systems = &self.frame.systems;
        let mut cells = Vec::new();
        for repetition in 1..=self.frame.repetitions() {
            // Systems take turns at each point. The quick pass saves starts of servers: each system does all of its
            // points at once, in an order in which they share servers.
            if self.frame.preset() == Preset::Quick {
                points.sort_by_key(|p| (p.level(Factor::Nodes), p.level(Factor::Appliers)));
                let of = |system: &String| {
                    points
                        .iter()
                        .map(|p| p.cell(system, repetition))
                        .collect::<Vec<_>>()
                };
                cells.extend(systems.iter().flat_map(of));
            } else {
                let at = |point: &Point| {
                    systems
                        .iter()
                        .map(|s| point.cell(s, repetition))
                        .collect::<Vec<_>>()
                };
                cells.extend(points.iter().flat_map(at));
            }
        }
        cells
    }

    /// The load before each measurement, in seconds.
    pub fn warmup(&self) -> u64 {
        self.warmup_seconds.unwrap_or(match self.frame.preset() {
            Preset::Quick => 1,
            Preset::Box | Preset::Article => 10,
        })
    }

    /// The transactions per second that each client process offers; None: as many as it can.
    pub fn rate(&self) -> Option<u32> {
        let preset = match self.frame.preset() {
            Preset::Quick | Preset::Box => 0,
            Preset::Article => ARTICLE_RATE,
        };
        Some(self.rate.unwrap_or(preset)).filter(|rate| *rate > 0)
    }

    /// The load of a cell.
    pub fn load(&self, cell: &Cell) -> ClientProcesses {
        let point = Point::of(cell);
        ClientProcesses {
            clients: point.level(Factor::Clients) as usize,
            threads: point.level(Factor::Threads) as usize,
            rate: self.rate(),
            schema: SCHEMA,
        }
    }

    /// The times of load of a cell. All systems get the same random numbers.
    pub fn span(&self, cell: &Cell) -> Span {
        Span {
            warmup: self.warmup(),
            seconds: Point::of(cell).level(Factor::Seconds),
            seed: cell.repetition * 1000,
        }
    }
}
