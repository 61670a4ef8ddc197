//! The transfer of leadership: whether another member would lead better, and the steps of the transfer
//! (`docs/protocol.md`, "Where the leader sits").
//!
//! In: heartbeats, and the origins of submissions. Out: that this leader stops ordering, the successor to ask, or that
//! this leader goes on. The successor must have been sent the whole log, and a new leader keeps leadership for a while.

use std::collections::{BTreeMap, VecDeque};

use trireme_mutants::{Mutant, planted};

use crate::component::Component;
use crate::ids::{Incarnation, Position, Term, TimeMs};
use crate::known::Known;
use crate::leaving::HANDOVER_MS;
use crate::message::{ComponentState, Link, Preference};
use crate::placement::{Map, Site};
use crate::replication::Replication;
use crate::round_trips::{SAMPLE_MAX_MS, STALE_MS};

/// A leader that got leadership by a transfer keeps it for this long.
const REST_MS: TimeMs = 10_000;
/// A leader whose transfer failed keeps leadership for this long. The time doubles with each failure, up to
/// [`REST_MS`]. A transfer fails most easily from the worst place (a processor with hardly any time).
const REST_KEPT_MS: TimeMs = 1_000;
/// An elected leader keeps leadership for this long, and measures round trips meanwhile.
const REST_ELECTED_MS: TimeMs = 3_000;
/// Another member's place must be better for this long.
const BETTER_MS: TimeMs = 3_000;
/// A clearly better place must be so for this long.
const CLEARLY_MS: TimeMs = 1_500;
/// A smaller difference does not matter.
const LEAST_GAIN_US: u64 = 3_000;
/// A place is clearly better if commits under the present leader cost twice as much and, beyond that, this much more.
const CLEAR_GAIN_US: u64 = 10_000;
/// Greatest time between two heartbeats that counts.
const STEP_MAX_MS: TimeMs = 500;
/// A successor's acknowledgements lag by at most this many heartbeats, plus [`LAG_ROUND_TRIPS`].
const LAG_HEARTBEATS: usize = 3;
/// Round trips by which a successor's acknowledgements may lag, too: the entries behind a full window are sent only
/// when the window before them is acknowledged.
const LAG_ROUND_TRIPS: TimeMs = 2;
/// The value of one submission in a count.
const ONE: u64 = 1 << 10;
/// With each heartbeat, a count shrinks by this fraction: one part in so many.
const FORGOTTEN: u64 = 16;

/// The leader's notes, from which it decides whether another member would lead better.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Transfer {
    rest_until: TimeMs,
    /// Time for which a better place has existed, less the time without one.
    better_ms: TimeMs,
    /// The same for a clearly better place.
    clearly_ms: TimeMs,
    beat_at: Option<TimeMs>,
    /// Recently ordered submissions, by origin.
    origins: BTreeMap<Incarnation, u64>,
    /// The log's end at the last heartbeats, the latest first.
    ends: VecDeque<Position>,
    handing: Option<Handing>,
    /// Number of failed transfers in a row.
    kept: u32,
}

/// A transfer of leadership to a successor.
#[derive(Clone, Debug, Hash)]
struct Handing {
    to: Incarnation,
    /// When the leader stopped to order; later, when it asked the successor.
    since: TimeMs,
    offered: bool,
    why: String,
}

/// A member as the leader's place, with the mean cost of commits there.
struct Seat {
    member: Incarnation,
    preference: Preference,
    cost_us: u64,
}

/// The leader's facts about itself and its possible successors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlooks<'a> {
    pub known: Known<'a>,
    pub component: &'a Component,
    pub term: Term,
    pub replication: &'a Replication,
    /// The links from this member to the others.
    pub own_links: &'a [Link],
    /// True if the leader may order, and has committed an entry of its own term.
    pub is_settled: bool,
}

/// A decision at a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferOutput {
    /// Order nothing more.
    Close,
    /// Go on here: the successor did not stand.
    Keep,
}

impl Transfer {
    pub(crate) fn resting_until(rest_until: TimeMs) -> Transfer {
        Transfer {
            rest_until,
            ..Transfer::default()
        }
    }

    /// Returns the time until which a member that becomes leader now keeps leadership. `offered`: the previous leader
    /// asked it.
    pub(crate) fn rest_until(known: Known, offered: bool) -> TimeMs {
        match offered {
            _ if !known.context.config().measures => 0,
            true => known.now() + REST_MS,
            false => known.now() + REST_ELECTED_MS,
        }
    }

    /// A submission of this origin was ordered.
    pub(crate) fn came_from(&mut self, origin: Incarnation) {
        *self.origins.entry(origin).or_default() += ONE;
    }

