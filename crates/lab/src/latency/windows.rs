//! Part `windows`: the conflicts of four nodes on a small table, with a sysbench process for each node.

use std::time::Duration;

use trireme_testbed::sysbench::Load;

use super::error::LatencyError;
use super::figures::measured;
use super::site::{ROWS, Site};
use crate::frame::Measured;
use crate::oltp::run_load;

/// The number of nodes.
pub const NODES: usize = 4;

/// Threads per node.
const THREADS: usize = 6;

/// The load before the measurement.
const WARMUP_S: u64 = 3;

/// The figure: the transactions that lost against another one, per committed transaction.
pub const CONFLICTS: &str = "conflicts_per_commit";

/// Runs one trial.
pub fn measure(
    site: &mut Site,
    repetition: u32,
    length: Duration,
) -> Result<Measured, LatencyError> {
    let load = Load::read_write(1, ROWS, THREADS);
    // All systems get the same random numbers.
    let seed = repetition * 1000;
    run_load(site.cluster.nodes(), &load, WARMUP_S, seed + 500)?;
    let loaded = run_load(site.cluster.nodes(), &load, length.as_secs(), seed)?;
    let summaries = &loaded.summaries;
    let commits: u64 = summaries.iter().map(|s| s.transactions).sum();
    let conflicts: u64 = summaries.iter().map(|s| s.conflicts).sum();
    let per_s = summaries.iter();
    let per_s = per_s.map(|s| s.transactions as f64 / s.seconds.max(0.001));
    let figures = [
        (CONFLICTS, conflicts as f64 / commits.max(1) as f64),
        ("commits_per_s", per_s.sum()),
    ];
    Ok(measured(figures, loaded.per_second))
}
