//! sysbench's table, which is prepared once, and a load on several nodes at once.

use std::path::PathBuf;
use std::time::Duration;

use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::node::Node;
use trireme_testbed::sysbench::{self, Load, Sysbench, SysbenchError};
use trireme_testbed::sysbench_report::{IntervalReport, Summary};
use trireme_testbed::{ClusterError, Server};

use crate::work_dir;

/// The reason why there is no table, or no load.
#[derive(Debug, thiserror::Error)]
pub enum OltpError {
    /// A cluster did not work as it should.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The load failed.
    #[error(transparent)]
    Sysbench(#[from] SysbenchError),
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// The sentence of reports about the rows that sysbench chooses.
pub(crate) const ROWS_CHOSEN: &str = "sysbench chooses rows by the distribution \"special\", the default of its version 1.0: about \
     three quarters of the choices fall on 1 % of a table.";

/// The fact about the version of sysbench, for the report.
pub(crate) fn sysbench_fact() -> (String, String) {
    let version = sysbench::version().unwrap_or_else(|error| error.to_string());
    ("sysbench".to_string(), version)
}

/// Returns a data directory of `server` with the prepared table.
pub(crate) fn template(rows: usize, server: Server) -> Result<PathBuf, OltpError> {
    let announcement = format!("preparing a table of {rows} rows");
    work_dir::template(&format!("oltp-{rows}"), server, &announcement, |cluster| {
        cluster.start()?;
        Load::read_write(1, rows, 1).prepare(cluster.node(0))?;
        Ok(cluster.stop()?)
    })
}

/// The result of a load.
pub(crate) struct Loaded {
    /// The summary of each process.
    pub summaries: Vec<Summary>,
    /// The commits of all processes in each second. sysbench does not always report the last one.
    pub per_second: Vec<u64>,
}

/// Runs the load on `nodes` at once, with a process per node. The processes take `seed` and the numbers after it.
pub(crate) fn run_load(
    nodes: &[Node],
    load: &Load,
    seconds: u64,
    seed: u32,
) -> Result<Loaded, OltpError> {
    let duration = Duration::from_secs(seconds);
    let starts = nodes
        .iter()
        .zip(seed..)
        .map(|(node, seed)| load.start(node, Some(duration), seed + 1));
    let mut runs = starts.collect::<Result<Vec<Sysbench>, _>>()?;
    while !runs.iter_mut().all(Sysbench::has_ended) {
        interrupt::sleep(Duration::from_millis(100))?;
    }
    let whole = runs.into_iter().map(Sysbench::finish_whole);
    let whole = whole.collect::<Result<Vec<_>, _>>()?;
    Ok(Loaded {
        summaries: whole.iter().map(|whole| whole.statistics.summary).collect(),
        per_second: per_second(whole.iter().map(|whole| &*whole.intervals)),
    })
}

/// The commits of all processes in each second, from the reports of each.
fn per_second<'a>(processes: impl Iterator<Item = &'a [IntervalReport]>) -> Vec<u64> {
    let mut commits = Vec::new();
    for reports in processes {
        commits.resize(commits.len().max(reports.len()), 0);
        for (second, report) in commits.iter_mut().zip(reports) {
            *second += report.tps.round() as u64;
        }
    }
    commits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_of_all_processes_are_added() {
        let reports = |tps: &[f64]| -> Vec<IntervalReport> {
            let report = |(second, tps): (u32, &f64)| IntervalReport {
                second: f64::from(second),
                tps: *tps,
                p95_ms: 1.0,
                conflicts_per_s: 0.0,
            };
            (1..).zip(tps).map(report).collect()
        };
        let processes = [reports(&[99.99, 50.0]), reports(&[1.0, 2.0, 3.01])];
        let per_second = per_second(processes.iter().map(Vec::as_slice));
        assert_eq!(per_second, [101, 52, 3]);
    }
}
