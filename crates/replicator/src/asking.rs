//! Flow control on the side of who cannot follow: what it asks of the writers.

use std::collections::BTreeMap;

use trireme_group::Incarnation;

/// What is asked is said again so often; see [`crate::flow`] for how long it holds.
pub(crate) const REFRESH_MS: u64 = 100;
/// A changed pace is not told more often.
const CHANGE_MS: u64 = 10;
/// How long is counted before a rate is believed.
const WINDOW_MS: u64 = 50;
/// A queue too long is borne for so long before writers are stopped: who only stumbles (a flush, a processor busy elsewhere)
/// has caught up by then, and would have held up everybody.
const STUMBLE_MS: u64 = 60;
/// Who stopped them within so long before does not stumble, it is slow.
const RELAPSE_MS: u64 = 1_000;
/// Who applies fewer write-sets per second does not pace: writers would wait longer for their turn than
/// for a stop to be over.
const LEAST_PER_SECOND: f64 = 50.0;

/// What a node asks the writers for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wish {
    /// To write so many write-sets per second, all together.
    Pace(f64),
    Stop,
    /// To go on without it: it leaves flow control by itself.
    StepOut,
}

/// What to tell the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tell {
    Ask(Wish),
    Continue,
}

/// How a node takes part in flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It is Synced: it may pace and stop the writers.
    InStep,
    /// The same, but it was left out of late, and may be again: that it is slow is known, and nobody waits for it a
    /// second time.
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

/// Measures how fast this node applies, and asks for no more than that.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    asked: Option<Wish>,
    told_ms: u64,
    pub sent: u64,
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
    /// Whose write-sets they were that came meanwhile.
    shares: BTreeMap<Incarnation, f64>,
}

impl Asking {
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
        part: Part,
        limits: Limits,
    ) -> Option<Tell> {
        self.measure(now_ms, queue == 0 || part == Part::LeftOut);
        if part == Part::LeftOut {
            self.per_second = None; // what held it up may have been no lack of speed
        }
        let wish = self.wish(now_ms, queue as f64, part, limits);
        let is_due = self.is_due(now_ms, wish);
        if wish == Some(Wish::Stop) && self.asked != wish {
            self.sent += 1;
        }
        match (self.asked.is_some(), wish) {
            (true, None) => {
                self.asked = None;
                Some(Tell::Continue)
            }
            (_, Some(wish)) if is_due => {
                (self.asked, self.told_ms) = (Some(wish), now_ms);
                Some(Tell::Ask(wish))
            }
            _ => None,
        }
    }

    fn wish(&mut self, now_ms: u64, queue: f64, part: Part, limits: Limits) -> Option<Wish> {
        let able = self.per_second.filter(|rate| *rate >= LEAST_PER_SECOND);
        let over = |limit: f64, already: bool| match already {
            true => queue > limit * limits.factor,
            false => queue > limit,
        };
        let is_over = over(limits.pace, self.asked.is_some());
        let is_stuck = match part {
            Part::InStep if able.is_some() => over(limits.stop(), self.is_stopping()),
            // Nothing moves, or nobody knows how fast.
            Part::InStep | Part::Relapsing => is_over,
            Part::CatchingUp | Part::LeftOut => false,
        };
        let stops = self.stops(now_ms, is_stuck);
        match part {
            Part::LeftOut => None,
            Part::Relapsing => stops.then_some(Wish::StepOut),
            Part::CatchingUp => able.map(|rate| Wish::Pace(0.9 * rate)),
            Part::InStep if !is_over => None,
            Part::InStep if stops => Some(Wish::Stop),
            // Half way to the stop it asks for what it can do; below for more, above for less.
            Part::InStep => able.map(|rate| {
                let excess = (queue / limits.pace - 1.0).clamp(0.0, 1.0);
                Wish::Pace(rate * (1.25 - 0.5 * excess))
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

    fn is_due(&self, now_ms: u64, wish: Option<Wish>) -> bool {
        match (self.asked, wish) {
            (Some(Wish::Pace(told)), Some(Wish::Pace(rate))) => {
                let differs = (rate - told).abs() > told / 4.0;
                now_ms >= self.told_ms + if differs { CHANGE_MS } else { REFRESH_MS }
            }
            (Some(told), Some(wish)) if told == wish => now_ms >= self.told_ms + REFRESH_MS,
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

    /// What a member may write of `per_second`: as much as its part was of what came, but never nothing.
    pub(crate) fn share(&self, member: Incarnation, members: usize, per_second: f64) -> u32 {
        let least = 0.5 / members.max(1) as f64;
        let share = self.shares.get(&member).copied().unwrap_or(least);
        (share.max(least) * per_second).ceil().max(1.0) as u32
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.asked == Some(Wish::Stop)
    }

    /// Forgets what was asked, keeps the counters.
    pub(crate) fn forget(&mut self, now_ms: u64) {
        (self.asked, self.per_second) = (None, None);
        (self.stuck_since_ms, self.stopped_ms) = (None, None);
        self.measure(now_ms, true);
    }

    /// When something is to be said, for the first time or again.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let again = self.asked.map(|_| self.told_ms + REFRESH_MS);
        let stop = self.stuck_since_ms.map(|since| since + STUMBLE_MS);
        let stop = stop.filter(|_| !matches!(self.asked, Some(Wish::Stop | Wish::StepOut)));
        again.into_iter().chain(stop).min()
    }
}
