//! The usual ground: database servers of the testbed's systems, with limited processor time if the user wants that.

use std::path::{Path, PathBuf};

use trireme_testbed::Settings;
use trireme_testbed::cpu_share::Throttling;
use trireme_testbed::systems::{self, Deployed, Durability, System, SystemError};

use super::error::LabError;
use super::experiment::Experiment;
use super::facts;
use super::ground::{Description, Ground};
use super::options::FrameOptions;
use super::record::{Cell, Measured};
use super::report::Absent;
use super::shares::{InForce, Shares};

/// The setup of a cell's servers. Consecutive cells with the same system and setup share running servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The wanted number of nodes; a system without replication has one.
    pub nodes: usize,
    /// The moment when a commit is on stable storage.
    pub durability: Durability,
    /// Further arguments of each server.
    pub arguments: Vec<String>,
    /// A number that differs between cells that must not share servers.
    pub generation: u32,
}

/// Database servers, each with a share of the processors if the user wants one.
pub struct Servers {
    systems: Vec<Box<dyn System>>,
    shares: Option<Shares>,
    dir: PathBuf,
}

/// Running servers, and their shares of the processors.
pub struct RunningServers<'a> {
    // The first field, so that the shares are lifted before the servers end.
    in_force: Option<InForce>,
    deployed: Deployed<'a>,
}

impl RunningServers<'_> {
    fn throttling(&self) -> Option<Vec<Throttling>> {
        let in_force = self.in_force.as_ref();
        in_force.map(|in_force| in_force.throttling(&self.deployed))
    }
}

impl Servers {
    fn system(&self, name: &str) -> Option<&dyn System> {
        let system = self.systems.iter().find(|system| system.name() == name);
        system.map(AsRef::as_ref)
    }
}

/// The systems of a run, found and absent.
pub struct Found<S> {
    /// The available systems.
    pub systems: Vec<S>,
    /// The systems that are not available.
    pub absent: Vec<Absent>,
}

/// Finds the systems of the options. A system that the user named and that only lacks an installation is an error with
/// the remedy.
pub fn find_systems(options: &FrameOptions) -> Result<Found<Box<dyn System>>, LabError> {
    let provider = options.provider.as_deref();
    sort_out(options, |name| Ok(systems::find(name, provider)?))
}

