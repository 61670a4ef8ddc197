//! The arbitrator: a member of the cluster that votes and keeps the write-set log, and has no
//! database.
//!
//! Two nodes with a database and one arbitrator survive the loss of any one of the three: what was
//! acknowledged is in two logs. It certifies what everybody certifies, so that a joiner finds the
//! control state and missing write-sets at it, and applies nothing; nobody waits for it (see
//! `replicator`, where that is decided).
//!
//! [`run`] is all there is to do; one thread does it, since there is no server whose threads would
//! have to be served.

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
