//! Where the office would sit better, and how it gets there (`docs/protocol.md`, "Where the office sits").

use std::collections::{BTreeMap, VecDeque};

use trireme_mutants::{Mutant, planted};

use crate::event::Action;
use crate::group::Group;
use crate::ids::{Ballot, Incarnation, Position, TimeMs};
use crate::leader_state::LeaderState;
use crate::leaving::HANDOVER_MS;
use crate::message::{Link, Standing, Wish};
use crate::placement::{Map, Site};
use crate::round_trips::{SAMPLE_MAX_MS, STALE_MS};

/// Who was handed the office keeps it for this long.
const REST_MS: TimeMs = 10_000;
/// Who could not hand it over keeps it for this long, twice as long each time, up to the same: where the office sits worst
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
/// One that matters at once, if the office also costs twice as much.
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

/// What a sequencer notes to know whether its office would sit better elsewhere.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Moving {
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

/// The office is on its way to a successor.
#[derive(Clone, Debug, Hash)]
struct Handing {
    to: Incarnation,
    /// The office closed, or was offered.
    since: TimeMs,
    offered: bool,
    why: String,
}

/// A seat, and what commits cost with the office there.
struct Seat {
    member: Incarnation,
    wish: Wish,
    cost_us: u64,
}

impl Moving {
    pub fn resting_until(rest_until: TimeMs) -> Moving {
        Moving {
            rest_until,
            ..Moving::default()
        }
    }

    /// A submission was ordered.
    pub fn came_from(&mut self, origin: Incarnation) {
        *self.origins.entry(origin).or_default() += ONE;
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
}

/// How many heartbeats a successor's log may lag that is so far away.
fn lag_heartbeats(round_trip_ms: TimeMs, heartbeat_ms: TimeMs) -> usize {
    LAG_HEARTBEATS + (LAG_ROUND_TRIPS * round_trip_ms / heartbeat_ms.max(1)) as usize
}

impl Seat {
    /// True if the office would sit better there than here.
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

impl Group {
    /// With every heartbeat: would the office sit better elsewhere?
    pub(crate) fn reconsider_office(&mut self) {
        if !self.context.config().measures {
            return;
        }
        let (now, end) = (self.context.now(), self.log.tail().end());
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let step_ms = leader
            .moving
            .beat(now, end, self.context.config().heartbeat_ms);
        let handing = leader.moving.handing.as_ref();
        if let Some((to, since)) = handing.map(|handing| (handing.to, handing.since)) {
            let patience_ms = HANDOVER_MS + self.round_trip_ms(to);
            if now >= since + patience_ms && !self.component.is_leaving() {
                self.keep_office();
            }
            return;
        }
        // Where nobody may have it now, nothing is learnt.
        let Some((own, best)) = self.better_seat() else {
            return;
        };
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let moving = &mut leader.moving;
        let count = |ms: &mut TimeMs, holds: bool| match holds {
            true => *ms = (*ms + step_ms).min(BETTER_MS),
            false => *ms = ms.saturating_sub(step_ms),
        };
        let better = best.is_better_than(&own);
        count(&mut moving.better_ms, better);
        count(&mut moving.clearly_ms, best.is_clearly_better_than(&own));
        let long = moving.better_ms >= BETTER_MS || moving.clearly_ms >= CLEARLY_MS;
        let ripe = better && long && now >= moving.rest_until;
        if ripe || planted(Mutant::OfficeRestless) {
            let ms = |us: u64| us as f64 / 1_000.0;
            let why = match best.wish == own.wish {
                true => format!(
                    "commits take {:.1} ms from there instead of {:.1} ms",
                    ms(best.cost_us),
                    ms(own.cost_us)
                ),
                false if self.context.config().stuck => "the disk here does not answer".to_owned(),
                false => "repl.sequencer".to_owned(),
            };
            moving.handing = Some(Handing {
                to: best.member,
                since: now,
                offered: false,
                why,
            });
            leader.close(true);
        }
    }

    /// This seat, and the best of those that may have the office.
    fn better_seat(&self) -> Option<(Seat, Seat)> {
        let leader = self.role.leader()?;
        let settled = self.component.is_primary()
            && !self.component.is_leaving()
            && self.log.uncommitted().next().is_none()
            && self.log.committed().position >= leader.start()
            && self.may_order();
        if !settled {
            return None;
        }
        let members = &self.log.committed().configuration.members;
        let map = self.map(leader);
        let seat = |index: usize, wish| Seat {
            member: members[index].incarnation,
            wish,
            cost_us: map.cost_us(index),
        };
        let own = members.iter().position(|m| m.incarnation == self.me())?;
        let others = (0..members.len()).filter(|index| *index != own);
        let able = others.filter_map(|index| Some(seat(index, self.may_succeed(index, leader)?)));
        let best = able.max_by(|a, b| a.wish.cmp(&b.wish).then(b.cost_us.cmp(&a.cost_us)))?;
        let wish = match self.context.config().stuck {
            true => Wish::Never,
            false => self.context.config().wish,
        };
        Some((seat(own, wish), best))
    }

