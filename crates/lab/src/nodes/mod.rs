//! `trireme bench nodes`: "How does Galera Cluster behave with many nodes?" (fromDual, 2025).
//!
//! Client processes, each with its own schema and node, run on clusters of one to nine nodes. [`plan`] has the points;
//! [`crate::client_processes`] is the load.

mod article;
mod charts;
mod claims;
mod plan;
mod points;
mod report;

use std::path::PathBuf;

use trireme_testbed::Server;
use trireme_testbed::settings::Settings;
use trireme_testbed::systems::{Deployed, Durability};

use crate::client_processes;
use crate::frame::{
    self, Cell, Chart, Claim, Experiment, LabError, Measured, Preset, Record, Setup, Table,
};
use crate::oltp;
pub use plan::Plan;
use plan::SCHEMA;
use points::{Factor, Point};

const NAME: &str = "nodes";

/// The system of the article, and ours.
const SYSTEMS: [&str; 2] = ["galera", "trireme"];

/// The figure for comparing systems.
const TPS: &str = "tps";

/// The buffer pool of each node, in MiB. It holds the data of all clients, and nine such pools fit into a small
/// machine.
const BUFFER_POOL_MIB: u64 = 128;

/// The memory of a server without its buffer pool, in MiB.
const SERVER_MIB: u64 = 256;

/// The data directory, redo log and write-set cache of a server, in MiB.
const DISK_MIB: u64 = 600;

/// Hosts in the cluster's address that do not exist. No process listens at this port (tcpmux).
const ABSENT: [&str; 3] = ["127.0.1.1:1", "127.0.1.2:1", "127.0.1.3:1"];

/// Runs the experiment, or continues it.
pub fn run(plan: &Plan) -> Result<(), LabError> {
    let plan = frame::choices(plan, NAME, &SYSTEMS, |plan| &mut plan.frame)?;
    let experiment = Nodes { plan: plan.clone() };
    experiment.check()?;
    frame::run(&experiment, &plan.frame, &plan)
}

struct Nodes {
    plan: Plan,
}

impl Nodes {
    /// Fails before any start if the choices cannot be measured.
    fn check(&self) -> Result<(), LabError> {
        let nodes = self.most(Factor::Nodes) as usize;
        client_processes::check_systems(&self.plan.frame.systems, nodes)?;
        self.plan.frame.check_nodes(nodes)
    }

    /// The largest level of a factor.
    fn most(&self, factor: Factor) -> u64 {
        let points = self.plan.points().into_iter();
        points.map(|point| point.level(factor)).max().unwrap_or(1)
    }

    /// The most connections of a point.
    fn connections(&self) -> u64 {
        let points = self.plan.points().into_iter();
        points.map(Point::connections).max().unwrap_or(1)
    }
}

