//! The back-pressure requests of a node that cannot follow the writers. In: counts of received and applied write-sets.
//! Out: demands.

use std::collections::BTreeMap;

use trireme_group::Incarnation;

/// Time after which a demand is repeated; see [`super::leases`] for how long it holds.
const REFRESH_MS: u64 = 100;
/// Minimum time between two changes of a pace.
const CHANGE_MS: u64 = 10;
/// Minimum time of a measurement of the apply rate.
const WINDOW_MS: u64 = 50;
/// Time that a queue may be too long before writers are stopped. A node that only stumbles (a flush, a processor busy
/// elsewhere) has caught up by then, and does not hold up all writers.
const STUMBLE_MS: u64 = 60;
/// A node that stopped the writers within this time before is slow, and does not stumble.
const RECENT_STOP_MS: u64 = 1_000;
/// A node that is left out paces the others only if it applies at least this part of what they write without its pace.
/// With less, the clients of one node would cost the others more than half of their speed.
const CARRIED_FROM: f64 = 0.5;
/// Minimum time in which a node that was left out paces nobody, and counts what they write and what it applies.
const OBSERVES_MS: u64 = 500;
/// Time before that in which it does not count: what it has held up comes at once.
const BURST_MS: u64 = 100;
/// Time after which what was counted weighs half, so that a node that has become faster, or the others slower, is judged
/// anew.
const WEIGHS_LESS_MS: u64 = 2_000;
/// The part of its apply rate that a node demands to catch up.
const CATCHES_UP: f64 = 0.9;
/// Minimum apply rate of a node that sets a pace. Below it, writers would wait longer for their turn than for the end
/// of a stop.
const LEAST_PER_SECOND: f64 = 50.0;

/// A node's demand on the writers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Demand {
    /// Write so many write-sets per second, all members together.
    Pace(f64),
    Stop,
    /// Go on without this node: it leaves flow control by itself.
    StepOut,
}

/// A message to the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Signal {
    Demand(Demand),
    Continue,
}

/// A node's part in flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Participation {
    /// The node is Synced: it may pace and stop the writers.
    InStep,
    /// The node is Synced, was left out recently, and may be again. It is known to be slow, and no writer waits for it
    /// a second time before it is left out.
    Relapsing,
    /// The node is left out. If its own clients write, their transactions begin on old rows and wait for its whole queue.
    /// So it may pace the others, if it applies at least half of what they write.
    LeftOut { writes: bool },
    /// The node catches up, and too few others keep pace: it may pace them, so that it gets there.
    CatchingUp,
    /// The node holds up no writer.
    Exempt,
}

/// The queue's limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Above this length writers are paced; they are stopped if nothing is applied for a while.
    pub pace: f64,
    /// `gcs.fc_factor`: writers may go on when the queue is below this fraction of a limit.
    pub factor: f64,
}

impl Limits {
    /// Returns the length above which writers are stopped after a while in any case.
    fn stop(&self) -> f64 {
        2.0 * self.pace
    }
}

/// The counts of a node that is left out, while it paces nobody.
#[derive(Debug)]
struct FreeLoad {
    since_ms: u64,
    received: u64,
    applied: u64,
    /// True once the node has been found to apply enough of it. Under its own pace it cannot tell.
    is_carried: bool,
}

impl FreeLoad {
    fn new(now_ms: u64) -> Self {
        Self {
            since_ms: now_ms + BURST_MS,
            received: 0,
            applied: 0,
            is_carried: false,
        }
    }

    fn watch(&mut self, now_ms: u64) {
        let elapsed_ms = now_ms.saturating_sub(self.since_ms);
        if elapsed_ms == 0 {
            (self.received, self.applied) = (0, 0);
        }
        if elapsed_ms >= OBSERVES_MS {
            let enough = CARRIED_FROM * self.received as f64;
            self.is_carried |= self.applied as f64 >= enough;
        }
        if elapsed_ms >= WEIGHS_LESS_MS {
            self.since_ms += elapsed_ms / 2;
            (self.received, self.applied) = (self.received / 2, self.applied / 2);
        }
    }
}

/// Measures how fast this node applies, and demands no more than that rate.
#[derive(Debug, Default)]
pub(crate) struct BackPressure {
    demanded: Option<Demand>,
    sent_ms: u64,
    sent: u64,
    /// Start of the current window; the queue was never empty in it.
    since_ms: u64,
    applied: u64,
    received: BTreeMap<Incarnation, u64>,
    /// Write-sets applied per second while there were any to apply.
    per_second: Option<f64>,
    /// The others' load since this node was left out; None if it is not left out.
    free_load: Option<FreeLoad>,
    /// The time since when the queue has been too long for a pace.
    stuck_since_ms: Option<u64>,
    /// The time of the last stop.
    stopped_ms: Option<u64>,
    /// Each member's share of the write-sets that came meanwhile.
    shares: BTreeMap<Incarnation, f64>,
}

