//! The engine of a node: group, replicator and write-set log put together.
//!
//! [`Engine`] hands the output of each state machine to the other, and writes the log before a message that speaks of
//! it leaves the node. All other work (peers, files, the server's threads) goes through [`Host`]. The provider and
//! the simulator drive the same engine: it has no clock, thread or socket, and the log's disk is a trait.

#![forbid(unsafe_code)]

mod beginning;
mod control_states;
mod engine;
mod findings;
mod flushes;
mod hang;
mod host;
mod laggard;
mod mark;
mod recovered_log;
mod reforming;
mod serving;
mod session;
mod snapshot;
mod staging;
mod start;
mod storage;
mod thresholds;
mod undelivered;

pub use engine::{Engine, Link};
pub use host::{Channel, Host, NotKept};
pub use mark::{KeepMark, MARK_BYTES};
pub use recovered_log::Doubts;
pub use serving::{ServeDone, ServeJob};
pub use session::{Forgotten, Session, Trial, UNKNOWN_BOOT};
pub use staging::{StageDone, StageJob};
pub use start::{Expected, Start, StartError, starting_position, unvouched_position};
pub use storage::{OpenDisk, Storage};
pub use thresholds::{Counters, Thresholds};
pub use trireme_replicator::HostAction;
