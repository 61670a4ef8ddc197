//! MySQL with Group Replication, multi-primary or single-primary.
//!
//! The settings follow MySQL's manual: GTIDs, rows in the binary log, the default consistency. The first node
//! bootstraps the group. The others take missing commits from a member's binary log; all nodes begin with the same
//! data, so they need no clone. The group's messages are not encrypted, as in the other systems.

use std::time::{Duration, Instant};

use super::{
    DeployError, Durability, System, Writers, add, connection, failed, innodb, pause, sync_binlog,
};
use crate::cluster::Cluster;
use crate::node::Node;
use crate::server::Server;
use crate::settings::Settings;
use crate::sql::Row;
use crate::verify::CATCH_UP;

/// The node that bootstraps the group. With a single primary, it is the primary.
const FIRST: usize = 0;

/// The time for all members to come online.
const CONNECT: Duration = Duration::from_secs(60);

/// MySQL with Group Replication.
pub(super) struct GroupReplication {
    /// The nodes that accept writes.
    pub writers: Writers,
}

impl System for GroupReplication {
    fn name(&self) -> &str {
        match self.writers {
            Writers::All => "group-replication",
            Writers::First => "group-replication-single",
        }
    }

    fn about(&self) -> &'static str {
        "MySQL with Group Replication, multi-primary unless its name says single, with its defaults and 4 appliers, its messages \
         not encrypted; its server is not MariaDB: compare it with plain-mysql; it has no setting by which the other nodes flush \
         before a commit is acknowledged, so its full durability is that of the client's node alone"
    }

    fn server(&self) -> Server {
        Server::MySql
    }

    fn configure(&self, durability: Durability, settings: &mut Settings) {
        settings.separate = true;
        add(
            settings,
            &[
                "--gtid-mode=ON",
                "--enforce-gtid-consistency=ON",
                "--log-bin=binlog",
                "--relay-log=relaylog",
                "--report-host=127.0.0.1",
                "--replica-parallel-workers=4",
                "--disabled-storage-engines=MyISAM,BLACKHOLE,FEDERATED,ARCHIVE,MEMORY",
                "--plugin-load-add=group_replication.so",
                // Any UUID will do, because the ports keep groups apart.
                "--group-replication-group-name=1f0e7c4a-7d2b-4b56-9a53-6c61625f6772",
                "--group-replication-start-on-boot=OFF",
                "--group-replication-ssl-mode=DISABLED",
                innodb(durability),
            ],
        );
        match self.writers {
            Writers::All => add(
                settings,
                &[
                    "--group-replication-single-primary-mode=OFF",
                    "--group-replication-enforce-update-everywhere-checks=ON",
                ],
            ),
            Writers::First => add(settings, &["--group-replication-single-primary-mode=ON"]),
        }
        add(settings, &[sync_binlog(durability)]);
    }

    fn connect(&self, cluster: &mut Cluster) -> Result<(), DeployError> {
        for i in 0..cluster.nodes().len() {
            join(cluster, i, i == FIRST)?;
        }
        self.wait_online(cluster)
    }

    fn rejoin(&self, cluster: &Cluster, i: usize) -> Result<(), DeployError> {
        let node = cluster.node(i);
        let other = cluster.nodes().iter().find(|other| other.name != node.name);
        if let Some(other) = other {
            // A group accepts no process as long as it counts an earlier process of the same address.
            let began = Instant::now();
            while role(&members(other)?, node).is_some() {
                if began.elapsed() > CONNECT {
                    let reason = format!("{} still counts its former process", other.name);
                    return Err(replica(node, reason));
                }
                pause()?;
            }
        }
        join(cluster, i, other.is_none())?;
        self.wait_online(cluster)
    }

    fn settle(&self, cluster: &mut Cluster) -> Result<(), DeployError> {
        let began = Instant::now();
        loop {
            let mut executed = Vec::new();
            for node in cluster.nodes() {
                let query = "SELECT @@global.gtid_executed";
                executed.push(connection(node)?.value(query).map_err(failed(node))?);
            }
            // Each node's set has had the node's own commits from the beginning, so equal sets hold the commits of all.
            let Some(behind) = executed.windows(2).position(|pair| pair[0] != pair[1]) else {
                return Ok(());
            };
            if began.elapsed() > CATCH_UP {
                let reason = "it has not caught up in time, or the node before it has not";
                return Err(replica(cluster.node(behind + 1), reason.to_string()));
            }
            pause()?;
        }
    }

    /// Fails unless every node sees all nodes online, and the writers as primaries.
    fn check(&self, cluster: &Cluster) -> Result<(), DeployError> {
        for node in cluster.nodes() {
            let members = members(node)?;
            for (i, other) in cluster.nodes().iter().enumerate() {
                let wanted = match self.writers {
                    Writers::First if i != FIRST => "ONLINE SECONDARY",
                    Writers::First | Writers::All => "ONLINE PRIMARY",
                };
                let found = role(&members, other);
                if found.as_deref() != Some(wanted) {
                    let found = found.unwrap_or_else(|| "no member".to_string());
                    let reason = format!("it sees {} as {found}, not {wanted}", other.name);
                    return Err(replica(node, reason));
                }
            }
        }
        Ok(())
    }
}

