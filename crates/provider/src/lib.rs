//! libtrireme.so: the wsrep provider that MariaDB loads.
//!
//! [`entry`] has the functions that the server calls, [`connect`] the start and end of a connection, [`recv`] the work
//! of the server's applier threads, [`core`] the node under its lock. Replication logic is not in this crate, but in
//! the group and the replicator.

mod aside;
mod border;
mod conflict_log;
mod connect;
mod convert;
mod core;
mod disk_threads;
mod entry;
mod flusher;
#[doc(hidden)]
pub mod fuzzing;
mod grastate;
mod key_log;
mod leader_watch;
mod logging;
mod node;
mod outlet;
mod reactor;
mod reader;
mod recover_position;
mod recv;
mod reporter;
mod runtime;
mod server_flags;
mod server_state;
mod services;
mod stager;
mod state;
mod stats;
mod status;
mod termination;
mod threads;
mod times;
mod transaction;
mod wait;
mod waiting;
mod worker;

use trireme_node::{options, url, votes};
use trireme_wsrep_abi::cap;

/// The capabilities of this provider. It lacks the pre-ordered interface, NBO and snapshots.
pub const CAPABILITIES: u32 = cap::MULTI_MASTER
    | cap::CERTIFICATION
    | cap::PARALLEL_APPLYING
    | cap::TRX_REPLAY
    | cap::ISOLATION
    | cap::PAUSE
    | cap::CAUSAL_READS
    | cap::INCREMENTAL_WRITESET
    | cap::STREAMING;
