//! The engine's requests to its surroundings.

use bytes::Bytes;
use trireme_group::{Ballot, Checkpoint, Delivery, Entry, Incarnation, Position, Uuid};
use trireme_log::{FlushJob, Outcome};
use trireme_replicator::{Gtid, Replicator};

use crate::staging::StageJob;
use crate::storage::Storage;
use trireme_replicator::HostAction;

/// The sender and receiver of a frame's message: its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// From group to group.
    Group,
    /// From replicator to replicator.
    Replicator,
    /// From group to group: parts of large payloads, which all other messages may overtake.
    Bulk,
}

impl Channel {
    /// The byte on the wire.
    pub fn byte(self) -> u8 {
        match self {
            Channel::Group => 0,
            Channel::Replicator => 1,
            Channel::Bulk => 2,
        }
    }

    /// The channel of a frame's first byte.
    pub fn of(byte: u8) -> Option<Channel> {
        [Channel::Group, Channel::Replicator, Channel::Bulk]
            .into_iter()
            .find(|channel| channel.byte() == byte)
    }
}

/// Why something could not be kept beside the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotKept {
    /// The cause, and what to do.
    pub text: String,
    /// Only room, descriptors or memory were lacking: the volume itself works.
    pub is_lack: bool,
}

/// The node's surroundings. Calls come in the order in which they are to take effect.
pub trait Outside {
    /// Send to each of these peers; may get lost. Everything that the engine has told before is to
    /// be on its way to the operating system first (the log is, when [`crate::Engine::pump`]
    /// returns).
    fn send(&mut self, to: &[Incarnation], channel: Channel, bytes: Bytes);
    /// Keep the promised ballot, flushed in every durability mode, before returning (rule 4).
    fn promise(&mut self, ballot: Ballot) -> Result<(), NotKept>;
    /// Keep the id of the log that this node acknowledges with from here on, flushed in every durability mode, before
    /// returning: [`crate::Start::last_log`] of the next connection (rule 4).
    fn in_log(&mut self, id: Uuid) -> Result<(), NotKept>;
    /// The node is in this history from here on; peers of another one are to be turned away
    /// (rule 11).
    fn in_history(&mut self, history: Uuid);
    /// The cluster will not have this node; the text says why.
    fn refused(&mut self, reason: String);
    /// Something an operator may want to know.
    fn note(&mut self, text: &str);
    /// Something an operator should look after.
    fn warn(&mut self, text: &str) {
        self.note(text);
    }
    /// Something is wrong that only an operator can end.
    fn alarm(&mut self, text: &str) {
        self.warn(text);
    }
    /// Run this job, beside whatever else happens to the node, and bring what comes of it to
    /// [`crate::Engine::flushed`]. Only asked of who has set [`crate::Start::flushes_apart`].
    fn flush(&mut self, job: FlushJob);
    /// Run this job, beside whatever else happens to the node, and bring what comes of it to [`crate::Engine::staged`]:
    /// it is not urgent. Only asked of who has set [`crate::Start::flushes_apart`].
    fn stage(&mut self, job: StageJob);
    /// The node can keep nothing any more (rule 23) and has ended its part in the cluster; the text says
    /// why and what to do. Nothing that was given to [`Outside::send`] since the last pump may leave
    /// the process; all connections are to be closed, and none to be made until the next connect.
    fn fail(&mut self, text: &str);
    /// Something for the server, its threads, or the saved state.
    fn act(&mut self, action: HostAction);

    // For whoever measures how long what takes; nothing is to be done.

    /// An own submission was handed to the group.
    fn submitted(&mut self, _number: u64, _payload: &Bytes) {}
    /// What was appended is about to be written to the log.
    fn log_write_begins(&mut self) {}
    /// It is written; what waits for a flush is not flushed yet.
    fn log_written(&mut self) {}

    // What the simulator's invariants want to see; nothing is to be done.

    /// An entry was appended to the log.
    fn appended(&mut self, _entry: &Entry) {}
    /// Something that was given to [`Outside::send`] says that the log is held up to here, in this ballot.
    fn acknowledged(&mut self, _ballot: Ballot, _position: Position) {}
    /// Entries above this position were dropped from the log, in this ballot.
    fn truncated(&mut self, _after: Position, _ballot: Ballot) {}
    /// The log began anew, in this ballot.
    fn began_anew(&mut self, _checkpoint: &Checkpoint, _ballot: Ballot) {}
    /// The node founds this history, with the support of all that were expected.
    fn founds(&mut self, _history: Uuid) {}
    /// The node lets the cluster go on with the best that these processes have.
    fn reforms(&mut self, _heard: &[Incarnation]) {}
    /// It does so on its database, which is at this position.
    fn founds_on(&mut self, _database: Gtid) {}
    /// The group delivered a committed entry.
    fn delivered(&mut self, _position: Position, _delivery: &Delivery) {}
    /// The same, of these entries, which are in the log.
    fn delivered_from_log(&mut self, _first: Position, _last: Position, _log: &Storage) {}
    /// What was delivered was given to the replicator, which is like this now.
    fn took_in(&mut self, _node: &Replicator) {}
    /// What became of an entry was noted beside it.
    fn noted(&mut self, _position: Position, _outcome: Outcome) {}
    /// These states of group and replicator were put into the log, to go on with after a restart.
    fn kept(&mut self, _state: &Checkpoint, _control: &Bytes) {}
}
