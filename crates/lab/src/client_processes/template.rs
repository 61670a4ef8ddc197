//! The data directory with the schemas of all clients.

use std::fs;
use std::path::PathBuf;

use trireme_testbed::cluster::make_private_dir;
use trireme_testbed::output::line;
use trireme_testbed::{Cluster, Server, Settings, interrupt};

use super::{Schema, database};
use crate::frame::LabError;
use crate::work_dir::work_dir;

/// A data directory of `server` with the schemas of `clients` clients, made once by a plain server and kept for later invocations.
pub fn template(clients: usize, schema: Schema, server: Server) -> Result<PathBuf, LabError> {
    make_private_dir(&work_dir())?;
    let Schema { tables, rows } = schema;
    let template = work_dir().join(format!(
        "template-clients-{clients}x{tables}x{rows}{}",
        server.suffix()
    ));
    if template.exists() {
        return Ok(template);
    }
    line(&format!(
        "preparing {clients} schemas of {tables} tables of {rows} rows; they stay in {}",
        template.display()
    ));
    let dir = work_dir().join(format!("prepare-{}", std::process::id()));
    let mut settings = Settings::new(dir, 1, None);
    settings.server = server;
    settings.mariadbd_args = vec!["--innodb-flush-log-at-trx-commit=0".to_string()];
    let mut cluster = Cluster::create(settings, |_| {})?;
    let made = fill(&mut cluster, clients, schema).and_then(|()| {
        fs::rename(cluster.node(0).datadir(), &template).map_err(LabError::io(&template))
    });
    cluster.kill()?;
    cluster.delete()?;
    made.map(|()| template)
}

fn fill(cluster: &mut Cluster, clients: usize, schema: Schema) -> Result<(), LabError> {
    cluster.start()?;
    for i in 0..clients {
        interrupt::check()?;
        schema.load(database(i), 1, None).prepare(cluster.node(0))?;
    }
    Ok(cluster.stop()?)
}
