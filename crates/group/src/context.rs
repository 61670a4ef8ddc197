//! The clock, the options, and the names of this process. Only the coordinator writes them; every part may read them as
//! `&Context`.

use crate::config::Config;
use crate::ids::{Incarnation, ReplicaId, TimeMs};

#[derive(Clone, Debug, Hash)]
pub(crate) struct Context {
    now: TimeMs,
    config: Config,
    /// When the last heartbeat was sent.
    heartbeat_at: TimeMs,
}

impl Context {
    pub(crate) fn new(config: Config, now: TimeMs) -> Context {
        Context {
            now,
            config,
            heartbeat_at: now,
        }
    }

    pub(crate) fn now(&self) -> TimeMs {
        self.now
    }

    /// Sets the clock, which never goes back.
    pub(crate) fn advance(&mut self, now: TimeMs) {
        self.now = self.now.max(now);
    }

    /// Sets the clock, also backwards, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn set_now(&mut self, now: TimeMs) {
        self.now = now;
    }

    pub(crate) fn heartbeat_due_at(&self) -> TimeMs {
        self.heartbeat_at + self.config.heartbeat_ms
    }

    /// Returns true if a heartbeat is due, and notes it as sent.
    pub(crate) fn beats(&mut self) -> bool {
        let is_due = self.now >= self.heartbeat_due_at();
        if is_due {
            self.heartbeat_at = self.now;
        }
        is_due
    }

    /// The time stamp of the last heartbeat, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn heartbeat_at(&mut self) -> &mut TimeMs {
        &mut self.heartbeat_at
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }

    /// This process: the wsrep member id.
    pub(crate) fn me(&self) -> Incarnation {
        self.config.me.incarnation
    }

    /// The replica id of its data directory; votes are counted by it.
    pub(crate) fn my_replica(&self) -> ReplicaId {
        self.config.me.replica
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Member;

    #[test]
    fn the_clock_never_goes_back() {
        let mut context = Context::new(Config::new(Member::default()), 5);
        context.advance(3);
        assert_eq!(context.now(), 5);
        context.advance(7);
        assert_eq!(context.now(), 7);
    }
}
