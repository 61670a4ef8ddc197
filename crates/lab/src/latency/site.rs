//! Where one trial takes place: a fresh cluster, on loopback or in a network of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::LatencyError;
use super::network::Network;
use crate::oltp::template;
use crate::work_dir::work_dir;
use trireme_testbed::cluster::{Cluster, START_TIMEOUT, make_private_dir};
use trireme_testbed::node::StartMode;
use trireme_testbed::output::line;
use trireme_testbed::settings::Settings;
use trireme_testbed::systems::Wsrep;

/// Rows of the table `sbtest.sbtest1`.
pub const ROWS: usize = 10_000;

/// The status variable by which a member names the sequencer: its `wsrep_node_name`.
pub const SEQUENCER_STATUS: &str = "wsrep_trireme_sequencer";

/// The directory of all trials. Whoever holds this value is the only one to use it.
pub struct Ground {
    dir: PathBuf,
    _lock: File,
}

impl Ground {
    /// Takes the directory, and clears away what an invocation that crashed has left: its servers and files.
    pub fn take() -> Result<Self, LatencyError> {
        make_private_dir(&work_dir())?;
        let dir = work_dir().join("latency");
        let lock_path = work_dir().join("latency.lock");
        let io_error = |source| LatencyError::Io {
            path: lock_path.clone(),
            source,
        };
        let lock = File::create(&lock_path).map_err(io_error)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(LatencyError::Busy(lock_path)),
            Err(error) => return Err(io_error(error.into())),
        }
        let ground = Self { dir, _lock: lock };
        ground.clear()?;
        Ok(ground)
    }

    fn clear(&self) -> Result<(), LatencyError> {
        Ok(Cluster::clear(&self.dir)?)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What cannot be cleared now is cleared by the next invocation.
        let _ = self.clear();
    }
}

/// A running cluster with its network. Dropping it kills the servers.
pub struct Site<'a> {
    /// The cluster; dropped before its network.
    pub cluster: Cluster,
    network: Option<Network>,
    ground: &'a Ground,
}

impl<'a> Site<'a> {
    /// Starts `nodes` nodes, each in a network of its own without delays.
    pub fn apart(ground: &'a Ground, system: &Wsrep, nodes: usize) -> Result<Self, LatencyError> {
        Self::start(ground, system, nodes, Some(Network::new(nodes)?), |_| {})
    }

    /// Starts `nodes` nodes on loopback; `prepare` sees the cluster first.
    pub fn on_loopback(
        ground: &'a Ground,
        system: &Wsrep,
        nodes: usize,
        prepare: impl FnOnce(&mut Cluster),
    ) -> Result<Self, LatencyError> {
        Self::start(ground, system, nodes, None, prepare)
    }

    fn start(
        ground: &'a Ground,
        system: &Wsrep,
        nodes: usize,
        network: Option<Network>,
        prepare: impl FnOnce(&mut Cluster),
    ) -> Result<Self, LatencyError> {
        ground.clear()?;
        let mut settings = Settings::new(&ground.dir, nodes, system.provider.clone());
        settings.template = Some(template(ROWS, settings.server)?);
        settings.hosts = network.as_ref().map_or(Vec::new(), Network::addresses);
        let mut cluster = Cluster::create(settings, |_| {})?;
        prepare(&mut cluster);
        let mut site = Self {
            cluster,
            network,
            ground,
        };
        for i in 0..nodes {
            let mode = if i == 0 {
                StartMode::Bootstrap
            } else {
                StartMode::Join
            };
            site.spawn(i, mode)?;
            site.cluster.wait_node(i, START_TIMEOUT)?;
        }
        site.cluster.wait_size(0, nodes, START_TIMEOUT)?;
        Ok(site)
    }

    fn spawn(&mut self, i: usize, mode: StartMode) -> Result<(), LatencyError> {
        let cluster = &mut self.cluster;
        match &self.network {
            Some(network) => network
                .namespace(i)
                .run(move || cluster.spawn_node(i, mode))??,
            None => cluster.spawn_node(i, mode)?,
        }
        Ok(())
    }

    /// The network of a site made with [`apart`](Self::apart).
    ///
    /// # Panics
    /// On loopback.
    pub fn network(&self) -> &Network {
        self.network
            .as_ref()
            .expect("the site was made with a network")
    }

    /// Which node is the sequencer, as node `witness` sees it; `None` if it does not say.
    pub fn sequencer(&self, witness: usize) -> Result<Option<usize>, LatencyError> {
        let node = self.cluster.node(witness);
        let mut sql = node.sql_with_timeout(Duration::from_secs(5))?;
        let name = sql.status(SEQUENCER_STATUS)?;
        let mut nodes = self.cluster.nodes().iter();
        Ok(name.and_then(|name| nodes.position(|node| node.name == name)))
    }

    /// Ends the trial and removes its files; after a failure the logs stay until the next invocation.
    pub fn end(mut self, keep_logs: bool) -> Result<(), LatencyError> {
        self.cluster.kill()?;
        if !keep_logs {
            return self.ground.clear();
        }
        let kept = self.ground.dir.with_extension("failed");
        let _ = fs::create_dir_all(&kept);
        for node in self.cluster.nodes() {
            let _ = fs::copy(node.log(), kept.join(format!("{}.log", node.name)));
        }
        line(&format!("the logs are in {}", kept.display()));
        self.ground.clear()
    }

    /// The directory of node `i`.
    pub fn dir(&self, i: usize) -> &Path {
        &self.cluster.node(i).dir
    }
}
