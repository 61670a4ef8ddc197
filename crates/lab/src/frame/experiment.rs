//! What an experiment is to the frame.

use std::path::PathBuf;

use trireme_testbed::settings::Settings;
use trireme_testbed::systems::{Deployed, Durability};

use super::chart::Chart;
use super::claims::Claim;
use super::error::LabError;
use super::record::{Cell, Measured, Record};
use crate::stats::{mean_interval, median};
use crate::work_dir::empty_template;

/// How the servers of a cell are set up. Cells in a row with the same system and setup share running servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// Nodes wanted; a system without replication has one.
    pub nodes: usize,
    /// When a commit is on stable storage.
    pub durability: Durability,
    /// Further arguments of each server.
    pub arguments: Vec<String>,
    /// Differs between cells that must not share servers.
    pub generation: u32,
}

/// A table of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its heading.
    pub title: String,
    /// The columns' names.
    pub header: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

/// A figure in a table: the median of the repetitions with the 95 % interval of their mean.
pub fn shown(values: &[f64], digits: usize) -> String {
    let Some(middle) = median(values) else {
        return "-".to_string();
    };
    match mean_interval(values) {
        Some((low, high)) => format!("{middle:.digits$} [{low:.digits$}, {high:.digits$}]"),
        None => format!("{middle:.digits$}"),
    }
}

/// An experiment of the field's literature.
pub trait Experiment {
    /// Its name: the command.
    fn name(&self) -> &'static str;

    /// The report's heading.
    fn title(&self) -> String;

    /// Paragraphs of the report: what the article did, what is done here, and how the two differ.
    fn description(&self) -> Vec<String>;

    /// All cells, in the order in which they shall run: systems in turns.
    fn cells(&self) -> Vec<Cell>;

    /// The cells beyond [`cells`](Self::cells) that follow from the records so far. The frame asks at the beginning, and whenever it
    /// has measured all cells that it knows. More records may add cells, and take none away.
    fn further_cells(&self, _records: &[Record]) -> Vec<Cell> {
        Vec::new()
    }

    /// How a cell's servers are set up.
    fn setup(&self, cell: &Cell) -> Setup;

    /// Settings of a cell's servers that are no arguments; none unless the experiment has some.
    fn configure(&self, _cell: &Cell, _settings: &mut Settings) {}

    /// The data directory that a cell's servers start with: empty unless the experiment prepares one.
    fn template(&self, _cell: &Cell) -> Result<PathBuf, LabError> {
        Ok(empty_template()?)
    }

    /// How long a cell takes without the start of its servers, roughly, in seconds.
    fn estimate_seconds(&self, cell: &Cell) -> f64;

    /// Memory and disk that the servers of one cell need, in MiB.
    fn needs_mib(&self) -> (u64, u64);

    /// Measures a cell and checks the rows of all nodes. What `measured` holds is kept when this fails.
    fn measure(
        &self,
        cell: &Cell,
        deployed: &mut Deployed,
        measured: &mut Measured,
    ) -> Result<(), LabError>;

    /// The figure of a cell that progress shows.
    fn headline(&self, cell: &Cell) -> &'static str;

    /// The report's plots.
    fn charts(&self, records: &[Record]) -> Vec<Chart>;

    /// Plots of other kinds, as SVG elements, after the charts.
    fn drawings(&self, _records: &[Record]) -> Vec<String> {
        Vec::new()
    }

    /// The report's tables.
    fn tables(&self, records: &[Record]) -> Vec<Table>;

    /// The article's claims, judged by the raw data.
    fn claims(&self, records: &[Record]) -> Vec<Claim>;
}
