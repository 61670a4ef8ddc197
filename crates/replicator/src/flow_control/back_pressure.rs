//! Flow control on the side of a node that cannot follow: what it demands of the writers.

use std::collections::BTreeMap;

use trireme_group::Incarnation;

/// A demand is repeated so often; see [`super::leases`] for how long it holds.
const REFRESH_MS: u64 = 100;
/// A changed pace is not sent more often.
const CHANGE_MS: u64 = 10;
/// How long is counted before a rate is believed.
const WINDOW_MS: u64 = 50;
/// A queue too long is borne for so long before writers are stopped. A node that only stumbles (a flush, a processor
/// busy elsewhere) has caught up by then, and would have held up everybody.
const STUMBLE_MS: u64 = 60;
/// A node that stopped them within so long before does not stumble, it is slow.
const RELAPSE_MS: u64 = 1_000;
/// A node that applies fewer write-sets per second does not pace: writers would wait longer for their turn than for a
/// stop to be over.
const LEAST_PER_SECOND: f64 = 50.0;

/// What a node demands of the writers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Demand {
    /// To write so many write-sets per second, all together.
    Pace(f64),
    Stop,
    /// To go on without it: it leaves flow control by itself.
    StepOut,
}

/// What to send to the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Signal {
    Demand(Demand),
    Continue,
}

/// How a node takes part in flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Participation {
    /// It is Synced: it may pace and stop the writers.
    InStep,
    /// It is Synced, was left out of late, and may be again: it is known to be slow, and nobody waits for it a second
    /// time.
    Relapsing,
    /// It catches up, and too few others keep pace: it may pace them, so that it gets there.
    CatchingUp,
    /// It holds up nobody.
    LeftOut,
}

/// The queue's limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Above it writers are paced; stopped if for a while nothing is applied.
    pub pace: f64,
    /// `gcs.fc_factor`: they are let go again at this fraction of a limit.
    pub factor: f64,
}

impl Limits {
    /// Above it for a while writers are stopped in any case.
    fn stop(&self) -> f64 {
        2.0 * self.pace
    }
}

/// Measures how fast this node applies, and demands no more than that.
#[derive(Debug, Default)]
pub(crate) struct BackPressure {
    demanded: Option<Demand>,
    sent_ms: u64,
    sent: u64,
    /// Since when the current window counts; the queue was never empty in it.
    since_ms: u64,
    applied: u64,
    received: BTreeMap<Incarnation, u64>,
    /// Write-sets applied per second while there was something to apply.
    per_second: Option<f64>,
    /// Since when the queue has been too long to pace the writers.
    stuck_since_ms: Option<u64>,
    /// When it last had to stop them.
    stopped_ms: Option<u64>,
    /// Each member's part of the write-sets that came meanwhile.
    shares: BTreeMap<Incarnation, f64>,
}

impl BackPressure {
    /// A write-set of this member came into the queue.
    pub(crate) fn received(&mut self, from: Incarnation) {
        *self.received.entry(from).or_default() += 1;
    }

    /// A write-set was applied.
    pub(crate) fn applied(&mut self) {
        self.applied += 1;
    }

    /// Looks at the own queue.
    pub(crate) fn watch(
        &mut self,
        now_ms: u64,
        queue: usize,
        part: Participation,
        limits: Limits,
    ) -> Option<Signal> {
        self.measure(now_ms, queue == 0 || part == Participation::LeftOut);
        if part == Participation::LeftOut {
            self.per_second = None; // what held it up may have been no lack of speed
        }
        let demand = self.demand(now_ms, queue as f64, part, limits);
        let is_due = self.is_due(now_ms, demand);
        if demand == Some(Demand::Stop) && self.demanded != demand {
            self.sent += 1;
        }
        match (self.demanded.is_some(), demand) {
            (true, None) => {
                self.demanded = None;
                Some(Signal::Continue)
            }
            (_, Some(demand)) if is_due => {
                (self.demanded, self.sent_ms) = (Some(demand), now_ms);
                Some(Signal::Demand(demand))
            }
            _ => None,
        }
    }

