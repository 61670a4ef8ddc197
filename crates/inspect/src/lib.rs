//! What an operator asks of a cluster: its status, what is wrong with it, and what a node waits for.
//!
//! [`Survey`] asks the nodes by SQL, through the client of `trireme-agent`. All else here is pure: it takes what the
//! nodes said and gives a report, as text of at most 80 columns or as JSON. Whatever came from a node, be it a name or a
//! key, may be hostile: [`text`] makes control characters visible and bounds the length.

#![forbid(unsafe_code)]

mod address;
mod doctor;
mod local;
mod losses;
mod members;
mod node;
mod refusal;
mod status;
mod survey;
pub mod text;

pub use doctor::{DoctorReport, Outcome};
pub use refusal::Refusal;
pub use status::StatusReport;
pub use survey::Survey;

/// The most members that are asked and shown.
pub const MAX_MEMBERS: usize = 64;
