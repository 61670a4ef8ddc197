//! Facts for the report about this machine and the programs on it.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};
use trireme_testbed::{Node, packages};

/// The commit from which this program was built.
pub const COMMIT: &str = env!("TRIREME_COMMIT");

/// The fact that differs at each start.
const LOAD: &str = "load before";

/// The facts of a part of a run: from its first measurement until another part begins, on another machine or build,
/// say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The begin of its first measurement, UTC.
    pub since: String,
    /// The facts, by name.
    pub facts: Vec<(String, String)>,
}

impl Part {
    /// Whether nothing but the load has changed between the two.
    pub fn goes_on_as(&self, facts: &[(String, String)]) -> bool {
        let lasting = |all: &[(String, String)]| -> Vec<(String, String)> {
            all.iter()
                .filter(|(name, _)| name != LOAD)
                .cloned()
                .collect()
        };
        lasting(&self.facts) == lasting(facts)
    }
}

/// The facts about this machine, by name.
pub fn machine() -> Vec<(String, String)> {
    let cpus = std::thread::available_parallelism().map_or(0, |n| n.get());
    let server = packages::mariadbd().ok().map(|path| {
        let output = Command::new(path).arg("--version").output();
        let output = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&output).trim().to_string()
    });
    let facts = [
        ("processor", field("/proc/cpuinfo", "model name")),
        ("processors", cpus.to_string()),
        ("memory", field("/proc/meminfo", "MemTotal")),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("server", server.unwrap_or_default()),
        ("trireme built from", COMMIT.to_string()),
        (LOAD, read("/proc/loadavg")),
    ];
    facts
        .map(|(name, value)| (name.to_string(), value))
        .to_vec()
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
