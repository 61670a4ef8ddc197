//! The data of a run: cells, and the record of each measured cell. Only complete records count in charts, tables and
//! verdicts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// One measurement to make: a system at a point, in one repetition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The system's name.
    pub system: String,
    /// The point: the experiment's factors and their levels.
    pub factors: BTreeMap<String, String>,
    /// The number of the repetition, from 1.
    pub repetition: u32,
}

impl Cell {
    /// The level of a factor; empty if the experiment does not have the factor.
    pub fn level(&self, factor: &str) -> &str {
        self.factors.get(factor).map_or("", String::as_str)
    }

    /// The level of a factor as a number; 0 if it is no number.
    pub fn number(&self, factor: &str) -> u64 {
        self.level(factor).parse().unwrap_or(0)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (factor, level) in &self.factors {
            write!(f, "{factor} {level}, ")?;
        }
        write!(f, "{}, repetition {}", self.system, self.repetition)
    }
}

/// The result of a measurement. It is filled during the measurement, so that one that breaks off leaves its data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Figures by name; each name ends with its unit.
    pub figures: BTreeMap<String, f64>,
    /// The commits in each second.
    pub per_second: Vec<u64>,
}

/// The note of a cell that is planned and was not measured yet.
pub const NOT_MEASURED: &str = "not measured yet";

/// The raw data of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The cell.
    pub cell: Cell,
    /// Whether the measurement reached its end and its checks passed. Other records are kept, but not counted.
    pub complete: bool,
    /// The reason why the record is not complete.
    pub note: String,
    /// The end of the measurement, UTC.
    pub date: String,
    /// The commit from which the program was built.
    pub commit: String,
    /// The part of the run that measured it: an index into `facts.json`. Records of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    /// The result.
    pub measured: Measured,
}

impl Record {
    /// The record that stands for a planned cell without one.
    pub fn not_measured(cell: Cell) -> Self {
        Self {
            cell,
            complete: false,
            note: NOT_MEASURED.to_string(),
            date: String::new(),
            commit: String::new(),
            part: None,
            measured: Measured::default(),
        }
    }
}

/// Names the builds of the complete records if there are several.
pub fn several_builds<'a>(records: impl IntoIterator<Item = &'a Record>) -> Option<String> {
    let complete = records.into_iter().filter(|r| r.complete);
    let builds: BTreeSet<&str> = complete.map(|r| r.commit.as_str()).collect();
    let names: Vec<&str> = builds.into_iter().collect();
    (names.len() > 1).then(|| format!("cells of builds {}", names.join(", ")))
}

/// The points at which a system was measured, in order; `point`: that of a cell, if it has one.
pub fn measured_points<P: Ord>(
    records: &[Record],
    system: &str,
    point: impl Fn(&Cell) -> Option<P>,
) -> Vec<P> {
    points(records.iter().filter(|r| r.complete), system, point)
}

/// The points at which a system was or will be measured, in order.
pub fn planned_points<P: Ord>(
    records: &[Record],
    system: &str,
    point: impl Fn(&Cell) -> Option<P>,
) -> Vec<P> {
    points(records.iter(), system, point)
}

fn points<'a, P: Ord>(
    records: impl Iterator<Item = &'a Record>,
    system: &str,
    point: impl Fn(&Cell) -> Option<P>,
) -> Vec<P> {
    let of_system = records.filter(|r| r.cell.system == system);
    let points: BTreeSet<P> = of_system.filter_map(|r| point(&r.cell)).collect();
    points.into_iter().collect()
}

/// The values of a figure in the complete records of `system` that `chosen` picks, in order of repetition.
pub fn values(
    records: &[Record],
    system: &str,
    figure: &str,
    chosen: impl Fn(&Cell) -> bool,
) -> Vec<f64> {
    let mut found: Vec<(u32, f64)> = records
        .iter()
        .filter(|r| r.complete && r.cell.system == system && chosen(&r.cell))
        .filter_map(|r| Some((r.cell.repetition, *r.measured.figures.get(figure)?)))
        .collect();
    found.sort_by_key(|(repetition, _)| *repetition);
    found.into_iter().map(|(_, value)| value).collect()
}
