//! What the simulated world shows to the invariants.

use trireme_group::{Ballot, Checkpoint, Delivery, Entry, Position, Standing, Uuid};
use trireme_log::Outcome;
use trireme_replicator::{Code, Seqno, View};

/// A data directory in the simulation, by number; processes come and go on it.
pub type NodeId = usize;

/// A client's transaction, unique in a run; every write carries it.
pub type ClientTrx = u64;

/// Simulated time in microseconds.
pub type TimeUs = u64;

/// How much of a control state a digest is of (`trireme_replicator::ControlDigest`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Of what is small.
    Brief,
    /// Of everything.
    Whole,
}

/// Something that happened on a node, told to every invariant in the order in which it happened.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // each variant's comment is about its fields
pub enum Seen {
    // --- told by the world
    /// A process started on the data directory; its database really stands at (history, seqno), after
    /// what a crash took from it, whatever the provider is told; -1 if it holds half a snapshot.
    Started { database: (Uuid, Seqno) },
    /// The process was told to bootstrap, and founds this history (seqno 0), or continues it, alone, above
    /// this seqno: its database's position, or that of an executed total-order action above it (rule 13).
    Founded { history: Uuid, seqno: Seqno },
    /// The process founds this history with the support of all that were expected; before `Founded`.
    Supported { history: Uuid },
    /// The operator makes the process's component primary without a majority (`pc.bootstrap`).
    Overridden { override_id: Uuid },
    /// The process lets the cluster go on with the best that these nodes have, all of which may have forgotten something (rule 4).
    Reformed { heard: Vec<NodeId> },
    /// The process is gone; `clean` if it left and stopped by itself.
    Stopped { clean: bool },
    /// The connection is over, and the process lives: it will connect again, under a new name.
    Disconnected,
    /// The group core's standing, whenever it changes; number and history of its last view.
    Standing {
        standing: Standing,
        view: u64,
        history: Uuid,
    },
    /// The log took an entry.
    Appended { entry: Entry },
    /// The log dropped all above.
    Truncated { after: Position },
    /// The log began anew.
    BeganAnew { checkpoint: Checkpoint },
    /// The process goes on with the log of an earlier one, which ends here and lacks nothing that this replica ever
    /// acknowledged, as it believes; None: it has none, or one that may lack something. After [`Seen::Started`] and what
    /// the log holds.
    Resumed { end: Option<Position> },
    /// It has told others that its log holds everything up to here, in this ballot.
    Acknowledged { ballot: Ballot, position: Position },
    /// This ballot is in force: before [`Seen::Truncated`] and [`Seen::BeganAnew`].
    InForce { ballot: Ballot },
    /// The group delivered a committed entry to the replicator.
    Delivered {
        position: Position,
        delivery: Delivery,
    },
    /// The replicator has taken in the entry at a position; a digest of so much of its control state.
    Control {
        position: Position,
        extent: Extent,
        digest: u64,
    },
    /// States of group and replicator are kept in the log, to go on with after a restart, or were taken up from
    /// there; the second, which [`Seen::Control`] shows, too, is as of `control`.
    Kept {
        group: Checkpoint,
        control: Position,
    },
    /// What became of an entry was noted in the log.
    Noted {
        position: Position,
        outcome: Outcome,
    },

    // --- told by the server
    /// A seqno passed commit order. `writer` is the client's transaction of a write-set or total-order
    /// action, which appends it to the rows `writes`; None for a dummy and a view. `view`: for a
    /// primary view the digest that [`view_digest`] makes of it (a synthetic view at the database's own
    /// position passes no commit order and is not told). `applied`: by an applier or a replay, not by
    /// its own session. Told when the database has committed it, before anybody is answered.
    Ordered {
        history: Uuid,
        seqno: Seqno,
        writer: Option<ClientTrx>,
        view: Option<u64>,
        writes: Vec<u32>,
        applied: bool,
    },
    /// The database now holds everything up to here, and this is its digest.
    Database {
        history: Uuid,
        seqno: Seqno,
        digest: u64,
    },
    /// A snapshot from another node replaced the database; its digest, as in [`Seen::Database`].
    Snapshot {
        history: Uuid,
        seqno: Seqno,
        digest: u64,
    },

    // --- told by the clients
    /// A client began a transaction or a read; `current` if it asked for a current read
    /// (`wsrep_sync_wait`) first.
    Began { trx: ClientTrx, current: bool },
    /// A current read waits still; `rests_at`: where the log of its node ends, if that is primary and synced, and has nothing
    /// left to commit or to apply.
    ReadWaits {
        trx: ClientTrx,
        rests_at: Option<u64>,
    },
    /// It read a row: an append-only list of writers, of which only the length, the digest
    /// ([`roll`]) and the last one are told. A row that it also writes was locked by then.
    Read {
        trx: ClientTrx,
        key: u32,
        len: u32,
        digest: u64,
        last: Option<ClientTrx>,
    },
    /// It is done; `Ok` is an acknowledgement, `seqno` as the provider told it. `certain` is false
    /// if the client cannot know whether it committed (the connection broke, or NODE_FAIL).
    Ended {
        trx: ClientTrx,
        code: Code,
        seqno: Option<Seqno>,
        writes: Vec<u32>,
        certain: bool,
    },

    // --- told by the world at the end of a run
    /// All faults are over and everybody has had the time to converge: what is left waiting.
    Waiting { what: String },
    /// Sizes, sampled: (name, value, limit).
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

/// What tells one view from all others: its number and its members, in their order.
pub fn view_digest(view: &View) -> u64 {
    let bytes = view.members.iter().flat_map(|m| m.incarnation.0.0);
    bytes.fold(view.number as u64, |digest, byte| {
        roll(digest, u64::from(byte))
    })
}

/// One thing seen: when, where, what.
#[derive(Clone, Debug)]
pub struct Sight {
    /// When.
    pub at_us: TimeUs,
    /// On which node.
    pub node: NodeId,
    /// What.
    pub what: Seen,
}
