//! Whether another member would lead better, and how leadership gets there (`docs/protocol.md`, "Where the leader sits").
//!
//! Comes in: heartbeats, and where submissions come from. Goes out: that nothing more is to be ordered here, whom to ask to lead,
//! that this member goes on. Holds: the successor has the whole log, and leadership rests for a while wherever it comes to.

use std::collections::{BTreeMap, VecDeque};

use trireme_mutants::{Mutant, planted};

use crate::component::Component;
use crate::ids::{Ballot, Incarnation, Position, TimeMs};
use crate::known::Known;
use crate::leaving::HANDOVER_MS;
use crate::message::{Link, Standing, Wish};
use crate::placement::{Map, Site};
use crate::replication::Replication;
use crate::round_trips::{SAMPLE_MAX_MS, STALE_MS};

/// Who was handed leadership keeps it for this long.
const REST_MS: TimeMs = 10_000;
/// Who could not hand it over keeps it for this long, twice as long each time, up to the same: where it sits worst
/// (a processor that is hardly given any time), handing it over fails easily.
const REST_KEPT_MS: TimeMs = 1_000;
/// Who was elected, for this long: round trips are measured meanwhile.
const REST_ELECTED_MS: TimeMs = 3_000;
/// Another seat has to be better for this long.
const BETTER_MS: TimeMs = 3_000;
/// One that is clearly better.
const CLEARLY_MS: TimeMs = 1_500;
/// A difference that does not matter.
const LEAST_GAIN_US: u64 = 3_000;
/// One that matters at once, if commits also cost twice as much.
const CLEAR_GAIN_US: u64 = 10_000;
/// Between two heartbeats no more time than this counts.
const STEP_MAX_MS: TimeMs = 500;
/// A successor's log lags by so many heartbeats at most ...
const LAG_HEARTBEATS: usize = 3;
/// ... and by so many round trips to it: what a full window keeps back is sent when the one before is acknowledged.
const LAG_ROUND_TRIPS: TimeMs = 2;
/// One submission, as it is counted.
const ONE: u64 = 1 << 10;
/// Of what was counted, one part of so many is forgotten with each heartbeat.
const FORGOTTEN: u64 = 16;

/// What a leader notes to know whether another member would lead better.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Transfer {
    rest_until: TimeMs,
    /// For how long there has been a better seat, less the time in which there was none; and a clearly
    /// better one.
    better_ms: TimeMs,
    clearly_ms: TimeMs,
    beat_at: Option<TimeMs>,
    /// Submissions ordered of late, by origin.
    origins: BTreeMap<Incarnation, u64>,
    /// Where the log ended at the last heartbeats, the latest first.
    ends: VecDeque<Position>,
    handing: Option<Handing>,
    /// How often in a row it could not be handed over.
    kept: u32,
}

/// Leadership is on its way to a successor.
#[derive(Clone, Debug, Hash)]
struct Handing {
    to: Incarnation,
    /// Since when nothing is ordered, or it was offered.
    since: TimeMs,
    offered: bool,
    why: String,
}

/// A seat, and what commits cost with the leader there.
struct Seat {
    member: Incarnation,
    wish: Wish,
    cost_us: u64,
}

/// What a leader knows of itself and of those who may succeed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlooks<'a> {
    pub known: Known<'a>,
    pub component: &'a Component,
    pub ballot: Ballot,
    pub replication: &'a Replication,
    /// The ways from this member to the others.
    pub own_links: &'a [Link],
    /// It orders, and has committed an entry of its own ballot.
    pub is_settled: bool,
}

/// What a heartbeat brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferOutput {
    /// Order nothing more.
    Close,
    /// The successor did not come forward: go on here.
    Keep,
}

impl Transfer {
    pub(crate) fn resting_until(rest_until: TimeMs) -> Transfer {
        Transfer {
            rest_until,
            ..Transfer::default()
        }
    }

    /// Until when leadership rests with a member to which it comes now; `offered`: the leader before has asked it.
    pub(crate) fn rest_until(known: Known, offered: bool) -> TimeMs {
        match offered {
            _ if !known.context.config().measures => 0,
            true => known.now() + REST_MS,
            false => known.now() + REST_ELECTED_MS,
        }
    }

    /// A submission was ordered.
    pub(crate) fn came_from(&mut self, origin: Incarnation) {
        *self.origins.entry(origin).or_default() += ONE;
    }

