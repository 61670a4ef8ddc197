//! Loads the tables: either through a node of a running system, with the time measured, or into a data directory that
//! every run copies.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trireme_testbed::sql::SqlError;
use trireme_testbed::{Cluster, Node, Server, Sql, interrupt};

use super::rows::{Unit, units};
use super::scale::Scale;
use super::schema::{ANALYZE, STATEMENTS};
use crate::frame::LabError;
use crate::work_dir;

/// The number of connections that load at the same time.
pub const CONNECTIONS: usize = 4;

/// The version of the rows and tables: a program that loads different ones has another version.
const VERSION: u32 = 1;

/// The time limit for a statement of the load. Only a hanging server needs longer.
const STATEMENT: Duration = Duration::from_secs(120);

/// The times of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loaded {
    /// The time for making rows, processor and waiting time, added up over the connections, in seconds.
    pub generate_s: f64,
    /// The time from the first statement until the end of the last one, in seconds.
    pub load_s: f64,
}

/// Makes new tables through `node`, and fills them.
pub fn load(node: &Node, scale: Scale) -> Result<Loaded, LabError> {
    let failed = |source: SqlError| LabError::Load {
        node: node.name.clone(),
        source,
    };
    let began = Instant::now();
    let mut sql = node.sql()?;
    for statement in STATEMENTS {
        sql.exec(statement).map_err(failed)?;
    }
    let units = units(scale);
    let next = AtomicUsize::new(0);
    let work = || -> Result<Duration, LabError> {
        let mut sql = Sql::connect_socket(&node.socket(), STATEMENT).map_err(failed)?;
        let mut generating = Duration::ZERO;
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            let done = write(*unit, scale, |text| sql.exec(text).map_err(failed));
            generating += done.inspect_err(|_| {
                // Stops the other connections, whose work is useless now.
                next.store(units.len(), Ordering::Relaxed);
            })?;
        }
        Ok(generating)
    };
    let times = thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|result| result.unwrap_or(Err(LabError::Client)))
            .collect::<Result<Vec<Duration>, LabError>>()
    })?;
    Ok(Loaded {
        generate_s: times.iter().sum::<Duration>().as_secs_f64(),
        load_s: began.elapsed().as_secs_f64(),
    })
}

/// Writes a unit by `execute`; returns the time for making its rows.
fn write(
    unit: Unit,
    scale: Scale,
    mut execute: impl FnMut(&str) -> Result<u64, LabError>,
) -> Result<Duration, LabError> {
    let began = Instant::now();
    let mut sending = Duration::ZERO;
    unit.write(scale, &mut |statement: &str| -> Result<(), LabError> {
        interrupt::check()?;
        let began = Instant::now();
        let done = execute(statement);
        sending += began.elapsed();
        done.map(drop)
    })?;
    Ok(began.elapsed() - sending)
}

/// Returns a data directory of `server` with loaded tables.
pub fn template(scale: Scale, server: Server) -> Result<PathBuf, LabError> {
    let warehouses = scale.warehouses();
    let name = format!("tpcc-{VERSION}-{warehouses}");
    let announcement = format!("loading tables for the runs (warehouses: {warehouses})");
    work_dir::template(&name, server, &announcement, |cluster| fill(cluster, scale))
}

fn fill(cluster: &mut Cluster, scale: Scale) -> Result<(), LabError> {
    cluster.start()?;
    load(cluster.node(0), scale)?;
    let mut sql = cluster.sql(0)?;
    // Every run then has the same statistics, and so the same query plans.
    sql.exec(ANALYZE).map_err(|source| LabError::Load {
        node: cluster.node(0).name.clone(),
        source,
    })?;
    drop(sql);
    Ok(cluster.stop()?)
}
