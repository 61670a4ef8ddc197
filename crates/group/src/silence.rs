//! What a sequencer's silence means (rule 2): how long it is borne and who stands for the office first, and whether that
//! was taken needlessly.

use crate::group::{Group, Role};
use crate::ids::{ReplicaId, TimeMs};
use crate::message::{Standing, Wish};

/// Of the longest silence, one part of so many is forgotten with each heartbeat.
const FORGOTTEN: TimeMs = 128;

/// Candidates of different rank start this far apart.
pub(crate) const STAGGER_MS: TimeMs = 60;
/// The first of them starts so much later than its patience ends: the sequencer's last word may have reached the others
/// a little later than this one.
const FIRST_MS: TimeMs = 20;

impl Group {
    /// How long a sequencer may be silent before it is missed (rule 2).
    pub(crate) fn patience_ms(&self) -> TimeMs {
        let usual_ms = self.context.config().office_timeout_ms;
        (2 * self.silence_ms).clamp(usual_ms, 2 * usual_ms)
    }

    /// When this follower stands for the office, if nothing is heard of the sequencer until then; None: never.
    pub(crate) fn stands_at(&self) -> Option<TimeMs> {
        let follows = matches!(self.role, Role::Follower);
        (follows && self.may_stand()).then(|| self.missed_at().max(self.election_at))
    }

    /// When this member's patience with the sequencer ends.
    fn missed_at(&self) -> TimeMs {
        let holder = self.vote.promised().replica;
        let dead = self.peers.is_dead(holder) || self.log.latest().replica(holder).is_none();
        let patience_ms = if dead {
            0
        } else {
            self.patience_ms() + FIRST_MS
        };
        self.sequencer_heard_at + patience_ms + self.rank() * STAGGER_MS
    }

    /// Voters stand; a restarted process for the seat that its log says it has (rule 14).
    fn may_stand(&self) -> bool {
        self.standing != Standing::Outside
            && !self.is_overridden()
            && self.leaving.is_none()
            && !self.may_be_a_copy()
            && self.own_seat().is_some_and(|m| m.weight > 0)
    }

    /// Candidates try one after another, in this order; who is missed is not among them.
    pub(crate) fn rank(&self) -> TimeMs {
        let (own, holder) = (self.own_seat(), self.vote.promised().replica);
        let members = &self.log.latest().members;
        let before = members
            .iter()
            .take_while(|m| own.is_some_and(|own| own.incarnation != m.incarnation));
        let index = before.filter(|m| m.replica != holder).count();
        let last = match self.context.config().wish {
            Wish::Never => members.len(),
            Wish::Auto | Wish::Prefer => 0,
        };
        (index + last) as TimeMs
    }

    /// The sequencer speaks again.
    pub(crate) fn silence_broken(&mut self) {
        if self.context.config().measures {
            let silent_ms = self.context.now().saturating_sub(self.sequencer_heard_at);
            self.silence_ms = self
                .silence_ms
                .max(silent_ms.min(self.context.config().office_timeout_ms));
        }
    }

    /// With every heartbeat.
    pub(crate) fn forget_silence(&mut self) {
        self.silence_ms -= self.silence_ms.div_ceil(FORGOTTEN);
    }

    /// The replica answers an election: if its office was taken by that, it was taken needlessly.
    pub(crate) fn was_alive(&mut self, replica: ReplicaId) {
        let now = self.context.now();
        let Role::Sequencer(office) = &mut self.role else {
            return;
        };
        let recent = now < office.since + self.context.config().office_timeout_ms;
        if recent && office.missed == Some(replica) {
            office.missed = None;
            self.counters.offices_needless += 1;
        }
    }
}