/// Like [`find_systems`], with systems that `find` makes. Only a [`LabError::System`] makes a system absent.
pub fn sort_out<S>(
    options: &FrameOptions,
    find: impl Fn(&str) -> Result<S, LabError>,
) -> Result<Found<S>, LabError> {
    let mut systems = Vec::new();
    let mut absent = Vec::new();
    let mut first_error = None;
    for name in &options.systems {
        match find(name) {
            Ok(system) => systems.push(system),
            Err(LabError::System(error)) if options.systems_by_default || error.leaves_a_row() => {
                absent.push(Absent {
                    system: name.clone(),
                    reason: error.to_string(),
                });
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match first_error {
        Some(error) if systems.is_empty() => Err(error.into()),
        _ => Ok(Found { systems, absent }),
    }
}

impl Ground for Servers {
    type Setup = Setup;
    type Running<'a> = RunningServers<'a>;
    type System<'a> = Deployed<'a>;

    fn find(options: &FrameOptions, dir: &Path) -> Result<(Self, Vec<Absent>), LabError> {
        let Found { systems, absent } = find_systems(options)?;
        let servers = Self {
            systems,
            shares: options.cpu_per_node.map(Shares::new),
            dir: dir.to_path_buf(),
        };
        Ok((servers, absent))
    }

    fn facts(&self) -> Result<Vec<(String, String)>, LabError> {
        let mut facts = facts::libraries(&self.systems);
        facts.extend(facts::servers(&self.systems)?);
        if let Some(shares) = &self.shares {
            shares.check()?;
            facts.push(("processor time of a node".to_string(), shares.text()));
        }
        Ok(facts)
    }

    fn start<'a>(
        &'a self,
        experiment: &dyn Experiment,
        cell: &Cell,
        setup: &Setup,
    ) -> Result<RunningServers<'a>, LabError> {
        let system = (self.system(&cell.system))
            .ok_or_else(|| LabError::System(SystemError::Unknown(cell.system.clone())))?;
        let mut settings = Settings::new(&self.dir, setup.nodes, None);
        settings.template = Some(experiment.template(cell, system.server())?);
        settings.mariadbd_args = setup.arguments.clone();
        experiment.configure(cell, &mut settings);
        let mut deployed = Deployed::start(system, setup.durability, settings)?;
        let in_force = match self.shares {
            Some(shares) => Some(InForce::begin(shares, &mut deployed)?),
            None => None,
        };
        Ok(RunningServers { in_force, deployed })
    }

    /// Also notes how often the groups of processes had to wait during the measurement.
    fn measure(
        running: &mut RunningServers<'_>,
        experiment: &dyn Experiment,
        cell: &Cell,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        let before = running.throttling();
        let result = experiment.measure(cell, &mut running.deployed, measured);
        if let (Some(in_force), Some(before)) = (&running.in_force, before) {
            in_force.note(&running.deployed, &before, measured);
        }
        result
    }

    fn end(running: RunningServers<'_>) -> Result<(), LabError> {
        drop(running.in_force);
        Ok(running.deployed.end()?)
    }

    fn describe(&self, cell: &Cell, setup: &Setup, running: &RunningServers<'_>) -> Description {
        let deployed = &running.deployed;
        let (versions, about) = (facts::versions(deployed.first()), deployed.system().about());
        let shares = self.shares.map(|shares| shares.line() + "\n");
        let options = &deployed.cluster().settings().provider_options;
        Description {
            setup: setup_line(
                &cell.system,
                deployed.cluster().nodes().len(),
                setup,
                options,
                &versions,
            ),
            text: format!(
                "{versions}\n{about}\n{}\n{}",
                shares.unwrap_or_default(),
                deployed.settings_text()
            ),
        }
    }
}

/// Names all that differs between servers: the system and its versions, nodes, durability, arguments, and options of
/// the provider. `nodes`: as many as run; a system may have fewer than wanted.
fn setup_line(system: &str, nodes: usize, setup: &Setup, options: &str, versions: &str) -> String {
    let durability = format!("{:?} durability", setup.durability).to_lowercase();
    let mut line = format!("{system}, {nodes} nodes, {durability}; {versions}");
    for more in [&setup.arguments.join(" "), options] {
        if !more.is_empty() {
            line += &format!("; {more}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;
    use trireme_testbed::packages::PackageError;

    struct Here;

    impl System for Here {
        fn name(&self) -> &str {
            "here"
        }

        fn about(&self) -> &'static str {
            ""
        }

        fn configure(&self, _durability: Durability, _settings: &mut Settings) {}
    }

    #[test]
    fn other_settings_are_another_setup() {
        let setup = |argument: &str| Setup {
            nodes: 3,
            durability: Durability::Lazy,
            arguments: vec![argument.to_string()],
            generation: 0,
        };
        let lines = [
            setup_line("s", 1, &setup("--a=1"), "", "s 1.0"),
            setup_line("s", 2, &setup("--a=1"), "", "s 1.0"),
            setup_line("s", 1, &setup("--a=2"), "", "s 1.0"),
            setup_line("s", 1, &setup("--a=1"), "o=1", "s 1.0"),
            setup_line("s", 1, &setup("--a=1"), "", "s 2.0"),
        ];
        assert_eq!(lines[0], "s, 1 nodes, lazy durability; s 1.0; --a=1");
        let different: std::collections::BTreeSet<&String> = lines.iter().collect();
        assert_eq!(different.len(), lines.len());
    }

    fn found(arguments: &[&str]) -> Result<(usize, Vec<Absent>), LabError> {
        let mut options: FrameOptions = fixtures::parse(arguments).unwrap();
        options.default_systems(&["here", "missing"]);
        let found = sort_out(&options, |name| match name {
            "here" => Ok(Here),
            _ => Err(SystemError::Package(PackageError::Galera).into()),
        });
        found.map(|found| (found.systems.len(), found.absent))
    }

    #[test]
    fn a_system_that_nobody_asked_for_may_be_missing() {
        let (here, absent) = found(&[]).unwrap();
        assert_eq!((here, absent[0].system.as_str()), (1, "missing"));
        assert!(found(&["--systems", "here,missing"]).is_err());
        assert!(found(&["--systems", "missing"]).is_err());
    }
}
