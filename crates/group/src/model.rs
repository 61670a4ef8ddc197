//! For the model check (`crates/model`): it must see equal situations as equal states.

use crate::counters::Counters;
use crate::dissemination::RESEND_AFTER_MS;
use crate::election_timer::ATTEMPT_MS;
use crate::forced_wait::ForcedWait;
use crate::group::Group;
use crate::ids::TimeMs;
use crate::leaving::HANDOVER_MS;
use crate::reads;
use crate::reminder::Reminder;

impl Group {
    /// Moves this core to a clock that reads `now`, which must exceed every timeout. Every stamp keeps its age, up to
    /// the age from which on no timer distinguishes it from an older one; older stamps get that age. So two cores
    /// become equal if they differ only in the age of things that are over. Returns the counters, which start at 0
    /// again.
    pub fn rebase(&mut self, now: TimeMs) -> Counters {
        let old = self.context.now();
        let aged = |stamp: &mut TimeMs, oldest_ms: TimeMs| {
            *stamp = now - old.saturating_sub(*stamp).min(oldest_ms);
        };
        let ranks = self.log.latest().members.len().max(1) as TimeMs;
        let missed_ms = self
            .election_timer
            .longest_wait_ms(self.context.config(), ranks);
        let suspect_ms = self.context.config().removal_timeout_ms().max(missed_ms);

        self.peers.shift_heard(|at| aged(at, suspect_ms));
        self.election_timer.shift_heard(|at| aged(at, missed_ms));
        self.component
            .majority_mut()
            .shift_heard(|at| aged(at, suspect_ms));
        // The age of this stamp also tells whether this process has overslept.
        let beat_ms = self.context.config().heartbeat_ms + suspect_ms;
        aged(self.context.heartbeat_at(), beat_ms);
        let (join_sent_at, leaving) = self.component.stamps();
        aged(join_sent_at, 3 * self.context.config().heartbeat_ms);
        self.matching.rebase(now, aged);
        if let Some(at) = self.forced_views.told_at() {
            aged(at, Reminder::PERIOD_MS);
        }
        self.election_timer.rebase(old, now);
        if let Some(candidacy) = self.role.candidacy_mut() {
            aged(&mut candidacy.started_at, ATTEMPT_MS << 4);
            let forced_ms = ForcedWait::LONGEST_MS + (ATTEMPT_MS << 4);
            candidacy.wait.shift(|at| aged(at, forced_ms));
        }
        if let Some(leader) = self.role.leader_mut() {
            aged(leader.since_mut(), suspect_ms);
        }
        if let Some(leaving) = leaving {
            aged(&mut leaving.since, HANDOVER_MS);
            let repeated = leaving.handed_at.iter_mut().chain(&mut leaving.asked_at);
            repeated.for_each(|at| aged(at, HANDOVER_MS));
        }
        for at in self.dissemination.sent_at() {
            aged(at, RESEND_AFTER_MS);
        }
        if let Some(at) = self.reads.asked_at() {
            aged(at, reads::RETRY_MS);
        }
        self.context.set_now(now);
        self.out.take_counters()
    }
}
