//! How far this member has got with leaving.

use crate::ids::{Incarnation, TimeMs};

/// A leaving leader waits this long for its successor's log before it asks the next.
pub(crate) const HANDOVER_MS: TimeMs = 300;
/// Leave requests are repeated.
pub(crate) const LEAVE_RETRY_MS: TimeMs = 200;

/// This member is on its way out.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Leaving {
    pub since: TimeMs,
    /// When leadership was last offered to somebody.
    pub handed_at: Option<TimeMs>,
    /// When the leader was last asked to let this member go.
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
