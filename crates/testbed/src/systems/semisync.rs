//! Semi-synchronous replication, as built into MariaDB: one source, and replicas. One of the replicas acknowledges each
//! commit.
//!
//! The settings follow MariaDB's documentation. `AFTER_SYNC` loses nothing that any client has seen; there are GTIDs
//! and parallel appliers on the replicas. Where the source must flush, `sync_binlog` is set; where the replica must
//! flush, too, `sync_relay_log`, which flushes every event of a commit. In the second form the replica never flushes
//! before it acknowledges. The timeout is so long that the source never continues without a replica; [`System::check`]
//! fails if it did.

use std::time::{Duration, Instant};

use super::{
    DeployError, Durability, SEMISYNC_SOURCE_FLUSH, System, add, connection, failed, innodb, pause,
    sync_binlog,
};
use crate::cluster::Cluster;
use crate::node::Node;
use crate::settings::Settings;
use crate::verify::CATCH_UP;

/// The node that accepts writes.
const SOURCE: usize = 0;

/// The time for the replicas to connect.
const CONNECT: Duration = Duration::from_secs(30);

/// One source with replicas.
pub(super) struct SemiSync {
    /// Whether in full durability the replica also flushes before it acknowledges.
    pub replica_flushes: bool,
}

impl System for SemiSync {
    fn name(&self) -> &str {
        match self.replica_flushes {
            true => "semisync",
            false => SEMISYNC_SOURCE_FLUSH,
        }
    }

    fn about(&self) -> &'static str {
        match self.replica_flushes {
            true => {
                "MariaDB's semi-synchronous replication, one source, one replica or more with 4 appliers each; a commit is \
                 acknowledged when a replica has it in its relay log (AFTER_SYNC); in full durability sync_relay_log=1, which flushes \
                 each event of a commit by itself"
            }
            false => {
                "the same with sync_relay_log at its default in full durability, too: the source flushes (sync_binlog=1), and the \
                 replica acknowledges what it has only in memory"
            }
        }
    }

    fn nodes(&self, wanted: usize) -> usize {
        wanted.max(2)
    }

    fn configure(&self, durability: Durability, settings: &mut Settings) {
        settings.separate = true;
        add(
            settings,
            &[
                "--log-bin=binlog",
                "--relay-log=relaylog",
                "--relay-log-recovery=ON",
                "--gtid-strict-mode=ON",
                "--slave-parallel-threads=4",
                "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
                "--rpl-semi-sync-master-timeout=86400000",
                "--rpl-semi-sync-slave-enabled=ON",
                innodb(durability),
            ],
        );
        add(settings, &[sync_binlog(durability)]);
        if self.replica_flushes && durability == Durability::Full {
            add(settings, &["--sync-relay-log=1"]);
        }
    }

    fn connect(&self, cluster: &mut Cluster) -> Result<(), DeployError> {
        let source = cluster.node(SOURCE).ports;
        for node in replicas(cluster) {
            let statements = [
                format!(
                    "CHANGE MASTER TO MASTER_HOST='{}', MASTER_PORT={}, MASTER_USER='root', MASTER_USE_GTID=slave_pos",
                    source.host, source.mysql
                ),
                "START SLAVE".to_string(),
                "SET GLOBAL read_only=ON".to_string(),
            ];
            let mut sql = connection(node)?;
            for statement in statements {
                sql.exec(&statement).map_err(failed(node))?;
            }
        }
        let began = Instant::now();
        for node in replicas(cluster) {
            while slave_status(node, "Slave_IO_Running")? != "Yes" {
                if began.elapsed() > CONNECT {
                    return Err(not_replicating(node)?);
                }
                pause()?;
            }
        }
        // This comes last: without a replica the source would wait for its timeout.
        let node = cluster.node(SOURCE);
        let mut sql = connection(node)?;
        sql.exec("SET GLOBAL rpl_semi_sync_master_enabled=ON")
            .map_err(failed(node))?;
        let clients = (cluster.nodes().len() - 1).to_string();
        while status(node, "Rpl_semi_sync_master_clients")? != clients {
            if began.elapsed() > CONNECT {
                return Err(DeployError::Replica {
                    node: node.name.clone(),
                    reason: "not all replicas are semi-synchronous".to_string(),
                });
            }
            pause()?;
        }
        Ok(())
    }

    fn rejoin(&self, cluster: &Cluster, i: usize) -> Result<(), DeployError> {
        // Replicas connect by themselves.
        let statement = match i {
            SOURCE => "SET GLOBAL rpl_semi_sync_master_enabled=ON",
            _ => "SET GLOBAL read_only=ON",
        };
        let node = cluster.node(i);
        connection(node)?.exec(statement).map_err(failed(node))?;
        Ok(())
    }

    fn settle(&self, cluster: &mut Cluster) -> Result<(), DeployError> {
        let node = cluster.node(SOURCE);
        let position = connection(node)?
            .value("SELECT @@global.gtid_binlog_pos")
            .map_err(failed(node))?
            .unwrap_or_default();
        for node in replicas(cluster) {
            let wait = format!(
                "SELECT MASTER_GTID_WAIT('{position}', {})",
                CATCH_UP.as_secs()
            );
            let mut sql = node
                .sql_with_timeout(CATCH_UP + Duration::from_secs(5))
                .map_err(|error| DeployError::Cluster(Box::new(error.into())))?;
            if sql.value(&wait).map_err(failed(node))?.as_deref() != Some("0") {
                return Err(not_replicating(node)?);
            }
        }
        Ok(())
    }

    fn check(&self, cluster: &Cluster) -> Result<(), DeployError> {
        let node = cluster.node(SOURCE);
        let alone = status(node, "Rpl_semi_sync_master_no_tx")?;
        if alone != "0" || status(node, "Rpl_semi_sync_master_status")? != "ON" {
            return Err(DeployError::FellBack {
                node: node.name.clone(),
                commits: alone,
            });
        }
        for node in replicas(cluster) {
            if slave_status(node, "Slave_SQL_Running")? != "Yes" {
                return Err(not_replicating(node)?);
            }
        }
        Ok(())
    }
}

