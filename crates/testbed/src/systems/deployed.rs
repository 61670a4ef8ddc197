//! A running system on this machine. Settings come in; experiments get its nodes, limit their processor time, verify
//! their rows and end it. Dropping it kills the servers.

use std::fs;
use std::time::Duration;

use super::{DeployError, Durability, System, Writers, connection, failed, has_wsrep, writers};
use crate::cluster::Cluster;
use crate::node::{Node, StartMode};
use crate::settings::Settings;
use crate::verify::{TableSum, compare_nodes};

/// A running system. Dropping it kills its servers.
pub struct Deployed<'a> {
    system: &'a dyn System,
    cluster: Cluster,
    /// The number of the view in which all nodes run, if the servers have one.
    view: Option<String>,
}

impl<'a> Deployed<'a> {
    /// Starts `system` in the directory of `settings`, with the number of nodes in them, or as many as the system can
    /// have.
    pub fn start(
        system: &'a dyn System,
        durability: Durability,
        mut settings: Settings,
    ) -> Result<Self, DeployError> {
        settings.server = system.server();
        settings.nodes = system.nodes(settings.nodes);
        // The caller's arguments come last and win over the system's own.
        let arguments = std::mem::take(&mut settings.mariadbd_args);
        system.configure(durability, &mut settings);
        settings.mariadbd_args.extend(arguments);
        let separate = settings.separate;
        let mut cluster = Cluster::create(settings, |_| {})?;
        if separate {
            cluster.start_all(StartMode::Join)?;
        } else {
            cluster.start()?;
        }
        system.connect(&mut cluster)?;
        let mut deployed = Self {
            system,
            cluster,
            view: None,
        };
        deployed.view = deployed.present_view()?;
        Ok(deployed)
    }

    /// The system.
    pub fn system(&self) -> &'a dyn System {
        self.system
    }

    /// Its servers, as a cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// From now on each server gets `processors` (0.25: a quarter of one) in each period. Needs root.
    pub fn limit_cpu(&mut self, processors: f64, period: Duration) -> Result<(), DeployError> {
        Ok(self.cluster.limit_cpu(processors, period)?)
    }

    /// The first node, which accepts writes in every system.
    pub fn first(&self) -> &Node {
        self.cluster.node(0)
    }

    /// The nodes that accept writes.
    pub fn writers(&self) -> &[Node] {
        let nodes = self.cluster.nodes();
        match writers(self.system.name()) {
            Writers::All => nodes,
            Writers::First => &nodes[..1],
        }
    }

    /// Kills node `i`, starts it again, and waits until the node takes part as before.
    pub fn restart(&mut self, i: usize) -> Result<(), DeployError> {
        self.cluster.kill_node(i)?;
        self.cluster.start_node(i)?;
        self.system.rejoin(&self.cluster, i)?;
        self.view = self.present_view()?;
        Ok(())
    }

    fn present_view(&self) -> Result<Option<String>, DeployError> {
        if !has_wsrep(self.system.name()) {
            return Ok(None);
        }
        let node = self.first();
        let view = connection(node)?.status("wsrep_cluster_conf_id");
        view.map_err(failed(node))
    }

    /// Fails if a member was lost since the start: without clients of its own, nobody else would notice that the others
    /// went on without it.
    fn check_view(&self) -> Result<(), DeployError> {
        let now = self.present_view()?;
        if now == self.view {
            return Ok(());
        }
        Err(DeployError::ViewChanged {
            node: self.first().name.clone(),
            before: self.view.clone().unwrap_or_default(),
            now: now.unwrap_or_default(),
        })
    }

    /// Waits until every node has every acknowledged commit. The load must have stopped.
    pub fn settle(&mut self) -> Result<(), DeployError> {
        self.system.settle(&mut self.cluster)
    }

    /// Waits until all nodes have all commits. Fails if one does not run any more, if they do not hold the same rows in
    /// `databases`, or if the system did not replicate as its name says, or if a member was lost for a time. The load must have stopped.
    pub fn verify(&mut self, databases: &[&str]) -> Result<Vec<TableSum>, DeployError> {
        // The others go on without it, faster: nobody else would notice a dead node without clients.
        if let Some(dead) = self.cluster.nodes().iter().find(|n| n.pid().is_none()) {
            return Err(DeployError::Dead {
                node: dead.name.clone(),
            });
        }
        self.system.settle(&mut self.cluster)?;
        let tables = compare_nodes(&self.cluster, databases)?;
        self.system.check(&self.cluster)?;
        self.check_view()?;
        Ok(tables)
    }

    /// The configuration of every node, as text.
    pub fn settings_text(&self) -> String {
        let nodes = self.cluster.nodes().iter();
        let texts = nodes.map(|node| fs::read_to_string(node.my_cnf()).unwrap_or_default());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Kills the servers and removes their data.
    pub fn end(mut self) -> Result<(), DeployError> {
        self.cluster.kill()?;
        Ok(self.cluster.delete()?)
    }
}