impl Experiment for Nodes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        "Many nodes: what each of them costs".to_string()
    }

    fn description(&self) -> Vec<String> {
        report::description(&self.plan)
    }

    fn cells(&self) -> Vec<Cell> {
        self.plan.cells()
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![oltp::sysbench_fact()]
    }

    fn setup(&self, cell: &Cell) -> Setup {
        let position = self.plan.cells().iter().position(|c| c == cell);
        let arguments = [
            "--wsrep-cluster-name=\"Galera Cluster\"".to_string(),
            format!(
                "--wsrep-slave-threads={}",
                cell.number(Factor::Appliers.name())
            ),
            "--innodb-flush-log-at-trx-commit=2".to_string(),
            "--query-cache-type=OFF".to_string(),
            "--query-cache-size=0".to_string(),
            format!("--innodb-buffer-pool-size={BUFFER_POOL_MIB}M"),
            // All clients may be on one node, beside our own connections.
            format!("--max-connections={}", self.connections() + 50),
        ];
        Setup {
            nodes: Point::of(cell).level(Factor::Nodes) as usize,
            durability: Durability::Lazy,
            arguments: arguments.into(),
            generation: match self.plan.frame.preset() {
                Preset::Quick => 0,
                // Every cell has fresh servers, because every run changes the data.
                _ => position.unwrap_or(0) as u32,
            },
        }
    }

    fn configure(&self, _cell: &Cell, settings: &mut Settings) {
        settings.absent = ABSENT.map(String::from).to_vec();
    }

    fn template(&self, _cell: &Cell, server: Server) -> Result<PathBuf, LabError> {
        client_processes::template(self.most(Factor::Clients) as usize, SCHEMA, server)
    }

    fn estimate_seconds(&self, cell: &Cell) -> f64 {
        let point = Point::of(cell);
        let nodes = point.level(Factor::Nodes) as f64;
        let clients = point.level(Factor::Clients) as f64;
        let load = self.plan.warmup() + point.level(Factor::Seconds);
        // A node takes a snapshot when it joins; and each schema is compared on each node.
        let start = match self.plan.frame.preset() {
            Preset::Quick => 1.0,
            _ => 3.0,
        };
        load as f64 + start * nodes + 0.05 * nodes * clients + 1.0
    }

    fn needs_mib(&self) -> (u64, u64) {
        let nodes = self.most(Factor::Nodes);
        (
            nodes * (BUFFER_POOL_MIB + SERVER_MIB),
            (nodes + 1) * DISK_MIB,
        )
    }

    fn measure(
        &self,
        cell: &Cell,
        deployed: &mut Deployed,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        let (load, span) = (self.plan.load(cell), self.plan.span(cell));
        client_processes::measure(&load, span, deployed, measured)
    }

    fn headline(&self, _cell: &Cell) -> &'static str {
        TPS
    }

    fn charts(&self, records: &[Record]) -> Vec<Chart> {
        charts::charts(records, &self.plan.frame.systems)
    }

    fn tables(&self, records: &[Record]) -> Vec<Table> {
        report::tables(records, &self.plan.frame.systems)
    }

    fn claims(&self, records: &[Record]) -> Vec<Claim> {
        claims::claims(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    fn nodes(arguments: &[&str]) -> Nodes {
        let mut plan: Plan = fixtures::parse(arguments).unwrap();
        plan.frame.default_systems(&SYSTEMS);
        Nodes { plan }
    }

    #[test]
    fn factors_are_tried_one_at_a_time() {
        let plan = nodes(&["--nodes", "1,3", "--clients", "1,5", "--threads", "8"]).plan;
        let expected = [
            [1, 1, 8, 1, 30],
            [3, 1, 8, 1, 30],
            [3, 5, 8, 1, 30],
            [3, 5, 8, 4, 30],
            [3, 5, 8, 8, 30],
            [3, 5, 8, 1, 90],
        ];
        assert_eq!(plan.points(), expected.map(Point::new));
    }

    #[test]
    fn systems_take_turns_on_fresh_servers() {
        let experiment = nodes(&[]);
        let cells = experiment.cells();
        let systems: Vec<&str> = cells[..4].iter().map(|c| c.system.as_str()).collect();
        assert_eq!(systems, ["galera", "trireme", "galera", "trireme"]);
        let mut setups: Vec<u32> = cells
            .iter()
            .map(|c| experiment.setup(c).generation)
            .collect();
        setups.dedup();
        assert_eq!(setups.len(), cells.len());
    }

    #[test]
    fn choices_that_cannot_be_measured_are_refused() {
        assert!(nodes(&["--cpu-per-node", "64"]).check().is_err());
        assert!(nodes(&[]).check().is_ok());
        let with = |system: &str, most| nodes(&["--systems", system, "--nodes", most]).check();
        for system in ["semisync", "group-replication", "plain"] {
            let error = with(system, "1,3").unwrap_err().to_string();
            assert!(error.starts_with(system), "{error}");
            assert!(error.contains("--systems") && !error.contains('\n'));
        }
        assert!(with("plain", "1").is_ok() && with("semisync", "1").is_err());
        assert!(with("mine=/x/libtrireme.so", "3").is_ok());
    }

    #[test]
    fn the_articles_preset_has_the_articles_points() {
        let plan = nodes(&["--preset", "article"]).plan;
        assert_eq!(plan.points().len(), article::FIGURES.len());
        let own = nodes(&["--preset", "article", "--clients", "6"]).plan;
        assert!(own.points().contains(&Point::new([4, 6, 8, 1, 180])));
    }

    #[test]
    fn a_quick_pass_fits_five_minutes() {
        let quick = nodes(&["--quick"]);
        let cells = quick.cells();
        let loads: f64 = cells.iter().map(|c| quick.estimate_seconds(c)).sum();
        let mut setups: Vec<(&str, Setup)> = cells
            .iter()
            .map(|c| (c.system.as_str(), quick.setup(c)))
            .collect();
        setups.dedup();
        assert_eq!(setups.len(), 8);
        // A node starts within 3 s on a machine that does nothing else.
        let starts: usize = setups.iter().map(|(_, setup)| 3 * setup.nodes).sum();
        assert!(loads + starts as f64 <= 270.0, "{loads} + {starts}");
    }

    #[test]
    fn only_the_articles_preset_limits_the_clients() {
        let rate = |arguments: &[&str]| nodes(arguments).plan.rate();
        assert_eq!((rate(&[]), rate(&["--quick"])), (None, None));
        assert_eq!(rate(&["--preset", "article"]), Some(1000));
        assert_eq!(rate(&["--rate", "700"]), Some(700));
    }

    #[test]
    fn a_plan_of_earlier_keeps_its_rate() {
        let mut text = serde_json::to_value(nodes(&[]).plan).unwrap();
        text["rate"] = 1000.into();
        let again: Plan = serde_json::from_value(text).unwrap();
        assert_eq!(again.rate(), Some(1000));
    }

    #[test]
    fn a_plan_survives_its_file() {
        let plan = nodes(&["--preset", "article", "--rate", "0"]).plan;
        let text = serde_json::to_string(&plan).unwrap();
        let again: Plan = serde_json::from_str(&text).unwrap();
        assert_eq!(again.cells(), plan.cells());
        assert_eq!(again.load(&plan.cells()[0]).rate, None);
    }
}
