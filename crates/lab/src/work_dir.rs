//! The directory of running clusters and of templates: prepared data directories.

use std::fs;
use std::path::PathBuf;

use trireme_testbed::cluster::Cluster;
use trireme_testbed::directories::make_private_dir;
use trireme_testbed::output::line;
use trireme_testbed::settings::{Settings, default_dir};
use trireme_testbed::{ClusterError, Server};

/// The begin of the names of directories in which templates are filled in.
const PREPARATION: &str = "prepare-";

/// The path of that directory.
pub(crate) fn work_dir() -> PathBuf {
    let mut name = default_dir().into_os_string();
    name.push("-bench");
    name.into()
}

/// Returns the data directory `name` of `server`, which is made once for each version of the server program, and kept
/// for later invocations. `fill` gets a server without replication that is laid out, and leaves it stopped.
/// `announcement` is printed before.
pub(crate) fn template<E: From<ClusterError>>(
    name: &str,
    server: Server,
    announcement: &str,
    fill: impl FnOnce(&mut Cluster) -> Result<(), E>,
) -> Result<PathBuf, E> {
    make_private_dir(&work_dir())?;
    let version = server.version().map_err(ClusterError::from)?;
    let template = work_dir().join(format!("template-{name}{}-{version}", server.suffix()));
    if template.exists() {
        return Ok(template);
    }
    if !announcement.is_empty() {
        line(&format!("{announcement}, kept in {}", template.display()));
    }
    let dir = work_dir().join(format!("{PREPARATION}{}", std::process::id()));
    let mut settings = Settings::new(dir, 1, None);
    settings.server = server;
    settings.mariadbd_args = vec!["--innodb-flush-log-at-trx-commit=0".to_string()];
    let mut cluster = Cluster::create(settings, |_| {})?;
    // The directory gets its name only when it is complete.
    let made = fill(&mut cluster).and_then(|()| {
        fs::rename(cluster.node(0).datadir(), &template).map_err(|source| {
            E::from(ClusterError::Io {
                action: "make",
                path: template.clone(),
                source,
            })
        })
    });
    cluster.kill()?;
    cluster.delete()?;
    made.map(|()| template)
}

/// Removes what killed programs left of templates half made, with their servers. The caller has the lab's lock: nobody
/// else fills one in.
pub(crate) fn clear_preparations() -> Result<(), ClusterError> {
    let dir = work_dir();
    let failed = |source| ClusterError::Io {
        action: "list",
        path: dir.clone(),
        source,
    };
    for entry in fs::read_dir(&dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(PREPARATION) {
            Cluster::clear(&entry.path())?;
        }
    }
    Ok(())
}

/// Returns a data directory of `server` with an empty database.
pub(crate) fn empty_template(server: Server) -> Result<PathBuf, ClusterError> {
    template("empty", server, "", |_| Ok(()))
}
