//! Another process, as this one knows it.

use crate::founding::Expects;
use crate::ids::{ReplicaId, TimeMs};
use crate::message::Status;
use crate::round_trips::RoundTrips;

/// A peer process, connected now or once.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Peer {
    pub replica: ReplicaId,
    pub up: bool,
    /// Its listener refused a connection (rule 10).
    pub dead: bool,
    pub heard_at: TimeMs,
    pub status: Option<Status>,
    /// It has no history, and this is what it waits for.
    pub expects: Option<Expects>,
    pub round_trips: RoundTrips,
    /// It is in another cluster, and that was said.
    pub told_foreign: bool,
}
