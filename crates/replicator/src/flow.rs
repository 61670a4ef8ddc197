//! Flow control: a node whose apply queue grows asks the writers to wait, by a lease (rule 15).

use std::collections::BTreeMap;

use trireme_group::Incarnation;
use trireme_mutants::{Mutant, planted};

use crate::options::Options;

/// A stop is said again so often.
pub(crate) const REFRESH_MS: u64 = 100;
/// A stop lapses when it was not said again for so long.
const LEASE_MS: u64 = 200;

/// What to tell the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    Stop,
    Continue,
}

/// Both sides of flow control.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// This node asks the others to wait; when it says so again.
    requested: Option<u64>,
    /// Who asks this node to wait, and until when that holds.
    leases: BTreeMap<Incarnation, u64>,
    /// Since when own writers wait.
    active_since: Option<u64>,
    pub paused_ms: u64,
    pub sent: u64,
    pub received: u64,
}

impl Flow {
    /// The queue's length at which the others are asked to wait.
    pub(crate) fn limit(options: &Options, members: usize) -> f64 {
        let scale = if options.fc_single_primary {
            1.0
        } else {
            (members.max(1) as f64).sqrt()
        };
        options.fc_limit as f64 * scale
    }

    /// Looks at the own queue. `may_ask`: a desynced node or a joiner asks for nothing.
    pub(crate) fn watch(
        &mut self,
        now_ms: u64,
        queue: usize,
        may_ask: bool,
        members: usize,
        options: &Options,
    ) -> Option<Tell> {
        let limit = Self::limit(options, members);
        let length = queue as f64;
        let go_on = length <= limit * options.fc_factor.clamp(0.0, 1.0);
        match self.requested {
            None if may_ask && length > limit => {
                self.requested = Some(now_ms + REFRESH_MS);
                self.sent += 1;
                Some(Tell::Stop)
            }
            Some(_) if !may_ask || go_on => {
                self.requested = None;
                Some(Tell::Continue)
            }
            Some(again) if again <= now_ms => {
                self.requested = Some(now_ms + REFRESH_MS);
                Some(Tell::Stop)
            }
            _ => None,
        }
    }

    /// A peer asks this node to wait.
    pub(crate) fn stop(&mut self, from: Incarnation, now_ms: u64) {
        if self.leases.insert(from, now_ms + LEASE_MS).is_none() {
            self.received += 1;
        }
    }

    /// A peer no longer asks.
    pub(crate) fn go_on(&mut self, from: Incarnation) {
        self.leases.remove(&from);
    }

    /// True if own writers must wait. `counts`: whose stop is heeded.
    pub(crate) fn is_active(&mut self, now_ms: u64, counts: impl Fn(Incarnation) -> bool) -> bool {
        self.leases.retain(|from, until| {
            let lapsed = *until <= now_ms && !planted(Mutant::StopNeverLapses);
            !lapsed && counts(*from)
        });
        let active = !self.leases.is_empty() || self.requested.is_some();
        match (active, self.active_since) {
            (true, None) => self.active_since = Some(now_ms),
            (false, Some(since)) => {
                self.paused_ms += now_ms.saturating_sub(since);
                self.active_since = None;
            }
            _ => {}
        }
        active
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.active_since.is_some()
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.requested.is_some()
    }

    /// Time that own writers have waited, up to now.
    pub(crate) fn total_paused_ms(&self, now_ms: u64) -> u64 {
        self.paused_ms
            + self
                .active_since
                .map_or(0, |since| now_ms.saturating_sub(since))
    }

    /// Forgets leases and requests, keeps the counters.
    pub(crate) fn forget(&mut self, now_ms: u64) {
        self.leases.clear();
        self.requested = None;
        self.is_active(now_ms, |_| false);
    }

    pub(crate) fn reset_counters(&mut self, now_ms: u64) {
        (self.paused_ms, self.sent, self.received) = (0, 0, 0);
        if self.active_since.is_some() {
            self.active_since = Some(now_ms);
        }
    }

    /// When a lease lapses or a stop is to be said again.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.leases.values().copied().chain(self.requested).min()
    }
}
