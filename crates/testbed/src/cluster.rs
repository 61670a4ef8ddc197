//! A local cluster: N nodes in one directory, and the operations on them. Settings come in; servers run until the
//! cluster is stopped, dropped or detached.
//!
//! Nodes are numbered from 0 here; the node with index 0 is called `node1`.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cluster_error::{ClusterError, io_error};
use crate::cluster_file;
use crate::config;
use crate::datadir;
use crate::directories::{make_private_dir, remove_dir};
use crate::mark;
use crate::node::{self, Node, StartMode};
use crate::node_error::NodeError;
use crate::packages;
use crate::ports::{self, NodePorts};
use crate::rsync_as_root;
use crate::settings::Settings;
use crate::sql::Sql;
use crate::status::NodeStatus;

/// Time for a node to start and become synced, a full state transfer included.
pub const START_TIMEOUT: Duration = Duration::from_secs(180);

/// Time for a server to end after SIGTERM, before it is killed.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// A local cluster. Dropping it kills the servers that still run, unless it was opened or [detached](Cluster::detach).
pub struct Cluster {
    settings: Settings,
    nodes: Vec<Node>,
    /// Whether the cluster has ever been up. Until then the first node bootstraps.
    formed: bool,
    detached: bool,
    /// Gets each event as a line of text.
    progress: fn(&str),
}

impl Cluster {
    /// Lays out a new cluster: directory, ports, data directories and configuration. Starts nothing.
    pub fn create(mut settings: Settings, progress: fn(&str)) -> Result<Self, ClusterError> {
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

    /// Opens the cluster that another invocation laid out in `dir`. Dropping it leaves its servers alone.
    pub fn open(dir: &Path, progress: fn(&str)) -> Result<Self, ClusterError> {
        let dir = dir
            .canonicalize()
            .map_err(|_| ClusterError::NotFound(dir.to_path_buf()))?;
        let record = cluster_file::read(&dir)?;
        Ok(Self {
            settings: record.settings,
            nodes: record.nodes,
            formed: record.formed,
            detached: true,
            progress,
        })
    }

    /// Removes `dir` with its content. Servers that another invocation left running there are killed first.
    pub fn clear(dir: &Path) -> Result<(), ClusterError> {
        if let Ok(mut left) = Self::open(dir, |_| {}) {
            left.kill_for_good()?;
        }
        remove_dir(dir)
    }

    /// Whether a cluster was laid out in `dir`.
    pub fn exists(dir: &Path) -> bool {
        cluster_file::path(dir).exists()
    }

    /// Leaves the servers running when this value is dropped.
    pub fn detach(&mut self) {
        self.detached = true;
    }

    /// The settings that the cluster was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Gives access to the settings of a stopped cluster, such as the provider; changes apply from the next start on.
    /// The number of nodes, the directory and the ports cannot change.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Node `i`, counted from 0.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node(&self, i: usize) -> &Node {
        &self.nodes[i]
    }

    /// Sets a variable in the environment of node `i`, for its next starts by this value.
    pub fn set_environment(&mut self, i: usize, name: &str, value: impl Into<OsString>) {
        self.nodes[i].set_environment(name, value.into());
    }

    /// From now on the server of each node, even after a restart, gets `processors` (0.25: a quarter of one) in each
    /// period. Needs root.
    pub fn limit_cpu(&mut self, processors: f64, period: Duration) -> Result<(), ClusterError> {
        let mut nodes = self.nodes.iter_mut();
        Ok(nodes.try_for_each(|node| node.limit_cpu(processors, period))?)
    }

    /// Starts all nodes. The node that left last (in a new cluster: the first) bootstraps, and the others join one by
    /// one. If no node left last, as after a crash of all, all start with their ordinary configuration and must find
    /// the longest history themselves.
    pub fn start(&mut self) -> Result<(), ClusterError> {
        self.check_ports()?;
        if !self.formed {
            self.fill_datadirs()?;
        }
        let last_to_leave = self.nodes.iter().position(Node::is_safe_to_bootstrap);
        match if self.formed { last_to_leave } else { Some(0) } {
            Some(first) => {
                self.bootstrap_node(first)?;
                for i in (0..self.nodes.len()).filter(|i| *i != first) {
                    self.start_node(i)?;
                }
                Ok(())
            }
            None => self.start_all_alike(),
        }
    }

