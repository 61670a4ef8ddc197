//! What the cells of an experiment are measured on.

use std::path::Path;

use super::error::LabError;
use super::experiment::Experiment;
use super::options::FrameOptions;
use super::record::{Cell, Measured};
use super::report::Absent;

/// What the cells of an experiment are measured on: finds, starts and ends the systems. [`super::Servers`] is the usual one.
pub trait Ground: Sized {
    /// How a system is set up. Cells in a row with the same system and setup share what runs.
    type Setup: Clone + PartialEq;

    /// A system that runs. Dropping it ends it.
    type Running<'a>
    where
        Self: 'a;

    /// What an experiment gets of it to measure.
    type System<'a>;

    /// The systems that were asked for, to be run below `dir`, and those that nobody can set up here. One that only has to be
    /// installed is an error, which names the remedy.
    fn find(options: &FrameOptions, dir: &Path) -> Result<(Self, Vec<Absent>), LabError>;

    /// What the user's choices make of this machine, for the report. Fails, with the remedy, if it cannot be done.
    fn facts(&self) -> Result<Vec<(String, String)>, LabError> {
        Ok(Vec::new())
    }

    /// Starts the system of a cell afresh.
    fn start<'a>(
        &'a self,
        experiment: &dyn Experiment<Self>,
        cell: &Cell,
        setup: &Self::Setup,
    ) -> Result<Self::Running<'a>, LabError>;

    /// Lets the experiment measure a cell on what runs.
    fn measure(
        running: &mut Self::Running<'_>,
        experiment: &dyn Experiment<Self>,
        cell: &Cell,
        measured: &mut Measured,
    ) -> Result<(), LabError>;

    /// Ends it and removes its data.
    fn end(running: Self::Running<'_>) -> Result<(), LabError>;

    /// Under which name the settings of a system are noted.
    fn settings_name(cell: &Cell, setup: &Self::Setup) -> String;

    /// What there is to say of a system that runs.
    fn describe(&self, setup: &Self::Setup, running: &Self::Running<'_>) -> Description;
}

/// What there is to say of a system.
pub struct Description {
    /// Its versions, how it is set up: a line of the output.
    pub line: String,
    /// The same with all settings, for the report.
    pub text: String,
}
