//! `trireme bench sysbench`: "How Much Can Galera Sysbench?" (2008), read-write transactions on all nodes at once.
//!
//! First the number of threads is swept on the plain server. The other cells follow from the records of the sweep.

mod charts;
mod claims;
mod figures;
mod load;
mod plan;
mod points;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use trireme_testbed::Server;
use trireme_testbed::sysbench::Load;
use trireme_testbed::systems::{Deployed, Durability};

use crate::cpu::CpuTimes;
use crate::frame::{
    self, Cell, Chart, Claim, Experiment, LabError, Measured, Record, Setup, Table,
};
use crate::oltp;
use load::Counters;
pub use plan::Plan;
use points::{Part, Point};

const NAME: &str = "sysbench";

/// The systems of the article, and ours.
const SYSTEMS: [&str; 3] = ["plain", "galera", "trireme"];

/// Runs the experiment, or continues it.
pub fn run(plan: &Plan) -> Result<(), LabError> {
    let plan = frame::choices(plan, NAME, &SYSTEMS, |plan| &mut plan.frame)?;
    plan.check()
        .map_err(|error| LabError::Own(Box::new(error)))?;
    plan.frame.check_nodes(plan.most_nodes())?;
    let experiment = SysbenchExperiment { plan: plan.clone() };
    frame::run(&experiment, &plan.frame, &plan)
}

struct SysbenchExperiment {
    plan: Plan,
}

