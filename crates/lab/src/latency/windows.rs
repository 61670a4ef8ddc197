//! Part `windows`: conflicts per committed transaction, in a small table that four nodes write to.

use super::report::{Figure, Measure, Record};
use super::run::Notebook;
use super::site::{Ground, ROWS, Site};
use super::{LatencyError, Plan};
use crate::oltp::run_load;
use trireme_testbed::interrupt;
use trireme_testbed::output::line;
use trireme_testbed::sysbench::Load;
use trireme_testbed::systems::Wsrep;
use trireme_testbed::verify::verify_identical;

const NODES: usize = 4;

/// Threads per node.
const THREADS: usize = 6;

/// Load before each measurement.
const WARMUP_S: u64 = 3;

const CONFLICTS: Measure = Measure::median("conflicts per commit", 4);
pub(super) const TPS: Measure = Measure::median("commits/s", 0);

/// Runs the part: the systems take turns in each trial.
pub fn run(
    plan: &Plan,
    ground: &Ground,
    systems: &[Wsrep],
    notebook: &mut Notebook,
) -> Result<(), LatencyError> {
    for trial in 1..=usize::from(plan.trials) {
        for system in systems {
            interrupt::check()?;
            let figures = match measure(ground, system, trial, plan.seconds) {
                Ok(figures) => figures,
                Err(error) if error.ends_all() => return Err(error),
                Err(error) => {
                    let name = &system.name;
                    line(&format!("windows, trial {trial}, {name}: failed: {error}"));
                    Vec::new()
                }
            };
            notebook.take(Record {
                part: "windows",
                case: format!("{NODES} nodes, {ROWS} rows"),
                system: system.name.clone(),
                trial,
                figures,
            })?;
        }
    }
    Ok(())
}

fn measure(
    ground: &Ground,
    system: &Wsrep,
    trial: usize,
    seconds: u64,
) -> Result<Vec<Figure>, LatencyError> {
    let mut site = Site::on_loopback(ground, system, NODES, |_| {})?;
    let outcome = load(&mut site, trial, seconds);
    site.end(outcome.is_err())?;
    outcome
}

fn load(site: &mut Site<'_>, trial: usize, seconds: u64) -> Result<Vec<Figure>, LatencyError> {
    let load = Load::read_write(1, ROWS, THREADS);
    // All systems get the same random numbers.
    let seed = trial as u32 * 1000;
    run_load(site.cluster.nodes(), &load, WARMUP_S, seed + 500)?;
    let summaries = run_load(site.cluster.nodes(), &load, seconds, seed)?;
    verify_identical(&mut site.cluster, &[&load.database])?;
    let commits: u64 = summaries.iter().map(|s| s.transactions).sum();
    let conflicts: u64 = summaries.iter().map(|s| s.conflicts).sum();
    let tps = summaries.iter();
    let tps = tps.map(|s| s.transactions as f64 / s.seconds.max(0.001));
    Ok(vec![
        (CONFLICTS, conflicts as f64 / commits.max(1) as f64),
        (TPS, tps.sum()),
    ])
}
