//! Data directories that are made once and kept: templates for the nodes of later clusters.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cluster::Cluster;
use crate::cluster_error::{ClusterError, io_error};
use crate::server::Server;
use crate::settings::Settings;

/// The begin of the names of directories in which templates are filled in.
const PREPARATION: &str = "prepare-";

/// A template in the directory `dir`.
pub struct Template<'a> {
    /// The directory of templates.
    pub dir: &'a Path,
    /// Its name, among those of one server.
    pub name: &'a str,
    /// The server program.
    pub server: Server,
    /// Arguments of the server that fills it in.
    pub arguments: &'a [&'a str],
}

impl Template<'_> {
    /// Returns the data directory, which is made once for each version of the server program, and kept for later
    /// invocations. `fill` gets a server without replication that is laid out, and leaves it stopped. `announce` gets
    /// the path before.
    pub fn make<E: From<ClusterError>>(
        &self,
        announce: impl FnOnce(&Path),
        fill: impl FnOnce(&mut Cluster) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let version = self.server.version().map_err(ClusterError::from)?;
        let name = format!("template-{}{}-{version}", self.name, self.server.suffix());
        let template = self.dir.join(name);
        if template.exists() {
            return Ok(template);
        }
        announce(&template);
        let dir = self
            .dir
            .join(format!("{PREPARATION}{}", std::process::id()));
        let mut settings = Settings::new(dir, 1, None);
        settings.server = self.server;
        settings.mariadbd_args = self.arguments.iter().map(ToString::to_string).collect();
        let mut cluster = Cluster::create(settings, |_| {})?;
        // The directory gets its name only when it is complete.
        let made = fill(&mut cluster).and_then(|()| {
            let renamed = fs::rename(cluster.node(0).datadir(), &template);
            renamed.map_err(|source| E::from(io_error("make", &template)(source)))
        });
        cluster.kill()?;
        cluster.delete()?;
        made.map(|()| template)
    }
}

/// Removes what killed programs left of templates half made in `dir`, with their servers. Nobody else may fill one in.
pub fn clear_preparations(dir: &Path) -> Result<(), ClusterError> {
    for entry in fs::read_dir(dir).map_err(io_error("list", dir))? {
        let entry = entry.map_err(io_error("list", dir))?;
        if entry.file_name().to_string_lossy().starts_with(PREPARATION) {
            Cluster::clear(&entry.path())?;
        }
    }
    Ok(())
}