    /// What the member wishes, if the office may be given to it.
    fn may_succeed(&self, index: usize, leader: &LeaderState) -> Option<Wish> {
        let member = &self.log.committed().configuration.members[index];
        let peer = self.peers.get(member.incarnation).filter(|peer| peer.up)?;
        let status = peer.status.as_ref()?;
        let outlook = &status.outlook;
        if planted(Mutant::OfficeToUnable) {
            return Some(outlook.wish);
        }
        let round_trip_ms = self.round_trip_ms(member.incarnation);
        let lag = lag_heartbeats(round_trip_ms, self.context.config().heartbeat_ms);
        let due = leader.moving.ends.get(lag - 1);
        let behind = due.is_none_or(|end| leader.replication.acked(member.incarnation) < *end);
        let present = self.context.now() < peer.heard_at + self.context.config().office_timeout_ms
            && status.standing == Standing::Primary
            && status.ballot == self.vote.promised();
        let may = outlook.able && outlook.wish != Wish::Never && !behind && present;
        (may && member.weight > 0 && !member.arbitrator).then_some(outlook.wish)
    }

    /// The way to a member and back, as measured here; 0 if nothing is known of it.
    fn round_trip_ms(&self, member: Incarnation) -> TimeMs {
        let peer = self.peers.get(member);
        let mean_us = peer.and_then(|peer| peer.round_trips.mean_us(self.context.now()));
        TimeMs::from(mean_us.unwrap_or(0)).div_ceil(1_000)
    }

    /// Members in their order, and what they say of the ways between them.
    fn map(&self, leader: &LeaderState) -> Map {
        let members = &self.log.committed().configuration.members;
        let sites = members.iter().map(|member| {
            let from_there = leader.moving.origins.get(&member.incarnation);
            Site {
                weight: u64::from(member.weight),
                share: from_there.copied().unwrap_or(0) + ONE,
            }
        });
        let own = self.own_outlook().links;
        let links = members.iter().map(|member| {
            if member.incarnation == self.me() {
                return own.as_slice();
            }
            let peer = self.peers.get(member.incarnation);
            let fresh =
                peer.filter(|peer| peer.up && self.context.now() < peer.heard_at + STALE_MS);
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

    /// With every batch, behind the last of the log: the successor is asked to take the office.
    pub(crate) fn offer_office(&mut self) {
        let end = self.log.tail().end();
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let Some(handing) = leader.moving.handing.as_ref().filter(|h| !h.offered) else {
            return;
        };
        let (to, why) = (handing.to, handing.why.clone());
        if leader.replication.has_sent_all(to, end) {
            if let Some(handing) = &mut leader.moving.handing {
                (handing.offered, handing.since) = (true, self.context.now());
            }
            self.hand_over_to(to, &why);
        }
    }

    /// The successor did not come forward: the office goes on here, in the same ballot.
    fn keep_office(&mut self) {
        let Some(leader) = self.role.leader_mut() else {
            return; // its caller holds the office
        };
        leader.close(false);
        let kept = leader.moving.kept;
        let rest_ms = (REST_KEPT_MS << kept.min(8)).min(REST_MS);
        leader.moving = Moving {
            kept: kept + 1,
            ..Moving::resting_until(self.context.now() + rest_ms)
        };
        self.out.count(|c| c.offices_kept += 1);
        let text = "the sequencer's office stays here: its successor did not take it in time";
        self.out.push(Action::Note { text: text.into() });
    }

    /// Until when the office rests with this member, which takes it now.
    pub(crate) fn rest_until(&self) -> TimeMs {
        match self.election_timer.was_offered(self.context.now()) {
            _ if !self.context.config().measures => 0,
            true => self.context.now() + REST_MS,
            false => self.context.now() + REST_ELECTED_MS,
        }
    }

    /// Another ballot is promised: whoever was handing its office over is rid of it.
    pub(crate) fn relieved(&mut self, ballot: Ballot) {
        if let Some(leader) = self.role.leader() {
            let elsewhere = ballot.replica != self.my_replica();
            self.out
                .count(|c| c.offices_handed += u64::from(leader.is_closing() && elsewhere));
        }
    }
}
