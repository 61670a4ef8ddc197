//! sysbench's table, which is prepared once, and a load on several nodes at once.

use std::path::PathBuf;
use std::time::Duration;

use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::node::Node;
use trireme_testbed::sysbench::{Load, Sysbench, SysbenchError};
use trireme_testbed::sysbench_report::Summary;
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

/// Returns a data directory of `server` with the prepared table.
pub(crate) fn template(rows: usize, server: Server) -> Result<PathBuf, OltpError> {
    let announcement = format!("preparing a table of {rows} rows");
    work_dir::template(&format!("oltp-{rows}"), server, &announcement, |cluster| {
        cluster.start()?;
        Load::read_write(1, rows, 1).prepare(cluster.node(0))?;
        Ok(cluster.stop()?)
    })
}

/// Runs the load on `nodes` at once, with a process per node. The processes take `seed` and the numbers after it.
pub(crate) fn run_load(
    nodes: &[Node],
    load: &Load,
    seconds: u64,
    seed: u32,
) -> Result<Vec<Summary>, OltpError> {
    let duration = Duration::from_secs(seconds);
    let starts = nodes
        .iter()
        .zip(seed..)
        .map(|(node, seed)| load.start(node, Some(duration), seed + 1));
    let mut runs = starts.collect::<Result<Vec<Sysbench>, _>>()?;
    while !runs.iter_mut().all(Sysbench::has_ended) {
        interrupt::sleep(Duration::from_millis(100))?;
    }
    Ok(runs
        .into_iter()
        .map(Sysbench::finish)
        .collect::<Result<_, _>>()?)
}
