//! Facts for the report about this machine and the programs on it.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trireme_testbed::systems::{System, SystemError};
use trireme_testbed::{Node, Server};

use super::disk;
use super::error::LabError;
use super::experiment::Experiment;
use super::ground::Ground;
use crate::work_dir::work_dir;

/// The commit from which this program was built.
pub const COMMIT: &str = env!("TRIREME_COMMIT");

/// The facts that differ at each start.
const LOAD: &str = "load before";
const FLUSH: &str = "fdatasync of 4 KiB there";

/// The facts of a part of a run. Each start of the program is a part, from its first measurement on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The begin of its first measurement, UTC.
    pub since: String,
    /// The facts, by name.
    pub facts: Vec<(String, String)>,
}

impl Part {
    /// Whether nothing has changed between the two but what differs at each start.
    pub fn goes_on_as(&self, facts: &[(String, String)]) -> bool {
        let lasting = |all: &[(String, String)]| -> Vec<(String, String)> {
            all.iter()
                .filter(|(name, _)| ![LOAD, FLUSH].contains(&name.as_str()))
                .cloned()
                .collect()
        };
        lasting(&self.facts) == lasting(facts)
    }
}

/// The facts about this machine, by name.
pub fn machine() -> Vec<(String, String)> {
    let cpus = std::thread::available_parallelism().map_or(0, |n| n.get());
    let program = std::env::current_exe().map_or_else(|e| e.to_string(), |path| of_file(&path));
    let facts = [
        ("processor", field("/proc/cpuinfo", "model name")),
        ("processors", cpus.to_string()),
        ("memory", field("/proc/meminfo", "MemTotal")),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("trireme built from", COMMIT.to_string()),
        // A commit does not tell two builds of a changed tree apart.
        ("program", program),
        ("data in", disk::place(&work_dir())),
        (FLUSH, disk::flush(&work_dir())),
        (LOAD, read("/proc/loadavg")),
    ];
    facts
        .map(|(name, value)| (name.to_string(), value))
        .to_vec()
}

/// The facts that a build or an installation can change while the experiment runs.
pub fn changeable<G: Ground>(
    experiment: &dyn Experiment<G>,
    ground: &G,
) -> Result<Vec<(String, String)>, LabError> {
    let mut facts = ground.facts()?;
    facts.extend(experiment.facts());
    Ok(facts)
}

/// The facts about the libraries of `systems`.
pub fn libraries(systems: &[Box<dyn System>]) -> Vec<(String, String)> {
    let systems = systems.iter().map(AsRef::as_ref);
    let facts = systems.filter_map(|system| Some(library(system.name(), system.library()?)));
    facts.collect()
}

/// The facts about the server programs of `systems`: an upgrade replaces a program at its path.
pub fn servers(systems: &[Box<dyn System>]) -> Result<Vec<(String, String)>, LabError> {
    let mut servers: Vec<Server> = systems.iter().map(|system| system.server()).collect();
    servers.sort_by_key(|server| server.name());
    servers.dedup();
    let facts = servers.into_iter().map(|server| {
        let version = server.version_line().map_err(SystemError::from)?;
        Ok((format!("{} server", server.name()), version))
    });
    facts.collect()
}

/// The fact about the library of a system.
pub fn library(system: &str, path: &Path) -> (String, String) {
    (format!("library of {system}"), of_file(path))
}

/// Tells a file from another one, and from an earlier one at the same path.
fn of_file(path: &Path) -> String {
    let about = fs::metadata(path).and_then(|file| Ok((file.len(), file.modified()?)));
    let about = match about {
        Ok((bytes, modified)) => {
            let date = humantime::format_rfc3339_seconds(modified);
            format!("{bytes} bytes of {date}")
        }
        Err(error) => error.to_string(),
    };
    format!("{}, {about}", path.display())
}

/// The memory that servers can still take, in MiB.
pub fn free_memory_mib() -> u64 {
    let text = field("/proc/meminfo", "MemAvailable");
    let kib = text.split_whitespace().next();
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The versions that a running server reports.
pub fn versions(node: &Node) -> String {
    let Ok(mut sql) = node.sql() else {
        return String::new();
    };
    let server = sql.variable("version").ok().flatten().unwrap_or_default();
    let name = sql.status("wsrep_provider_name").ok().flatten();
    let provider = sql.status("wsrep_provider_version").ok().flatten();
    let program = node.server().name();
    match (name, provider) {
        (Some(name), Some(version)) if !name.is_empty() => {
            format!("{program} {server}, {name} {version}")
        }
        _ => format!("{program} {server}"),
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_string()
}

/// The value in the first line `name: value` of a kernel's file.
fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(key, _)| key.trim() == name);
    found.map_or(String::new(), |(_, value)| value.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_library_at_the_same_path_is_another_fact() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("lib.so");
        fs::write(&library, "old").unwrap();
        let old = of_file(&library);
        fs::write(&library, "newer").unwrap();
        let part = Part {
            since: String::new(),
            facts: vec![("library".to_string(), old)],
        };
        assert!(part.goes_on_as(&part.facts));
        assert!(!part.goes_on_as(&[("library".to_string(), of_file(&library))]));
    }

    #[test]
    fn load_and_flushes_are_others_at_each_start() {
        let facts = |load: &str, us: &str| {
            let facts = [(LOAD, load), (FLUSH, us), ("memory", "1")];
            facts.map(|(name, value)| (name.to_string(), value.to_string()))
        };
        let part = Part {
            since: String::new(),
            facts: facts("0.1", "500 µs").to_vec(),
        };
        assert!(part.goes_on_as(&facts("2.5", "700 µs")));
    }
}
