//! Servers and clusters of several systems on loopback: start, stop, kill, configure, verify.
//!
//! [`Cluster`] is the centre: it owns N [`Node`]s. Each node is one ordinary server process with a directory, a
//! `my.cnf` and ports of its own; the wsrep provider of the [`Settings`] joins them. [`Server`] names the program:
//! `mariadbd` or another one. The commands `trireme cluster`, the demo, the crash schedules, the soak test, the lab and
//! the integration tests all use it.
//!
//! Nothing here touches the system's MariaDB service, its data, or its configuration files.

#![forbid(unsafe_code)]

pub mod cluster;
mod cluster_error;
mod cluster_file;
pub mod config;
pub mod cpu_share;
pub mod datadir;
pub mod directories;
pub mod interrupt;
mod mark;
pub mod network;
pub mod node;
mod node_error;
pub mod output;
pub mod packages;
pub mod ports;
pub mod preload;
pub mod process;
pub mod recovery;
mod rsync_as_root;
mod server;
pub mod settings;
pub mod sql;
pub mod status;
pub mod sysbench;
pub mod sysbench_report;
pub mod systems;
pub mod table;
pub mod template;
pub mod verify;

pub use cluster::Cluster;
pub use cluster_error::ClusterError;
pub use node::{Node, StartMode};
pub use node_error::NodeError;
pub use server::Server;
pub use settings::{Settings, SstMethod};
pub use sql::{Sql, SqlError};
pub use status::NodeStatus;