    fn demand(
        &mut self,
        now_ms: u64,
        queue: f64,
        part: Participation,
        limits: Limits,
    ) -> Option<Demand> {
        let able = self.per_second.filter(|rate| *rate >= LEAST_PER_SECOND);
        let over = |limit: f64, already: bool| match already {
            true => queue > limit * limits.factor,
            false => queue > limit,
        };
        let is_over = over(limits.pace, self.demanded.is_some());
        let is_stuck = match part {
            Participation::InStep if able.is_some() => over(limits.stop(), self.is_stopping()),
            // Nothing moves, or nobody knows how fast.
            Participation::InStep | Participation::Relapsing => is_over,
            Participation::CatchingUp | Participation::LeftOut => false,
        };
        let stops = self.stops(now_ms, is_stuck);
        match part {
            Participation::LeftOut => None,
            Participation::Relapsing => stops.then_some(Demand::StepOut),
            Participation::CatchingUp => able.map(|rate| Demand::Pace(0.9 * rate)),
            Participation::InStep if !is_over => None,
            Participation::InStep if stops => Some(Demand::Stop),
            // Half way to the stop it asks for what it can do; below for more, above for less.
            Participation::InStep => able.map(|rate| {
                let excess = (queue / limits.pace - 1.0).clamp(0.0, 1.0);
                Demand::Pace(rate * (1.25 - 0.5 * excess))
            }),
        }
    }

    /// True if the queue has been too long for too long.
    fn stops(&mut self, now_ms: u64, is_stuck: bool) -> bool {
        let since_ms = self.stuck_since_ms.unwrap_or(now_ms);
        self.stuck_since_ms = is_stuck.then_some(since_ms);
        let is_slow = self.stopped_ms.is_some_and(|at| now_ms < at + RELAPSE_MS);
        let stops = is_stuck && (is_slow || now_ms >= since_ms + STUMBLE_MS);
        if stops {
            self.stopped_ms = Some(now_ms);
        }
        stops
    }

    fn is_due(&self, now_ms: u64, demand: Option<Demand>) -> bool {
        match (self.demanded, demand) {
            (Some(Demand::Pace(told)), Some(Demand::Pace(rate))) => {
                let differs = (rate - told).abs() > told / 4.0;
                now_ms >= self.sent_ms + if differs { CHANGE_MS } else { REFRESH_MS }
            }
            (Some(told), Some(demand)) if told == demand => now_ms >= self.sent_ms + REFRESH_MS,
            _ => true,
        }
    }

    fn measure(&mut self, now_ms: u64, is_idle: bool) {
        let elapsed_ms = now_ms.saturating_sub(self.since_ms);
        if !is_idle {
            if elapsed_ms < WINDOW_MS {
                return;
            }
            let now = self.applied as f64 * 1000.0 / elapsed_ms as f64;
            self.per_second = Some(self.per_second.map_or(now, |before| 0.5 * (before + now)));
            let all: u64 = self.received.values().sum();
            let share = |(from, count): (&Incarnation, &u64)| (*from, *count as f64 / all as f64);
            if all > 0 {
                self.shares = self.received.iter().map(share).collect();
            }
        }
        (self.since_ms, self.applied) = (now_ms, 0);
        self.received.clear();
    }

    /// The part of `per_second` that a member may write: as large as its part of what came, but never nothing.
    pub(crate) fn share(&self, member: Incarnation, members: usize, per_second: f64) -> u32 {
        let least = 0.5 / members.max(1) as f64;
        let share = self.shares.get(&member).copied().unwrap_or(least);
        (share.max(least) * per_second).ceil().max(1.0) as u32
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.demanded == Some(Demand::Stop)
    }

    /// Forgets what was demanded, keeps the counters.
    pub(crate) fn forget(&mut self, now_ms: u64) {
        (self.demanded, self.per_second) = (None, None);
        (self.stuck_since_ms, self.stopped_ms) = (None, None);
        self.measure(now_ms, true);
    }

    /// Stops that were demanded.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn reset_counters(&mut self) {
        self.sent = 0;
    }

    /// When a demand is to be sent, for the first time or again.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let again = self.demanded.map(|_| self.sent_ms + REFRESH_MS);
        let stop = self.stuck_since_ms.map(|since| since + STUMBLE_MS);
        let stop = stop.filter(|_| !matches!(self.demanded, Some(Demand::Stop | Demand::StepOut)));
        again.into_iter().chain(stop).min()
    }
}
