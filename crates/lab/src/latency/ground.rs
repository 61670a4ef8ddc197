//! The ground of the experiment: each trial has a fresh cluster, on loopback or in a private network.

use std::fs;
use std::path::{Path, PathBuf};

use trireme_testbed::systems::{System, SystemError};

use super::case::{CASE, Case, PART};
use super::error::LatencyError;
use super::site::Site;
use crate::frame::{
    Absent, Cell, Description, Experiment, Found, FrameOptions, Ground, LabError, Measured,
    find_systems, libraries, versions,
};

/// A trial. Two trials in a row are always different, so each has fresh servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// The action.
    pub case: Case,
    /// The number of the repetition.
    pub repetition: u32,
}

/// The systems, and the directory of the clusters.
pub struct Sites {
    systems: Vec<Box<dyn System>>,
    dir: PathBuf,
}

/// A running cluster, and its system.
pub struct Occupied<'a> {
    system: &'a dyn System,
    site: Site,
}

impl Ground for Sites {
    type Setup = Trial;
    type Running<'a> = Occupied<'a>;
    type System<'a> = Site;

    fn find(options: &FrameOptions, dir: &Path) -> Result<(Self, Vec<Absent>), LabError> {
        if options.cpu_per_node.is_some() {
            return Err(LatencyError::NoShares.into());
        }
        let Found { systems, absent } = find_systems(options)?;
        let dir = dir.to_path_buf();
        Ok((Self { systems, dir }, absent))
    }

    fn facts(&self) -> Result<Vec<(String, String)>, LabError> {
        Ok(libraries(&self.systems))
    }

    fn start<'a>(
        &'a self,
        _experiment: &dyn Experiment<Self>,
        cell: &Cell,
        trial: &Trial,
    ) -> Result<Occupied<'a>, LabError> {
        let system = self.systems.iter().find(|s| s.name() == cell.system);
        let unknown = || SystemError::Unknown(cell.system.clone());
        let system = system.ok_or_else(unknown)?.as_ref();
        let site = trial.case.start(system, &self.dir)?;
        Ok(Occupied { system, site })
    }

    fn measure(
        occupied: &mut Occupied<'_>,
        experiment: &dyn Experiment<Self>,
        cell: &Cell,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        experiment.measure(cell, &mut occupied.site, measured)
    }

    fn end(occupied: Occupied<'_>) -> Result<(), LabError> {
        Ok(occupied.site.end()?)
    }

    fn describe(&self, cell: &Cell, _trial: &Trial, occupied: &Occupied<'_>) -> Description {
        let nodes = occupied.site.cluster.nodes();
        let versions = versions(&nodes[0]);
        let line = format!("{versions}; {}", occupied.system.about());
        let (part, case) = (cell.level(PART), cell.level(CASE));
        let texts = nodes.iter().map(|node| fs::read_to_string(node.my_cnf()));
        let texts: Vec<String> = texts.map(Result::unwrap_or_default).collect();
        Description {
            setup: format!("{}, part {part}, {case}; {versions}", cell.system),
            text: format!("{line}\n\n{}", texts.join("\n")),
        }
    }
}
