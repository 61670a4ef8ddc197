//! The settings of an arbitrator, as its process gets them.

/// The cluster to join, and the options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The nodes, as in `wsrep_cluster_address`: `gcomm://h1:p,h2:p?option=value`.
    pub address: String,
    /// `wsrep_cluster_name`.
    pub group: String,
    /// The options, in the form of `wsrep_provider_options`.
    pub options: String,
    /// Its name among the members.
    pub name: String,
}
