//! Whole clusters of real nodes on simulated time, network and disks, with faults.
//!
//! A seed and a profile make a [`plan::Plan`], and a [`world::World`] plays it. Each node is the real engine (group,
//! replicator, certification, log) below a small server in memory. The [`invariants`] see every event. The same seed
//! gives the same run, bit by bit.

#![forbid(unsafe_code)]

mod absence;
pub mod clock;
pub mod coverage;
pub mod digest;
pub mod directed;
mod disk_faults;
pub mod doom;
pub mod edit;
pub mod fault;
pub mod fault_kind;
mod founding;
mod given_up;
pub mod invariants;
pub mod machine;
pub mod mark;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod network;
mod node_settings;
pub mod plan;
pub mod profile;
pub mod profiles;
pub mod queue;
pub mod random;
pub mod regressions;
pub mod replay;
pub mod run;
pub mod saved_state;
pub mod scale;
pub mod seen;
pub mod server;
pub mod shrink;
pub mod sketch;
pub mod sweep;
pub mod trace;
pub mod watch;
pub mod world;
