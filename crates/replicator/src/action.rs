//! The outputs of a node.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Incarnation, Position, Uuid};

use crate::event::Ticket;
use crate::executor::Loss;
use crate::gtid::Gtid;
use crate::work::Apply;

/// An output of [`crate::Replicator::handle`], to be carried out in order; sorted by the part that carries it out.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The group.
    Group(GroupAction),
    /// Send to a peer's replicator ([`crate::Event::Direct`] there). May get lost.
    SendTo {
        /// Whom.
        to: Incarnation,
        /// What.
        bytes: Bytes,
    },
    /// The write-set log.
    Log(LogAction),
    /// What lies beside the log.
    Note(Note),
    /// The server, its threads, and the saved state.
    Host(HostAction),
}

/// Something is asked of the group. Without a connection only [`GroupAction::Leave`] means anything.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupAction {
    /// Give this to the group. Numbers count 1, 2, 3.. per incarnation.
    Submit {
        /// Its number.
        number: u64,
        /// Its bytes.
        payload: Bytes,
    },
    /// Give this to the group, to be handed to a majority before it is submitted; answered by
    /// [`crate::Event::Spread`].
    Spread {
        /// Its number: ascending.
        parcel: u64,
        /// Its bytes.
        payload: Bytes,
        /// How many of them, at the begin, come with [`GroupAction::SubmitParcel`].
        head: u32,
        /// CRC-32C of the others.
        digest: u32,
    },
    /// It is not to be submitted any more.
    Recall {
        /// Its number.
        parcel: u64,
    },
    /// As [`GroupAction::Submit`], of what a majority holds.
    SubmitParcel {
        /// Number of the submission.
        number: u64,
        /// Number of the parcel.
        parcel: u64,
        /// Its first bytes.
        head: Bytes,
    },
    /// Ask the group for a read point.
    Read {
        /// Comes back.
        token: u64,
    },
    /// Tell the group who has joined (rule 3).
    SetJoined {
        /// As of this position.
        position: Position,
        /// All of them.
        members: Vec<Incarnation>,
    },
    /// Ask the group to leave. Followed by [`crate::Event::Left`].
    Leave,
}

/// Something concerns the write-set log. It means nothing without a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum LogAction {
    /// Tell the log what became of an entry; sent along with IST.
    RecordOutcome {
        /// The entry.
        position: Position,
        /// Its seqno.
        seqno: Seqno,
        /// What it depends on.
        depends_on: Seqno,
        /// True if it failed certification: others get it as a dummy.
        failed: bool,
    },
    /// The log must keep these entries whatever its size (rule 12).
    Pin {
        /// This node needs the entries from here on: undelivered, unapplied, above the certification floor, or too young.
        keep_from: Position,
        /// Each other member with a state and a database, and from where on it has not reported to have applied the
        /// entries: its log may lack them.
        unreported: Vec<(Incarnation, Position)>,
    },
}

/// A restart must know it: noted, flushed in every durability mode, before anything that follows.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// This total-order action begins to execute here, or has ended (rule 13). [`Gtid::UNDEFINED`]: nothing is to be concluded
    /// from an action any more: a snapshot replaces the database, or it has diverged.
    Action {
        /// Its position.
        gtid: Gtid,
        /// It has ended.
        ended: bool,
    },
    /// The server is given the first write-set of this connection.
    Applying,
    /// The database's history includes these overrides of an operator, each above this seqno, and no others (rule 11).
    Overrides {
        /// For [`crate::Connect::overrides`].
        overrides: Vec<(Uuid, Seqno)>,
    },
}

/// Something concerns the server, its threads, and the saved state.
#[derive(Clone, Debug, PartialEq)]
pub enum HostAction {
    /// Wake the caller who holds this ticket.
    Answer {
        /// Whom.
        ticket: Ticket,
        /// With what.
        answer: Answer,
    },
    /// So many works became ready since the last call: wake as many recv() threads.
    WakeAppliers {
        /// How many; `usize::MAX` for all (they are to exit).
        n: usize,
    },
    /// Write grastate.dat. Seqno -1 while running.
    SaveState {
        /// Position of the database.
        gtid: Gtid,
        /// `safe_to_bootstrap`.
        safe_to_bootstrap: bool,
    },
    /// grastate.dat: the database is between two positions (counted; nil uuid from the first to
    /// the last).
    MarkUnsafe,
    /// Ends one [`HostAction::MarkUnsafe`].
    MarkSafe,
    /// grastate.dat: the database has diverged; nil uuid until a full snapshot came.
    MarkCorrupt,
    /// A full snapshot has arrived: ends [`HostAction::MarkCorrupt`].
    MarkUncorrupt,
    /// A configuration with this node in it is in force and its control state is known: connect()
    /// may return OK.
    Admitted,
    /// The final view was delivered, or nobody was there to take it; recv() threads get Exit.
    Closed,
    /// Tell whoever looks after the node.
    Log {
        /// How loud.
        level: Level,
        /// What.
        text: String,
    },
    /// This process cannot go on: log the text and abort.
    Fatal {
        /// Why.
        text: String,
    },
}

/// How loud a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Needs somebody.
    Error,
    /// May need somebody; fails MariaDB's suites unless they expect it.
    Warn,
    /// Normal.
    Info,
    /// For developers.
    Debug,
}

/// `wsrep_status_t`, the numbers included.
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
    /// Aborted by one ordered before it: to be rolled back and replayed.
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
    /// For certify, TOI and replay: position of the write-set whatever the code, or
    /// [`Gtid::UNDEFINED`] if it has none. For sync_wait: last committed. For pause: where it
    /// stands. For abort: the victim's (seqno -1 if none).
    pub gtid: Gtid,
    /// For certify, TOI and replay: what it depends on, else -1.
    pub depends_on: Seqno,
    /// For replay: what to apply.
    pub replay: Option<Box<Apply>>,
    /// For release: a fragment was released, and its transaction goes on under the same handle.
    pub lives_on: bool,
    /// For release: how the transaction lost, if it did.
    pub loss: Option<Box<Loss>>,
}

impl Answer {
    /// An answer without a position.
    pub fn unordered(code: Code) -> Self {
        Answer::at(code, Gtid::UNDEFINED, -1)
    }

    /// An answer with a position.
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
