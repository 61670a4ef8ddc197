//! The factors of the experiment, and its points: a level of each factor.

use std::collections::BTreeSet;

use crate::client_processes::is_limited;
use crate::frame::{self, Cell, Record, measured_points};

/// A factor of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factor {
    /// Nodes of the cluster.
    Nodes,
    /// Client processes.
    Clients,
    /// Threads of each client process.
    Threads,
    /// Applier threads of each node.
    Appliers,
    /// Length of the measurement.
    Seconds,
}

impl Factor {
    /// All factors, in the order of a point's levels.
    pub const ALL: [Self; 5] = [
        Self::Nodes,
        Self::Clients,
        Self::Threads,
        Self::Appliers,
        Self::Seconds,
    ];

    /// Its name in cells and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Clients => "clients",
            Self::Threads => "threads",
            Self::Appliers => "appliers",
            Self::Seconds => "seconds",
        }
    }
}

/// A level of each factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point([u64; 5]);

impl Point {
    /// The point with these levels, in the order of [`Factor::ALL`].
    pub const fn new(levels: [u64; 5]) -> Self {
        Self(levels)
    }

    /// The point of a cell.
    pub fn of(cell: &Cell) -> Self {
        Self(Factor::ALL.map(|factor| cell.number(factor.name())))
    }

    /// The cell of a system at this point.
    pub fn cell(self, system: &str, repetition: u32) -> Cell {
        let factors = Factor::ALL.map(|f| (f.name().to_string(), self.level(f).to_string()));
        Cell {
            system: system.to_string(),
            factors: factors.into(),
            repetition,
        }
    }

    /// The level of a factor.
    pub fn level(self, factor: Factor) -> u64 {
        self.0[factor as usize]
    }

    /// The same point with another level of one factor.
    pub fn with(mut self, factor: Factor, level: u64) -> Self {
        self.0[factor as usize] = level;
        self
    }

    /// Connections of all clients.
    pub fn connections(self) -> u64 {
        self.level(Factor::Clients) * self.level(Factor::Threads)
    }

    /// All factors, as text.
    pub fn text(self) -> String {
        self.text_of(&Factor::ALL)
    }

    /// All factors except one, as text.
    pub fn without(self, factor: Factor) -> String {
        let mut others = Factor::ALL.to_vec();
        others.retain(|other| *other != factor);
        self.text_of(&others)
    }

    fn text_of(self, factors: &[Factor]) -> String {
        let levels = factors
            .iter()
            .map(|f| format!("{} {}", f.name(), self.level(*f)));
        levels.collect::<Vec<_>>().join(", ")
    }
}

/// The points at which a system was measured, in order.
pub fn points_of(records: &[Record], system: &str) -> Vec<Point> {
    measured_points(records, system, |cell| Some(Point::of(cell)))
}

/// The points at which a system was or will be measured, in order.
pub fn planned_points(records: &[Record], system: &str) -> Vec<Point> {
    frame::planned_points(records, system, |cell| Some(Point::of(cell)))
}

/// The number of a system's runs at a point that the clients' rate limited.
pub fn limited_runs(records: &[Record], system: &str, point: Point) -> usize {
    let here = |r: &&Record| r.cell.system == system && Point::of(&r.cell) == point;
    records
        .iter()
        .filter(here)
        .filter(|r| is_limited(r))
        .count()
}

/// Groups of points that differ in only one factor and have at least two levels of it. Each group is sorted by level.
pub fn lines(points: &[Point], factor: Factor) -> Vec<Vec<Point>> {
    let others: BTreeSet<Point> = points.iter().map(|point| point.with(factor, 0)).collect();
    let line = |other: Point| -> Vec<Point> {
        let on = points.iter().filter(|point| point.with(factor, 0) == other);
        on.copied().collect()
    };
    let mut all: Vec<Vec<Point>> = others.into_iter().map(line).collect();
    for line in &mut all {
        line.sort_unstable();
        line.dedup();
    }
    all.retain(|line| line.len() > 1);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_knows_its_point() {
        let point = Point::new([9, 5, 8, 1, 30]);
        assert_eq!(Point::of(&point.cell("galera", 2)), point);
        assert_eq!(point.connections(), 40);
        assert_eq!(point.with(Factor::Threads, 16).connections(), 80);
        let text = point.without(Factor::Appliers);
        assert_eq!(text, "nodes 9, clients 5, threads 8, seconds 30");
    }

    #[test]
    fn a_line_varies_one_factor() {
        let points = [
            Point::new([9, 1, 8, 1, 30]),
            Point::new([1, 1, 8, 1, 30]),
            Point::new([9, 5, 8, 1, 30]),
            Point::new([9, 5, 8, 4, 30]),
        ];
        let nodes = lines(&points, Factor::Nodes);
        assert_eq!(nodes, [vec![points[1], points[0]]]);
        let appliers = lines(&points, Factor::Appliers);
        assert_eq!(appliers, [vec![points[2], points[3]]]);
        assert!(lines(&points, Factor::Seconds).is_empty());
    }
}