impl BackPressure {
    /// Counts a write-set of this member that came into the queue.
    pub(crate) fn received(&mut self, from: Incarnation) {
        *self.received.entry(from).or_default() += 1;
        if let Some(load) = &mut self.free_load {
            load.received += 1;
        }
    }

    /// Counts an applied write-set.
    pub(crate) fn applied(&mut self) {
        self.applied += 1;
        if let Some(load) = &mut self.free_load {
            load.applied += 1;
        }
    }

    /// Checks the length of the queue, and returns a message if one is due.
    pub(crate) fn watch(
        &mut self,
        now_ms: u64,
        queue: usize,
        part: Participation,
        limits: Limits,
    ) -> Option<Signal> {
        self.measure(now_ms, queue == 0 || part == Participation::Exempt);
        self.observe(now_ms, part);
        if part == Participation::Exempt {
            self.per_second = None; // its backlog may have another cause than speed
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
            // Nothing is applied, or the rate is unknown.
            Participation::InStep | Participation::Relapsing => is_over,
            Participation::CatchingUp | Participation::LeftOut { .. } | Participation::Exempt => {
                false
            }
        };
        let stops = self.stops(now_ms, is_stuck);
        // Half way to the stop a node demands its own apply rate; below it more, above it less.
        let excess = (queue / limits.pace - 1.0).clamp(0.0, 1.0);
        let share = 1.25 - 0.5 * excess;
        let pace = |share: f64| move |rate: f64| Demand::Pace(share * rate);
        match part {
            Participation::Exempt | Participation::LeftOut { writes: false } => None,
            Participation::Relapsing => stops.then_some(Demand::StepOut),
            Participation::CatchingUp => able.map(pace(CATCHES_UP)),
            _ if !is_over => None,
            Participation::InStep if stops => Some(Demand::Stop),
            Participation::InStep => able.map(pace(share)),
            Participation::LeftOut { writes: true } => {
                let is_carried = self.free_load.as_ref().is_some_and(|load| load.is_carried);
                let carried = able.filter(|_| is_carried);
                carried.map(pace(share.min(CATCHES_UP)))
            }
        }
    }

    /// Judges whether this node, if it is left out, may pace the others for its own clients.
    fn observe(&mut self, now_ms: u64, part: Participation) {
        match part {
            Participation::LeftOut { .. } => {
                let load = self.free_load.get_or_insert_with(|| FreeLoad::new(now_ms));
                load.watch(now_ms);
            }
            _ => self.free_load = None,
        }
    }

    /// Returns true if the queue has been too long for too long.
    fn stops(&mut self, now_ms: u64, is_stuck: bool) -> bool {
        let since_ms = self.stuck_since_ms.unwrap_or(now_ms);
        self.stuck_since_ms = is_stuck.then_some(since_ms);
        let is_slow = self
            .stopped_ms
            .is_some_and(|at| now_ms < at + RECENT_STOP_MS);
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

    /// Returns the part of `per_second` that a member may write: its share of the received write-sets, but never
    /// nothing.
    pub(crate) fn share(&self, member: Incarnation, members: usize, per_second: f64) -> u32 {
        let least = 0.5 / members.max(1) as f64;
        let share = self.shares.get(&member).copied().unwrap_or(least);
        (share.max(least) * per_second).ceil().max(1.0) as u32
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.demanded == Some(Demand::Stop)
    }

    /// Forgets the demands, and keeps the counters.
    pub(crate) fn forget(&mut self, now_ms: u64) {
        (self.demanded, self.per_second, self.free_load) = (None, None, None);
        (self.stuck_since_ms, self.stopped_ms) = (None, None);
        self.measure(now_ms, true);
    }

    /// Returns the number of stops that were demanded.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn reset_counters(&mut self) {
        self.sent = 0;
    }

    /// Returns the time when a demand must be sent, for the first time or again.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let again = self.demanded.map(|_| self.sent_ms + REFRESH_MS);
        let stop = self.stuck_since_ms.map(|since| since + STUMBLE_MS);
        let stop = stop.filter(|_| !matches!(self.demanded, Some(Demand::Stop | Demand::StepOut)));
        again.into_iter().chain(stop).min()
    }
}
