//! The data directory with the schemas of all clients.

use std::path::PathBuf;

use trireme_testbed::{Cluster, Server, interrupt};

use super::{Schema, database};
use crate::frame::LabError;
use crate::work_dir;

/// Returns a data directory of `server` with the schemas of `clients` clients.
pub fn template(clients: usize, schema: Schema, server: Server) -> Result<PathBuf, LabError> {
    let Schema { tables, rows } = schema;
    let name = format!("clients-{clients}x{tables}x{rows}");
    let announcement = format!("preparing {clients} schemas of {tables} tables of {rows} rows");
    work_dir::template(&name, server, &announcement, |cluster| {
        fill(cluster, clients, schema)
    })
}

fn fill(cluster: &mut Cluster, clients: usize, schema: Schema) -> Result<(), LabError> {
    cluster.start()?;
    for i in 0..clients {
        interrupt::check()?;
        schema.load(database(i), 1, None).prepare(cluster.node(0))?;
    }
    Ok(cluster.stop()?)
}
