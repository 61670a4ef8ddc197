//! The directory of a cluster: it is laid out before the first start, and removed in the end.

use std::fs;
use std::path::Path;

use super::Cluster;
use crate::cluster_error::{ClusterError, io_error};
use crate::cluster_file;
use crate::config;
use crate::datadir;
use crate::directories::{make_private_dir, remove_dir};
use crate::mark;
use crate::node::{self, Node};
use crate::node_error::NodeError;
use crate::packages;
use crate::ports;
use crate::rsync_as_root;
use crate::settings::Settings;

impl Cluster {
    /// Lays out a new cluster: directory, ports, data directories and configuration. Starts nothing.
    pub fn create(mut settings: Settings, progress: fn(&str)) -> Result<Self, ClusterError> {
        check(&settings)?;
        if Self::exists(&settings.dir) {
            return Err(ClusterError::Exists(settings.dir));
        }
        let mut ports = match settings.base_port {
            Some(base) => ports::from_base(base, settings.nodes)?,
            None => ports::find_free(settings.nodes)?,
        };
        for (ports, host) in ports.iter_mut().zip(&settings.hosts) {
            ports.host = *host;
        }
        make_private_dir(&settings.dir)?;
        settings.dir = settings
            .dir
            .canonicalize()
            .map_err(io_error("find", &settings.dir))?;
        let nodes: Vec<Node> = ports
            .iter()
            .enumerate()
            .map(|(i, ports)| {
                let name = format!("node{}", i + 1);
                Node::new(
                    name.clone(),
                    settings.dir.join(&name),
                    *ports,
                    settings.server,
                )
            })
            .collect();
        if let Some(node) = nodes.iter().find(|node| !node::fits_socket(&node.socket())) {
            return Err(ClusterError::Settings(format!(
                "the path {} is too long for a socket (limit {} bytes); choose a shorter --dir",
                node.socket().display(),
                node::MAX_SOCKET_PATH_BYTES
            )));
        }
        let cluster = Self {
            settings,
            nodes,
            formed: false,
            detached: false,
            progress,
        };
        // From here on another invocation completes or removes the cluster, if this one is killed.
        cluster.save()?;
        if rustix::process::getuid().is_root() && cluster.settings.nodes > 1 {
            let file = rsync_as_root::file(&cluster.settings.dir);
            rsync_as_root::install(&cluster.settings.dir).map_err(io_error("write", &file))?;
        }
        cluster.fill_datadirs()?;
        Ok(cluster)
    }

    /// The same as [`Cluster::create`]; after a failure, a directory that was not there before is removed.
    pub fn create_or_clear(settings: Settings, progress: fn(&str)) -> Result<Self, ClusterError> {
        let dir = settings.dir.clone();
        let is_new = !dir.exists();
        Self::create(settings, progress).inspect_err(|_| {
            if is_new {
                // The caller gets the first error.
                let _ = Self::clear(&dir);
            }
        })
    }

    /// Removes `dir` with its content. Servers that another invocation left running there are killed first.
    pub fn clear(dir: &Path) -> Result<(), ClusterError> {
        if let Ok(mut left) = Self::open(dir, |_| {}) {
            left.kill_for_good()?;
        }
        remove_dir(dir)
    }

    /// Removes a stopped cluster with all its data: the nodes' directories and the cluster file. The directory itself
    /// goes if nothing else lies in it.
    pub fn delete(self) -> Result<(), ClusterError> {
        if let Some(node) = self.nodes.iter().find(|node| node.pid().is_some()) {
            return Err(NodeError::State {
                node: node.name.clone(),
                running: true,
            }
            .into());
        }
        for node in &self.nodes {
            mark::remove(&node.datadir());
            remove_dir(&node.dir)?;
        }
        let _ = fs::remove_file(rsync_as_root::file(&self.settings.dir));
        let file = cluster_file::path(&self.settings.dir);
        fs::remove_file(&file).map_err(io_error("remove", &file))?;
        // The directory stays if the user has files there.
        let _ = fs::remove_dir(&self.settings.dir);
        Ok(())
    }

