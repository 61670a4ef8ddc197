//! The measured points (the levels of the factors in the records), and the selection of a point's cells.

use std::collections::BTreeSet;

use super::plan::{LOAD, RUN};
use crate::frame::{self, Cell, Record, measured_points, values};
use crate::stats::median;

/// A point of the experiment at which transactions ran.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunPoint {
    /// The number of warehouses.
    pub warehouses: u64,
    /// The nodes of the cluster. The reference has 1, whatever the point has.
    pub nodes: u64,
    /// The nodes that take the load.
    pub to: String,
    /// The connections in all.
    pub connections: u64,
}

impl RunPoint {
    /// The point of a cell; `None` if it loads the tables.
    pub fn of(cell: &Cell) -> Option<Self> {
        (cell.level("part") == RUN).then(|| Self {
            warehouses: cell.number("warehouses"),
            nodes: cell.number("nodes"),
            to: cell.level("to").to_string(),
            connections: cell.number("connections"),
        })
    }

    /// Whether a cell is at this point.
    pub fn has(&self, cell: &Cell) -> bool {
        Self::of(cell).as_ref() == Some(self)
    }

    /// Whether the load goes to all nodes, or to the only one.
    pub fn is_to_all(&self) -> bool {
        self.to == "all" || self.nodes == 1
    }

    /// Whether the load goes to one node.
    pub fn is_to_one(&self) -> bool {
        self.to == "one"
    }
}

/// All points at which a system was measured.
pub fn points_of(records: &[Record], system: &str) -> Vec<RunPoint> {
    measured_points(records, system, RunPoint::of)
}

/// All points at which a system was or will be measured.
pub fn planned_points(records: &[Record], system: &str) -> Vec<RunPoint> {
    frame::planned_points(records, system, RunPoint::of)
}

/// The point with the largest `figure` among a system's points that `chosen` picks; None while one of them is not
/// measured, because it may be the best.
pub fn best(
    records: &[Record],
    system: &str,
    figure: &str,
    chosen: impl Fn(&RunPoint) -> bool,
) -> Option<RunPoint> {
    let value = |point: RunPoint| {
        let all = values(records, system, figure, |cell| point.has(cell));
        Some((median(&all)?, point))
    };
    let points = planned_points(records, system).into_iter().filter(chosen);
    let measured: Option<Vec<(f64, RunPoint)>> = points.map(value).collect();
    let best = measured?.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, point)| point)
}

/// The different values of `level` in the records, sorted.
pub fn levels<T: Ord>(records: &[Record], level: impl Fn(&Cell) -> Option<T>) -> Vec<T> {
    let all: BTreeSet<T> = records.iter().filter_map(|r| level(&r.cell)).collect();
    all.into_iter().collect()
}

/// The numbers of warehouses in the records.
pub fn warehouses(records: &[Record]) -> Vec<u64> {
    levels(records, |cell| Some(cell.number("warehouses")))
}

/// Whether a cell loads this number of warehouses into a cluster of this number of nodes.
pub fn is_load(cell: &Cell, warehouses: u64, nodes: u64) -> bool {
    cell.level("part") == LOAD
        && cell.number("warehouses") == warehouses
        && cell.number("nodes") == nodes
}

/// The sizes of the clusters into which this number of warehouses was loaded.
pub fn loaded_nodes(records: &[Record], warehouses: u64) -> Vec<u64> {
    levels(records, |cell| {
        let nodes = cell.number("nodes");
        is_load(cell, warehouses, nodes).then_some(nodes)
    })
}
