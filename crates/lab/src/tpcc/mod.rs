//! `trireme bench tpcc`: TPC-C's five transaction types, after "Yes! It works with Amazon EC2" (2008) and "Percona XtraDB
//! Cluster 8.0 scaling" (2020).
//!
//! There are two kinds of cells. Some load the tables through the system, with the time measured; the others run
//! transactions on a fresh copy of loaded tables.

mod charts;
mod claims;
mod clients;
pub mod consistency;
mod figures;
mod input;
pub mod loader;
mod plan;
mod points;
mod random;
mod report;
mod rows;
pub mod scale;
mod schema;
mod tally;
mod transactions;

use std::path::PathBuf;
use std::time::Instant;

use trireme_testbed::Server;
use trireme_testbed::systems::Deployed;

use crate::frame::{
    self, Absent, Cell, Chart, Claim, Experiment, LabError, Measured, Record, Setup, Table,
};
use clients::Work;
pub use plan::{Flush, Isolation, Plan, Target};
use plan::{LOAD, RUN};
use scale::Scale;
use schema::DATABASE;

const NAME: &str = "tpcc";

/// The systems of the articles, and ours.
const SYSTEMS: [&str; 4] = ["plain", "galera", "trireme", "group-replication"];

/// Runs the experiment, or continues it.
pub fn run(plan: &Plan) -> Result<(), LabError> {
    let plan = frame::choices(plan, NAME, &SYSTEMS, |plan| &mut plan.frame)?;
    plan.frame
        .check_nodes(plan.nodes().into_iter().max().unwrap_or(1).into())?;
    let experiment = Tpcc { plan: plan.clone() };
    frame::run(&experiment, &plan.frame, &plan)
}

struct Tpcc {
    plan: Plan,
}

impl Tpcc {
    fn scale(cell: &Cell) -> Scale {
        Scale::standard(cell.number("warehouses") as u32)
    }

    /// The size of the largest database of the run.
    fn largest(&self) -> Scale {
        Scale::standard(self.plan.warehouses().into_iter().max().unwrap_or(1))
    }

    /// The size of a buffer pool that holds all data, in MiB.
    fn buffer_pool_mib(&self) -> u64 {
        (self.largest().data_mib() * 3 / 2).max(256)
    }

    fn measure_load(
        cell: &Cell,
        deployed: &mut Deployed,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        let loaded = loader::load(deployed.first(), Self::scale(cell))?;
        let began = Instant::now();
        deployed.settle()?;
        let settle_s = began.elapsed().as_secs_f64();
        figures::of_load(loaded, settle_s, measured);
        Self::check(deployed, measured, Self::scale(cell), (0, 0))
    }

    fn measure_run(
        &self,
        cell: &Cell,
        deployed: &mut Deployed,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        let work = Work {
            connections: cell.number("connections") as usize,
            nodes: match cell.level("to") == Target::All.name() {
                true => deployed.writers().len(),
                false => 1,
            },
            warmup: self.plan.warmup(),
            seconds: self.plan.seconds(),
            isolation: self.plan.isolation().sql(),
            scale: Self::scale(cell),
            // All systems get the same input.
            seed: u64::from(cell.repetition) << 32,
        };
        let outcome = clients::run(deployed, &work);
        figures::of_run(&outcome, work.seconds, measured);
        let acknowledged = outcome.tally.acknowledged();
        outcome.failure.map_or(Ok(()), Err)?;
        Self::check(deployed, measured, work.scale, acknowledged)
    }

    /// Checks that all nodes hold the same rows, that the data are consistent, and that all acknowledged orders and
    /// payments are there.
    fn check(
        deployed: &mut Deployed,
        measured: &mut Measured,
        scale: Scale,
        (orders, payments): (u64, u64),
    ) -> Result<(), LabError> {
        let tables = deployed.verify(&[DATABASE])?;
        let violations = consistency::violations(deployed.first())?;
        figures::of_conditions(&violations, measured);
        consistency::judge(&violations)?;
        for (what, table, committed) in [
            ("orders", "`tpcc`.`orders`", orders),
            ("payments", "`tpcc`.`history`", payments),
        ] {
            let found = tables.iter().find(|sum| sum.table == table);
            let found = found.map_or(0, |sum| sum.rows);
            let acknowledged = scale.orders() + committed;
            if found != acknowledged {
                return Err(LabError::Rows {
                    what,
                    acknowledged,
                    found,
                });
            }
        }
        Ok(())
    }
}

