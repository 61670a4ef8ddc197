//! Exhaustive check of the group core within small bounds.
//!
//! The processes are the real `trireme_group::Group`. [`stateright`] tries every order in which messages arrive,
//! timers fire, processes crash and connections break, and checks every state on the way. It starts from a formed
//! group of three voters.
//!
//! The way of an action: `actions` lists the possible actions and carries one out on the `system` (processes,
//! `network`, the group's history). `process` is one core and its log. `driver` turns an input of a core into an
//! outcome; `memo` computes each outcome once. `truth` compares every outcome with all earlier commits. `reduction`
//! leaves out orders that lead to the same state. `bound` limits the number of actions. `words` prints the path to a
//! violation.
//!
//! The model simplifies:
//! - Time. Each process has its own clock. The clock advances in steps that fire timers (`bound`), a bounded number
//!   of times, at any moment and independently of the other clocks. Stamps are kept as ages, up to the age where no
//!   timer tells them apart (`Group::rebase`).
//! - The network delays messages at will, but keeps their order within a connection. The messages that one input
//!   makes a process send to one peer arrive together as one batch; with `Settings::batched` off they arrive one by
//!   one. A connection that breaks loses a suffix of the messages under way. Queues never overflow (`PeerDrained`),
//!   and a peer is found dead only if its process is dead.
//! - Logs. Appends are durable at once (modes memory and os); a crash loses the log, as with
//!   `gcache.recover=no`. A restart without loss equals a partition: the process was only silent. There are few
//!   entries: the log tail is never trimmed, windows never fill.
//! - Clients submit one byte. The simulator covers reads, leaving, changes of weight, overrides, duplicate replicas
//!   and foreign processes.
//! - Terms are bounded (`Bound::terms`): without a timer, two candidates can outbid each other for ever.

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
