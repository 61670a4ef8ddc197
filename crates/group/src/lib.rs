//! Total order, membership and quorum of a Trireme cluster: a pure state machine.
//!
//! [`Group::handle`] takes events (messages, connections, time, completions). [`Group::flush`] ends a batch of events,
//! and gives out the [`Action`]s that the driver carries out in order. The crate has no clock, thread, file or socket:
//! time is an argument, and [`LogReader`] reads the log. The comments cite the rules of `docs/protocol.md`.
//!
//! [`Group`] holds the parts, each of which owns its state, and gives each event to its part (dispatch, hearing). Every
//! part may read `known` (context, log, peers). Work on several parts is done by types that borrow just these:
//! elections, leader, membership, replica.
//!
//! The walk of a submission:
//!
//! 1. [`Group::submit`] disseminates it (dissemination, submissions).
//! 2. The leader gives it a position (leader) and sends the order (replication).
//! 3. Members append and acknowledge it (replica, matching).
//! 4. A majority of acknowledgements in one term commits it, and the core delivers it (replica/commit, log).
//!
//! Before this walk, a majority fetches a bulk payload (below dissemination: own_bulk and serving at its origin,
//! fetching at the others). Leader changes: election_timer, election (the candidate), elector (the others), promises,
//! role; transfer decides whether another member would lead better. Membership: membership, changes, component.

#![forbid(unsafe_code)]

mod acks;
mod branches;
mod bulk;
mod changes;
mod checkpoint;
mod codec;
mod complaints;
mod component;
mod config;
mod configuration;
mod context;
mod counters;
mod dispatch;
mod dissemination;
mod election;
mod election_timer;
mod elections;
mod elector;
mod entry;
mod event;
mod evidence;
mod fetch;
mod fetching;
#[cfg(test)]
mod fixture;
mod forced_views;
mod forced_wait;
mod founding;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod group;
mod hearing;
mod ids;
mod incoming;
mod known;
mod lasting;
mod leader;
mod leader_state;
mod leaving;
mod limits;
mod log;
mod log_reader;
mod majority;
mod matching;
mod membership;
mod message;
mod missing;
#[cfg(feature = "model")]
mod model;
mod numbers;
mod outbox;
mod own_bulk;
mod peer;
mod peers;
mod placement;
mod promises;
mod reads;
mod reminder;
mod replica;
mod replication;
mod role;
mod round_trips;
mod serving;
mod split;
mod submissions;
mod tail;
#[cfg(test)]
mod tests;
mod thresholds;
mod transfer;
mod validation;
mod vote;
mod writes;
mod yielding;

pub use branches::{OVERRIDES_MAX, tell_no_more_overrides};
pub use checkpoint::Checkpoint;
pub use codec::{
    DecodeError, ENTRY_HEAD_BYTES, decode, decode_checkpoint, decode_entry, decode_entry_head,
    encode, encode_checkpoint, encode_entry, encode_entry_parts,
};
pub use complaints::Complaints;
pub use config::Config;
pub use configuration::{Configuration, Member};
pub use counters::Counters;
pub use entry::{Body, Entry};
pub use event::{Action, Delivery, Event, Fate, Recovered, RecoveredLog};
pub use fetching::PAYLOAD_MAX;
pub use group::Group;
pub use ids::{
    BulkId, Incarnation, InvalidUuid, Position, ReplicaId, SubmissionId, Term, TimeMs, Uuid,
};
pub use lasting::Lasting;
pub use limits::Counting;
pub use log_reader::{EntryHead, LogReader, NotNow};
pub use message::{
    Append, BulkPayload, ComponentState, DatabaseProof, Join, Link, Message, Outlook, Preference,
    Promise, Proof, Source, Status, Summary, WireBody, WireEntry,
};
pub use missing::Missing;
pub use numbers::{Counted, Numbers};
pub use reminder::Reminder;
pub use thresholds::Thresholds;
pub use yielding::{
    is_unvouched as is_unvouched_override, unvouched as unvouched_override,
    yields as override_yields,
};