impl Tpcc {
    /// The memory for the messages of each node of Group Replication, if it takes part; it does only where MySQL's
    /// server is.
    fn message_cache_mib(&self, has_mysql: bool) -> u64 {
        let mut systems = self.plan.frame.systems.iter();
        match has_mysql && systems.any(|name| name.starts_with("group-replication")) {
            true => 1024,
            false => 0,
        }
    }
}

impl Experiment for Tpcc {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        "TPC-C's transactions: nodes, connections and conflicts".to_string()
    }

    fn description(&self) -> Vec<String> {
        report::description(&self.plan)
    }

    fn cells(&self) -> Vec<Cell> {
        self.plan.cells()
    }

    fn left_out(&self) -> Vec<Absent> {
        self.plan.left_out()
    }

    fn setup(&self, cell: &Cell) -> Setup {
        let position = self.plan.cells().iter().position(|c| c == cell);
        Setup {
            nodes: cell.number("nodes") as usize,
            durability: self.plan.durability.durability(),
            arguments: vec![
                format!("--innodb-buffer-pool-size={}M", self.buffer_pool_mib()),
                "--innodb-log-file-size=300M".to_string(),
            ],
            // Every cell has fresh servers, because every run changes the data.
            generation: position.unwrap_or(0) as u32,
        }
    }

    fn template(&self, cell: &Cell, server: Server) -> Result<PathBuf, LabError> {
        match cell.level("part") {
            RUN => loader::template(Self::scale(cell), server),
            _ => Ok(crate::work_dir::empty_template(server)?),
        }
    }

    fn estimate_seconds(&self, cell: &Cell) -> f64 {
        let (warehouses, nodes) = (
            cell.number("warehouses") as f64,
            cell.number("nodes") as f64,
        );
        let check = warehouses * (1.0 + 0.3 * nodes);
        check
            + match cell.level("part") {
                LOAD => warehouses * (4.0 + 2.0 * nodes),
                _ => self.plan.warmup().as_secs_f64() + self.plan.seconds() as f64 + warehouses,
            }
    }

    fn needs_mib(&self) -> (u64, u64) {
        let nodes = u64::from(self.plan.nodes().into_iter().max().unwrap_or(1));
        let data = self.largest().data_mib();
        let cache = self.message_cache_mib(Server::MySql.program().is_ok());
        (
            nodes * (self.buffer_pool_mib() + 256 + cache),
            // Data, redo log and write-set cache, and the copy that is kept.
            nodes * (2 * data + 1024) + data,
        )
    }

    fn measure(
        &self,
        cell: &Cell,
        deployed: &mut Deployed,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        match cell.level("part") {
            LOAD => Self::measure_load(cell, deployed, measured),
            _ => self.measure_run(cell, deployed, measured),
        }
    }

    fn headline(&self, cell: &Cell) -> &'static str {
        match cell.level("part") {
            LOAD => figures::LOAD_S,
            _ => figures::NOTPM,
        }
    }

    fn charts(&self, records: &[Record]) -> Vec<Chart> {
        charts::charts(records, &self.plan.frame.systems)
    }

    fn tables(&self, records: &[Record]) -> Vec<Table> {
        report::tables(records)
    }

    fn claims(&self, records: &[Record]) -> Vec<Claim> {
        claims::claims(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::fixtures;

    fn tpcc(arguments: &[&str]) -> Tpcc {
        let mut plan: Plan = fixtures::parse(arguments).unwrap();
        plan.frame.default_systems(&SYSTEMS);
        Tpcc { plan }
    }

    fn systems(cells: &[Cell]) -> Vec<&str> {
        cells.iter().map(|cell| cell.system.as_str()).collect()
    }

    #[test]
    fn the_message_cache_is_counted_where_group_replication_takes_part() {
        let single = tpcc(&["--systems", "galera,group-replication-single"]);
        assert_eq!(single.message_cache_mib(true), 1024);
        assert_eq!(single.message_cache_mib(false), 0);
        let without = tpcc(&["--systems", "galera,trireme,plain-mysql"]);
        assert_eq!(without.message_cache_mib(true), 0);
    }

    #[test]
    fn systems_take_turns_at_each_point() {
        let plan = tpcc(&["--systems", "plain,galera,trireme", "--nodes", "1,3"]);
        let cells = plan.cells();
        let expected = ["plain", "galera", "trireme", "galera", "trireme"];
        assert_eq!(systems(&cells[..5]), expected);
        let run = &cells[5..12];
        assert!(run.iter().all(|cell| cell.level("connections") == "8"));
        assert_eq!(systems(&run[..3]), expected[..3]);
        let to: Vec<&str> = run.iter().map(|cell| cell.level("to")).collect();
        assert_eq!(to, ["one", "one", "one", "one", "one", "all", "all"]);
    }

    #[test]
    fn a_single_server_is_measured_beside_larger_clusters() {
        let cells = tpcc(&["--systems", "plain,trireme", "--nodes", "3"]).cells();
        assert!(cells.iter().any(|c| c.system == "plain"));
        let single = |c: &&Cell| c.level("nodes") == "1";
        assert!(cells.iter().filter(single).all(|c| c.system == "plain"));
    }

    #[test]
    fn no_two_cells_share_servers() {
        let plan = tpcc(&["--systems", "trireme", "--repetitions", "2"]);
        let mut setups: Vec<u32> = plan
            .cells()
            .iter()
            .map(|cell| plan.setup(cell).generation)
            .collect();
        let all = setups.len();
        setups.dedup();
        assert_eq!(setups.len(), all);
    }

    #[test]
    fn galera_has_no_full_durability() {
        let cells = tpcc(&["--durability", "full"]).cells();
        assert!(!systems(&cells).contains(&"galera"));
    }

    #[test]
    fn a_system_without_runs_is_told_with_the_reason() {
        let why = |arguments: &[&str]| -> Vec<(String, String)> {
            let left = tpcc(arguments).left_out().into_iter();
            left.map(|a| (a.system, a.reason)).collect()
        };
        assert_eq!(why(&[]), []);
        let full = why(&["--durability", "full"]);
        assert!(full.iter().any(|(system, _)| system == "galera"));
        for (arguments, reason) in [
            (
                ["--systems", "galera", "--durability", "full"],
                "--durability",
            ),
            (["--systems", "semisync", "--to", "all"], "--to one"),
            (
                ["--systems", "group-replication", "--nodes", "1"],
                "--nodes",
            ),
        ] {
            let left = why(&arguments);
            assert!(left[0].1.contains(reason), "{left:?}");
        }
    }

    #[test]
    fn a_single_primary_gets_no_load_on_all_nodes() {
        let systems = "group-replication,group-replication-single";
        for durability in ["origin", "full"] {
            let cells = tpcc(&["--systems", systems, "--durability", durability]).cells();
            let to_all = |name| {
                let own = cells.iter().filter(move |c| c.system == name);
                own.filter(|c| c.level("to") == "all").count() > 0
            };
            assert!(!to_all("group-replication-single"));
            // Its other nodes have no setting by which they flush before the answer.
            assert_eq!(to_all("group-replication"), durability == "origin");
        }
    }

    #[test]
    fn a_quick_pass_fits_five_minutes() {
        let quick = tpcc(&["--quick"]);
        let cells = quick.cells();
        let loads: f64 = cells.iter().map(|c| quick.estimate_seconds(c)).sum();
        // Servers start within 8 s on a machine that does nothing else.
        let all = loads + 8.0 * cells.len() as f64;
        assert!(all <= 300.0, "{all}");
    }

    /// The run in docs/results goes on with `--resume`.
    #[test]
    fn the_stored_run_keeps_its_cells_and_its_isolation() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/tpcc");
        let resuming: Plan = fixtures::parse(&["--resume", dir]).unwrap();
        let plan = frame::choices(&resuming, NAME, &SYSTEMS, |plan| &mut plan.frame).unwrap();
        assert_eq!(plan.isolation(), Isolation::RepeatableRead);
        let cells = plan.cells();
        assert_eq!(cells.len(), 3 * 39);
        let records = std::fs::read_to_string(format!("{dir}/records.jsonl")).unwrap();
        for line in records.lines().filter(|line| !line.is_empty()) {
            let record: Record = serde_json::from_str(line).unwrap();
            assert!(cells.contains(&record.cell), "{}", record.cell);
        }
    }

    #[test]
    fn each_preset_has_the_isolation_of_its_article() {
        let isolation = |arguments: &[&str]| tpcc(arguments).plan.isolation();
        assert_eq!(isolation(&[]), Isolation::RepeatableRead);
        let article = ["--preset", "article"];
        assert_eq!(isolation(&article), Isolation::ReadCommitted);
        let first = [&article[..], &["--isolation", "repeatable-read"]].concat();
        assert_eq!(isolation(&first), Isolation::RepeatableRead);
    }

    #[test]
    fn a_plan_survives_its_file() {
        let plan = tpcc(&["--preset", "article", "--to", "all"]).plan;
        let text = serde_json::to_string(&plan).unwrap();
        let again: Plan = serde_json::from_str(&text).unwrap();
        assert_eq!(again.cells(), plan.cells());
    }
}