impl Experiment for SysbenchExperiment {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        "sysbench on all nodes: how far a cluster scales, and what deadlocks take".to_string()
    }

    fn description(&self) -> Vec<String> {
        report::description(&self.plan)
    }

    fn cells(&self) -> Vec<Cell> {
        match self.plan.threads(&[]) {
            Some(threads) => self.plan.run_cells(threads),
            None => self.plan.sweep_cells(),
        }
    }

    fn further_cells(&self, records: &[Record]) -> Vec<Cell> {
        match (self.plan.threads(&[]), self.plan.threads(records)) {
            (None, Some(best)) => self.plan.run_cells(best),
            _ => Vec::new(),
        }
    }

    fn goes_on(&self, records: &[Record]) -> bool {
        self.plan.threads(records).is_none()
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![oltp::sysbench_fact()]
    }

    fn setup(&self, cell: &Cell) -> Setup {
        let point = Point::of(cell);
        let rows = self.plan.rows();
        let size = rows.iter().position(|rows| *rows == point.rows);
        // Every run has fresh servers. In a sweep, the servers stay for the next number of threads.
        let part = match point.part {
            Part::Sweep => 0,
            Part::Run => 1 + size.unwrap_or(0),
        };
        Setup {
            nodes: point.nodes.into(),
            durability: Durability::Lazy,
            arguments: Vec::new(),
            generation: cell.repetition * (1 + rows.len() as u32) + part as u32,
        }
    }

    fn template(&self, cell: &Cell, server: Server) -> Result<PathBuf, LabError> {
        Ok(oltp::template(Point::of(cell).rows as usize, server)?)
    }

    fn estimate_seconds(&self, _cell: &Cell) -> f64 {
        // One second is for starting threads and comparing rows.
        self.plan.warmup().as_secs_f64() + self.plan.seconds() as f64 + 1.0
    }

    fn needs_mib(&self) -> (u64, u64) {
        let nodes = self.plan.most_nodes() as u64;
        // The buffer pool and the server's other memory; data, redo log and write-set cache.
        (nodes * 512, nodes * 1024)
    }

    fn measure(
        &self,
        cell: &Cell,
        deployed: &mut Deployed,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        let point = Point::of(cell);
        let nodes = deployed.writers();
        let threads = usize::from(point.threads) * nodes.len();
        let load = Load::read_write(1, point.rows as usize, threads);
        // All systems get the same random numbers.
        let seed = cell.repetition * 1000;
        if !self.plan.warmup().is_zero() {
            load::run(
                nodes,
                &load,
                self.plan.warmup(),
                seed + 500,
                &mut Vec::new(),
            )?;
        }
        let (counters, cpu) = (Counters::of(deployed)?, CpuTimes::of(deployed));
        let duration = Duration::from_secs(self.plan.seconds());
        let whole = load::run(nodes, &load, duration, seed, &mut measured.per_second)?;
        let cpu = CpuTimes::of(deployed).since(cpu);
        let counters = Counters::of(deployed)?.since(&counters);
        figures::of_run(&whole, &counters, cpu, measured);
        deployed.verify(&[&load.database])?;
        Ok(())
    }

    fn headline(&self, _cell: &Cell) -> &'static str {
        figures::TX_PER_S
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

    fn sysbench(arguments: &[&str]) -> SysbenchExperiment {
        let mut plan: Plan = fixtures::parse(arguments).unwrap();
        plan.frame.default_systems(&SYSTEMS);
        SysbenchExperiment { plan }
    }

    /// Records of the cells, with a rate that `rate` gives for each number of threads.
    fn measured(cells: &[Cell], rate: fn(u64) -> f64) -> Vec<Record> {
        let record = |cell: &Cell| {
            let figures = [(figures::TX_PER_S, rate(cell.number("threads")))];
            fixtures::record(cell.clone(), figures)
        };
        cells.iter().map(record).collect()
    }

    #[test]
    fn the_sweep_decides_the_threads_of_all_other_cells() {
        let experiment = sysbench(&["--repetitions", "2", "--sweep", "2,4,8"]);
        let sweep = experiment.cells();
        assert_eq!(sweep.len(), 6);
        assert!(sweep.iter().all(|c| c.system == "plain"));
        // 4 and 8 are equal: the fewer threads win.
        let records = measured(&sweep, |threads| threads.min(4) as f64);
        assert_eq!(experiment.further_cells(&records[..5]), []);
        assert!(experiment.goes_on(&records[..5]) && !experiment.goes_on(&records));
        let run = experiment.further_cells(&records);
        assert!(run.iter().all(|c| c.number("threads") == 4));
        // Two repetitions, three tables: a plain server, and two systems with 1 to 4 nodes.
        assert_eq!(run.len(), 2 * 3 * (1 + 2 * 4));
    }

    #[test]
    fn without_a_sweep_all_cells_are_known_at_once() {
        for (arguments, threads) in [
            (["--systems", "trireme,galera"], 6),
            (["--threads-per-node", "3"], 3),
        ] {
            let experiment = sysbench(&arguments);
            let cells = experiment.cells();
            assert!(cells.iter().all(|c| c.number("threads") == threads));
            assert_eq!(experiment.further_cells(&measured(&cells, |_| 1.0)), []);
            assert!(!experiment.goes_on(&[]));
        }
    }

    #[test]
    fn the_version_of_sysbench_is_a_fact() {
        let facts = sysbench(&[]).facts();
        assert_eq!(facts.len(), 1);
        // Without sysbench the fact says how to get it.
        assert!(
            facts[0].0 == "sysbench" && facts[0].1.contains("sysbench"),
            "{facts:?}"
        );
    }

    #[test]
    fn statements_to_commit_are_not_called_commits() {
        let experiment = sysbench(&["--threads", "6"]);
        let records = measured(&experiment.cells(), |_| 1.0);
        let tables = experiment.tables(&records);
        let columns = tables.iter().flat_map(|table| &table.header);
        let of_nodes: Vec<&String> = columns.filter(|name| name.contains("by node")).collect();
        assert_eq!(of_nodes, ["COMMITs asked for by node"]);
    }

    #[test]
    fn systems_take_turns_at_each_point() {
        let cells = sysbench(&["--threads", "6", "--nodes", "2,3"]).cells();
        let order = |c: &Cell| (c.system.clone(), c.number("nodes"));
        let first: Vec<(String, u64)> = cells[..5].iter().map(order).collect();
        let expected = [
            ("plain", 1),
            ("galera", 2),
            ("trireme", 2),
            ("galera", 3),
            ("trireme", 3),
        ];
        assert_eq!(first, expected.map(|(s, n)| (s.to_string(), n)));
    }

    #[test]
    fn systems_have_only_their_own_sizes() {
        let systems = "plain-binlog,semisync,group-replication,trireme";
        for (nodes, expected) in [
            (
                "1,2",
                vec![(1, "plain-binlog"), (1, "trireme"), (2, "semisync")],
            ),
            ("2", vec![(1, "plain-binlog"), (2, "semisync")]),
        ] {
            let cells = sysbench(&["--systems", systems, "--nodes", nodes]).cells();
            let all = cells.iter();
            let all: Vec<_> = all
                .map(|c| (c.number("nodes"), c.system.as_str()))
                .collect();
            assert!(all.starts_with(&expected), "{all:?}");
        }
    }

    #[test]
    fn a_sweep_without_its_server_is_refused() {
        let check = |systems| {
            sysbench(&["--systems", systems, "--sweep", "2,4,8"])
                .plan
                .check()
        };
        let text = check("galera,trireme").unwrap_err().to_string();
        assert!(text.contains("add plain") && text.contains("--threads"));
        assert!(check("galera,plain").is_ok());
        assert!(sysbench(&["--systems", "galera"]).plan.check().is_ok());
    }

    #[test]
    fn only_a_sweep_keeps_its_servers() {
        let experiment = sysbench(&["--systems", "plain", "--rows", "1000,2000"]);
        let sweep = experiment.cells();
        let run = experiment.further_cells(&measured(&sweep, |_| 1.0));
        let setups = |cells: &[Cell]| {
            let mut setups: Vec<u32> = cells
                .iter()
                .map(|c| experiment.setup(c).generation)
                .collect();
            setups.dedup();
            setups.len()
        };
        // One for each repetition.
        assert_eq!(setups(&sweep), 3);
        assert_eq!(setups(&[sweep, run.clone()].concat()), 3 + run.len());
    }

    #[test]
    fn a_quick_pass_fits_five_minutes() {
        let quick = sysbench(&["--quick"]);
        let sweep = quick.cells();
        let run = quick.further_cells(&measured(&sweep, |_| 1.0));
        let cells = [sweep, run].concat();
        let loads: f64 = cells.iter().map(|c| quick.estimate_seconds(c)).sum();
        let mut setups: Vec<(&str, Setup)> = cells
            .iter()
            .map(|c| (c.system.as_str(), quick.setup(c)))
            .collect();
        setups.dedup();
        // Servers start within 8 s on a machine that does nothing else.
        let all = loads + 8.0 * setups.len() as f64;
        assert!(all <= 300.0, "{all}");
    }

    #[test]
    fn a_plan_survives_its_file() {
        let plan = sysbench(&["--preset", "article", "--nodes", "1,4"]).plan;
        let text = serde_json::to_string(&plan).unwrap();
        let again: Plan = serde_json::from_str(&text).unwrap();
        assert_eq!(again.sweep_cells(), plan.sweep_cells());
        assert_eq!(again.seconds(), 300);
    }
}
