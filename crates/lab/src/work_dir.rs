//! The directory of running clusters and of templates: prepared data directories.

use std::path::{Path, PathBuf};

use trireme_testbed::cluster::Cluster;
use trireme_testbed::directories::make_private_dir;
use trireme_testbed::output::line;
use trireme_testbed::settings::default_dir;
use trireme_testbed::template::Template;
use trireme_testbed::{ClusterError, Server};

/// The path of that directory.
pub(crate) fn work_dir() -> PathBuf {
    let mut name = default_dir().into_os_string();
    name.push("-bench");
    name.into()
}

/// Returns the data directory `name` of `server`, which is made once and kept ([`Template::make`]). `announcement` is
/// printed before.
pub(crate) fn template<E: From<ClusterError>>(
    name: &str,
    server: Server,
    announcement: &str,
    fill: impl FnOnce(&mut Cluster) -> Result<(), E>,
) -> Result<PathBuf, E> {
    let dir = work_dir();
    make_private_dir(&dir)?;
    let template = Template {
        dir: &dir,
        name,
        server,
        arguments: &["--innodb-flush-log-at-trx-commit=0"],
    };
    let announce = |path: &Path| {
        if !announcement.is_empty() {
            line(&format!("{announcement}, kept in {}", path.display()));
        }
    };
    template.make(announce, fill)
}

/// Removes what killed programs left of templates half made, with their servers. The caller has the lab's lock: nobody
/// else fills one in.
pub(crate) fn clear_preparations() -> Result<(), ClusterError> {
    trireme_testbed::template::clear_preparations(&work_dir())
}

/// Returns a data directory of `server` with an empty database.
pub(crate) fn empty_template(server: Server) -> Result<PathBuf, ClusterError> {
    template("empty", server, "", |_| Ok(()))
}
