//! A local cluster: N nodes in one directory, and the operations on them. Settings come in; servers run until the
//! cluster is stopped, dropped or detached.
//!
//! Nodes are numbered from 0 here; the node with index 0 is called `node1`.

mod layout;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::cluster_error::{ClusterError, io_error};
use crate::cluster_file;
use crate::config;
use crate::directories::{check_private, remove_dir};
use crate::interrupt;
use crate::mark;
use crate::node::{Node, StartMode};
use crate::output::line;
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
    /// Opens the cluster that another invocation laid out in `dir`. Dropping it leaves its servers alone.
    pub fn open(dir: &Path, progress: fn(&str)) -> Result<Self, ClusterError> {
        let dir = dir
            .canonicalize()
            .map_err(|_| ClusterError::NotFound(dir.to_path_buf()))?;
        let record = cluster_file::read(&dir)?;
        check_private(&dir)?;
        Ok(Self {
            settings: record.settings,
            nodes: record.nodes,
            formed: record.formed,
            detached: true,
            progress,
        })
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
        layout::check(&self.settings)?;
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
            let elapsed = start.elapsed();
            if let Ok(status) = self.nodes[i].status() {
                if status.is_synced() && status.size == size {
                    return Ok(status);
                }
            }
            self.nodes[i].wait_step(elapsed, timeout, &format!("in a component of {size}"))?;
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
            let elapsed = start.elapsed();
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
                self.nodes[*i].wait_step(elapsed, timeout, "at the same position as the others")?;
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

    /// Removes the data directory of the stopped node `i`, as if its disk were lost. What the node left in memory goes,
    /// too, since nobody could find it later.
    pub fn lose_data(&self, i: usize) -> Result<(), ClusterError> {
        let datadir = self.nodes[i].datadir();
        mark::remove(&datadir);
        remove_dir(&datadir)
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

    /// Stops all nodes cleanly. The first one is the last, so that it may bootstrap the cluster again. After an
    /// interruption, first prints how to stop them if another one ends the program meanwhile.
    pub fn stop(&mut self) -> Result<(), ClusterError> {
        let runs = self.nodes.iter().any(|node| node.pid().is_some());
        if runs && interrupt::check().is_err() {
            line(&format!(
                "stopping the servers; if you break this off: trireme cluster down --dir {}",
                self.settings.dir.display()
            ));
        }
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
