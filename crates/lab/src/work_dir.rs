//! Where running clusters and prepared data directories lie.

use std::fs;
use std::path::PathBuf;

use trireme_testbed::cluster::{Cluster, make_private_dir};
use trireme_testbed::settings::{Settings, default_dir};
use trireme_testbed::{ClusterError, Server};

/// Where templates and running clusters lie.
pub(crate) fn work_dir() -> PathBuf {
    let mut name = default_dir().into_os_string();
    name.push("-bench");
    name.into()
}

/// A data directory of `server` with an empty database, made once and kept for later invocations.
pub(crate) fn empty_template(server: Server) -> Result<PathBuf, ClusterError> {
    make_private_dir(&work_dir())?;
    let template = work_dir().join(format!("template-empty{}", server.suffix()));
    if !template.exists() {
        let dir = work_dir().join(format!("prepare-{}", std::process::id()));
        // Lays it out whole before it gets its name.
        let mut settings = Settings::new(dir, 1, None);
        settings.server = server;
        let cluster = Cluster::create(settings, |_| {})?;
        let made = fs::rename(cluster.node(0).datadir(), &template);
        cluster.delete()?;
        made.map_err(|source| ClusterError::Io {
            action: "make",
            path: template.clone(),
            source,
        })?;
    }
    Ok(template)
}
