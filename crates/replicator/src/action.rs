//! The outputs of a node: requests to the group, to the write-set log, and to the server's side. They are sorted by the
//! part that carries them out, and must be carried out in order.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Incarnation, Position};

use crate::control_parts::ControlParts;
use crate::event::Ticket;
use crate::executor::Loss;
use crate::forks::Fork;
use crate::gtid::Gtid;
use crate::work::Apply;

/// An output of [`crate::Replicator::handle`], to be carried out in order; sorted by the part that carries it out.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A request to the group.
    Group(GroupAction),
    /// Send to a peer's replicator ([`crate::Event::PeerMessage`] there). May get lost.
    SendTo {
        /// The recipient.
        to: Incarnation,
        /// The message.
        bytes: Bytes,
    },
    /// Read entries for a peer, and send them ([`crate::ist_chunk`], [`crate::ist_part`]). If they cannot be read now,
    /// send nothing: the peer pulls again. If they can never be read, [`crate::Event::Unserved`] follows. Without a
    /// connection it has no effect.
    Serve(Pull),
    /// Send the parts of a control state to a peer, as fast as its connection takes them. Replaces an earlier one for
    /// this peer. Without a connection it has no effect.
    SendControlState {
        /// The recipient.
        to: Incarnation,
        /// The messages.
        parts: ControlParts,
    },
    /// A request to the write-set log.
    Log(LogAction),
    /// A note beside the log.
    Note(Note),
    /// A request to the server, its threads, or the saved state.
    Host(HostAction),
}

/// A request to the group. Without a connection only [`GroupAction::Leave`] has an effect.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupAction {
    /// Give this to the group. Numbers count 1, 2, 3.. per incarnation.
    Submit {
        /// Its number.
        number: u64,
        /// Its bytes.
        payload: Bytes,
    },
    /// Give this to the group, which hands it to a majority before it is submitted. Answered by
    /// [`crate::Event::Spread`].
    Spread {
        /// Number of the bulk payload: ascending.
        bulk: u64,
        /// Its bytes.
        payload: Bytes,
        /// Number of bytes at the start that come later, with [`GroupAction::SubmitBulk`].
        head: u32,
        /// CRC-32C of the other bytes.
        digest: u32,
    },
    /// Forget this bulk payload: it will not be submitted.
    Recall {
        /// Number of the bulk payload.
        bulk: u64,
    },
    /// As [`GroupAction::Submit`], for a bulk payload that a majority holds.
    SubmitBulk {
        /// Number of the submission.
        number: u64,
        /// Number of the bulk payload.
        bulk: u64,
        /// Its first bytes.
        head: Bytes,
    },
    /// Ask the group for a read point.
    Read {
        /// Comes back with the answer.
        token: u64,
    },
    /// Tell the group the members that have joined (rule 3).
    SetJoined {
        /// As of this position.
        position: Position,
        /// All members that have joined.
        members: Vec<Incarnation>,
    },
    /// Ask the group to leave. Followed by [`crate::Event::Left`].
    Leave,
}

/// A peer's request for entries of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The peer.
    pub to: Incarnation,
    /// The first entry.
    pub seqno: Seqno,
    /// Number of bytes that the peer has already of the first entry's payload.
    pub offset: u32,
    /// Size of the parts in which entries with longer payloads are sent.
    pub part_bytes: u32,
    /// Size of an answer with whole entries, in bytes; it holds at least one entry.
    pub chunk_bytes: usize,
}

/// A request to the write-set log. Without a connection it has no effect.
#[derive(Clone, Debug, PartialEq)]
pub enum LogAction {
    /// Record the outcome of an entry; it is sent along with IST.
    RecordOutcome {
        /// The entry.
        position: Position,
        /// Its seqno.
        seqno: Seqno,
        /// The seqno that it depends on.
        depends_on: Seqno,
        /// True if it failed certification: others get it as a dummy.
        failed: bool,
    },
    /// Pin these entries: the log must keep them whatever its size (rule 12).
    Pin {
        /// Entries from here on are needed: by this node (undelivered, unapplied, above the certification floor, or too
        /// young), or by joiners that pull them. The engine may keep more, for other members and for recovery.
        keep_from: Position,
        /// Each other member with a state and a database, with the first position that it has not reported as applied:
        /// its log may lack the entries from there on.
        unreported: Vec<(Incarnation, Position)>,
    },
}

