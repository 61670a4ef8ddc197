//! A sample: the variables of a server at one moment.

use std::collections::BTreeMap;

/// A node's place in the cluster, by `wsrep_cluster_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The node is in the primary component.
    Primary,
    /// The node is connected, and waits for a majority.
    NonPrimary,
    /// The node has disconnected, by an error of its own or by an operator. It does not come back by itself.
    Left,
}

/// The status variables and system variables of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    status: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
}

impl Sample {
    /// Makes a sample from the rows of SHOW STATUS and SHOW VARIABLES.
    pub fn new(status: Vec<(String, String)>, variables: Vec<(String, String)>) -> Self {
        let lower = |rows: Vec<(String, String)>| {
            rows.into_iter()
                .map(|(name, value)| (name.to_lowercase(), value))
                .collect()
        };
        Self {
            status: lower(status),
            variables: lower(variables),
        }
    }

    /// All status variables, by name in lower case.
    pub fn all_status(&self) -> &BTreeMap<String, String> {
        &self.status
    }

    /// All system variables that the query returned.
    pub fn all_variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// A status variable; empty if there is none.
    pub fn status(&self, name: &str) -> &str {
        self.status.get(name).map_or("", String::as_str)
    }

    /// The node's place in the cluster.
    pub fn component(&self) -> Component {
        match self.status("wsrep_cluster_status") {
            "Primary" => Component::Primary,
            "Disconnected" => Component::Left,
            _ => Component::NonPrimary,
        }
    }

    /// A system variable; empty if there is none.
    pub fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }
}
