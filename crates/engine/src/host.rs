//! The host effects: the engine's requests to the process around it. The provider, the arbitrator and the simulator
//! each implement [`Host`]: they send messages, keep promises, run flushes, and carry out the replicator's
//! [`HostAction`]s.

use bytes::Bytes;
use trireme_group::{Checkpoint, Delivery, Entry, Incarnation, Position, Term, Uuid};
use trireme_log::{FlushJob, Outcome};
use trireme_replicator::{Gtid, Replicator};

use crate::serving::ServeJob;
use crate::staging::StageJob;
use crate::storage::Storage;
use trireme_replicator::HostAction;

/// The sender and receiver of a frame's message, as the frame's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// From group to group.
    Group,
    /// From replicator to replicator.
    Replicator,
    /// From group to group: parts of bulk payloads, which all other messages may overtake.
    Bulk,
}

impl Channel {
    /// Returns the byte on the wire.
    pub fn byte(self) -> u8 {
        match self {
            Channel::Group => 0,
            Channel::Replicator => 1,
            Channel::Bulk => 2,
        }
    }

    /// Returns the channel of a frame's first byte.
    pub fn of(byte: u8) -> Option<Channel> {
        [Channel::Group, Channel::Replicator, Channel::Bulk]
            .into_iter()
            .find(|channel| channel.byte() == byte)
    }
}

/// The reason why something could not be kept beside the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotKept {
    /// The cause, and the remedy.
    pub text: String,
    /// Only room, descriptors or memory were lacking: the volume itself works.
    pub is_lack: bool,
}

/// The node's surroundings. The calls must take effect in their order.
pub trait Host {
    /// Send to each of these peers; messages may get lost. Everything that the engine requested before must be on its
    /// way to the operating system first (the log is, when [`crate::Engine::pump`] returns).
    fn send(&mut self, to: &[Incarnation], channel: Channel, bytes: Bytes);
    /// Returns the bytes that a further message to this peer would wait for; `usize::MAX` if the message would be
    /// dropped. None: the peer is not connected.
    fn queued_bytes(&self, peer: Incarnation) -> Option<usize>;
    /// Keep the promised term, flushed in every durability mode, before returning (rule 4).
    fn promise(&mut self, term: Term) -> Result<(), NotKept>;
    /// Keep the id of the log with which this node acknowledges from here on, flushed in every durability mode, before
    /// returning: [`crate::Start::last_log`] of the next connection (rule 4).
    fn in_log(&mut self, id: Uuid) -> Result<(), NotKept>;
    /// The node is in this history from here on; refuse peers of another one (rule 11).
    fn in_history(&mut self, history: Uuid);
    /// The cluster refuses this node; the text says why.
    fn refused(&mut self, reason: String);
    /// A message that an operator may want to know.
    fn note(&mut self, text: &str);
    /// A message that an operator should act on.
    fn warn(&mut self, text: &str) {
        self.note(text);
    }
    /// A failure that only an operator can end.
    fn alarm(&mut self, text: &str) {
        self.warn(text);
    }
    /// Run this job beside everything else, and bring its result to [`crate::Engine::flushed`]. Requested only if
    /// [`crate::Start::flushes_apart`] is set.
    fn flush(&mut self, job: FlushJob);
    /// Run this job beside everything else, and bring its result to [`crate::Engine::staged`]; it is not urgent.
    /// Requested only if [`crate::Start::flushes_apart`] is set.
    fn stage(&mut self, job: StageJob);
    /// Run this job beside everything else, and bring its result to [`crate::Engine::served`]; a peer waits for it.
    /// Requested only if [`crate::Start::flushes_apart`] is set.
    fn serve(&mut self, job: ServeJob);
    /// The node can keep nothing any more (rule 23) and has ended its part in the cluster; the text gives the cause and
    /// the remedy. No message that was given to [`Host::send`] since the last pump may leave the process. Close all
    /// connections, and make none until the next connect.
    fn fail(&mut self, text: &str);
    /// A request for the server, its threads, or the saved state.
    fn act(&mut self, action: HostAction);

    // For measurements only; the default does nothing.

    /// An own submission was handed to the group.
    fn submitted(&mut self, _number: u64, _payload: &Bytes) {}
    /// The appended entries are about to be written to the log.
    fn log_write_begins(&mut self) {}
    /// The entries are written; those that need a flush are not flushed yet.
    fn log_written(&mut self) {}

    // For the simulator's invariants only; the default does nothing.

    /// An entry was appended to the log.
    fn appended(&mut self, _entry: &Entry) {}
    /// A message that was given to [`Host::send`] acknowledges the log up to this position, in this term.
    fn acknowledged(&mut self, _term: Term, _position: Position) {}
    /// Entries above this position were dropped from the log, in this term.
    fn truncated(&mut self, _after: Position, _term: Term) {}
    /// The log began anew, in this term.
    fn began_anew(&mut self, _checkpoint: &Checkpoint, _term: Term) {}
    /// The node founds this history, with the support of all expected nodes.
    fn founds(&mut self, _history: Uuid) {}
    /// The node lets the cluster go on with the best state that these processes have.
    fn reforms(&mut self, _heard: &[Incarnation]) {}
    /// The node does so with its database, which is at this position.
    fn founds_on(&mut self, _database: Gtid) {}
    /// The group delivered a committed entry.
    fn delivered(&mut self, _position: Position, _delivery: &Delivery) {}
    /// The group delivered these committed entries, which are in the log.
    fn delivered_from_log(&mut self, _first: Position, _last: Position, _log: &Storage) {}
    /// The replicator has taken in a delivery; this is its state now.
    fn took_in(&mut self, _node: &Replicator) {}
    /// The outcome of an entry was noted beside it.
    fn noted(&mut self, _position: Position, _outcome: Outcome) {}
    /// These states of group and replicator were put into the log, for a restart.
    fn kept(&mut self, _state: &Checkpoint, _control: &Bytes) {}
}