    /// With every heartbeat: decides whether another member would lead better.
    pub(crate) fn reconsider(&mut self, outlooks: Outlooks) -> Option<TransferOutput> {
        let known = outlooks.known;
        let (now, config) = (known.now(), known.context.config());
        let step_ms = self.beat(now, known.log.tail().end(), config.heartbeat_ms);
        if let Some(handing) = &self.handing {
            let timeout_ms = HANDOVER_MS + round_trip_ms(known, handing.to);
            let is_over = now >= handing.since + timeout_ms && !outlooks.component.is_leaving();
            return is_over.then(|| self.keep(now));
        }
        // If no member may lead now, the times stay as they are.
        let (own, best) = self.better_seat(outlooks)?;
        let count = |ms: &mut TimeMs, holds: bool| match holds {
            true => *ms = (*ms + step_ms).min(BETTER_MS),
            false => *ms = ms.saturating_sub(step_ms),
        };
        let better = best.is_better_than(&own);
        count(&mut self.better_ms, better);
        count(&mut self.clearly_ms, best.is_clearly_better_than(&own));
        let long = self.better_ms >= BETTER_MS || self.clearly_ms >= CLEARLY_MS;
        let ripe = better && long && now >= self.rest_until;
        if !ripe && !planted(Mutant::LeadershipRestless) {
            return None;
        }
        let ms = |us: u64| us as f64 / 1_000.0;
        let why = match best.preference == own.preference {
            true => format!(
                "commits take {:.1} ms from there instead of {:.1} ms",
                ms(best.cost_us),
                ms(own.cost_us)
            ),
            false if config.stuck => "the disk here does not answer".to_owned(),
            false if config.held => "the server holds this node still".to_owned(),
            false => "repl.leader".to_owned(),
        };
        self.handing = Some(Handing {
            to: best.member,
            since: now,
            offered: false,
            why,
        });
        Some(TransferOutput::Close)
    }

    /// With every batch, behind the last append: returns the successor to ask now, and the reason.
    pub(crate) fn offer(
        &mut self,
        now: TimeMs,
        has_whole_log: impl Fn(Incarnation) -> bool,
    ) -> Option<(Incarnation, String)> {
        let handing = self.handing.as_mut().filter(|h| !h.offered)?;
        if !has_whole_log(handing.to) {
            return None;
        }
        (handing.offered, handing.since) = (true, now);
        Some((handing.to, handing.why.clone()))
    }

    /// The successor did not stand: leadership stays here, in the same term.
    fn keep(&mut self, now: TimeMs) -> TransferOutput {
        let rest_ms = (REST_KEPT_MS << self.kept.min(8)).min(REST_MS);
        *self = Transfer {
            kept: self.kept + 1,
            ..Transfer::resting_until(now + rest_ms)
        };
        TransferOutput::Keep
    }

    /// Accounts for a heartbeat. Returns the time since the last one, as far as it counts.
    fn beat(&mut self, now: TimeMs, end: Position, heartbeat_ms: TimeMs) -> TimeMs {
        self.ends.push_front(end);
        self.ends
            .truncate(lag_heartbeats(SAMPLE_MAX_MS, heartbeat_ms));
        self.origins.retain(|_, count| {
            *count -= count.div_ceil(FORGOTTEN);
            *count > 0
        });
        let last = self.beat_at.replace(now);
        now.saturating_sub(last.unwrap_or(now)).min(STEP_MAX_MS)
    }

    /// Returns this member's place, and the best of the members that may lead; None if no transfer may begin now.
    fn better_seat(&self, outlooks: Outlooks) -> Option<(Seat, Seat)> {
        let (known, component) = (outlooks.known, outlooks.component);
        let settled = component.is_primary()
            && !component.is_leaving()
            && known.log.uncommitted().next().is_none()
            && outlooks.is_settled;
        if !settled {
            return None;
        }
        let members = &known.log.committed().configuration.members;
        let map = self.map(outlooks);
        let seat = |index: usize, preference| Seat {
            member: members[index].incarnation,
            preference,
            cost_us: map.cost_us(index),
        };
        let own = members.iter().position(|m| m.incarnation == known.me())?;
        let others = (0..members.len()).filter(|index| *index != own);
        let able = others.filter_map(|index| Some(seat(index, self.may_succeed(index, outlooks)?)));
        let best = able.max_by(|a, b| {
            a.preference
                .cmp(&b.preference)
                .then(b.cost_us.cmp(&a.cost_us))
        })?;
        let config = known.context.config();
        let is_held = config.held && !planted(Mutant::HeldLeaderStays);
        let preference = match config.stuck || is_held {
            true => Preference::Never,
            false => config.preference,
        };
        Some((seat(own, preference), best))
    }

