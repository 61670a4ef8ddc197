//! The time at which this member becomes a candidate (rule 2): the leader timeout, and the pause between attempts.
//!
//! In: signs of the leader, failed attempts, the process that this member asked to lead instead. Out: the time to
//! stand. A leader's usual silences must not cause elections, and two candidates should seldom stand at the same time.

use crate::config::Config;
use crate::ids::{Incarnation, TimeMs};
use crate::round_trips::STALE_MS;

/// With each heartbeat, the longest silence shrinks by this fraction: one part in so many.
const FORGOTTEN: TimeMs = 128;
/// Time between the starts of two candidates with neighbouring process ranks.
const STAGGER_MS: TimeMs = 60;
/// The first candidate starts this long after the leader timeout: the leader's last message may have reached the others
/// a little later.
const FIRST_MS: TimeMs = 20;
/// The first attempt has failed if it has not succeeded within this time. Each failure doubles the time of the next
/// one, up to 16 times.
pub(crate) const ATTEMPT_MS: TimeMs = 400;

#[derive(Clone, Debug, Hash)]
pub(crate) struct ElectionTimer {
    /// Time of the promised term's leader's last message, or of the promise.
    heard_at: TimeMs,
    /// The longest silence that leaders broke recently.
    silence_ms: TimeMs,
    /// No attempt before this time.
    next_at: TimeMs,
    failed: u32,
    /// The process to whose longer log this member's last attempt deferred. The next attempt passes over it.
    deferred_to: Option<Incarnation>,
    /// When a leader last offered a transfer of leadership to this member.
    offered_at: Option<TimeMs>,
}

impl ElectionTimer {
    pub(crate) fn new(now: TimeMs) -> ElectionTimer {
        ElectionTimer {
            heard_at: now,
            silence_ms: 0,
            next_at: 0,
            failed: 0,
            deferred_to: None,
            offered_at: None,
        }
    }

    /// The leader timeout: a longer silence means that the leader is missed.
    pub(crate) fn timeout_ms(&self, config: &Config) -> TimeMs {
        let usual_ms = config.leader_timeout_ms;
        (2 * self.silence_ms).clamp(usual_ms, 2 * usual_ms)
    }

    /// The leader has been silent for too long.
    pub(crate) fn is_missed(&self, now: TimeMs, config: &Config) -> bool {
        now >= self.heard_at + self.timeout_ms(config)
    }

    /// Returns the time at which a member of this process rank stands, if it hears no leader before. `is_gone`: the
    /// leader is known to be gone.
    pub(crate) fn stands_at(&self, config: &Config, is_gone: bool, rank: TimeMs) -> TimeMs {
        let timeout_ms = match is_gone {
            true => 0,
            false => self.timeout_ms(config) + FIRST_MS,
        };
        let missed_at = self.heard_at + timeout_ms + rank * STAGGER_MS;
        missed_at.max(self.next_at)
    }

    /// The time limit of an attempt.
    pub(crate) fn attempt_ms(&self) -> TimeMs {
        ATTEMPT_MS << self.failed.min(4)
    }

    /// The process whose promise the next attempt ignores, if the others are enough.
    pub(crate) fn deferred_to(&self) -> Option<Incarnation> {
        self.deferred_to
    }

    /// True if a leader has just offered a transfer of leadership to this member.
    pub(crate) fn was_offered(&self, now: TimeMs) -> bool {
        self.offered_at.is_some_and(|at| now < at + STALE_MS)
    }

    /// This member promised a term: its candidate gets the full leader timeout.
    pub(crate) fn promised(&mut self, now: TimeMs) {
        self.heard_at = now;
    }

    /// The leader is heard again, in the same term.
    pub(crate) fn silence_broken(&mut self, now: TimeMs, config: &Config) {
        if config.measures {
            let silent_ms = now.saturating_sub(self.heard_at);
            self.silence_ms = self.silence_ms.max(silent_ms.min(config.leader_timeout_ms));
        }
    }

