//! The ground of an experiment: it finds, starts and ends the systems on which cells are measured. The frame calls it;
//! database servers are the usual ground. A running system is shared only by consecutive cells with the same setup.

use std::path::Path;

use super::error::LabError;
use super::experiment::Experiment;
use super::options::FrameOptions;
use super::record::{Cell, Measured};
use super::report::Absent;

/// Finds, starts and ends the systems on which the cells of an experiment are measured. [`super::Servers`] is the usual
/// ground.
pub trait Ground: Sized {
    /// The setup of a system. Consecutive cells with the same system and setup share the running system.
    type Setup: Clone + PartialEq;

    /// A running system. Dropping it ends it.
    type Running<'a>
    where
        Self: 'a;

    /// The view of a running system that an experiment measures.
    type System<'a>;

    /// Finds the chosen systems, which will run below `dir`, and the systems that cannot be set up here. A system that
    /// only lacks an installation is an error with the remedy.
    fn find(options: &FrameOptions, dir: &Path) -> Result<(Self, Vec<Absent>), LabError>;

    /// Facts for the report: the effect of the user's choices on this machine. Fails, with the remedy, if a choice is
    /// impossible.
    fn facts(&self) -> Result<Vec<(String, String)>, LabError> {
        Ok(Vec::new())
    }

    /// Starts the system of a cell from scratch.
    fn start<'a>(
        &'a self,
        experiment: &dyn Experiment<Self>,
        cell: &Cell,
        setup: &Self::Setup,
    ) -> Result<Self::Running<'a>, LabError>;

    /// Lets the experiment measure a cell on the running system.
    fn measure(
        running: &mut Self::Running<'_>,
        experiment: &dyn Experiment<Self>,
        cell: &Cell,
        measured: &mut Measured,
    ) -> Result<(), LabError>;

    /// Ends the system and removes its data.
    fn end(running: Self::Running<'_>) -> Result<(), LabError>;

    /// Describes a running system.
    fn describe(
        &self,
        cell: &Cell,
        setup: &Self::Setup,
        running: &Self::Running<'_>,
    ) -> Description;
}

/// The description of a running system.
pub struct Description {
    /// The system, its versions and its setup in one line. Systems with other settings have another line.
    pub setup: String,
    /// All settings.
    pub text: String,
}
