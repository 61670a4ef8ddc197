//! Local MariaDB clusters on loopback: start, break, watch and measure them.
//!
//! [`Cluster`] is the centre: it owns N [`Node`]s, each one ordinary `mariadbd` process with a directory, a `my.cnf` and
//! ports of its own, joined by whichever wsrep provider the [`Settings`] name. Everything else here uses it: the `trireme
//! cluster` commands, the demo, the benchmark, the soak test, and the integration tests of other crates.
//!
//! Nothing here touches the system's MariaDB service, its data or its configuration files.

#![forbid(unsafe_code)]

pub mod arbitrator;
pub mod bench;
pub mod cluster;
mod cluster_error;
mod cluster_file;
pub mod config;
pub mod crash;
pub mod datadir;
pub mod demo;
pub mod interrupt;
pub mod node;
mod node_error;
pub mod output;
pub mod packages;
pub mod ports;
mod preload;
pub mod process;
pub mod recovery;
mod rsync_as_root;
pub mod settings;
pub mod soak;
pub mod sql;
pub mod status;
pub mod sysbench;
pub mod sysbench_report;
pub mod table;
pub mod verify;

pub use cluster::Cluster;
pub use cluster_error::ClusterError;
pub use node::{Node, StartMode};
pub use node_error::NodeError;
pub use settings::{Settings, SstMethod};
pub use sql::{Sql, SqlError};
pub use status::NodeStatus;
