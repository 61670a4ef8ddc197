//! A Trireme node as a pure state machine: joiner, donor, joined, synced; replicate, certify,
//! apply and commit in order; state transfer, flow control.
//!
//! Events go in ([`Event`]), actions come out ([`Action`]); work for the server's recv() threads waits in a queue
//! ([`Replicator::take_work`]). Nothing here blocks, reads a clock or does I/O: the provider keeps the node under a
//! mutex and does all the waiting.
//!
//! `replicator.rs` takes events in, and does everything that becomes possible. The way of a commit: a client's thread
//! hands in a write-set (`clients.rs`). It comes back in the order, gets a seqno and a verdict, and is answered or
//! queued (`replicator/delivery.rs`). State that every node must compute alike is in `control.rs`; the order of applying
//! and committing is in `executor.rs`. Errors and failures end in `outcomes.rs`. The life of a connection:
//! `replicator/connection.rs`, `joiner.rs`, `membership.rs`.

#![forbid(unsafe_code)]

mod action;
mod action_queue;
mod announcements;
mod callers;
mod clients;
mod context;
mod control;
mod control_codec;
mod control_digest;
mod control_parts;
mod counters;
mod database;
mod effect;
mod event;
mod executor;
mod flow_control;
mod forks;
#[doc(hidden)]
pub mod fuzzing;
mod gtid;
mod history;
mod in_doubt;
mod intake;
mod joiner;
mod last_action;
mod lifecycle;
mod log_reader;
mod member_state;
mod member_states;
mod membership;
mod message;
mod options;
mod outcomes;
mod payload;
mod peer_message;
mod replicator;
mod retention;
mod seqno_runs;
mod state_transfer;
mod status;
mod streaming;
mod submissions;
#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(not(test), allow(dead_code, unreachable_pub))]
mod tests;
mod thresholds;
mod views;
mod votes;
mod voting;
mod wire;
mod work;
mod writeset;

pub use action::{Action, Answer, Code, GroupAction, HostAction, Level, LogAction, Note, Pull};
pub use control_codec::forks_of;
pub use control_digest::ControlDigest;
pub use control_parts::ControlParts;
pub use database::NOT_DELIVERED;
pub use event::{ConnId, Connect, Event, FIRST_VIEW, Owner, Ticket, TrxId};
pub use executor::{ConflictCounts, ConflictKind, Loss, Winner};
pub use forks::Fork;
pub use gtid::{Gtid, UNDEFINED_SEQNO};
pub use history::{History, NoHistory, Recorded, RecordedPart, Unread};
pub use last_action::LastAction;
pub use options::{Options, ScriptBeforeIst};
pub use peer_message::{ist_chunk, ist_part};
pub use replicator::Replicator;
pub use state_transfer::Progress;
pub use status::{LocalState, NodeWait, QueueLength, Status};
pub use thresholds::Thresholds;
pub use trireme_certification::Seqno;
pub use work::{Apply, Task, View, Work, WorkId};
pub use writeset::{WriteSetDraft, flags, transaction_of};
