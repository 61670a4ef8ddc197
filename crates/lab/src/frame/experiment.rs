//! What an experiment is to the frame.

use std::path::PathBuf;

use trireme_testbed::Server;
use trireme_testbed::settings::Settings;

use super::chart::Chart;
use super::claims::Claim;
use super::error::LabError;
use super::ground::Ground;
use super::record::{Cell, Measured, Record};
use super::servers::Servers;
use crate::stats::{mean_interval, median};
use crate::work_dir::empty_template;

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

/// An experiment of the field's literature, on servers unless it brings a ground of its own.
pub trait Experiment<G: Ground = Servers> {
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

    /// How what a cell is measured on is set up.
    fn setup(&self, cell: &Cell) -> G::Setup;

    /// Settings of a cell's servers that are no arguments; none unless the experiment has some.
    fn configure(&self, _cell: &Cell, _settings: &mut Settings) {}

    /// The data directory that a cell's servers, of this kind, start with: empty unless the experiment prepares one.
    fn template(&self, _cell: &Cell, server: Server) -> Result<PathBuf, LabError> {
        Ok(empty_template(server)?)
    }

    /// How long a cell takes without the start of what it is measured on, roughly, in seconds.
    fn estimate_seconds(&self, cell: &Cell) -> f64;

    /// Memory and disk that one cell needs, in MiB.
    fn needs_mib(&self) -> (u64, u64);

    /// Measures a cell and checks that all nodes hold the same. What `measured` holds is kept when this fails.
    fn measure(
        &self,
        cell: &Cell,
        system: &mut G::System<'_>,
        measured: &mut Measured,
    ) -> Result<(), LabError>;

    /// Whether no further cell would fare better after this error, so that the run ends. Otherwise the cell is marked, and
    /// the others are measured.
    fn ends_run(&self, error: &LabError) -> bool {
        !error.concerns_one_cell()
    }

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

    /// Whose claims are judged.
    fn claimant(&self) -> &'static str {
        "the article"
    }

    /// The claims, judged by the raw data.
    fn claims(&self, records: &[Record]) -> Vec<Claim>;
}
