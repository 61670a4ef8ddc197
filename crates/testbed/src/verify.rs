//! Verifies that all nodes hold the same rows.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::cluster_error::ClusterError;
use crate::sql::{Sql, SqlError};

/// The time for the appliers to empty their queues after the load.
pub(crate) const CATCH_UP: Duration = Duration::from_secs(120);

/// The reason why the nodes are not known to be identical.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The nodes did not settle.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A query failed.
    #[error("{node}: {source}")]
    Sql {
        /// The node's name.
        node: String,
        /// The reason.
        source: SqlError,
    },
    /// Two nodes differ: replication is broken.
    #[error("{table} DIFFERS: {first} has {first_has}, {second} has {second_has}")]
    Different {
        /// Database and table.
        table: String,
        /// One node's name.
        first: String,
        /// Its rows and checksum.
        first_has: String,
        /// The other node's name.
        second: String,
        /// Its rows and checksum.
        second_has: String,
    },
    /// There are no tables, and so no proof.
    #[error("there are no tables to compare")]
    NoTables,
}

/// One table, the same on all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSum {
    /// Database and table.
    pub table: String,
    /// Number of rows.
    pub rows: u64,
    /// `CHECKSUM TABLE`. It means nothing for a table with generated columns (docs/runbooks.md#two-nodes-seem-to-differ).
    pub checksum: String,
}

/// The content that is the same on all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identical {
    /// The seqno of the last write-set that all nodes have committed.
    pub last_committed: i64,
    /// The tables.
    pub tables: Vec<TableSum>,
}

/// Waits until all nodes have committed the same last write-set. Then compares the tables of `databases`, and the
/// lists of tables. Fails if a node does not run. The load must have stopped.
pub fn verify_identical(
    cluster: &mut Cluster,
    databases: &[&str],
) -> Result<Identical, VerifyError> {
    cluster.check_running()?;
    let identical = verify_running(cluster, databases)?;
    // A server that ended meanwhile may have been left out.
    cluster.check_running()?;
    Ok(identical)
}

/// The same as [`verify_identical`], of the running nodes alone: at least one.
pub fn verify_running(cluster: &mut Cluster, databases: &[&str]) -> Result<Identical, VerifyError> {
    let last_committed = cluster.wait_caught_up(CATCH_UP)?;
    let tables = compare_nodes(cluster, databases)?;
    Ok(Identical {
        last_committed,
        tables,
    })
}

/// Compares the tables of `databases`, and the lists of tables, on the running nodes, which must have settled.
pub fn compare_nodes(cluster: &Cluster, databases: &[&str]) -> Result<Vec<TableSum>, VerifyError> {
    let mut reference: Option<(String, Vec<TableSum>)> = None;
    for node in cluster.nodes().iter().filter(|node| node.pid().is_some()) {
        let mut sql = node.sql().map_err(ClusterError::from)?;
        let sums = sums(&mut sql, databases).map_err(|source| VerifyError::Sql {
            node: node.name.clone(),
            source,
        })?;
        match &reference {
            None => reference = Some((node.name.clone(), sums)),
            Some((first, expected)) => compare(first, expected, &node.name, &sums)?,
        }
    }
    match reference {
        Some((_, tables)) if !tables.is_empty() => Ok(tables),
        _ => Err(VerifyError::NoTables),
    }
}

fn sums(sql: &mut Sql, databases: &[&str]) -> Result<Vec<TableSum>, SqlError> {
    let list: Vec<String> = databases.iter().map(|name| format!("'{name}'")).collect();
    let tables = sql.query(&format!(
        "SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables \
         WHERE table_schema IN ({}) AND table_type = 'BASE TABLE' ORDER BY 1",
        list.join(", ")
    ))?;
    let mut sums = Vec::new();
    for table in tables
        .into_iter()
        .filter_map(|row| row.into_iter().next().flatten())
    {
        let rows = sql.value(&format!("SELECT COUNT(*) FROM {table}"))?;
        let checksum = sql.query(&format!("CHECKSUM TABLE {table}"))?;
        sums.push(TableSum {
            rows: rows.and_then(|n| n.parse().ok()).unwrap_or(0),
            checksum: match checksum.first().map(Vec::as_slice) {
                Some([_, Some(sum)]) => sum.clone(),
                _ => return Err(SqlError::Answer(format!("CHECKSUM TABLE {table}"))),
            },
            table,
        });
    }
    Ok(sums)
}

fn compare(first: &str, a: &[TableSum], second: &str, b: &[TableSum]) -> Result<(), VerifyError> {
    let describe = |sum: Option<&TableSum>| match sum {
        Some(sum) => format!("{} rows, checksum {}", sum.rows, sum.checksum),
        None => "no such table".to_string(),
    };
    let names = a.iter().chain(b).map(|sum| &sum.table);
    for table in names {
        let in_a = a.iter().find(|sum| sum.table == *table);
        let in_b = b.iter().find(|sum| sum.table == *table);
        if in_a != in_b {
            return Err(VerifyError::Different {
                table: table.clone(),
                first: first.to_string(),
                first_has: describe(in_a),
                second: second.to_string(),
                second_has: describe(in_b),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_file;
    use crate::node::Node;
    use crate::node_error::NodeError;
    use crate::ports::NodePorts;
    use crate::settings::Settings;

    #[test]
    fn dead_nodes_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::new(dir.path(), 1, Some("/lib/p.so".into()));
        let ports = NodePorts {
            host: std::net::Ipv4Addr::LOCALHOST,
            mysql: 1,
            group: 2,
            sst: 4,
        };
        let node = Node::new(
            "node1".to_string(),
            dir.path().join("node1"),
            ports,
            settings.server,
        );
        cluster_file::write(dir.path(), &settings, true, &[node]).unwrap();
        let mut cluster = Cluster::open(dir.path(), |_| {}).unwrap();
        for verify in [verify_identical, verify_running] {
            assert!(matches!(
                verify(&mut cluster, &["d"]),
                Err(VerifyError::Cluster(ClusterError::Node(
                    NodeError::Ended { .. }
                )))
            ));
        }
    }

    fn sum(table: &str, rows: u64, checksum: &str) -> TableSum {
        TableSum {
            table: table.to_string(),
            rows,
            checksum: checksum.to_string(),
        }
    }

    #[test]
    fn a_different_checksum_is_told() {
        let a = [sum("t", 1, "5"), sum("u", 1, "5")];
        let b = [sum("t", 1, "5"), sum("u", 1, "6")];
        assert!(compare("n1", &a, "n2", &a).is_ok());
        let error = compare("n1", &a, "n2", &b).unwrap_err().to_string();
        assert_eq!(
            error,
            "u DIFFERS: n1 has 1 rows, checksum 5, n2 has 1 rows, checksum 6"
        );
    }

    #[test]
    fn a_table_missing_on_either_side_is_told() {
        let both = [sum("t", 1, "5"), sum("u", 1, "5")];
        assert!(compare("n1", &both, "n2", &both[..1]).is_err());
        assert!(compare("n1", &both[..1], "n2", &both).is_err());
    }
}
