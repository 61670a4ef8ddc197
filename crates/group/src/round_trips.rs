//! Measures the round trip to each peer, with all waiting at either end (`docs/protocol.md`, "Where the leader sits").
//!
//! In: heartbeats, which carry a stamp and return those of the others. Out: the mean round trip of each peer, and this
//! member's part of a heartbeat.

use std::collections::VecDeque;

use crate::ids::{Incarnation, TimeMs};
use crate::known::Known;
use crate::message::{Link, Outlook};

/// Measurements of this last period count; of these, at most the last [`SAMPLES`].
const WINDOW_MS: TimeMs = 1_000;
const SAMPLES: usize = 10;
/// With fewer measurements the round trip is unknown; this many are kept, however old.
const SAMPLES_MIN: usize = 3;
/// A greater measurement counts as this one. More than ten times this means that a clock jumped.
pub(crate) const SAMPLE_MAX_MS: TimeMs = 1_000;
/// Older measurements and stamps say nothing about the present.
pub(crate) const STALE_MS: TimeMs = 2_000;

/// The latest measurements of one peer.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct RoundTrips {
    /// (time, round trip) of each measurement, in ms.
    samples_ms: VecDeque<(TimeMs, TimeMs)>,
    /// The stamp of the peer's latest heartbeat, and the time at which that came in.
    stamp: Option<(TimeMs, TimeMs)>,
}

impl RoundTrips {
    /// Takes the peer's heartbeat, which may return a stamp of this process.
    pub fn take(&mut self, me: Incarnation, outlook: &Outlook, now: TimeMs) {
        self.stamp = (outlook.stamp_ms > 0).then_some((outlook.stamp_ms, now));
        let echo = outlook.links.iter().find(|link| link.peer == me);
        let Some(echo) = echo.filter(|link| (1..=now).contains(&link.echo_ms)) else {
            return;
        };
        let taken_ms = (now - echo.echo_ms).saturating_sub(TimeMs::from(echo.held_ms));
        if taken_ms <= 10 * SAMPLE_MAX_MS {
            self.measured(now, taken_ms);
        }
    }

    fn measured(&mut self, now: TimeMs, round_trip_ms: TimeMs) {
        let sample = (now, round_trip_ms.min(SAMPLE_MAX_MS));
        self.samples_ms.push_back(sample);
        let outlived = |samples: &VecDeque<(TimeMs, TimeMs)>| {
            let old = samples
                .front()
                .is_some_and(|(at, _)| *at + WINDOW_MS <= now);
            samples.len() > SAMPLES || old && samples.len() > SAMPLES_MIN
        };
        while outlived(&self.samples_ms) {
            self.samples_ms.pop_front();
        }
    }

    /// The mean in us of all measurements but the greatest: one slow round trip does not count as distance.
    pub fn mean_us(&self, now: TimeMs) -> Option<u32> {
        let (last_at, _) = self.samples_ms.back()?;
        let known = self.samples_ms.len() >= SAMPLES_MIN && now < last_at + STALE_MS;
        let samples_ms = || self.samples_ms.iter().map(|(_, ms)| *ms);
        let greatest = samples_ms().max().filter(|_| known)?;
        let sum_ms = samples_ms().sum::<TimeMs>() - greatest;
        Some((sum_ms * 1_000 / (self.samples_ms.len() as TimeMs - 1)) as u32)
    }
}

impl Known<'_> {
    /// The part of this process's heartbeat that serves the choice of the leader's place.
    pub(crate) fn own_outlook(self, is_going: bool) -> Outlook {
        let able = self.context.config().able && !self.context.config().stuck && !is_going;
        let mut outlook = Outlook {
            preference: self.context.config().preference,
            able,
            ..Outlook::default()
        };
        if !self.context.config().measures {
            return outlook;
        }
        outlook.stamp_ms = self.now();
        let members = self.log.latest().members.iter();
        let peers = members.filter_map(|m| Some((m.incarnation, self.peers.get(m.incarnation)?)));
        outlook.links = peers
            .filter(|(_, peer)| peer.up)
            .map(|(incarnation, peer)| {
                let trips = &peer.round_trips;
                let stamp = trips.stamp.filter(|(_, at)| self.now() < at + STALE_MS);
                let (echo_ms, came_at) = stamp.unwrap_or((0, self.now()));
                Link {
                    peer: incarnation,
                    echo_ms,
                    held_ms: (self.now() - came_at) as u32,
                    round_trip_us: trips.mean_us(self.now()).unwrap_or(Link::UNKNOWN),
                }
            })
            .collect();
        outlook
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hiccup_is_no_distance_and_old_ones_are_forgotten() {
        let mut trips = RoundTrips::default();
        assert_eq!(trips.mean_us(0), None);
        for (at, ms) in [(100, 2), (200, 900), (300, 1)] {
            trips.measured(at, ms);
        }
        assert_eq!(trips.mean_us(300), Some(1_500));
        for at in 4..14 {
            trips.measured(at * 100, 40);
        }
        assert_eq!(trips.mean_us(1_400), Some(40_000));
        assert_eq!(trips.mean_us(1_300 + STALE_MS), None, "stale");
    }

    #[test]
    fn a_measurement_is_bounded() {
        let mut trips = RoundTrips::default();
        for at in 0..20 {
            trips.measured(at, u64::MAX);
        }
        assert_eq!(trips.mean_us(20), Some(1_000_000));
    }
}
