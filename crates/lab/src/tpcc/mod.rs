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

/// The systems of the articles, and ours; the last one is the reference of Group Replication.
const SYSTEMS: [&str; 5] = [
    "plain",
    "galera",
    "trireme",
    "group-replication",
    "plain-mysql",
];

/// The systems of a plan that names none. A quick pass needs no reference of Group Replication.
fn default_systems(plan: &Plan) -> &'static [&'static str] {
    plan.frame.preset().systems(&SYSTEMS, 4)
}

/// Runs the experiment, or continues it.
pub fn run(plan: &Plan) -> Result<(), LabError> {
    let plan = frame::choices(plan, NAME, default_systems(plan), |plan| &mut plan.frame)?;
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

    /// The processors that all nodes share; `None` if each node has a share of its own.
    fn shared_processors(&self) -> Option<usize> {
        let all = || std::thread::available_parallelism().map_or(1, |n| n.get());
        self.plan.frame.cpu_per_node.is_none().then(all)
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
        claims::claims(records, self.shared_processors())
    }
}

#[cfg(test)]
mod tests;