/// A note for a restart: kept and flushed in every durability mode, before any later action.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// This total-order action begins to execute here, or has ended (rule 13). [`Gtid::UNDEFINED`]: forget the note of
    /// an action, because an SST replaces the database, or it has diverged.
    Action {
        /// Its position.
        gtid: Gtid,
        /// True if it has ended.
        ended: bool,
    },
    /// The server gets the first write-set of this connection.
    Applying,
    /// The database's history includes exactly these overrides of an operator, each above this seqno (rule 11), and it
    /// comes from these choices of one database (rule 13).
    Overrides {
        /// The overrides, for [`crate::Connect::overrides`].
        overrides: Vec<Fork>,
    },
}

/// A request to the server, its threads, or the saved state.
#[derive(Clone, Debug, PartialEq)]
pub enum HostAction {
    /// Answer the caller that holds this ticket.
    Answer {
        /// The caller's ticket.
        ticket: Ticket,
        /// The answer.
        answer: Answer,
    },
    /// Work became ready since the last call: wake as many recv() threads.
    WakeAppliers {
        /// Number of threads; `usize::MAX` for all (they must exit).
        n: usize,
    },
    /// Write grastate.dat. Seqno -1 while running.
    SaveState {
        /// Position of the database.
        gtid: Gtid,
        /// `safe_to_bootstrap`.
        safe_to_bootstrap: bool,
    },
    /// grastate.dat: the database is between two positions. Counted; the UUID is nil from the first to the last.
    MarkUnsafe,
    /// Ends one [`HostAction::MarkUnsafe`].
    MarkSafe,
    /// grastate.dat: the database has diverged; the UUID is nil until an SST has replaced it.
    MarkCorrupt,
    /// An SST has replaced the database: ends [`HostAction::MarkCorrupt`].
    MarkUncorrupt,
    /// A configuration with this node is in force, and its control state is known: connect() may return OK.
    Admitted,
    /// The final view was delivered, or there was no server to take it; recv() threads get Exit.
    Closed,
    /// Write a line to the node's log.
    Log {
        /// The level of the line.
        level: Level,
        /// The line.
        text: String,
    },
    /// This process cannot go on: log the text and abort.
    Fatal {
        /// The reason.
        text: String,
    },
}

/// Level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// An operator must act.
    Error,
    /// An operator may have to act; the line fails MariaDB's suites unless they expect it.
    Warn,
    /// Normal.
    Info,
    /// For developers.
    Debug,
}

/// `wsrep_status_t`, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// Success.
    Ok = 0,
    /// Not used routinely: the server logs it.
    Warning = 1,
    /// Unknown transaction or history.
    TrxMissing = 2,
    /// Failed certification; not primary (sync_wait).
    TrxFail = 3,
    /// Aborted by a write-set ordered before it: the server rolls it back and replays it.
    BfAbort = 4,
    /// Write-set too large.
    SizeExceeded = 5,
    /// A definite failure: not ordered.
    ConnFail = 6,
    /// Unknown outcome, or this node is inconsistent.
    NodeFail = 7,
    /// The server aborts.
    Fatal = 8,
    /// No such feature.
    NotImplemented = 9,
    /// Refused.
    NotAllowed = 10,
}

/// Answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The result.
    pub code: Code,
    /// For certify, TOI and replay: position of the write-set whatever the code, or [`Gtid::UNDEFINED`] if it has none.
    /// For sync_wait: the last committed position. For pause: the position at which the node stands. For abort: the
    /// victim's position (seqno -1 if it has none).
    pub gtid: Gtid,
    /// For certify, TOI and replay: the seqno that it depends on, else -1.
    pub depends_on: Seqno,
    /// For replay: the write-set to apply.
    pub replay: Option<Box<Apply>>,
    /// For release: a fragment was released, and its transaction goes on under the same handle.
    pub lives_on: bool,
    /// For release: the loss of the transaction, if it lost.
    pub loss: Option<Box<Loss>>,
}

impl Answer {
    /// Returns an answer without a position.
    pub fn unordered(code: Code) -> Self {
        Answer::at(code, Gtid::UNDEFINED, -1)
    }

    /// Returns an answer with a position.
    pub fn at(code: Code, gtid: Gtid, depends_on: Seqno) -> Self {
        Answer {
            code,
            gtid,
            depends_on,
            replay: None,
            lives_on: false,
            loss: None,
        }
    }
}
