//! Acts as an operator when a cluster does not recover by itself, after Galera's documentation ("Restarting the
//! cluster").

use std::fs;

use super::{CrashError, io_error};
use trireme_testbed::cluster::Cluster;
use trireme_testbed::node::StartMode;

/// If a node is primary, restarts all others that are not; else bootstraps the most advanced node. Returns a text
/// about it.
pub fn help(cluster: &mut Cluster) -> Result<String, CrashError> {
    let components: Vec<Option<String>> = cluster.nodes().iter().map(component).collect();
    let is_primary = |component: &Option<String>| component.as_deref() == Some("Primary");
    if !components.iter().any(is_primary) {
        return bootstrap_most_advanced(cluster);
    }
    let mut again = Vec::new();
    for (i, component) in components.iter().enumerate() {
        // A joiner in the middle of its SST does not answer; leave it alone.
        if is_primary(component) || (component.is_none() && cluster.node(i).pid().is_some()) {
            continue;
        }
        cluster.stop_node(i)?;
        cluster.spawn_node(i, StartMode::Join)?;
        again.push(cluster.node(i).name.clone());
    }
    Ok(match again.as_slice() {
        [] => "more time was given".to_string(),
        names => format!("{} started again", names.join(", ")),
    })
}

/// A node's `wsrep_cluster_status`; `None` when it does not answer.
fn component(node: &trireme_testbed::node::Node) -> Option<String> {
    node.status().ok().map(|status| status.component)
}

/// Stops all servers, asks each database for its position, bootstraps the most advanced node and lets the others join.
fn bootstrap_most_advanced(cluster: &mut Cluster) -> Result<String, CrashError> {
    let nodes = cluster.nodes().len();
    for i in 0..nodes {
        cluster.stop_node(i)?;
    }
    let mut best = (0, -1);
    let mut positions = Vec::new();
    for i in 0..nodes {
        let position = cluster.node(i).recover_position()?;
        if position.seqno > best.1 {
            best = (i, position.seqno);
        }
        positions.push(position.seqno.to_string());
    }
    let first = best.0;
    set_safe_to_bootstrap(cluster, first)?;
    cluster.bootstrap_node(first)?;
    for i in (0..nodes).filter(|i| *i != first) {
        cluster.spawn_node(i, StartMode::Join)?;
    }
    Ok(format!(
        "all stopped, positions asked ({}), {} bootstrapped",
        positions.join(", "),
        cluster.node(first).name
    ))
}

fn set_safe_to_bootstrap(cluster: &Cluster, i: usize) -> Result<(), CrashError> {
    let path = cluster.node(i).datadir().join("grastate.dat");
    let text = fs::read_to_string(&path).map_err(io_error(&path))?;
    let text = text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1");
    fs::write(&path, text).map_err(io_error(&path))
}
