//! The points of the experiment (the levels of its factors), and the points that the records have.

use super::figures::TX_PER_S;
use super::plan::PLAIN;
use crate::frame::{self, Cell, Record, measured_points, values};
use crate::stats::median;

/// The purpose of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Finds the best number of threads.
    Sweep,
    /// Compares the systems.
    Run,
}

impl Part {
    /// The value of the factor `part`.
    fn name(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Run => "run",
        }
    }
}

/// The levels of all factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// The purpose.
    pub part: Part,
    /// Rows of the table.
    pub rows: u32,
    /// Nodes of the cluster.
    pub nodes: u16,
    /// Client threads per node.
    pub threads: u16,
}

impl Point {
    /// The cell of a system at this point.
    pub fn cell(&self, system: &str, repetition: u32) -> Cell {
        let factors = [
            ("part", self.part.name().to_string()),
            ("rows", self.rows.to_string()),
            ("nodes", self.nodes.to_string()),
            ("threads", self.threads.to_string()),
        ];
        Cell {
            system: system.to_string(),
            factors: factors
                .map(|(name, level)| (name.to_string(), level))
                .into(),
            repetition,
        }
    }

    /// The point of a cell.
    pub fn of(cell: &Cell) -> Self {
        Self {
            part: match cell.level("part") == Part::Sweep.name() {
                true => Part::Sweep,
                false => Part::Run,
            },
            rows: cell.number("rows") as u32,
            nodes: cell.number("nodes") as u16,
            threads: cell.number("threads") as u16,
        }
    }

    /// The point of a cell of this part.
    fn in_part(cell: &Cell, part: Part) -> Option<Self> {
        Some(Self::of(cell)).filter(|point| point.part == part)
    }

    /// Whether a cell is at this point.
    pub fn has(&self, cell: &Cell) -> bool {
        Self::of(cell) == *self
    }

    /// The point of the plain server that is the reference for this one.
    pub fn reference(&self) -> Self {
        Self { nodes: 1, ..*self }
    }
}

/// The sorted points of a part at which a system was measured.
pub fn points_of(records: &[Record], system: &str, part: Part) -> Vec<Point> {
    measured_points(records, system, |cell| Point::in_part(cell, part))
}

/// The sorted points of a part at which a system was or will be measured.
pub fn planned_points(records: &[Record], system: &str, part: Part) -> Vec<Point> {
    frame::planned_points(records, system, |cell| Point::in_part(cell, part))
}

/// The number of threads with the highest median in the sweep; of equal ones the smallest.
pub fn best_threads(records: &[Record]) -> Option<u16> {
    let mut best: Option<(u16, f64)> = None;
    for point in points_of(records, PLAIN, Part::Sweep) {
        let all = values(records, PLAIN, TX_PER_S, |cell| point.has(cell));
        let rate = median(&all).unwrap_or(0.0);
        if best.is_none_or(|(_, highest)| rate > highest) {
            best = Some((point.threads, rate));
        }
    }
    best.map(|(threads, _)| threads)
}
