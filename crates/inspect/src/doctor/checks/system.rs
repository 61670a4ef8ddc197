//! Checks of the first node's machine, and of the programs on it.

use crate::address;
use crate::doctor::checks::storage::with_host;
use crate::doctor::facts::{Facts, Host, list};
use crate::doctor::finding::Finding;
use crate::node::Node;
use trireme_node::url::is_loopback;

/// Environment variables by which containers' start scripts and operators bootstrap without a person.
/// `_WSREP_NEW_CLUSTER` is not among them: `galera_new_cluster` sets it for one start, and the server keeps it until it
/// ends.
const BOOTSTRAP_VARIABLES: [&str; 4] = [
    "MARIADB_GALERA_CLUSTER_BOOTSTRAP",
    "MARIADB_GALERA_FORCE_SAFETOBOOTSTRAP",
    "GALERA_AUTO_BOOTSTRAP",
    "MARIADB_OPERATOR_IMAGE",
];
/// The seconds that systemd should allow for a start that waits for a majority.
const LONG_START_S: f64 = 3600.0;

pub(crate) fn automatic_bootstrap(facts: &Facts) -> Finding {
    with_host(facts, |host, _| {
        if host.environment.is_none() && host.arguments.is_none() {
            return Finding::unknown("the server's process may not be examined: run it as root");
        }
        let by_argument = host
            .arguments
            .iter()
            .flatten()
            .any(|arg| arg == "--wsrep-new-cluster" || arg == "--wsrep_new_cluster");
        let mut found: Vec<String> = host
            .environment
            .iter()
            .flatten()
            .filter(|name| BOOTSTRAP_VARIABLES.contains(&name.as_str()))
            .cloned()
            .collect();
        let supervised = host
            .environment
            .iter()
            .flatten()
            .any(|name| name == "KUBERNETES_SERVICE_HOST");
        if by_argument && supervised {
            found.push("--wsrep-new-cluster in a container".to_owned());
        }
        match found.is_empty() {
            true => Finding::ok("nothing bootstraps this node by itself"),
            false => Finding::failed(
                format!("something bootstraps by itself: {}", list(&found)),
                "turn the operator's or image's automatic bootstrap off: Trireme comes back by itself, and a bootstrap then \
                 cuts the history",
            ),
        }
    })
}

pub(crate) fn start_timeout(facts: &Facts) -> Finding {
    with_host(facts, |host, _| match host.start_timeout_s {
        None => Finding::unknown("systemd does not run the server here"),
        Some(seconds) if seconds < LONG_START_S => Finding::failed(
            format!(
                "systemd kills the server {seconds:.0} s after its start, also while it waits for a majority"
            ),
            "install trireme-provider (if it is installed: systemctl daemon-reload), or set TimeoutStartSec=infinity in a drop-in of \
             mariadb.service",
        ),
        Some(_) => Finding::ok("systemd lets a starting server wait for its majority"),
    })
}

pub(crate) fn sst_programs(facts: &Facts) -> Finding {
    with_host(facts, |host, node| {
        let needed: &[&str] = match node.variable("wsrep_sst_method") {
            "rsync" | "rsync_wan" if host.sst_encrypts => &["rsync", "stunnel"],
            "rsync" | "rsync_wan" => &["rsync"],
            "mariabackup" | "xtrabackup-v2" => &["mariadb-backup", "mbstream", "socat"],
            _ => &[],
        };
        let mut lacking = needed.to_vec();
        lacking.retain(|name| !host.programs.contains(name));
        match lacking.is_empty() {
            true => Finding::ok("the programs of wsrep_sst_method are installed"),
            false => Finding::failed(
                format!(
                    "programs of wsrep_sst_method={} are missing: {}",
                    node.variable("wsrep_sst_method"),
                    list(&lacking)
                ),
                "apt-get install rsync socat mariadb-backup, and stunnel4 if [sst] encrypts, on every node",
            ),
        }
    })
}

pub(crate) fn sst_method(facts: &Facts) -> Finding {
    match facts.differing(|node| node.variable("wsrep_sst_method").to_owned()) {
        None => facts.unless_silent("all nodes have the same wsrep_sst_method"),
        Some(values) => Finding::warning(
            format!("wsrep_sst_method differs: {values}"),
            "set the same everywhere: the joiner's decides, and the donor may lack its programs",
        ),
    }
}

pub(crate) fn sst_user(facts: &Facts) -> Finding {
    let lacking = facts.those(|node| {
        node.variable("wsrep_sst_method") == "mariabackup"
            && node.variable("wsrep_sst_auth").is_empty()
    });
    match lacking.is_empty() {
        true => Finding::ok("wsrep_sst_auth is set where the method needs it"),
        false => Finding::warning(
            format!("mariabackup without wsrep_sst_auth: {}", list(&lacking)),
            "wsrep_sst_auth=mysql: with a user that is identified via unix_socket, or user:password",
        ),
    }
}

pub(crate) fn ports(facts: &Facts) -> Finding {
    let clashing = facts.those(clashes);
    match clashing.is_empty() {
        true => Finding::ok("clients, group and snapshots have ports of their own"),
        false => Finding::failed(
            format!(
                "two of port, base_port and the port of wsrep_sst_receive_address are the same: {}",
                list(&clashing)
            ),
            "3306, 4567 and 4444 are usual; let all three through the firewall between the nodes",
        ),
    }
}

fn clashes(node: &Node) -> bool {
    let sql: u16 = node.variable("port").parse().unwrap_or(3306);
    let group: u16 = node.option("base_port").parse().unwrap_or(4567);
    let sst = match node.variable("wsrep_sst_receive_address") {
        "AUTO" | "" => 4444,
        address => address::split(address, 4444).map_or(4444, |(_, port)| port),
    };
    sql == group || sql == sst || group == sst
}

pub(crate) fn own_address(facts: &Facts) -> Finding {
    let loops = facts.those(|node| is_loopback(node.option("base_host")));
    match !loops.is_empty() && loops.len() < facts.nodes.len() {
        false => Finding::ok("every node tells the others an address that they reach"),
        true => Finding::failed(
            format!(
                "tells the others 127.0.0.1 as its address: {}",
                list(&loops)
            ),
            "set wsrep_node_address to its address in the cluster's network",
        ),
    }
}

pub(crate) fn agent(facts: &Facts) -> Finding {
    with_host(facts, |host: &Host, _| match host.agent_answers {
        true => Finding::ok("an agent answers health checks at 127.0.0.1:8077"),
        false => Finding::warning(
            "no agent answers health checks at 127.0.0.1:8077",
            "systemctl enable --now trireme-agent (docs/agent.md), unless it listens elsewhere",
        ),
    })
}