fn replicas(cluster: &Cluster) -> &[Node] {
    &cluster.nodes()[SOURCE + 1..]
}

fn status(node: &Node, name: &str) -> Result<String, DeployError> {
    let value = connection(node)?.status(name).map_err(failed(node))?;
    Ok(value.unwrap_or_default())
}

/// A column of `SHOW SLAVE STATUS`.
fn slave_status(node: &Node, column: &str) -> Result<String, DeployError> {
    let row = connection(node)?
        .named_row("SHOW SLAVE STATUS")
        .map_err(failed(node))?;
    let found = row.into_iter().find(|(name, _)| name == column);
    Ok(found.and_then(|(_, value)| value).unwrap_or_default())
}

fn not_replicating(node: &Node) -> Result<DeployError, DeployError> {
    let mut reason = slave_status(node, "Last_IO_Error")?;
    if reason.is_empty() {
        reason = slave_status(node, "Last_SQL_Error")?;
    }
    if reason.is_empty() {
        reason = "it has not caught up in time".to_string();
    }
    Ok(DeployError::Replica {
        node: node.name.clone(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_what_its_name_says() {
        for (replica_flushes, name) in [(true, "semisync"), (false, SEMISYNC_SOURCE_FLUSH)] {
            let system = SemiSync { replica_flushes };
            assert_eq!(system.name(), name);
            let mut settings = Settings::new("/nonexistent", 2, None);
            system.configure(Durability::Full, &mut settings);
            let has = |argument: &str| settings.mariadbd_args.iter().any(|a| a == argument);
            assert!(has("--sync-binlog=1") && has("--innodb-flush-log-at-trx-commit=1"));
            assert_eq!(has("--sync-relay-log=1"), replica_flushes);
        }
    }
}
