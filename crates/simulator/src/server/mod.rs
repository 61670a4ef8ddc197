//! A database server in memory that behaves as MariaDB does above a wsrep provider.
//!
//! The database is a set of rows, each an append-only list of the client transactions that wrote it. Step machines do
//! the work of a real server's threads: client sessions (`session.rs`, `commit.rs`, `toi.rs`), appliers
//! (`applier.rs`, `callbacks.rs`), the state transfer's thread (`transfer.rs`) and an administrator (`admin.rs`).
//! They wait for answers of the node, for locks (`locks.rs`), or for time; the world steps them ([`Server::step`]) in
//! any order.
//!
//! The server follows the contract between server and provider (docs/server-contract.md). If the provider breaks it
//! (a callback at the wrong time, a seqno twice), the server panics, and the run reports a violation.

mod admin;
mod applier;
mod callbacks;
mod client;
mod commit;
mod conflict;
mod ctx;
mod database;
mod datadir;
mod errand;
mod locks;
mod pause;
mod plan;
mod rows;
#[allow(clippy::module_inception)] // its main type
mod server;
mod session;
mod state;
mod streaming;
#[cfg(test)]
mod tests;
mod thread;
mod toi;
mod transfer;
mod writeset;

pub use ctx::{Ctx, Next, ThreadId};
pub use datadir::Datadir;
pub use errand::Errand;
pub use plan::{AdminPlan, Flush, ServerPlan, Span, Speed, Workload};
pub use server::Server;
pub use transfer::{Cargo, Transfer};
pub use writeset::Ddl;
