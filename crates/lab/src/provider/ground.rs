//! The ground of this experiment: hosts of providers, instead of database servers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::Duration;

use trireme_testbed::directories::make_private_dir;
use trireme_testbed::ports::NodePorts;
use trireme_testbed::systems::{self, Wsrep};
use trireme_wsrep_host::{Command, Reply};

use super::NO_DURABILITY;
use super::error::HostsError;
use super::group::Group;
use super::host::{Host, ask};
use crate::frame::{
    Absent, Cell, Description, Experiment, Found, FrameOptions, Ground, LabError, Measured,
    library, sort_out,
};
use crate::work_dir::work_dir;

/// The stand-in for a provider.
pub const NULL: &str = "null";

/// The time limit for loading a library.
const PROBE: Duration = Duration::from_secs(30);

/// The setup of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSetup {
    /// The number of nodes.
    pub nodes: usize,
    /// The applier threads of each node.
    pub appliers: usize,
    /// The level of the factor durability.
    pub durability: String,
    /// The first port; `None` searches for free ports.
    pub base_port: Option<u16>,
    /// Repetition and clients: they differ between cells that must not share a group.
    pub generation: (u32, u16),
}

impl HostSetup {
    /// The provider options of a node.
    pub fn options(&self, ports: &NodePorts) -> String {
        let (host, group, ist) = (ports.host, ports.group, ports.ist());
        let mut options = format!(
            "base_port={group};gmcast.listen_addr=tcp://{host}:{group};ist.recv_addr={host}:{ist};gcache.size=128M"
        );
        if self.durability != NO_DURABILITY {
            options += &format!(";repl.durability={}", self.durability);
        }
        options
    }
}

/// A provider, or the stand-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    name: String,
    path: Option<PathBuf>,
    /// The provider's name and version, as it reports them.
    identity: String,
}

impl Library {
    /// Its name in options and reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of the library; None for the stand-in.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Finds the library of an entry of `--systems`, and loads it once.
    fn find(entry: &str, options: &FrameOptions) -> Result<Self, LabError> {
        if entry == NULL {
            return Ok(Self {
                name: NULL.to_string(),
                path: None,
                identity: "the stand-in of the host, which replicates nothing and answers at once"
                    .to_string(),
            });
        }
        let unknown = || HostsError::Unknown(entry.to_string());
        if !["trireme", "galera"].contains(&entry) && !entry.contains('=') {
            return Err(unknown().into());
        }
        let system = Wsrep::parse(entry, options.provider.as_deref())?;
        let path = system.provider.ok_or_else(unknown)?;
        let identity = probe(&system.name, &path)?;
        Ok(Self {
            name: system.name,
            path: Some(path),
            identity,
        })
    }
}

/// Loads a library in a separate process, and returns its identity.
fn probe(system: &str, path: &Path) -> Result<String, LabError> {
    let bad = |reason: String| HostsError::Library {
        system: system.to_string(),
        reason,
    };
    let log = work_dir().join("probe.log");
    let mut host = Host::spawn(system, "probe", &log)?;
    let commands = [Command::Probe(path.to_path_buf())];
    match ask(slice::from_mut(&mut host), &commands, PROBE) {
        Ok(replies) => match replies.first() {
            Some(Reply::Identity { name, version }) => {
                Ok(format!("{name} {version}, {}", path.display()))
            }
            _ => Err(host.confused()),
        },
        Err(LabError::Hosts(error)) => match *error {
            HostsError::Failed { reason, .. } => Err(bad(reason).into()),
            HostsError::Died { status, .. } => {
                let reason = format!(
                    "{} ends the process that loads it ({status})",
                    path.display()
                );
                Err(bad(reason).into())
            }
            other => Err(other.into()),
        },
        Err(error) => Err(error),
    }
}

/// The name of an entry of `--systems`.
pub fn name_of(entry: &str) -> &str {
    entry.split_once('=').map_or(entry, |(name, _)| name)
}

/// Whether the library of an entry has the modes of `repl.durability`. Galera has none, and the stand-in writes
/// nothing.
pub fn has_durability(entry: &str) -> bool {
    entry == "trireme" || entry.contains('=') && !systems::is_galera(entry)
}