    /// Starts all nodes at once with their ordinary configuration, and waits until all are synced: as machines do after
    /// a power cut.
    pub fn start_all_alike(&mut self) -> Result<(), ClusterError> {
        self.start_all(StartMode::Join)
    }

    /// The same as [`Cluster::start_all_alike`], in a given mode.
    pub fn start_all(&mut self, mode: StartMode) -> Result<(), ClusterError> {
        let began = Instant::now();
        for i in 0..self.nodes.len() {
            self.spawn_node(i, mode)?;
        }
        for i in 0..self.nodes.len() {
            self.wait_synced(i, began)?;
        }
        Ok(())
    }

    /// Starts node `i` as the first of a new primary component, and waits until it is synced.
    pub fn bootstrap_node(&mut self, i: usize) -> Result<(), ClusterError> {
        let began = Instant::now();
        self.spawn_node(i, StartMode::Bootstrap)?;
        self.wait_synced(i, began)
    }

    /// Starts node `i` with its ordinary configuration, and waits until it is synced. If the node has run before, its
    /// position is recovered first and passed to the server.
    pub fn start_node(&mut self, i: usize) -> Result<(), ClusterError> {
        let began = Instant::now();
        self.spawn_node(i, StartMode::Join)?;
        self.wait_synced(i, began)
    }

    /// Starts node `i` and returns at once (after the recovery of the position, if it has run before).
    pub fn spawn_node(&mut self, i: usize, mode: StartMode) -> Result<(), ClusterError> {
        self.write_config(i)?;
        let wsrep = self.settings.provider.is_some();
        let bash_env = Some(rsync_as_root::file(&self.settings.dir)).filter(|file| file.exists());
        self.nodes[i].spawn(mode, wsrep, bash_env.as_deref())?;
        self.save()
    }

    /// Waits until node `i` is a synced member, for at most `timeout`.
    pub fn wait_node(&mut self, i: usize, timeout: Duration) -> Result<NodeStatus, ClusterError> {
        Ok(self.nodes[i].wait_synced(timeout)?)
    }

    fn wait_synced(&mut self, i: usize, began: Instant) -> Result<(), ClusterError> {
        let status = self.nodes[i].wait_synced(START_TIMEOUT)?;
        (self.progress)(&format!(
            "{}: {} after {:.1} s, cluster size {}, port {}",
            self.nodes[i].name,
            status.state,
            began.elapsed().as_secs_f64(),
            status.size,
            self.nodes[i].ports.mysql
        ));
        if !self.formed {
            self.formed = true;
            self.save()?;
        }
        Ok(())
    }

    /// Waits until node `i` reports that it is synced in a component of `size` members. A node that was paused or cut
    /// off may report this wrongly for a while.
    pub fn wait_size(
        &mut self,
        i: usize,
        size: usize,
        timeout: Duration,
    ) -> Result<NodeStatus, ClusterError> {
        let start = Instant::now();
        loop {
            if let Ok(status) = self.nodes[i].status() {
                if status.is_synced() && status.size == size {
                    return Ok(status);
                }
            }
            self.nodes[i].wait_step(start, timeout, &format!("in a component of {size}"))?;
        }
    }

    /// Fails if a node does not run.
    pub fn check_running(&mut self) -> Result<(), ClusterError> {
        Ok(self.nodes.iter_mut().try_for_each(Node::check_running)?)
    }

