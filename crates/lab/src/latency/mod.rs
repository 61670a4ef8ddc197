//! `trireme bench latency`: the latency of commits, and the longest gap between them, when a member is lost, far, slow
//! or restarted.
//!
//! Every trial runs on a fresh cluster. The systems take turns (A B A B ...), so that a slow minute of the machine hits
//! all of them.

mod away;
mod case;
mod charts;
mod claims;
mod distance;
mod durability;
mod error;
mod failover;
mod fault;
mod figures;
mod goals;
mod ground;
mod large;
mod load;
mod needs;
mod own_goals;
mod plan;
mod report;
mod restart;
mod roaming;
mod site;
mod slow;
mod slow_disk;
mod strace;
mod table;
mod trace;
mod windows;

use trireme_testbed::verify::{verify_identical, verify_running};

use crate::client_processes::check_systems;
use crate::frame::{self, Cell, Chart, Claim, Experiment, LabError, Measured, Record, Table};
use case::{Case, PART};
use error::LatencyError;
pub use fault::Fault;
use ground::{Sites, Trial};
pub use plan::{Part, Plan, Victim};
use site::{DATABASE, Site};

const NAME: &str = "latency";

/// The systems to compare.
const SYSTEMS: [&str; 2] = ["galera", "trireme"];

/// The nodes of the smallest cluster of all parts.
const LEAST_NODES: usize = 3;

/// Runs the experiment, or continues it.
pub fn run(plan: &Plan) -> Result<(), LabError> {
    let plan = frame::choices(plan, NAME, &SYSTEMS, |plan| &mut plan.frame)?;
    let experiment = Latency { plan: plan.clone() };
    experiment.check()?;
    // Without time for a trial there is only a report to write, which needs nothing.
    if plan.frame.minutes != Some(0) {
        experiment.check_machine()?;
    }
    frame::run(&experiment, &plan.frame, &plan)
}

struct Latency {
    plan: Plan,
}

impl Latency {
    /// Fails before any start if a system cannot be measured.
    fn check(&self) -> Result<(), LabError> {
        check_systems(&self.plan.frame.systems, LEAST_NODES)
    }

    /// Fails before any start if this machine lacks a program or a right that a chosen part needs.
    fn check_machine(&self) -> Result<(), LatencyError> {
        for part in self.plan.parts() {
            part.check()?;
        }
        for case in self.plan.cases() {
            if let Case::Failover(fault, _) = case {
                fault.check()?;
            }
        }
        Ok(())
    }

    /// The case of a cell.
    ///
    /// # Panics
    /// If the cell is not one of the plan's.
    fn case(&self, cell: &Cell) -> Case {
        let case = self.plan.case_of(cell);
        case.expect("the frame asks for cells of the plan")
    }
}