impl GroupReplication {
    fn wait_online(&self, cluster: &Cluster) -> Result<(), DeployError> {
        let began = Instant::now();
        while let Err(error) = self.check(cluster) {
            if began.elapsed() > CONNECT {
                return Err(error);
            }
            pause()?;
        }
        Ok(())
    }
}

/// Lets a node that has just started join the group.
fn join(cluster: &Cluster, i: usize, bootstraps: bool) -> Result<(), DeployError> {
    let node = cluster.node(i);
    let seeds: Vec<String> = cluster.nodes().iter().map(address).collect();
    let mut sql = connection(node)?;
    for statement in join_statements(node, &seeds.join(","), bootstraps) {
        sql.exec(&statement).map_err(failed(node))?;
    }
    Ok(())
}

/// The members in a node's view: SQL port, state and role.
fn members(node: &Node) -> Result<Vec<Row>, DeployError> {
    let query = "SELECT member_port, CONCAT(member_state, ' ', member_role) \
                 FROM performance_schema.replication_group_members";
    connection(node)?.query(query).map_err(failed(node))
}

/// The state and role of `node` among the members; None if it is not a member.
fn role(members: &[Row], node: &Node) -> Option<String> {
    let port = node.ports.mysql.to_string();
    members.iter().find_map(|row| match row.as_slice() {
        [Some(at), role] if *at == port => Some(role.clone().unwrap_or_default()),
        _ => None,
    })
}

/// The statements by which a node joins the group.
fn join_statements(node: &Node, seeds: &str, bootstraps: bool) -> Vec<String> {
    let bootstrap = |value| format!("SET GLOBAL group_replication_bootstrap_group={value}");
    let mut statements = vec![
        format!(
            "SET GLOBAL group_replication_local_address='{}'",
            address(node)
        ),
        format!("SET GLOBAL group_replication_group_seeds='{seeds}'"),
        "CHANGE REPLICATION SOURCE TO SOURCE_USER='root' FOR CHANNEL 'group_replication_recovery'"
            .to_string(),
    ];
    if bootstraps {
        statements.push(bootstrap("ON"));
    }
    statements.push("START GROUP_REPLICATION".to_string());
    if bootstraps {
        statements.push(bootstrap("OFF"));
    }
    statements
}

/// The address of a node's group communication.
fn address(node: &Node) -> String {
    format!("{}:{}", node.ports.host, node.ports.group)
}

fn replica(node: &Node, reason: String) -> DeployError {
    DeployError::Replica {
        node: node.name.clone(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::NodePorts;
    use std::net::Ipv4Addr;

    fn node() -> Node {
        let ports = NodePorts {
            host: Ipv4Addr::LOCALHOST,
            mysql: 1000,
            group: 1001,
            sst: 1003,
        };
        Node::new("node1".to_string(), "/x".into(), ports, Server::MySql)
    }

    #[test]
    fn only_the_first_node_founds_a_group() {
        let founds = |bootstraps| {
            let statements = join_statements(&node(), "a,b", bootstraps);
            statements.iter().any(|s| s.contains("bootstrap_group=ON"))
        };
        assert!(founds(true) && !founds(false));
    }

    #[test]
    fn a_member_is_known_by_its_port() {
        let row = |port: &str, role: &str| vec![Some(port.to_string()), Some(role.to_string())];
        let members = [
            row("1010", "ONLINE PRIMARY"),
            row("1000", "RECOVERING SECONDARY"),
        ];
        assert_eq!(
            role(&members, &node()).as_deref(),
            Some("RECOVERING SECONDARY")
        );
        assert_eq!(role(&members[..1], &node()), None);
    }

    #[test]
    fn durability_reaches_the_binary_log() {
        let flush = |durability| {
            let mut settings = Settings::new("/x", 2, None);
            let system = GroupReplication {
                writers: Writers::All,
            };
            system.configure(durability, &mut settings);
            let args = settings.mariadbd_args;
            ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"]
                .map(|wanted| args.iter().any(|arg| arg == wanted))
        };
        assert_eq!(flush(Durability::Lazy), [false; 2]);
        assert_eq!(flush(Durability::Origin), [true; 2]);
    }
}
