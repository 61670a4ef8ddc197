//! A process that behaves towards a wsrep provider as a server does, but has no database. It joins a cluster, applies
//! write-sets in commit order, and commits write-sets of its own from many clients.
//!
//! [`run`] is the whole process: it reads a [`Command`] per line of standard input and answers each with a [`Reply`] on
//! standard output. It ends when its input ends, so it never outlives its parent. The provider's messages go to
//! standard error.

#![forbid(unsafe_code)]

mod commits;
mod load;
mod member;
mod node;
mod process;
mod protocol;
mod sequence;
mod usage;

pub use process::{SUBCOMMAND, run};
pub use protocol::{Command, LoadPlan, LoadResult, Reply, Start};
pub use sequence::Digest;