impl Experiment<Sites> for Latency {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        "Commits while a member is lost, far, slow or restarted".to_string()
    }

    fn description(&self) -> Vec<String> {
        report::description(&self.plan)
    }

    fn cells(&self) -> Vec<Cell> {
        self.plan.cells()
    }

    fn setup(&self, cell: &Cell) -> Trial {
        Trial {
            case: self.case(cell),
            repetition: cell.repetition,
        }
    }

    fn estimate_seconds(&self, cell: &Cell) -> f64 {
        self.case(cell).estimate_seconds(&self.plan)
    }

    fn needs_mib(&self) -> (u64, u64) {
        // Each of three nodes holds a large transaction about four times.
        let large = 12 * self.plan.largest_mib().map_or(0, u64::from);
        (1536 + large, 3072 + large)
    }

    fn measure(
        &self,
        cell: &Cell,
        site: &mut Site,
        measured: &mut Measured,
    ) -> Result<(), LabError> {
        let case = self.case(cell);
        *measured = case.measure(&self.plan, site, cell.repetition, measured)?;
        let verify = match case.ends_whole() {
            true => verify_identical,
            false => verify_running,
        };
        verify(&mut site.cluster, &[DATABASE]).map_err(LatencyError::from)?;
        Ok(())
    }

    fn ends_run(&self, error: &LabError) -> bool {
        error::of_trial(error).is_none_or(LatencyError::ends_all)
    }

    fn headline(&self, cell: &Cell) -> &'static str {
        report::headline(cell.level(PART))
    }

    fn charts(&self, records: &[Record]) -> Vec<Chart> {
        charts::charts(records, &self.plan.frame.systems)
    }

    fn tables(&self, records: &[Record]) -> Vec<Table> {
        report::tables(records)
    }

    fn claimant(&self) -> &'static str {
        "this project"
    }

    fn claims(&self, records: &[Record]) -> Vec<Claim> {
        claims::claims(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        plan: Plan,
    }

    fn latency(arguments: &[&str]) -> Latency {
        let mut plan = Command::parse_from([&["latency"], arguments].concat()).plan;
        plan.frame.default_systems(&SYSTEMS);
        Latency { plan }
    }

    #[test]
    fn systems_take_turns_in_each_case() {
        let chosen = latency(&[
            "--part",
            "failover,far",
            "--faults",
            "kill",
            "--trials",
            "2",
        ]);
        let cells: Vec<String> = chosen.cells().iter().map(Cell::to_string).collect();
        assert_eq!(
            cells[..4],
            [
                "case kill -9, part failover, victim other, galera, repetition 1",
                "case kill -9, part failover, victim other, trireme, repetition 1",
                "case kill -9, part failover, victim leader, trireme, repetition 1",
                "case kill -9, part failover, victim other, galera, repetition 2",
            ]
        );
        // Two of the leader of Trireme; near, far and far first of both systems.
        assert_eq!(cells.len(), 4 + 2 + 3 * 2 * 2);
    }

    /// The ratios of the goals are paired by repetition.
    #[test]
    fn the_cases_of_a_part_take_turns() {
        let cells = latency(&["--part", "durability,trace", "--trials", "2"]).cells();
        for (part, cells) in ["durability", "trace"].iter().zip(cells.chunks(6)) {
            assert!(cells.iter().all(|cell| cell.level(PART) == *part));
            let order: Vec<(u32, &str)> = cells
                .iter()
                .map(|cell| (cell.repetition, cell.system.as_str()))
                .collect();
            let in_turns = ["galera", "trireme", "trireme"];
            let expected = [1, 2].map(|n| in_turns.map(|system| (n, system)));
            assert_eq!(order, expected.concat());
        }
    }

    #[test]
    fn systems_without_wsrep_are_refused_at_once() {
        for system in ["plain", "semisync"] {
            let error = latency(&["--systems", system]).check().unwrap_err();
            let error = error.to_string();
            assert!(
                error.starts_with(&format!("{system} does not fit")),
                "{error}"
            );
            assert!(error.contains("--systems") && !error.contains('\n'));
        }
        assert!(latency(&[]).check().is_ok());
        let own = latency(&["--systems", "trireme,mine=/x/libtrireme.so"]);
        assert!(own.check().is_ok());
    }

    #[test]
    fn galera_is_struck_once() {
        let both = latency(&["--preset", "article", "--trials", "1"]);
        let times = |system: &str| both.cells().iter().filter(|c| c.system == system).count();
        // Failover, far, regions, restart, slow, large, away, durability, trace, windows.
        assert_eq!(times("trireme"), 10 + 3 + 1 + 1 + 4 + 4 + 2 + 2 + 2 + 1);
        assert_eq!(times("galera"), 5 + 3 + 1 + 1 + 2 + 2 + 2 + 1 + 1 + 1);
        let only = latency(&[
            "--victims",
            "leader",
            "--part",
            "failover",
            "--faults",
            "kill",
        ]);
        assert!(only.cells().iter().any(|cell| cell.system == "galera"));
    }

    #[test]
    fn a_quick_pass_fits_five_minutes() {
        let quick = latency(&["--quick"]);
        let cells = quick.cells();
        let trials: f64 = cells.iter().map(|c| quick.estimate_seconds(c)).sum();
        // Servers start within 9 s on a machine that does nothing else.
        let all = trials + 9.0 * cells.len() as f64;
        assert!(all <= 270.0 && cells.len() == 8, "{all}");
    }

    #[test]
    fn every_cell_knows_its_case() {
        let all = latency(&[
            "--preset",
            "article",
            "--far-ms",
            "20,100",
            "--large-mib",
            "1,2",
        ]);
        for case in all.plan.cases() {
            let cell = Cell {
                system: "trireme".to_string(),
                factors: case.factors(),
                repetition: 1,
            };
            assert_eq!(all.plan.case_of(&cell), Some(case));
        }
    }

    #[test]
    fn a_plan_survives_its_file() {
        let plan = latency(&["--preset", "article", "--faults", "cut"]).plan;
        let text = serde_json::to_string(&plan).unwrap();
        let again: Plan = serde_json::from_str(&text).unwrap();
        assert_eq!(again.cells(), plan.cells());
    }
}
