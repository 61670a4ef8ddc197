//! `trireme bench provider`: measures a provider alone, loaded by a host of ours without a database.
//!
//! Each node is a process that loads the library, commits write-sets from many clients, and applies the write-sets of
//! the other nodes in commit order. There is no SQL, no storage engine and no row lock, so the costs are those of the
//! library.

mod error;
mod ground;
mod group;
mod host;
mod measure;
mod report;

use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use trireme_wsrep_host::SUBCOMMAND;

use crate::frame::{
    self, Cell, Chart, Claim, Experiment, FrameOptions, LabError, Measured, Preset, Record, Table,
};
pub use error::HostsError;
use ground::{HostSetup, Hosts, has_durability, name_of};
use group::Group;
use measure::Load;

const NAME: &str = "provider";

/// The figure for comparing systems.
const RATE: &str = "write_sets_per_s";

/// The factors.
const CLIENTS: &str = "clients";
const DURABILITY: &str = "durability";

/// The level of durability for a library without modes.
const NO_DURABILITY: &str = "none";

const SYSTEMS: [&str; 3] = ["trireme", "galera", "null"];

/// A provider alone, without a database: write-sets per second, processor time and latency of each.
///
/// A host of ours loads any wsrep provider. N nodes of M clients commit small write-sets, and apply those of the others in
/// commit order; afterwards all nodes must have committed the same in the same order. `null` is a stand-in that answers at
/// once: what the host itself takes.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct Plan {
    /// The choices of every experiment. Systems are trireme, galera, null, NAME=PATH.
    #[command(flatten)]
    pub frame: FrameOptions,
    /// Nodes [default: 3].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16), conflicts_with = "resume")]
    pub nodes: Option<u16>,
    /// Numbers of clients of each node [default: 1,8,64; article: 1,2,4,8,16,32,64].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256), conflicts_with = "resume")]
    pub clients: Vec<u16>,
    /// Modes of repl.durability: os, memory, disk [default: all]. Galera and null have none, and are measured once.
    #[arg(long, value_delimiter = ',', value_parser = ["os", "memory", "disk"], conflicts_with = "resume")]
    pub durability: Vec<String>,
    /// Write-sets out of a hundred that change one of 16 rows which all nodes change [default: 5].
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, conflicts_with = "resume")]
    pub conflicts: Option<f64>,
    /// Write-sets that all clients together begin in a second, a million at most [default: as many as they can].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), conflicts_with = "resume")]
    pub rate: Option<u64>,
    /// Threads of each node that apply [default: 4].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with = "resume")]
    pub appliers: Option<u16>,
    /// Size of a write-set's data [default: 256].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(16..=16_777_216), conflicts_with = "resume")]
    pub payload: Option<u32>,
    /// Length of a measurement [default: 30; quick: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "resume")]
    pub seconds: Option<u64>,
    /// Load before each measurement, not counted [default: 10; quick: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=86_400), conflicts_with = "resume")]
    pub warmup_seconds: Option<u64>,
    /// First port; each node takes ten [default: free ones are searched].
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1024..), conflicts_with = "resume")]
    pub base_port: Option<u16>,
}

/// Whether this process was started as a host.
pub fn is_host() -> bool {
    std::env::args_os().nth(1).is_some_and(|a| a == SUBCOMMAND)
}

/// Runs as a host until the input ends. Every program that calls [`run`] must call this at its start if [`is_host`] is
/// true.
pub fn host() -> ExitCode {
    trireme_wsrep_host::run()
}

/// Runs the experiment, or continues it.
pub fn run(plan: &Plan) -> Result<(), LabError> {
    let plan = frame::choices(plan, NAME, &SYSTEMS, |plan| &mut plan.frame)?;
    let experiment = Provider { plan: plan.clone() };
    frame::run(&experiment, &plan.frame, &plan)
}

fn parse_percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("give a number from 0 to 100".to_string()),
    }
}

struct Provider {
    plan: Plan,
}

impl Provider {
    fn preset(&self) -> Preset {
        self.plan.frame.preset()
    }

    fn nodes(&self) -> usize {
        usize::from(self.plan.nodes.unwrap_or(3))
    }

    fn clients(&self) -> Vec<u16> {
        match (self.plan.clients.as_slice(), self.preset()) {
            ([], Preset::Quick | Preset::Box) => vec![1, 8, 64],
            ([], Preset::Article) => vec![1, 2, 4, 8, 16, 32, 64],
            (chosen, _) => chosen.to_vec(),
        }
    }

    fn modes(&self) -> Vec<String> {
        match self.plan.durability.as_slice() {
            [] => ["os", "memory", "disk"].map(String::from).to_vec(),
            chosen => chosen.to_vec(),
        }
    }

    /// The variants to compare: each system with each of its modes, by name.
    fn variants(&self) -> Vec<(String, String)> {
        let systems = self.plan.frame.systems.iter();
        systems
            .flat_map(|entry| {
                let modes = match has_durability(entry) {
                    true => self.modes(),
                    false => vec![NO_DURABILITY.to_string()],
                };
                modes
                    .into_iter()
                    .map(|mode| (name_of(entry).to_string(), mode))
            })
            .collect()
    }

