//! The settings of a cluster.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::packages;
use crate::server::Server;

/// The method of a full state transfer (SST).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SstMethod {
    /// Copy of the data directory; the donor is blocked meanwhile.
    #[default]
    Rsync,
    /// Hot backup; the donor continues.
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

/// The settings of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The server program of every node.
    #[serde(default)]
    pub server: Server,
    /// The number of nodes, at least 1.
    pub nodes: usize,
    /// The cluster's directory; it is made if it does not exist.
    pub dir: PathBuf,
    /// The wsrep provider; `None` runs a plain server without replication.
    pub provider: Option<PathBuf>,
    /// The first port; `None` searches for free ones.
    pub base_port: Option<u16>,
    /// Further arguments of `mariadbd`, `--name` or `--name=value`; they win over our settings. [`Server`] translates
    /// them for MySQL.
    pub mariadbd_args: Vec<String>,
    /// The method of a full state transfer (SST).
    pub sst_method: SstMethod,
    /// Further `wsrep_provider_options`; they win over ours.
    pub provider_options: String,
    /// Lines of the section `[sst]`, which the state transfer scripts read.
    #[serde(default)]
    pub sst_lines: Vec<String>,
    /// The data directory of a stopped server, which every node gets a copy of instead of an empty database.
    pub template: Option<PathBuf>,
    /// Allows several nodes without a provider: plain servers, which something else than wsrep connects.
    #[serde(default)]
    pub separate: bool,
    /// The nodes' addresses, if they do not all share 127.0.0.1. Each node must be started where its address exists.
    #[serde(default)]
    pub hosts: Vec<Ipv4Addr>,
    /// Members, `host:port`, in the cluster's address that do not exist.
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

    /// Adds provider options behind the present ones, over which they win.
    pub fn add_provider_options(&mut self, options: &str) {
        let present = self.provider_options.trim_end_matches(';');
        self.provider_options = match (present, options) {
            ("", all) | (all, "") => all.to_string(),
            _ => format!("{present};{options}"),
        };
    }

    /// Whether the provider is Galera: checks of promises that only Trireme makes skip it.
    pub fn is_galera(&self) -> bool {
        self.provider.as_deref().is_some_and(packages::is_galera)
    }
}

/// The default directory of `trireme cluster`: one per user, so that `down` and `status` find the cluster that `up`
/// started.
pub fn default_dir() -> PathBuf {
    let uid = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("trireme-{uid}"))
}
