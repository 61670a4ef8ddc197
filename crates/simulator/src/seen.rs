//! The events of the simulated world that the invariants see.

use trireme_group::{
    Checkpoint, ComponentState, Delivery, Entry, Incarnation, Position, Term, Uuid,
};
use trireme_log::Outcome;
use trireme_replicator::{Code, Seqno, View};

/// A data directory in the simulation, by number; processes come and go on it.
pub type NodeId = usize;

/// A client's transaction, unique in a run; every write carries it.
pub type ClientTrx = u64;

/// Simulated time in microseconds.
pub type TimeUs = u64;

/// Beyond the end of every run.
pub const NEVER_US: TimeUs = 1 << 50;

/// The part of a control state that a digest covers (`trireme_replicator::ControlDigest`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Only the small parts.
    Brief,
    /// All parts.
    Whole,
}

/// An event on a node. Every invariant sees all events, in the order of their occurrence.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // each variant's comment is about its fields
pub enum Seen {
    // --- from the world
    /// A process started on the data directory. `database`: the (history, seqno) that its database really holds after
    /// the losses of a crash, whatever position the provider is told; seqno -1 if it holds half an SST.
    Started { database: (Uuid, Seqno) },
    /// The process was told to bootstrap. It founds this history (seqno 0), or continues it alone above this seqno.
    /// The seqno is its database's position, or that of an executed total-order action above it (rule 13).
    Founded { history: Uuid, seqno: Seqno },
    /// The process was not told to bootstrap, but an earlier one was, above this seqno. Its database counts as being
    /// there again, at a total-order action above its position (rule 13).
    Counted { history: Uuid, seqno: Seqno },
    /// The process founds this history with the support of all expected nodes; comes before `Founded`.
    Supported { history: Uuid },
    /// The operator makes the process's component primary without a majority (`pc.bootstrap`).
    Overridden { override_id: Uuid },
    /// The process reforms the cluster from the best log of these nodes, all of which may be amnesiac (rule 4).
    Reformed { heard: Vec<NodeId> },
    /// The process is gone; `clean` if it left the cluster and stopped by itself.
    Stopped { clean: bool },
    /// The connection is over, and the process lives: it will connect again, as another incarnation.
    Disconnected,
    /// The group's component state, whenever it changes, with number and history of its last view.
    ComponentState {
        component_state: ComponentState,
        view: u64,
        history: Uuid,
    },
    /// The log appended an entry.
    Appended { entry: Entry },
    /// The log dropped all entries above.
    Truncated { after: Position },
    /// The log began anew at a log checkpoint.
    BeganAnew { checkpoint: Checkpoint },
    /// The process continues the log of an earlier process. `end` is the end of that log, if the process believes
    /// that it holds everything that this replica ever acknowledged. None: there is no log, or entries may be
    /// missing. Comes after [`Seen::Started`] and after the entries of the log.
    Resumed { end: Option<Position> },
    /// The process told others that its log holds everything up to this position, in this term.
    Acknowledged { term: Term, position: Position },
    /// The process `by` promises this term. Its promise tells of its log as it is now, or was a little earlier.
    Promised { by: Incarnation, term: Term },
    /// This term is in force; comes before [`Seen::Truncated`] and [`Seen::BeganAnew`].
    InForce { term: Term },
    /// The group delivered a committed entry to the replicator.
    Delivered {
        position: Position,
        delivery: Delivery,
    },
    /// The replicator has handled the entry at a position; a digest of this extent of its control state.
    Control {
        position: Position,
        extent: Extent,
        digest: u64,
    },
    /// The log got a log checkpoint of group and replicator, or a restart took one up. `control` is the position of
    /// the replicator's part, which [`Seen::Control`] shows, too.
    Kept {
        group: Checkpoint,
        control: Position,
    },
    /// The log noted the outcome of an entry.
    Noted {
        position: Position,
        outcome: Outcome,
    },

    // --- from the server
    /// A seqno passed commit order. `writer` is the client's transaction of a write-set or total-order action, which
    /// appends itself to the rows `writes`; None for a dummy and a view. `view`: for a primary view its
    /// [`view_digest`] (a synthetic view at the database's own position passes no commit order and is not reported).
    /// `applied`: by an applier or a replay, not by the transaction's own session. Reported when the database has
    /// committed it, before any answer.
    Ordered {
        history: Uuid,
        seqno: Seqno,
        writer: Option<ClientTrx>,
        view: Option<u64>,
        writes: Vec<u32>,
        applied: bool,
    },
    /// A total-order action was executed a second time, with an effect of its own: the database parts from those that
    /// have executed it once. Its [`Seen::Ordered`] follows.
    Repeated { history: Uuid, seqno: Seqno },
    /// The database now holds everything up to this seqno; `digest` is its digest.
    Database {
        history: Uuid,
        seqno: Seqno,
        digest: u64,
    },
    /// An SST from another node replaced the database; the digest is as in [`Seen::Database`].
    Snapshot {
        history: Uuid,
        seqno: Seqno,
        digest: u64,
        donor: NodeId,
    },

    // --- from the clients
    /// A client began a transaction or a read; `current` if it first asked for a current read (`wsrep_sync_wait`).
    Began { trx: ClientTrx, current: bool },
    /// A current read still waits. `rests_at`: the end of its node's log, if the node is primary and synced and has
    /// nothing left to commit or to apply.
    ReadWaits {
        trx: ClientTrx,
        rests_at: Option<u64>,
    },
    /// A client read a row: an append-only list of writers. The event has the length, the digest ([`roll`]) and the
    /// last writer. If the transaction also writes the row, it had locked the row.
    Read {
        trx: ClientTrx,
        key: u32,
        len: u32,
        digest: u64,
        last: Option<ClientTrx>,
    },
    /// A transaction or read ended; `Ok` is an acknowledgement, and `seqno` comes from the provider. `certain` is
    /// false if the client cannot know whether it committed (the connection broke, or NODE_FAIL).
    Ended {
        trx: ClientTrx,
        code: Code,
        seqno: Option<Seqno>,
        writes: Vec<u32>,
        certain: bool,
    },

    // --- from the world at the end of a run
    /// All faults are over and all nodes have had time to converge; `what` still waits.
    Waiting { what: String },
    /// A sampled size: (name, value, limit).
    Size {
        name: &'static str,
        value: u64,
        limit: u64,
    },
}

/// Digest of a row's list with one more writer at its end; the empty list has 0.
pub fn roll(digest: u64, writer: ClientTrx) -> u64 {
    (digest.rotate_left(29) ^ writer)
        .wrapping_add(0x9e37_79b9_7f4a_7c15)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// The digest of a view: of its number and its members, in their order. Different views have different digests.
pub fn view_digest(view: &View) -> u64 {
    let bytes = view.members.iter().flat_map(|m| m.incarnation.0.0);
    bytes.fold(view.number as u64, |digest, byte| {
        roll(digest, u64::from(byte))
    })
}

/// One event: when, where, what.
#[derive(Clone, Debug)]
pub struct Sight {
    /// The time.
    pub at_us: TimeUs,
    /// The node.
    pub node: NodeId,
    /// The event.
    pub what: Seen,
}
