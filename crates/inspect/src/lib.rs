//! The reports for an operator of a cluster: its status, its faults, the reason why a node waits, and the commits that
//! lost.
//!
//! [`Survey`] asks the nodes through SQL, with the client of `trireme-agent`. If a node's SQL is closed, the files of
//! its data directory are read. All else here is pure: data goes in, a report comes out, as text of at most 80 columns
//! or as JSON. Everything that a node sends may be hostile, even names and keys: [`text`] makes control characters
//! visible and limits the length.

#![forbid(unsafe_code)]

mod address;
mod conflicts;
mod doctor;
mod error_log;
mod local;
mod log_reach;
mod losses;
mod members;
mod node;
mod refusal;
mod status;
mod survey;
pub mod text;
mod waiting;

pub use conflicts::{ConflictsError, ConflictsReport};
pub use doctor::{DoctorReport, Outcome};
pub use refusal::Refusal;
pub use status::StatusReport;
pub use survey::Survey;
pub use waiting::{WaitingError, WaitingReport};

/// The most members that are asked and shown.
pub const MAX_MEMBERS: usize = 64;