/// The libraries to compare.
pub struct Hosts {
    libraries: Vec<Library>,
    dir: PathBuf,
}

impl Ground for Hosts {
    type Setup = HostSetup;
    type Running<'a> = Group;
    type System<'a> = Group;

    fn find(options: &FrameOptions, dir: &Path) -> Result<(Self, Vec<Absent>), LabError> {
        if options.cpu_per_node.is_some() {
            return Err(HostsError::NoShares.into());
        }
        make_private_dir(&work_dir())?;
        let Found {
            systems: libraries,
            absent,
        } = sort_out(options, |entry| Library::find(entry, options))?;
        let mut names = BTreeSet::new();
        if let Some(twice) = libraries.iter().find(|l| !names.insert(&l.name)) {
            return Err(HostsError::Twice(twice.name.clone()).into());
        }
        let dir = dir.to_path_buf();
        Ok((Self { libraries, dir }, absent))
    }

    fn facts(&self) -> Result<Vec<(String, String)>, LabError> {
        let fact = |found: &Library| Some(library(found.name(), found.path()?));
        Ok(self.libraries.iter().filter_map(fact).collect())
    }

    fn start(
        &self,
        _experiment: &dyn Experiment<Self>,
        cell: &Cell,
        setup: &HostSetup,
    ) -> Result<Group, LabError> {
        let library = self.libraries.iter().find(|l| l.name == cell.system);
        let library = library.ok_or_else(|| HostsError::Unknown(cell.system.clone()))?;
        Group::start(library, setup, &self.dir)
    }

    fn measure(
        group: &mut Group,
        experiment: &dyn Experiment<Self>,
        cell: &Cell,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        experiment.measure(cell, group, measured)
    }

    fn end(group: Group) -> Result<(), LabError> {
        group.end()
    }

    fn describe(&self, cell: &Cell, setup: &HostSetup, group: &Group) -> Description {
        let identity = &group.library().identity;
        let durability = match &*setup.durability {
            NO_DURABILITY => String::new(),
            mode => format!(", repl.durability={mode}"),
        };
        let line = format!(
            "{}, {} nodes with {} appliers{durability}; {identity}",
            cell.system, setup.nodes, setup.appliers
        );
        let options = match group.library().path() {
            Some(_) => group.options().join("\n"),
            None => String::new(),
        };
        Description {
            text: format!("{line}\n\n{options}"),
            setup: line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    #[test]
    fn a_library_that_nobody_asked_for_may_be_missing() {
        let arguments = ["--systems", "trireme,null", "--provider", "/nonexistent"];
        let mut options: FrameOptions = fixtures::parse(&arguments).unwrap();
        let find = |options: &FrameOptions| Hosts::find(options, Path::new("/x"));
        assert!(find(&options).is_err());
        options.systems_by_default = true;
        let (hosts, absent) = find(&options).unwrap();
        assert_eq!(
            (hosts.libraries.len(), hosts.libraries[0].name()),
            (1, NULL)
        );
        assert_eq!(absent[0].system, "trireme");
        options.systems = vec![NULL.to_string(), NULL.to_string()];
        assert!(find(&options).is_err());
    }

    #[test]
    fn only_libraries_with_modes_get_the_option() {
        assert!(has_durability("trireme") && has_durability("mine=/x/libtrireme.so"));
        assert!(!has_durability("galera") && !has_durability(NULL));
        assert!(!has_durability("old=/x/libgalera_smm.so"));
        let ports = NodePorts {
            host: std::net::Ipv4Addr::LOCALHOST,
            mysql: 1000,
            group: 1001,
            sst: 1003,
        };
        let options = |durability: &str| {
            let setup = HostSetup {
                nodes: 1,
                appliers: 1,
                durability: durability.to_string(),
                base_port: None,
                generation: (0, 0),
            };
            setup.options(&ports)
        };
        assert!(options("disk").ends_with("repl.durability=disk"));
        assert!(!options(NO_DURABILITY).contains("repl."));
        assert!(options("os").contains("ist.recv_addr=127.0.0.1:1002"));
    }
}
