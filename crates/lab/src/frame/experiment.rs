//! The interface between the frame and an experiment. The experiment gives cells, setups and measurements, and
//! evaluates the records into charts, tables and claims. The frame runs the cells and stores the records.

use std::path::PathBuf;

use trireme_testbed::Server;
use trireme_testbed::settings::Settings;

use super::chart::Chart;
use super::claims::Claim;
use super::error::LabError;
use super::ground::Ground;
use super::record::{Cell, Measured, Record};
use super::report::Absent;
use super::servers::Servers;
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

/// An experiment from the literature of the field. It runs on servers, unless it has a ground of its own.
pub trait Experiment<G: Ground = Servers> {
    /// The name, which is the command.
    fn name(&self) -> &'static str;

    /// The report's heading.
    fn title(&self) -> String;

    /// Paragraphs of the report: the article's method, the method here, and the differences.
    fn description(&self) -> Vec<String>;

    /// All cells, in the order in which they run: the systems take turns.
    fn cells(&self) -> Vec<Cell>;

    /// The chosen systems that have no cells in this plan, with the reason; by default none.
    fn left_out(&self) -> Vec<Absent> {
        Vec::new()
    }

    /// The cells beyond [`cells`](Self::cells) that follow from the records so far. The frame asks at the beginning,
    /// and each time it has measured all cells that it knows. More records may add cells, but never remove any.
    fn further_cells(&self, _records: &[Record]) -> Vec<Cell> {
        Vec::new()
    }

    /// Whether [`further_cells`](Self::further_cells) may name more once the cells that these records know are measured.
    fn goes_on(&self, _records: &[Record]) -> bool {
        false
    }

    /// Facts for the report about programs that the measurements need beside the systems; by default none.
    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The setup for a cell.
    fn setup(&self, cell: &Cell) -> G::Setup;

    /// Changes settings of a cell's servers that are no arguments; by default none.
    fn configure(&self, _cell: &Cell, _settings: &mut Settings) {}

    /// The data directory with which a cell's servers of this kind start; by default an empty database.
    fn template(&self, _cell: &Cell, server: Server) -> Result<PathBuf, LabError> {
        Ok(empty_template(server)?)
    }

    /// Roughly the seconds that a cell takes, without the start of its system.
    fn estimate_seconds(&self, cell: &Cell) -> f64;

    /// The memory and the disk that one cell needs, in MiB.
    fn needs_mib(&self) -> (u64, u64);

    /// Measures a cell, and checks that all nodes hold the same rows. If this fails, the content of `measured` is kept.
    fn measure(
        &self,
        cell: &Cell,
        system: &mut G::System<'_>,
        measured: &mut Measured,
    ) -> Result<(), LabError>;

    /// Whether this error would repeat in all further cells, so that the run ends. Otherwise only this cell is marked,
    /// and the others are measured.
    fn ends_run(&self, error: &LabError) -> bool {
        !error.concerns_one_cell()
    }

    /// The figure that progress shows for a cell.
    fn headline(&self, cell: &Cell) -> &'static str;

    /// The charts of the report.
    fn charts(&self, records: &[Record]) -> Vec<Chart>;

    /// Plots of other kinds, as SVG elements; they come after the charts.
    fn drawings(&self, _records: &[Record]) -> Vec<String> {
        Vec::new()
    }

    /// The tables of the report.
    fn tables(&self, records: &[Record]) -> Vec<Table>;

    /// The author of the claims.
    fn claimant(&self) -> &'static str {
        "the article"
    }

    /// The claims, with verdicts from the raw data. A planned cell that was not measured yet has a record that is not
    /// complete.
    fn claims(&self, records: &[Record]) -> Vec<Claim>;
}
