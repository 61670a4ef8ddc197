//! Exhaustive check of the group core within small bounds.
//!
//! The processes are the real `trireme_group::Group`; [`stateright`] tries every order in which
//! messages arrive, timers fire, processes crash and connections break, and looks at every state
//! that this leads to. It starts from a formed group of three voters.
//!
//! The walk of an action: `actions` lists what can happen and carries it out on the `system`
//! (processes, `network`, what is true of the group); `process` is one core and its log, `driver`
//! turns an input of it into an outcome, which `memo` computes once; `truth` holds every outcome against
//! everything committed before; `reduction` leaves out orders that lead to the same state; `bound`
//! says how much may happen; `words` tells the path to a violation.
//!
//! What is abstracted away:
//! - Time. Each process has a clock of its own, that advances by steps of a size that fires timers
//!   (`bound`), each process a bounded number of times, at any moment and without regard to the
//!   others' clocks. Stamps are kept as ages up to where no timer tells them apart
//!   (`Group::rebase`).
//! - The network delays at will, within a connection in order. What one input makes a process send
//!   to another arrives together and is one batch, or, with `Settings::batched` off, message by
//!   message. A connection that breaks loses what is under way from any point on. Queues never
//!   overflow (`PeerDrained`), and a peer is found dead only if its process is.
//! - Logs. Appends are durable at once (modes memory and os); a crash loses the log, as in the
//!   provider of today. A restart that loses nothing is a partition: the process was only silent.
//!   Entries are few: the tail is never trimmed, windows never fill.
//! - Clients submit one byte; reads, leaving, changes of weight, overrides, two processes on one data
//!   directory and foreign histories are left to the simulation (`crates/group/tests/simulation`).
//! - Ballots are bounded (`Bound::ballots`): two that want leadership can outbid one another for
//!   ever without a timer.

#![forbid(unsafe_code)]

mod actions;
mod bound;
mod breach;
mod driver;
mod fingerprint;
mod formation;
mod memo;
mod model;
mod network;
mod process;
mod reduction;
mod system;
mod truth;
mod words;

pub use bound::{Bound, LARGE, SMALL};
pub use model::{Report, Search, examples, explore};
pub use process::Settings;
