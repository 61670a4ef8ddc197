//! Trireme's write-set log: every entry of the total order, in segment files at the top of `gcache.dir`.
//!
//! The log knows positions, opaque payloads and, appended later, the outcome (seqno, verdict, depends_on) of a
//! position. It does not know the meaning of a write-set, keeps no clock and starts no thread. One owner writes. The
//! owner chooses the strength of an acknowledgement by its call: [`Log::append`] (memory), [`Log::write_out`] (os),
//! [`Log::flush`] (disk).
//!
//! `docs/log-format.md` specifies the files byte by byte.

#![forbid(unsafe_code)]

mod active;
mod config;
mod counters;
mod disk;
mod error;
mod examined;
mod flush;
mod format;
mod index;
mod job;
mod log;
mod memory_disk;
mod outcome;
pub mod own_file;
mod peek;
mod recovery;
mod repair;
mod scan;
mod staged;
mod state_file;
mod thresholds;

pub use config::{Durability, LogConfig};
pub use counters::Counters;
pub use disk::{Disk, DiskFile, OsDisk};
pub use error::{LogError, is_lack};
pub use examined::Examined;
pub use flush::{FlushDone, FlushJob};
pub use job::{PartJob, RunItem, RunJob};
pub use log::Log;
pub use memory_disk::MemoryDisk;
pub use outcome::Outcome;
pub use peek::Peek;
pub use recovery::{Damage, Lost, Recovered};
pub use staged::{Staged, StagedWriter};
pub use thresholds::Thresholds;

/// The largest payload of one record, in bytes (2 GiB, the limit of a write-set in the wsrep API).
pub const MAX_PAYLOAD_BYTES: u64 = 1 << 31;

/// The largest state that [`Log::save_state`] takes, in bytes.
pub const MAX_STATE_BYTES: usize = state_file::MAX_BLOB_BYTES;
