//! What is measured: cells, and the record that each leaves.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One measurement to make: a system at a point, for the nth time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// The system's name.
    pub system: String,
    /// The point: the experiment's factors and their levels.
    pub factors: BTreeMap<String, String>,
    /// Which repetition, from 1.
    pub repetition: u32,
}

impl Cell {
    /// The level of a factor; empty for one that the experiment does not have.
    pub fn level(&self, factor: &str) -> &str {
        self.factors.get(factor).map_or("", String::as_str)
    }

    /// The level of a factor that is a number; 0 for one that is none.
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

/// What a measurement gives; filled while it runs, so that one that breaks off leaves what it had.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Figures by name; each name ends with its unit.
    pub figures: BTreeMap<String, f64>,
    /// Commits in each second.
    pub per_second: Vec<u64>,
}

/// The raw data of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which one.
    pub cell: Cell,
    /// Whether the measurement went to its end and its checks passed. Others are kept, and counted nowhere.
    pub complete: bool,
    /// Why it is not complete.
    pub note: String,
    /// When it ended, UTC.
    pub date: String,
    /// The commit that the program was built from.
    pub commit: String,
    /// What was measured.
    pub measured: Measured,
}

/// A figure of the complete records of `system` that `chosen` picks, in order of repetition.
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
