//! The arbitrator: a member of the cluster that votes and keeps the write-set log, but has no database.
//!
//! Two nodes with a database and one arbitrator survive the loss of any one of the three, because each acknowledged
//! commit is in two logs. The arbitrator certifies all write-sets, so that a joiner can pull the control state and
//! missing write-sets from it. It applies nothing, and no writer waits for it (`replicator` decides that).
//!
//! [`run`] does everything, in one thread: there are no server threads to serve.

#![forbid(unsafe_code)]

mod directory;
mod error;
mod log;
mod outlet;
mod request;
mod run;
mod settings;
mod station;

pub use directory::{Directory, DirectoryError};
pub use error::ArbitratorError;
pub use log::{Log, LogError};
pub use request::Request;
pub use run::{Arbitrator, run};
pub use settings::Settings;
