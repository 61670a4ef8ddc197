//! The site of one trial: a fresh cluster, on loopback or in a private network. Dropping it kills the servers before
//! the network goes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use trireme_testbed::cluster::{Cluster, START_TIMEOUT};
use trireme_testbed::network::Network;
use trireme_testbed::node::StartMode;
use trireme_testbed::settings::Settings;
use trireme_testbed::systems::{Durability, System};

use super::error::LatencyError;

/// The database of all loads.
pub const DATABASE: &str = "sbtest";

/// The rows of the table `sbtest1`.
pub const ROWS: usize = 10_000;

/// The status variable in which a member names the leader by its `wsrep_node_name`.
pub const LEADER_STATUS: &str = "wsrep_trireme_leader";

/// Its name in earlier versions of the library.
const OLD_LEADER_STATUS: &str = "wsrep_trireme_sequencer";

/// A running cluster with its network. Dropping it kills the servers.
pub struct Site {
    /// The cluster. It is dropped before its network.
    pub cluster: Cluster,
    network: Option<Network>,
}

impl Site {
    /// Starts three nodes with the data of `template` below `dir`, each in a private network without delays.
    pub fn apart(system: &dyn System, template: PathBuf, dir: &Path) -> Result<Self, LatencyError> {
        let network = Some(Network::new(3)?);
        Self::start(system, template, dir, 3, network, |_| Ok(()))
    }

    /// Starts `nodes` nodes with the data of `template` below `dir` on loopback. `prepare` gets the cluster before.
    pub fn on_loopback(
        system: &dyn System,
        template: PathBuf,
        dir: &Path,
        nodes: usize,
        prepare: impl FnOnce(&mut Cluster) -> Result<(), LatencyError>,
    ) -> Result<Self, LatencyError> {
        Self::start(system, template, dir, nodes, None, prepare)
    }

    fn start(
        system: &dyn System,
        template: PathBuf,
        dir: &Path,
        nodes: usize,
        network: Option<Network>,
        prepare: impl FnOnce(&mut Cluster) -> Result<(), LatencyError>,
    ) -> Result<Self, LatencyError> {
        let mut settings = Settings::new(dir, nodes, None);
        system.configure(Durability::Lazy, &mut settings);
        settings.template = Some(template);
        settings.hosts = network.as_ref().map_or(Vec::new(), Network::addresses);
        let mut cluster = Cluster::create(settings, |_| {})?;
        prepare(&mut cluster)?;
        let mut site = Self { cluster, network };
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
    /// If the site is on loopback.
    pub fn network(&self) -> &Network {
        self.network
            .as_ref()
            .expect("the site was made with a network")
    }

    /// The leader, as node `witness` sees it; None if the node does not say.
    pub fn leader(&self, witness: usize) -> Result<Option<usize>, LatencyError> {
        let node = self.cluster.node(witness);
        let mut sql = node.sql_with_timeout(Duration::from_secs(5))?;
        let name = match sql.status(LEADER_STATUS)? {
            None => sql.status(OLD_LEADER_STATUS)?,
            name => name,
        };
        let mut nodes = self.cluster.nodes().iter();
        Ok(name.and_then(|name| nodes.position(|node| node.name == name)))
    }

    /// Kills the servers and removes their files.
    pub fn end(mut self) -> Result<(), LatencyError> {
        self.cluster.kill()?;
        Ok(Cluster::clear(&self.cluster.settings().dir)?)
    }

    /// The directory of node `i`.
    pub fn dir(&self, i: usize) -> &Path {
        &self.cluster.node(i).dir
    }
}
