//! What an arbitrator is told.

/// Where it belongs, and how it behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The nodes, as in `wsrep_cluster_address`: `gcomm://h1:p,h2:p?option=value`.
    pub address: String,
    /// `wsrep_cluster_name`.
    pub group: String,
    /// As in `wsrep_provider_options`.
    pub options: String,
    /// Its name among the members.
    pub name: String,
}
