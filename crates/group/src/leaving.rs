//! The progress of this member's leave.

use crate::ids::{Incarnation, TimeMs};

/// A leaving leader waits this long for its successor's log before it asks the next.
pub(crate) const HANDOVER_MS: TimeMs = 300;
/// A leave request is repeated after this time.
pub(crate) const LEAVE_RETRY_MS: TimeMs = 200;

/// The state of a member that is leaving.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Leaving {
    pub since: TimeMs,
    /// Time of the last transfer of leadership that this member offered.
    pub handed_at: Option<TimeMs>,
    /// Time of the last leave request to the leader.
    pub asked_at: Option<TimeMs>,
    pub passed_over: Vec<Incarnation>,
}

impl Leaving {
    pub(crate) fn since(now: TimeMs) -> Leaving {
        Leaving {
            since: now,
            ..Leaving::default()
        }
    }
}
