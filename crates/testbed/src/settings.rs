//! What the user chooses about a cluster.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::packages;
use crate::server::Server;

/// How a full state snapshot travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SstMethod {
    /// Copy of the data directory; the donor is blocked meanwhile.
    #[default]
    Rsync,
    /// Hot backup; the donor goes on.
    Mariabackup,
}

impl fmt::Display for SstMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rsync => "rsync",
            Self::Mariabackup => "mariabackup",
        })
    }
}

/// What the user chooses about a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The program of every node.
    #[serde(default)]
    pub server: Server,
    /// Number of nodes, at least 1.
    pub nodes: usize,
    /// Where everything lies; made when missing.
    pub dir: PathBuf,
    /// The wsrep provider; `None` runs a plain server without replication.
    pub provider: Option<PathBuf>,
    /// First port; `None` searches for free ones.
    pub base_port: Option<u16>,
    /// Further arguments of `mariadbd`, `--name` or `--name=value`; they win over our settings. Another server gets its own
    /// names for them.
    pub mariadbd_args: Vec<String>,
    /// How a full state snapshot travels.
    pub sst_method: SstMethod,
    /// Further `wsrep_provider_options`; they win over ours.
    pub provider_options: String,
    /// Lines of the section `[sst]`, which the scripts of state transfers read.
    #[serde(default)]
    pub sst_lines: Vec<String>,
    /// A data directory of a stopped server to copy for every node, in place of an empty database.
    pub template: Option<PathBuf>,
    /// Several nodes without a provider: plain servers, which something else than wsrep connects.
    #[serde(default)]
    pub separate: bool,
    /// The nodes' addresses, when they do not all share 127.0.0.1; to be started where each address exists.
    #[serde(default)]
    pub hosts: Vec<Ipv4Addr>,
    /// Members, `host:port`, that the cluster's address names although they do not exist.
    #[serde(default)]
    pub absent: Vec<String>,
}

impl Settings {
    /// Defaults for `nodes` nodes in `dir` under `provider`.
    pub fn new(dir: impl Into<PathBuf>, nodes: usize, provider: Option<PathBuf>) -> Self {
        Self {
            server: Server::default(),
            nodes,
            dir: dir.into(),
            provider,
            base_port: None,
            mariadbd_args: Vec::new(),
            sst_method: SstMethod::default(),
            provider_options: String::new(),
            sst_lines: Vec::new(),
            template: None,
            separate: false,
            hosts: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// Whether the provider is Galera, which is not held to what only we promise.
    pub fn is_galera(&self) -> bool {
        self.provider.as_deref().is_some_and(packages::is_galera)
    }
}

/// The directory of `trireme cluster` when none is named: one per user, so that `down` and `status` find what `up` started.
pub fn default_dir() -> PathBuf {
    let uid = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("trireme-{uid}"))
}
