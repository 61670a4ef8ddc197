//! The parts that every member of a cluster has, with a server above it or without.
//!
//! [`options`] are the provider options that users know, [`url`] the cluster address, [`votes`] the file of a replica's
//! promises, [`state_file`] the file that shows a node's state while SQL is closed. [`setup`] makes the inputs of a
//! connection from them. [`Line`] is the connection, and [`Station`] drives it and the engine.

#![forbid(unsafe_code)]

mod clock;
mod deadline;
mod exposure;
pub mod file_lock;
mod latency;
mod limiter;
mod line;
mod mark_file;
pub mod options;
mod progress;
pub mod setup;
mod stages;
pub mod state_file;
mod station;
mod text;
pub mod url;
pub mod votes;

pub use clock::{monotonic_ns, now_ms, unix_ms};
pub use deadline::Deadline;
pub use exposure::Exposure;
pub use latency::Latency;
pub use line::Line;
pub use mark_file::MarkFile;
pub use progress::{LEAVE_TIMEOUT, Progress};
pub use stages::{CommitClock, Percentiles, STAGES, Stage, StageTimer, commit_times};
pub use station::Station;
pub use text::{LINE_BYTES_MAX, one_line};