    /// With every heartbeat: shortens the longest silence.
    pub(crate) fn forget_silence(&mut self) {
        self.silence_ms -= self.silence_ms.div_ceil(FORGOTTEN);
    }

    /// This member obeys the leader. Only a leader's message counts here, not that of a candidate.
    pub(crate) fn obeys(&mut self, now: TimeMs) {
        self.heard_at = now;
        self.failed = 0;
        self.deferred_to = None;
    }

    /// An attempt of this member, which has this process rank, has failed.
    pub(crate) fn gave_up(&mut self, now: TimeMs, rank: TimeMs) {
        self.deferred_to = None;
        self.failed = (self.failed + 1).min(6);
        self.next_at = now + (rank + 1) * STAGGER_MS + (50 << self.failed);
    }

    /// Another candidate has cut the attempt of this member short. So the next attempt heeds the longer log again: two
    /// candidates that cut each other short would otherwise pass over its owner for ever.
    pub(crate) fn was_cut_short(&mut self) {
        self.deferred_to = None;
    }

    /// An elector connected to this member, which has this process rank.
    pub(crate) fn met_elector(&mut self, now: TimeMs, rank: TimeMs) {
        let soon = now + (rank + 1) * STAGGER_MS;
        self.next_at = self.next_at.min(soon);
    }

    /// This member asked the owner of a better log to lead instead.
    pub(crate) fn defers_to(&mut self, owner: Incarnation, now: TimeMs) {
        self.next_at = now + ATTEMPT_MS;
        self.deferred_to = Some(owner);
    }

    /// This member was asked to lead. `by_leader`: by a leader that transfers leadership, not by a candidate.
    pub(crate) fn offered(&mut self, now: TimeMs, by_leader: bool) {
        self.offered_at = by_leader.then_some(now);
    }

    /// This member leads.
    pub(crate) fn leads(&mut self) {
        self.failed = 0;
    }

    /// This member was elected.
    pub(crate) fn elected(&mut self) {
        self.deferred_to = None;
    }

    /// Moves the time at which the leader was heard last.
    pub(crate) fn shift_heard(&mut self, shift: impl Fn(&mut TimeMs)) {
        shift(&mut self.heard_at);
    }

    /// Returns a silence of the leader after which every member of so many ranks has stood, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn longest_wait_ms(&self, config: &Config, ranks: TimeMs) -> TimeMs {
        self.timeout_ms(config) + FIRST_MS + ranks * STAGGER_MS
    }

    /// Changes to another clock, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn rebase(&mut self, old: TimeMs, now: TimeMs) {
        self.next_at = now + self.next_at.saturating_sub(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Member;

    #[test]
    fn a_leader_that_is_often_silent_is_given_more_time_and_that_is_forgotten() {
        let config = Config::new(Member::default());
        let timeout_ms = config.leader_timeout_ms;
        let mut timer = ElectionTimer::new(0);
        assert!(timer.is_missed(timeout_ms, &config));
        timer.silence_broken(timeout_ms, &config);
        timer.obeys(timeout_ms);
        assert!(!timer.is_missed(2 * timeout_ms, &config));
        assert!(timer.is_missed(3 * timeout_ms, &config));
        (0..1_000).for_each(|_| timer.forget_silence());
        assert!(timer.is_missed(2 * timeout_ms, &config));
    }

    #[test]
    fn attempts_follow_one_another_by_rank_and_ever_later() {
        let config = Config::new(Member::default());
        let mut timer = ElectionTimer::new(0);
        let first = timer.stands_at(&config, false, 0);
        assert_eq!(timer.stands_at(&config, false, 1), first + STAGGER_MS);
        assert_eq!(
            timer.stands_at(&config, true, 0),
            0,
            "it is known to be gone"
        );
        timer.gave_up(1_000, 0);
        let second = timer.stands_at(&config, true, 0);
        timer.gave_up(1_000, 0);
        assert!(1_000 < second && second < timer.stands_at(&config, true, 0));
    }
}