    /// With every heartbeat: would another member lead better?
    pub(crate) fn reconsider(&mut self, outlooks: Outlooks) -> Option<TransferOutput> {
        let known = outlooks.known;
        let (now, config) = (known.now(), known.context.config());
        let step_ms = self.beat(now, known.log.tail().end(), config.heartbeat_ms);
        if let Some(handing) = &self.handing {
            let patience_ms = HANDOVER_MS + round_trip_ms(known, handing.to);
            let is_over = now >= handing.since + patience_ms && !outlooks.component.is_leaving();
            return is_over.then(|| self.keep(now));
        }
        // Where nobody may have it now, nothing is learnt.
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
        if !ripe && !planted(Mutant::OfficeRestless) {
            return None;
        }
        let ms = |us: u64| us as f64 / 1_000.0;
        let why = match best.wish == own.wish {
            true => format!(
                "commits take {:.1} ms from there instead of {:.1} ms",
                ms(best.cost_us),
                ms(own.cost_us)
            ),
            false if config.stuck => "the disk here does not answer".to_owned(),
            false => "repl.sequencer".to_owned(),
        };
        self.handing = Some(Handing {
            to: best.member,
            since: now,
            offered: false,
            why,
        });
        Some(TransferOutput::Close)
    }

    /// With every batch, behind the last of the log: the successor to ask now, and why.
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

    /// The successor did not come forward: leadership stays here, in the same ballot.
    fn keep(&mut self, now: TimeMs) -> TransferOutput {
        let rest_ms = (REST_KEPT_MS << self.kept.min(8)).min(REST_MS);
        *self = Transfer {
            kept: self.kept + 1,
            ..Transfer::resting_until(now + rest_ms)
        };
        TransferOutput::Keep
    }

    /// A heartbeat later: how much time counts.
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

    /// This seat, and the best of those that may lead.
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
        let seat = |index: usize, wish| Seat {
            member: members[index].incarnation,
            wish,
            cost_us: map.cost_us(index),
        };
        let own = members.iter().position(|m| m.incarnation == known.me())?;
        let others = (0..members.len()).filter(|index| *index != own);
        let able = others.filter_map(|index| Some(seat(index, self.may_succeed(index, outlooks)?)));
        let best = able.max_by(|a, b| a.wish.cmp(&b.wish).then(b.cost_us.cmp(&a.cost_us)))?;
        let config = known.context.config();
        let wish = match config.stuck {
            true => Wish::Never,
            false => config.wish,
        };
        Some((seat(own, wish), best))
    }

    /// What the member wishes, if it may lead.
    fn may_succeed(&self, index: usize, outlooks: Outlooks) -> Option<Wish> {
        let known = outlooks.known;
        let config = known.context.config();
        let member = &known.log.committed().configuration.members[index];
        let peer = known.peers.get(member.incarnation).filter(|peer| peer.up)?;
        let status = peer.status.as_ref()?;
        let outlook = &status.outlook;
        if planted(Mutant::OfficeToUnable) {
            return Some(outlook.wish);
        }
        let round_trip_ms = round_trip_ms(known, member.incarnation);
        let lag = lag_heartbeats(round_trip_ms, config.heartbeat_ms);
        let due = self.ends.get(lag - 1);
        let acked = outlooks.replication.acked(member.incarnation);
        let behind = due.is_none_or(|end| acked < *end);
        let present = known.now() < peer.heard_at + config.leader_timeout_ms
            && status.standing == Standing::Primary
            && status.ballot == outlooks.ballot;
        let may = outlook.able && outlook.wish != Wish::Never && !behind && present;
        (may && member.weight > 0 && !member.arbitrator).then_some(outlook.wish)
    }

    /// Members in their order, and what they say of the ways between them.
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
            let fresh = peer.filter(|peer| peer.up && known.now() < peer.heard_at + STALE_MS);
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

/// The way to a member and back, as measured here; 0 if nothing is known of it.
fn round_trip_ms(known: Known, member: Incarnation) -> TimeMs {
    let peer = known.peers.get(member);
    let mean_us = peer.and_then(|peer| peer.round_trips.mean_us(known.now()));
    TimeMs::from(mean_us.unwrap_or(0)).div_ceil(1_000)
}

/// How many heartbeats a successor's log may lag that is so far away.
fn lag_heartbeats(round_trip_ms: TimeMs, heartbeat_ms: TimeMs) -> usize {
    LAG_HEARTBEATS + (LAG_ROUND_TRIPS * round_trip_ms / heartbeat_ms.max(1)) as usize
}

impl Seat {
    /// True if that one would lead better.
    fn is_better_than(&self, own: &Seat) -> bool {
        let gain_us = own.cost_us.saturating_sub(self.cost_us);
        let matters = gain_us >= LEAST_GAIN_US && gain_us >= own.cost_us / 4;
        self.wish > own.wish || self.wish == own.wish && matters
    }

    fn is_clearly_better_than(&self, own: &Seat) -> bool {
        let dear = own.cost_us >= 2 * self.cost_us + CLEAR_GAIN_US;
        self.is_better_than(own) && (dear || own.wish == Wish::Never)
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
