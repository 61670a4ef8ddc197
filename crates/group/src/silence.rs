//! What a sequencer's silence means (rule 2): how long it is borne, and whether an office was taken needlessly.

use crate::group::{Group, Role};
use crate::ids::{ReplicaId, TimeMs};

/// Of the longest silence, one part of so many is forgotten with each heartbeat.
const FORGOTTEN: TimeMs = 128;

impl Group {
    /// How long a sequencer may be silent before it is missed (rule 2).
    pub(crate) fn patience_ms(&self) -> TimeMs {
        let usual_ms = self.config.office_timeout_ms;
        (2 * self.silence_ms).clamp(usual_ms, 2 * usual_ms)
    }

    /// The sequencer speaks again.
    pub(crate) fn silence_broken(&mut self) {
        if self.config.measures {
            let silent_ms = self.now.saturating_sub(self.sequencer_heard_at);
            self.silence_ms = self
                .silence_ms
                .max(silent_ms.min(self.config.office_timeout_ms));
        }
    }

    /// With every heartbeat.
    pub(crate) fn forget_silence(&mut self) {
        self.silence_ms -= self.silence_ms.div_ceil(FORGOTTEN);
    }

    /// The replica answers an election: if its office was taken by that, it was taken needlessly.
    pub(crate) fn was_alive(&mut self, replica: ReplicaId) {
        let now = self.now;
        let Role::Sequencer(office) = &mut self.role else {
            return;
        };
        let recent = now < office.since + self.config.office_timeout_ms;
        if recent && office.missed == Some(replica) {
            office.missed = None;
            self.counters.offices_needless += 1;
        }
    }
}
