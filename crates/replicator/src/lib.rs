//! A Trireme node as a pure state machine: joiner, donor, joined, synced; replicate, certify,
//! apply and commit in order; state transfer, flow control.
//!
//! Events go in ([`Event`]), actions come out ([`Action`]); what the server's recv() threads are
//! to do waits in a queue ([`Replicator::take_work`]). Nothing here blocks, reads a clock or does
//! I/O: the provider keeps the node under a mutex and does all the waiting.
//!
//! The walk of a commit, top down, is in `replicator.rs`; what every node must compute alike is in
//! `control.rs`; who may apply and commit when is in `order.rs`.

mod absence;
mod action;
mod asking;
mod backlog;
mod calls;
mod causal;
mod client;
mod control;
mod control_codec;
mod control_digest;
mod counters;
mod cut;
mod delivery;
mod direct;
mod donor;
mod doubt;
mod effect;
mod event;
mod flow;
#[doc(hidden)]
pub mod fuzzing;
mod gtid;
mod history;
mod isolation;
mod ist;
mod joiner;
mod last_action;
mod life;
mod marks;
mod message;
mod options;
mod order;
mod pacing;
mod patience;
mod payload;
mod progress;
mod replicator;
mod reporting;
mod reread;
mod seqno_runs;
mod snapshot;
mod spreads;
mod sst;
mod status;
mod streaming;
mod submissions;
#[cfg(test)]
mod tests;
mod transactions;
mod votes;
mod voting;
mod wire;
mod work;
mod works;
mod writeset;

pub use action::{Action, Answer, Code, Level};
pub use control_digest::ControlDigest;
pub use event::{ConnId, Connect, Event, Owner, Ticket, TrxId};
pub use gtid::{Gtid, UNDEFINED_SEQNO};
pub use history::{History, NoHistory, Recorded, Unread};
pub use last_action::LastAction;
pub use options::Options;
pub use progress::Progress;
pub use replicator::Replicator;
pub use status::{LocalState, QueueLength, Status};
pub use trireme_certification::Seqno;
pub use work::{Apply, Task, View, Work, WorkId};
pub use writeset::{WriteSetDraft, flags};