    /// Waits until all running nodes, at least one, report the same last committed write-set twice in a row. Returns
    /// its seqno. The load must have stopped.
    pub fn wait_caught_up(&mut self, timeout: Duration) -> Result<i64, ClusterError> {
        let start = Instant::now();
        let mut seen = None;
        let running: Vec<usize> = (0..self.nodes.len())
            .filter(|i| self.nodes[*i].pid().is_some())
            .collect();
        if running.is_empty() {
            self.check_running()?;
        }
        loop {
            let mut positions = Vec::new();
            for i in &running {
                positions.extend(
                    self.nodes[*i]
                        .status()
                        .ok()
                        .map(|s| (s.history, s.last_committed)),
                );
            }
            let all = positions.len() == running.len();
            let same = positions.windows(2).all(|pair| pair[0] == pair[1]);
            let now = positions
                .into_iter()
                .next()
                .filter(|_| all && same)
                .map(|(_, seqno)| seqno);
            if now.is_some() && now == seen {
                return Ok(now.unwrap_or(-1));
            }
            seen = now;
            for i in &running {
                self.nodes[*i].wait_step(start, timeout, "at the same position as the others")?;
            }
        }
    }

    /// Stops node `i` cleanly; returns whether it had to be killed in the end.
    pub fn stop_node(&mut self, i: usize) -> Result<bool, ClusterError> {
        Ok(self.nodes[i].stop(STOP_TIMEOUT)?)
    }

    /// Kills node `i` with -9.
    pub fn kill_node(&mut self, i: usize) -> Result<(), ClusterError> {
        Ok(self.nodes[i].kill()?)
    }

    /// Kills all nodes with -9.
    pub fn kill(&mut self) -> Result<(), ClusterError> {
        Ok(self.nodes.iter_mut().try_for_each(Node::kill)?)
    }

    /// Kills all nodes with -9. They must not start again: what they left in memory is removed.
    pub fn kill_for_good(&mut self) -> Result<(), ClusterError> {
        self.kill()?;
        for node in &self.nodes {
            mark::remove(&node.datadir());
        }
        Ok(())
    }

    /// Freezes node `i` (SIGSTOP).
    pub fn pause_node(&self, i: usize) -> Result<(), ClusterError> {
        Ok(self.nodes[i].pause()?)
    }

    /// Resumes a frozen node `i` (SIGCONT).
    pub fn resume_node(&self, i: usize) -> Result<(), ClusterError> {
        Ok(self.nodes[i].resume()?)
    }

    /// A connection to node `i`.
    pub fn sql(&self, i: usize) -> Result<Sql, ClusterError> {
        Ok(self.nodes[i].sql()?)
    }

    /// Stops all nodes cleanly. The first one is the last, so that it may bootstrap the cluster again.
    pub fn stop(&mut self) -> Result<(), ClusterError> {
        for i in (0..self.nodes.len()).rev() {
            let ran = self.nodes[i].pid().is_some();
            let killed = self.stop_node(i)?;
            match (ran, killed) {
                (true, true) => (self.progress)(&format!(
                    "{}: killed, since it did not end within {} s",
                    self.nodes[i].name,
                    STOP_TIMEOUT.as_secs()
                )),
                (true, false) => (self.progress)(&format!("{}: stopped", self.nodes[i].name)),
                (false, _) => {}
            }
        }
        Ok(())
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
    fn fill_datadirs(&self) -> Result<(), ClusterError> {
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

    fn write_config(&self, i: usize) -> Result<(), ClusterError> {
        let node = &self.nodes[i];
        let all: Vec<NodePorts> = self.nodes.iter().map(|node| node.ports).collect();
        let text = config::my_cnf(&self.settings, &node.name, &node.dir, node.ports, &all);
        fs::write(node.my_cnf(), text).map_err(io_error("write", &node.my_cnf()))
    }

    fn check_ports(&self) -> Result<(), ClusterError> {
        let all: Vec<NodePorts> = self.nodes.iter().map(|node| node.ports).collect();
        Ok(ports::check_free(&all)?)
    }

    fn save(&self) -> Result<(), ClusterError> {
        cluster_file::write(&self.settings.dir, &self.settings, self.formed, &self.nodes)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !self.detached {
            for node in &mut self.nodes {
                // A drop has nowhere to report an error.
                let _ = node.kill();
            }
        }
    }
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
    fn several_plain_servers_are_no_cluster() {
        let settings = Settings::new("/nonexistent/x", 2, None);
        assert!(matches!(
            Cluster::create(settings, |_| {}),
            Err(ClusterError::Settings(_))
        ));
    }
}
