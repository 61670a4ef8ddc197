//! What an operator asks of a cluster: its status, what is wrong with it, what a node waits for, and which commits lost.
//!
//! [`Survey`] asks the nodes by SQL, through the client of `trireme-agent`; a node whose SQL is closed is known by the files of
//! its data directory. All else here is pure: it takes what was found and gives a report, as text of at most 80 columns or as JSON. Whatever came from a node, be it a name or a
//! key, may be hostile: [`text`] makes control characters visible and bounds the length.

#![forbid(unsafe_code)]

mod address;
mod conflicts;
mod doctor;
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