    /// Makes the data directories that are not there yet.
    pub(super) fn fill_datadirs(&self) -> Result<(), ClusterError> {
        let mut source = self.settings.template.clone();
        for node in &self.nodes {
            for dir in [&node.dir, &node.dir.join("tmp")] {
                fs::create_dir_all(dir).map_err(io_error("create", dir))?;
            }
            datadir::make(node.server(), source.as_deref(), &node.datadir())?;
            source.get_or_insert_with(|| node.datadir());
        }
        Ok(())
    }
}

/// Checks the settings, and that the programs that they need are installed.
pub(super) fn check(settings: &Settings) -> Result<(), ClusterError> {
    let connected = settings.provider.is_some() || settings.separate;
    if settings.nodes == 0 || (settings.nodes > 1 && !connected) {
        let reason = "a cluster needs at least 1 node, and a provider when it has several";
        return Err(ClusterError::Settings(reason.to_string()));
    }
    if let Some(arg) = settings
        .mariadbd_args
        .iter()
        .find(|arg| config::option_line(arg).is_none())
    {
        return Err(ClusterError::Settings(format!(
            "mariadbd argument {arg:?} is not of the form --name[=value]"
        )));
    }
    settings.server.program()?;
    if settings.nodes > 1 && settings.provider.is_some() {
        packages::check_sst(settings.sst_method)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster_without_servers(dir: &Path, template: &Path) -> Result<Cluster, ClusterError> {
        fs::create_dir_all(template).unwrap();
        fs::write(template.join("ibdata1"), "x").unwrap();
        let mut settings = Settings::new(dir, 2, Some("/lib/p.so".into()));
        settings.template = Some(template.to_path_buf());
        Cluster::create(settings, |_| {})
    }

    #[test]
    fn another_invocation_finds_the_cluster() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("c");
        let made = cluster_without_servers(&dir, &temp.path().join("t")).unwrap();
        let opened = Cluster::open(&dir, |_| {}).unwrap();
        assert_eq!(opened.settings(), made.settings());
        assert_eq!(opened.node(1).ports, made.node(1).ports);
        assert!(opened.node(1).datadir().join("ibdata1").exists());
        assert_eq!(opened.node(1).pid(), None);
    }

    #[test]
    fn a_directory_holds_one_cluster_until_it_is_deleted() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("c");
        let template = temp.path().join("t");
        let first = cluster_without_servers(&dir, &template).unwrap();
        assert!(matches!(
            cluster_without_servers(&dir, &template),
            Err(ClusterError::Exists(_))
        ));
        first.delete().unwrap();
        assert!(!dir.exists());
        assert!(matches!(
            Cluster::open(&dir, |_| {}),
            Err(ClusterError::NotFound(_))
        ));
    }

    #[test]
    fn only_a_new_directory_is_cleared_after_a_failure() {
        let temp = tempfile::tempdir().unwrap();
        let settings = |dir: &str| Settings {
            template: Some(temp.path().join("no-template")),
            ..Settings::new(temp.path().join(dir), 1, Some("/lib/p.so".into()))
        };
        let (new, old) = (temp.path().join("new"), temp.path().join("old"));
        fs::create_dir(&old).unwrap();
        for dir in ["new", "old"] {
            assert!(Cluster::create_or_clear(settings(dir), |_| {}).is_err());
        }
        assert!(!new.exists() && old.exists());
    }

    /// The settings of a stopped cluster may change.
    #[test]
    fn a_start_checks_the_settings_again() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("c");
        let mut made = cluster_without_servers(&dir, &temp.path().join("t")).unwrap();
        made.settings_mut().mariadbd_args = vec!["innodb_buffer_pool_size=1G".to_owned()];
        let error = made.start().unwrap_err().to_string();
        assert!(error.contains("not of the form --name[=value]"), "{error}");
        assert!(!made.node(0).my_cnf().exists());
    }

    #[test]
    fn several_plain_servers_are_no_cluster() {
        let settings = Settings::new("/nonexistent/x", 2, None);
        assert!(matches!(
            Cluster::create(settings, |_| {}),
            Err(ClusterError::Settings(_))
        ));
    }
}
