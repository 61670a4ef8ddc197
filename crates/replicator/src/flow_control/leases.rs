//! Leases on the writers' side: writers heed the back-pressure requests of slower members (rule 15).

use std::collections::BTreeMap;

use trireme_group::Incarnation;
use trireme_mutants::{Mutant, planted};

/// Time after which a request lapses if it is not repeated.
const LEASE_MS: u64 = 200;
/// A pace slower than this is as bad as a stop.
const HARDLY_PER_SECOND: f64 = 50.0;

/// A peer's request to this node's writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Write no more than this.
    Pace {
        per_second: u32,
    },
    Stop,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    request: Request,
    until_ms: u64,
}

/// Returns the pace that a lease sets; None if it stops the writers.
fn pace_of(lease: &Lease) -> Option<f64> {
    match lease.request {
        Request::Pace { per_second } => Some(f64::from(per_second)),
        Request::Stop => None,
    }
}

/// The member that keeps own writers waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub member: Incarnation,
    /// True if own writers stand still, or nearly.
    pub stops: bool,
}

/// Decides when own write-sets may go.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// Peers' requests, with the time until which each holds.
    leases: BTreeMap<Incarnation, Lease>,
    /// The time since when own writers are stopped.
    active_since: Option<u64>,
    /// Write-sets per second that may go.
    pace: Option<f64>,
    /// Number of write-sets that may go now, as computed at `tokens_ms`.
    tokens: f64,
    tokens_ms: u64,
    paused_ms: u64,
    /// Stops that were requested.
    received: u64,
}

impl Leases {
    /// Takes in a peer's request that this node's writers wait.
    pub(crate) fn requested(&mut self, from: Incarnation, request: Request, now_ms: u64) {
        let until_ms = now_ms + LEASE_MS;
        let before = self.leases.insert(from, Lease { request, until_ms });
        let was_stop = before.is_some_and(|lease| lease.request == Request::Stop);
        self.received += u64::from(request == Request::Stop && !was_stop);
    }

    /// Takes in a peer's permission that they go on.
    pub(crate) fn continued(&mut self, from: Incarnation) {
        if !planted(Mutant::ContinueLost) {
            self.leases.remove(&from);
        }
    }

    /// Drops the requests that no longer hold. `counts`: returns true if the request of this member is heeded.
    /// `own_stop`: this node stops the others, so its own writers stop too.
    pub(crate) fn update(
        &mut self,
        now_ms: u64,
        own_stop: bool,
        counts: impl Fn(Incarnation, Request) -> bool,
    ) {
        self.leases.retain(|from, lease| {
            let kept = planted(Mutant::StopNeverLapses) || planted(Mutant::ContinueLost);
            let lapsed = lease.until_ms <= now_ms && !kept;
            !lapsed && counts(*from, lease.request)
        });
        let stopped = own_stop
            || self
                .leases
                .values()
                .any(|lease| lease.request == Request::Stop);
        match (stopped, self.active_since) {
            (true, None) => self.active_since = Some(now_ms),
            (false, Some(since)) => {
                self.paused_ms += now_ms.saturating_sub(since);
                self.active_since = None;
            }
            _ => {}
        }
        self.set_pace(now_ms);
    }

    fn set_pace(&mut self, now_ms: u64) {
        self.refill(now_ms);
        self.pace = self.leases.values().filter_map(pace_of).reduce(f64::min);
    }

    fn refill(&mut self, now_ms: u64) {
        let elapsed_ms = now_ms.saturating_sub(self.tokens_ms) as f64;
        self.tokens_ms = now_ms;
        self.tokens = match self.pace {
            // At once no more write-sets may go than in 10 ms, plus one.
            Some(rate) => (self.tokens + rate * elapsed_ms / 1000.0).min(rate / 100.0 + 1.0),
            None => 1.0,
        };
    }

    /// Returns true if a write-set may go now; it counts as gone.
    pub(crate) fn admit(&mut self) -> bool {
        if self.is_stopped() {
            return false;
        }
        if self.pace.is_some() {
            if self.tokens < 1.0 {
                return false;
            }
            self.tokens -= 1.0;
        }
        true
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.active_since.is_some()
    }

    /// Returns true if own writers may go, at a pace.
    pub(crate) fn is_paced(&self) -> bool {
        self.pace.is_some() && !self.is_stopped()
    }

    /// Returns the only member that stops own writers, or that paces them; None if there is none, or more than one.
    /// `blamed`: returns true for a member that counts. If the pace of another one is the least, nobody is blamed.
    pub(crate) fn sole_holder(
        &self,
        own_stop: bool,
        blamed: impl Fn(Incarnation) -> bool,
    ) -> Option<Holder> {
        let sole = |stops: bool| {
            let is_meant = |lease: &Lease| (lease.request == Request::Stop) == stops;
            let mut of = (self.leases.iter()).filter(|(from, l)| is_meant(l) && blamed(**from));
            let first = of.next()?;
            of.next().is_none().then_some(first)
        };
        if self.is_stopped() {
            let (member, _) = sole(true).filter(|_| !own_stop)?;
            return Some(Holder {
                member: *member,
                stops: true,
            });
        }
        let (member, lease) = sole(false)?;
        let is_least = pace_of(lease) == self.pace;
        is_least.then_some(Holder {
            member: *member,
            stops: self.pace.is_some_and(|rate| rate < HARDLY_PER_SECOND),
        })
    }

    /// Returns the number of stops that were requested.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Returns the time that own writers were stopped, up to now.
    pub(crate) fn total_paused_ms(&self, now_ms: u64) -> u64 {
        self.paused_ms
            + self
                .active_since
                .map_or(0, |since| now_ms.saturating_sub(since))
    }

    /// Forgets all requests, and keeps the counters.
    pub(crate) fn forget(&mut self, now_ms: u64) {
        self.leases.clear();
        self.update(now_ms, false, |_, _| false);
    }

    pub(crate) fn reset_counters(&mut self, now_ms: u64) {
        (self.paused_ms, self.received) = (0, 0);
        if self.active_since.is_some() {
            self.active_since = Some(now_ms);
        }
    }

    /// Returns the time when a lease lapses.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.leases.values().map(|lease| lease.until_ms).min()
    }

    /// Returns the time when the next write-set may go, if only a pace holds it back.
    pub(crate) fn next_token_ms(&self) -> Option<u64> {
        let rate = self.pace.filter(|_| !self.is_stopped())?;
        let wait_ms = (1.0 - self.tokens).max(0.0) * 1000.0 / rate;
        Some(self.tokens_ms + (wait_ms.ceil() as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::incarnation;

    #[test]
    fn who_cannot_be_blamed_hides_nobody_but_takes_the_blame_with_the_least_pace() {
        let mut leases = Leases::default();
        for (member, per_second) in [(0, 100), (1, 200)] {
            leases.requested(incarnation(member), Request::Pace { per_second }, 0);
        }
        leases.update(0, false, |_, _| true);
        let holder = |of: &[usize]| {
            let blamed = |member| of.iter().any(|index| incarnation(*index) == member);
            leases.sole_holder(false, blamed).map(|held| held.member)
        };
        assert_eq!(holder(&[0, 1]), None);
        assert_eq!(holder(&[0]), Some(incarnation(0)));
        assert_eq!(holder(&[1]), None);
    }
}
