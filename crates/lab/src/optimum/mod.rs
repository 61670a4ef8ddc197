//! `trireme bench optimum`: finds by design of experiments the nodes and connections with the most throughput: the
//! question of "How does Galera Cluster behave with many nodes?" (2025).
//!
//! [`design`] lists the runs, and [`study`] evaluates them; both are pure and use [`crate::doe`]. Later phases follow
//! from the records of earlier ones.

mod charts;
mod claims;
mod design;
mod drawing;
mod effects;
mod map;
mod plan;
mod report;
mod study;
#[cfg(test)]
mod tests;

use std::hash::{Hash, Hasher};
use std::path::PathBuf;

use trireme_testbed::output::line;
use trireme_testbed::systems::{Deployed, Durability};
use trireme_testbed::{Server, Settings};

use crate::client_processes::{self, ClientProcesses, Span};
use crate::frame::{
    self, Cell, Chart, Claim, Experiment, LabError, Measured, Record, Setup, Table,
};
use crate::oltp;
use design::Design;
pub use plan::Plan;
use plan::{APPLIERS, CONNECTIONS, NODES, OPTION};
use study::THROUGHPUT;

const NAME: &str = "optimum";

/// The system of the article, and ours.
const SYSTEMS: [&str; 2] = ["galera", "trireme"];

/// Runs the experiment, or continues it.
pub fn run(plan: &Plan) -> Result<(), LabError> {
    let plan = frame::choices(plan, NAME, &SYSTEMS, |plan| &mut plan.frame)?;
    let experiment = Optimum {
        design: plan.design()?,
        plan: plan.clone(),
    };
    experiment.check()?;
    line(&report::announcement(&experiment.design));
    frame::run(&experiment, &plan.frame, &plan)
}

struct Optimum {
    plan: Plan,
    design: Design,
}

impl Optimum {
    /// Fails before any start if the choices cannot be measured.
    fn check(&self) -> Result<(), LabError> {
        let nodes = self.largest(NODES) as usize;
        client_processes::check_systems(&self.plan.frame.systems, nodes)?;
        self.plan.frame.check_nodes(nodes)
    }

    /// The level of a factor in a cell; the fixed level if the factor does not vary.
    fn level(&self, cell: &Cell, factor: &str) -> u64 {
        match cell.level(factor) {
            "" => self.plan.fixed(factor),
            _ => cell.number(factor),
        }
    }

    /// The largest level of a factor.
    fn largest(&self, factor: &str) -> u64 {
        let mut varied = self.design.factors.iter().filter(|f| f.name() == factor);
        match varied.next() {
            Some(factor) => factor.bounds().1 as u64,
            None => self.plan.fixed(factor),
        }
    }

    /// A number that differs between cells, so that every run has fresh servers.
    fn generation(cell: &Cell) -> u32 {
        let mut hasher = std::hash::DefaultHasher::new();
        cell.to_string().hash(&mut hasher);
        hasher.finish() as u32
    }

    fn most_clients(&self) -> usize {
        self.largest(CONNECTIONS) as usize / usize::from(self.plan.threads())
    }
}

impl Experiment for Optimum {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        "The best cluster: nodes and connections by design of experiments".to_string()
    }

    fn description(&self) -> Vec<String> {
        report::description(&self.plan, &self.design)
    }

    fn cells(&self) -> Vec<Cell> {
        self.design.first_cells()
    }

    fn further_cells(&self, records: &[Record]) -> Vec<Cell> {
        self.design.further_cells(records)
    }

    fn goes_on(&self, records: &[Record]) -> bool {
        self.design.goes_on(records)
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![oltp::sysbench_fact()]
    }

    fn setup(&self, cell: &Cell) -> Setup {
        Setup {
            nodes: self.level(cell, NODES) as usize,
            durability: Durability::Lazy,
            arguments: vec![format!(
                "--wsrep-slave-threads={}",
                self.level(cell, APPLIERS)
            )],
            generation: Self::generation(cell),
        }
    }

    fn configure(&self, cell: &Cell, settings: &mut Settings) {
        let options = cell.factors.iter().filter_map(|(factor, level)| {
            let option = factor.strip_prefix(OPTION)?;
            Some(format!("{option}={level}"))
        });
        settings.provider_options = options.collect::<Vec<_>>().join(";");
    }

    fn template(&self, _cell: &Cell, server: Server) -> Result<PathBuf, LabError> {
        // All runs start with the same data.
        client_processes::template(self.most_clients(), self.plan.schema(), server)
    }

    fn estimate_seconds(&self, cell: &Cell) -> f64 {
        let load = self.plan.warmup().as_secs() + self.plan.seconds();
        load as f64 + 1.0 + 0.7 * self.level(cell, NODES) as f64
    }

    fn needs_mib(&self) -> (u64, u64) {
        let nodes = self.largest(NODES);
        let rows = self.plan.schema().rows * self.most_clients();
        // A row takes about 250 bytes with its indexes. Each node also has redo log, write-set cache and system tables.
        let data = (rows as u64 * 250) >> 20;
        (nodes * (256 + 256), (nodes + 1) * (data + 400))
    }

    fn measure(
        &self,
        cell: &Cell,
        deployed: &mut Deployed,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        let threads = usize::from(self.plan.threads());
        let load = ClientProcesses {
            clients: self.level(cell, CONNECTIONS) as usize / threads,
            threads,
            rate: None,
            schema: self.plan.schema(),
        };
        let span = Span {
            warmup: self.plan.warmup().as_secs(),
            seconds: self.plan.seconds(),
            // All systems get the same random numbers.
            seed: (self.plan.seed as u32)
                .wrapping_mul(100_000)
                .wrapping_add(1_000 * cell.repetition),
        };
        client_processes::measure(&load, span, deployed, measured)
    }

    fn headline(&self, _cell: &Cell) -> &'static str {
        THROUGHPUT
    }

    fn charts(&self, records: &[Record]) -> Vec<Chart> {
        charts::charts(&self.design, records)
    }

    fn drawings(&self, records: &[Record]) -> Vec<String> {
        drawing::drawings(&self.design, records)
    }

    fn tables(&self, records: &[Record]) -> Vec<Table> {
        report::tables(&self.design, records)
    }

    fn claims(&self, records: &[Record]) -> Vec<Claim> {
        claims::claims(&self.design, records)
    }
}
