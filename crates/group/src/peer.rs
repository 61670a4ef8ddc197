//! The state of one peer process.

use crate::founding::Expects;
use crate::ids::{ReplicaId, Term, TimeMs};
use crate::message::Status;
use crate::round_trips::RoundTrips;

/// A peer process, connected now or earlier.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Peer {
    pub replica: ReplicaId,
    pub up: bool,
    /// True if its listener refused a connection: the process is dead (rule 10).
    pub dead: bool,
    pub heard_at: TimeMs,
    pub status: Option<Status>,
    /// The highest term that its heartbeats have named, over all its connections: its promise never falls.
    pub promised: Term,
    /// Its last `Expects` message, if it is blank.
    pub expects: Option<Expects>,
    pub round_trips: RoundTrips,
    /// True once the log names it as a foreign process.
    pub told_foreign: bool,
}