    /// The member's `repl.leader`, if it may succeed this leader; None: it may not.
    fn may_succeed(&self, index: usize, outlooks: Outlooks) -> Option<Preference> {
        let known = outlooks.known;
        let config = known.context.config();
        let member = &known.log.committed().configuration.members[index];
        let peer = known.peers.get(member.incarnation).filter(|peer| peer.up)?;
        let status = peer.status.as_ref()?;
        let outlook = &status.outlook;
        if planted(Mutant::LeadershipToUnable) {
            return Some(outlook.preference);
        }
        let round_trip_ms = round_trip_ms(known, member.incarnation);
        let lag = lag_heartbeats(round_trip_ms, config.heartbeat_ms);
        let due = self.ends.get(lag - 1);
        let acked = outlooks.replication.acked(member.incarnation);
        let behind = due.is_none_or(|end| acked < *end);
        let present = known.hears(config.leader_timeout_ms, peer)
            && status.component_state == ComponentState::Primary
            && status.term == outlooks.term;
        let may = outlook.able && outlook.preference != Preference::Never && !behind && present;
        (may && member.weight > 0 && !member.arbitrator).then_some(outlook.preference)
    }

    /// The members in their order, and the round trips that they report.
    fn map(&self, outlooks: Outlooks) -> Map {
        let known = outlooks.known;
        let members = &known.log.committed().configuration.members;
        let sites = members.iter().map(|member| {
            let from_there = self.origins.get(&member.incarnation);
            Site {
                weight: u64::from(member.weight),
                share: from_there.copied().unwrap_or(0) + ONE,
            }
        });
        let links = members.iter().map(|member| {
            if member.incarnation == known.me() {
                return outlooks.own_links;
            }
            let peer = known.peers.get(member.incarnation);
            let fresh = peer.filter(|peer| known.hears(STALE_MS, peer));
            let status = fresh.and_then(|peer| peer.status.as_ref());
            status.map_or(&[][..], |status| &status.outlook.links)
        });
        let links: Vec<&[Link]> = links.collect();
        Map::new(sites.collect(), |from, to| {
            let to = members[to].incarnation;
            let link = links[from].iter().find(|link| link.peer == to)?;
            (link.round_trip_us != Link::UNKNOWN).then_some(u64::from(link.round_trip_us))
        })
    }
}

/// The round trip to a member, as measured here; 0 if unknown.
fn round_trip_ms(known: Known, member: Incarnation) -> TimeMs {
    let peer = known.peers.get(member);
    let mean_us = peer.and_then(|peer| peer.round_trips.mean_us(known.now()));
    TimeMs::from(mean_us.unwrap_or(0)).div_ceil(1_000)
}

/// The number of heartbeats by which a successor at this distance may lag.
fn lag_heartbeats(round_trip_ms: TimeMs, heartbeat_ms: TimeMs) -> usize {
    LAG_HEARTBEATS + (LAG_ROUND_TRIPS * round_trip_ms / heartbeat_ms.max(1)) as usize
}

impl Seat {
    /// True if this place is better than the leader's own.
    fn is_better_than(&self, own: &Seat) -> bool {
        let gain_us = own.cost_us.saturating_sub(self.cost_us);
        let matters = gain_us >= LEAST_GAIN_US && gain_us >= own.cost_us / 4;
        self.preference > own.preference || self.preference == own.preference && matters
    }

    fn is_clearly_better_than(&self, own: &Seat) -> bool {
        let dear = own.cost_us >= 2 * self.cost_us + CLEAR_GAIN_US;
        self.is_better_than(own) && (dear || own.preference == Preference::Never)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handing(to: Incarnation) -> Transfer {
        Transfer {
            handing: Some(Handing {
                to,
                since: 0,
                offered: false,
                why: "it is nearer".to_owned(),
            }),
            ..Transfer::default()
        }
    }

    #[test]
    fn a_successor_is_asked_once_when_it_has_the_whole_log() {
        let to = Incarnation::default();
        let mut transfer = handing(to);
        assert_eq!(transfer.offer(5, |_| false), None);
        let asked = transfer.offer(6, |_| true);
        assert_eq!(asked, Some((to, "it is nearer".to_owned())));
        assert_eq!(transfer.offer(7, |_| true), None);
    }

    #[test]
    fn who_could_not_hand_it_over_rests_ever_longer() {
        let mut transfer = handing(Incarnation::default());
        let mut rests = Vec::new();
        for _ in 0..6 {
            assert_eq!(transfer.keep(100), TransferOutput::Keep);
            rests.push(transfer.rest_until - 100);
        }
        assert_eq!(rests, [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    }
}