    fn load(&self) -> Load {
        let is_quick = self.preset() == Preset::Quick;
        let (seconds, warmup) = if is_quick { (3, 1) } else { (30, 10) };
        Load {
            nodes: self.nodes() as u64,
            seconds: self.plan.seconds.unwrap_or(seconds),
            warmup_seconds: self.plan.warmup_seconds.unwrap_or(warmup),
            hot_percent: self.plan.conflicts.unwrap_or(5.0),
            payload_bytes: self.plan.payload.unwrap_or(256),
            rate: self.plan.rate,
        }
    }

    fn appliers(&self) -> usize {
        usize::from(self.plan.appliers.unwrap_or(4))
    }
}

impl Experiment<Hosts> for Provider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        "The library alone: write-sets without a database".to_string()
    }

    fn description(&self) -> Vec<String> {
        report::description(self)
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for repetition in 1..=self.plan.frame.repetitions() {
            let cell = |(system, mode): &(String, String), clients: u16| Cell {
                system: system.clone(),
                factors: [
                    (CLIENTS.to_string(), clients.to_string()),
                    (DURABILITY.to_string(), mode.clone()),
                ]
                .into(),
                repetition,
            };
            let (variants, clients) = (self.variants(), self.clients());
            // Systems take turns at each point. In the quick pass each system does all of its points at once.
            match self.preset() {
                Preset::Quick => cells.extend(
                    variants
                        .iter()
                        .flat_map(|v| clients.iter().map(move |c| cell(v, *c))),
                ),
                _ => cells.extend(
                    clients
                        .iter()
                        .flat_map(|c| variants.iter().map(move |v| cell(v, *c))),
                ),
            }
        }
        cells
    }

    fn setup(&self, cell: &Cell) -> HostSetup {
        HostSetup {
            nodes: self.nodes(),
            appliers: self.appliers(),
            durability: cell.level(DURABILITY).to_string(),
            base_port: self.plan.base_port,
            generation: match self.preset() {
                Preset::Quick => (0, 0),
                // Each cell has fresh processes, even if only one system is measured.
                _ => (cell.repetition, cell.number(CLIENTS) as u16),
            },
        }
    }

    fn estimate_seconds(&self, _cell: &Cell) -> f64 {
        let load = self.load();
        (load.seconds + load.warmup_seconds) as f64 + 0.5
    }

    fn needs_mib(&self) -> (u64, u64) {
        let nodes = self.nodes() as u64;
        // Galera's write-set cache is mapped memory and a file; our log is a file.
        (nodes * 300, nodes * 300)
    }

    fn measure(
        &self,
        cell: &Cell,
        group: &mut Group,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        measure::measure(&self.load(), cell.number(CLIENTS), group, measured)
    }

    fn headline(&self, _cell: &Cell) -> &'static str {
        RATE
    }

    fn charts(&self, records: &[Record]) -> Vec<Chart> {
        report::charts(records, &self.variants())
    }

    fn tables(&self, records: &[Record]) -> Vec<Table> {
        report::tables(records, &self.variants())
    }

    fn claimant(&self) -> &'static str {
        "this project"
    }

    fn claims(&self, records: &[Record]) -> Vec<Claim> {
        report::claims(records, self.nodes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    fn provider(arguments: &[&str]) -> Provider {
        let mut plan: Plan = fixtures::parse(arguments).unwrap();
        plan.frame.default_systems(&SYSTEMS);
        Provider { plan }
    }

    #[test]
    fn systems_take_turns_and_only_some_have_modes() {
        let cells = provider(&["--clients", "1,8"]).cells();
        let points: Vec<(&str, &str)> = cells[..6]
            .iter()
            .map(|c| (c.system.as_str(), c.level(DURABILITY)))
            .collect();
        assert_eq!(
            points,
            [
                ("trireme", "os"),
                ("trireme", "memory"),
                ("trireme", "disk"),
                ("galera", "none"),
                ("null", "none"),
                ("trireme", "os")
            ]
        );
        assert_eq!(cells.len(), 5 * 2 * 3);
    }

    #[test]
    fn a_library_of_ones_own_goes_by_its_name() {
        let cells = provider(&[
            "--quick",
            "--systems",
            "mine=/x/libtrireme.so",
            "--durability",
            "disk",
        ])
        .cells();
        assert_eq!(cells.len(), 3);
        assert!(
            cells
                .iter()
                .all(|c| c.system == "mine" && c.level(DURABILITY) == "disk")
        );
    }

    #[test]
    fn a_quick_pass_fits_five_minutes() {
        let quick = provider(&["--quick"]);
        let cells = quick.cells();
        let loads: f64 = cells.iter().map(|c| quick.estimate_seconds(c)).sum();
        let mut groups: Vec<(&str, HostSetup)> = cells
            .iter()
            .map(|c| (c.system.as_str(), quick.setup(c)))
            .collect();
        groups.dedup();
        assert_eq!(groups.len(), 5);
        assert!(loads + 20.0 * groups.len() as f64 <= 300.0, "{loads}");
    }

    #[test]
    fn a_plan_survives_its_file() {
        let plan = provider(&["--conflicts", "2.5", "--rate", "100"]).plan;
        let text = serde_json::to_string(&plan).unwrap();
        let again: Plan = serde_json::from_str(&text).unwrap();
        assert_eq!((again.conflicts, again.rate), (Some(2.5), Some(100)));
        assert!(
            parse_percent("101").is_err()
                && parse_percent("-1").is_err()
                && parse_percent("NaN").is_err()
        );
    }
}
