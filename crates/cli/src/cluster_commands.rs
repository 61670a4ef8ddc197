//! `trireme cluster up`, `down` and `status`: they call the testbed and print the result.

use std::path::Path;

use trireme_testbed::output::{line, piece};
use trireme_testbed::{Cluster, ClusterError, Settings, table};

/// Lays out and starts a new cluster. If a server does not come up, all servers are stopped; their files stay for
/// inspection.
pub fn up_new(settings: Settings) -> Result<(), ClusterError> {
    line(&format!(
        "starting {} node(s) in {}",
        settings.nodes,
        settings.dir.display()
    ));
    let cluster = Cluster::create(settings, line)?;
    start_and_leave(cluster)
}

/// Starts the stopped cluster in `dir`, with the settings changed by `change`.
pub fn up_again(
    dir: &Path,
    nodes: Option<usize>,
    base_port: Option<u16>,
    change: impl FnOnce(&mut Settings),
) -> Result<(), ClusterError> {
    let mut cluster = Cluster::open(dir, line)?;
    let there = cluster.nodes().len();
    if cluster.nodes().iter().any(|node| node.pid().is_some()) {
        return Err(ClusterError::Settings(format!(
            "a cluster runs in {} already; see it: trireme cluster status --dir {0}; stop it: trireme cluster down --dir {0}",
            dir.display()
        )));
    }
    let same_nodes = nodes.is_none_or(|n| n == there);
    let same_port = base_port.is_none_or(|port| port == cluster.node(0).ports.mysql);
    if !same_nodes || !same_port {
        return Err(ClusterError::Settings(format!(
            "a stopped cluster of {there} nodes from port {} lies in {}; for another one remove it first: \
             trireme cluster down --delete --dir {1}",
            cluster.node(0).ports.mysql,
            dir.display()
        )));
    }
    line(&format!(
        "starting the {there} node(s) that lie in {}",
        dir.display()
    ));
    change(cluster.settings_mut());
    start_and_leave(cluster)
}

fn start_and_leave(mut cluster: Cluster) -> Result<(), ClusterError> {
    if let Err(error) = cluster.start() {
        // A clean stop instead of a kill: the nodes may have data of earlier runs.
        if let Err(left) = cluster.stop() {
            let dir = cluster.settings().dir.display();
            eprintln!(
                "trireme: not all servers are stopped: {left}; stop them: trireme cluster down --dir {dir}"
            );
        }
        return Err(error);
    }
    cluster.detach();
    line("");
    print_status(&cluster);
    Ok(())
}

/// Stops the cluster in `dir`.
pub fn down(dir: &Path, delete: bool) -> Result<(), ClusterError> {
    let mut cluster = Cluster::open(dir, line)?;
    if cluster.nodes().iter().all(|node| node.pid().is_none()) {
        line(&format!("no server runs in {}", dir.display()));
    }
    cluster.stop()?;
    if delete {
        cluster.delete()?;
        line(&format!("removed {}", dir.display()));
    } else {
        line(&format!(
            "data kept in {0}; remove: trireme cluster down --delete --dir {0}",
            dir.display()
        ));
    }
    Ok(())
}

/// Shows the cluster in `dir`.
pub fn status(dir: &Path) -> Result<(), ClusterError> {
    print_status(&Cluster::open(dir, |_| {})?);
    Ok(())
}

fn print_status(cluster: &Cluster) {
    let rows: Vec<Vec<String>> = cluster
        .nodes()
        .iter()
        .map(|node| {
            let dash = || "-".to_string();
            let pid = node.pid();
            let (state, size, committed) = match (pid, node.status()) {
                (None, _) => ("down".to_string(), dash(), dash()),
                (Some(_), Err(_)) => ("no answer".to_string(), dash(), dash()),
                (Some(_), Ok(s)) if s.is_synced() => {
                    (s.state, s.size.to_string(), s.last_committed.to_string())
                }
                (Some(_), Ok(s)) => (
                    format!("{} ({})", s.state, s.component),
                    s.size.to_string(),
                    s.last_committed.to_string(),
                ),
            };
            vec![
                node.name.clone(),
                state,
                size,
                committed,
                node.ports.mysql.to_string(),
                pid.map_or_else(dash, |pid| pid.to_string()),
                node.connect_command(),
            ]
        })
        .collect();
    let header = [
        "node",
        "state",
        "size",
        "last committed",
        "port",
        "pid",
        "connect",
    ];
    piece(&table::render(&header, &rows));
    line("\nby TCP: mariadb -h 127.0.0.1 -P PORT -u root (no password; this machine only)");
    line(&format!(
        "logs:   {}",
        cluster.settings().dir.join("node*/error.log").display()
    ));
    line(&format!(
        "stop:   trireme cluster down --dir {}",
        cluster.settings().dir.display()
    ));
}
