//! A node's own report: the `wsrep_*` status variables that operators read.

use std::collections::BTreeMap;

use crate::sql::{Row, Sql, SqlError};

/// A node's place in the cluster, by its own report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// `wsrep_local_state_comment`: `Synced`, `Donor/Desynced`, `Joined`, ...; `Plain` without replication.
    pub state: String,
    /// `wsrep_cluster_status`: `Primary`, `non-Primary`, `Disconnected`.
    pub component: String,
    /// `wsrep_cluster_size`: the number of members in its component.
    pub size: usize,
    /// `wsrep_ready`: whether the node accepts statements.
    pub ready: bool,
    /// `wsrep_last_committed`: the seqno of the last committed write-set; -1 if there is none.
    pub last_committed: i64,
    /// `wsrep_cluster_state_uuid`: the cluster UUID to which the seqno belongs.
    pub history: String,
}

impl NodeStatus {
    /// Reads the variables from the node.
    pub fn read(sql: &mut Sql) -> Result<Self, SqlError> {
        Ok(Self::from_rows(
            &sql.query("SHOW GLOBAL STATUS LIKE 'wsrep_%'")?,
        ))
    }

    /// Whether the node is a full member: in the primary component, synced and ready; or a plain server.
    pub fn is_synced(&self) -> bool {
        self.state == PLAIN || (self.ready && self.state == "Synced" && self.component == "Primary")
    }

    fn from_rows(rows: &[Row]) -> Self {
        let values: BTreeMap<&str, &str> = rows
            .iter()
            .filter_map(|row| match row.as_slice() {
                [Some(name), Some(value), ..] => Some((name.as_str(), value.as_str())),
                _ => None,
            })
            .collect();
        let get = |name: &str| values.get(name).copied().unwrap_or("");
        // Without a provider the server has few wsrep variables, and no component.
        let component = match get("wsrep_cluster_status") {
            "" | "Disconnected" if get("wsrep_provider_name").is_empty() => PLAIN,
            other => other,
        };
        let state = if component == PLAIN {
            PLAIN
        } else {
            get("wsrep_local_state_comment")
        };
        Self {
            state: state.to_string(),
            component: component.to_string(),
            size: get("wsrep_cluster_size").parse().unwrap_or(0),
            ready: get("wsrep_ready") == "ON",
            last_committed: get("wsrep_last_committed").parse().unwrap_or(-1),
            history: get("wsrep_cluster_state_uuid").to_string(),
        }
    }
}

const PLAIN: &str = "Plain";

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pairs: &[(&str, &str)]) -> Vec<Row> {
        pairs
            .iter()
            .map(|(k, v)| vec![Some(k.to_string()), Some(v.to_string())])
            .collect()
    }

    #[test]
    fn a_synced_member_is_read() {
        let status = NodeStatus::from_rows(&rows(&[
            ("wsrep_cluster_size", "3"),
            ("wsrep_cluster_state_uuid", "8c1b"),
            ("wsrep_cluster_status", "Primary"),
            ("wsrep_last_committed", "17"),
            ("wsrep_local_state_comment", "Synced"),
            ("wsrep_provider_name", "Galera"),
            ("wsrep_ready", "ON"),
        ]));
        assert!(status.is_synced());
        assert_eq!((status.size, status.last_committed), (3, 17));
    }

    #[test]
    fn a_node_cut_off_is_not_synced() {
        let status = NodeStatus::from_rows(&rows(&[
            ("wsrep_cluster_status", "non-Primary"),
            ("wsrep_local_state_comment", "Initialized"),
            ("wsrep_provider_name", "Galera"),
            ("wsrep_ready", "OFF"),
        ]));
        assert!(!status.is_synced());
        assert_eq!(status.last_committed, -1);
    }

    #[test]
    fn a_server_without_provider_is_plain() {
        assert!(NodeStatus::from_rows(&[]).is_synced());
    }
}
