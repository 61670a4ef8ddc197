//! Waits until all nodes serve again.

use std::time::Duration;

use super::CrashError;
use super::load::Load;
use trireme_testbed::cluster::Cluster;
use trireme_testbed::interrupt;
use trireme_testbed::process;

/// The result of the wait.
pub enum Served {
    /// All serve.
    All,
    /// The server of this node has ended by itself.
    Ended(usize),
    /// The time limit passed; the text holds the nodes' states.
    Not(String),
}

/// Waits until every node is a synced member of the whole cluster and has acknowledged a client's write that began
/// after `since`. Waits for at most `limit`, counted from `since`.
pub fn wait(
    cluster: &Cluster,
    load: &Load,
    since: Duration,
    limit: Duration,
) -> Result<Served, CrashError> {
    let size = cluster.nodes().len();
    loop {
        if load.all_serve_since(since) {
            let whole = cluster.nodes().iter().all(|node| {
                let status = node.status();
                status.is_ok_and(|status| status.is_synced() && status.size == size)
            });
            if whole {
                return Ok(Served::All);
            }
        }
        let ended = cluster.nodes().iter().position(|node| node.pid().is_none());
        if let Some(ended) = ended {
            return Ok(Served::Ended(ended));
        }
        if load.now() > since + limit {
            return Ok(Served::Not(states(cluster)));
        }
        interrupt::sleep(Duration::from_millis(20))?;
    }
}

/// The states that the nodes report, in one line.
fn states(cluster: &Cluster) -> String {
    let state = |node: &trireme_testbed::node::Node| match node.status() {
        Ok(s) => format!(
            "{} {} {} of {}, at {}",
            node.name, s.component, s.state, s.size, s.last_committed
        ),
        Err(_) => format!("{} does not answer", node.name),
    };
    let all: Vec<String> = cluster.nodes().iter().map(state).collect();
    all.join("; ")
}

/// The last error that a node wrote into its log.
pub fn last_error(cluster: &Cluster, node: usize) -> String {
    let lines = process::tail(&cluster.node(node).log(), 200);
    let error = lines.iter().rev().find(|line| line.contains("[ERROR]"));
    error.or(lines.last()).cloned().unwrap_or_default()
}
