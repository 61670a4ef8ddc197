//! One schedule: the times and nodes of all kills and restarts. A seed fixes it.

use std::fmt;

use super::random::Random;

/// Number of nodes of the cluster.
pub const NODES: usize = 3;

/// Length of the time in which the kills fall.
const KILL_WINDOW_MS: u64 = 2_000;

/// Longest pause before a server is started again.
const RESTART_PAUSE_MS: u64 = 1_000;

/// A server to be killed with -9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kill {
    /// Which node, from 0.
    pub node: usize,
    /// Time from the end of the warm-up.
    pub at_ms: u64,
}

/// A server to be started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    /// Which node, from 0.
    pub node: usize,
    /// Time since the last kill or restart.
    pub pause_ms: u64,
    /// True if the server's position is recovered before the start and passed on. A service does that, a container
    /// does not.
    pub recovered: bool,
}

/// The kills and restarts of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The seed that fixed the schedule.
    pub seed: u64,
    /// `innodb_flush_log_at_trx_commit` on all nodes.
    pub flush: u8,
    /// True if clients set `wsrep_sync_wait=1` and `innodb_snapshot_isolation=ON`.
    pub strong: bool,
    /// Duration of the load before the time of the kills.
    pub warm_up_ms: u64,
    /// The kills, in order of time.
    pub kills: Vec<Kill>,
    /// The restarts, in order.
    pub restarts: Vec<Restart>,
}

impl Schedule {
    /// The schedule of `seed`. With `power_loss`, at least that many nodes die at one instant.
    pub fn from_seed(seed: u64, power_loss: Option<usize>) -> Self {
        let mut random = Random::new(seed);
        let flush = random.below(3) as u8;
        let strong = random.chance(50);
        let warm_up_ms = 300 + random.below(700);
        // Killing all nodes is the hardest case, so it is the most frequent.
        let victims = random.pick(&[1, 2, 3, 3]).max(power_loss.unwrap_or(1));
        let power_loss = power_loss.is_some();
        // All at one moment, before the others can react, or far apart.
        let spread_ms = random.pick(&[1, 100, KILL_WINDOW_MS, KILL_WINDOW_MS]);
        let spread_ms = if power_loss { 1 } else { spread_ms };
        let first_ms = random.below(KILL_WINDOW_MS - spread_ms + 1);
        let mut nodes: Vec<usize> = (0..NODES).collect();
        random.shuffle(&mut nodes);
        nodes.truncate(victims);
        let mut kills: Vec<Kill> = nodes
            .iter()
            .map(|node| Kill {
                node: *node,
                at_ms: first_ms
                    + if power_loss {
                        0
                    } else {
                        random.below(spread_ms)
                    },
            })
            .collect();
        kills.sort_by_key(|kill| kill.at_ms);
        random.shuffle(&mut nodes);
        let restarts = nodes
            .iter()
            .map(|node| Restart {
                node: *node,
                pause_ms: random.below(RESTART_PAUSE_MS),
                recovered: random.chance(50),
            })
            .collect();
        Self {
            seed,
            flush,
            strong,
            warm_up_ms,
            kills,
            restarts,
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flush {}, ", self.flush)?;
        f.write_str(if self.strong {
            "current reads, "
        } else {
            "default reads, "
        })?;
        let kills = self.kills.iter();
        let kills: Vec<String> = kills
            .map(|kill| format!("{}@{}", kill.node + 1, kill.at_ms))
            .collect();
        write!(f, "kill {}, start", kills.join(" "))?;
        for restart in &self.restarts {
            let how = if restart.recovered { "r" } else { "" };
            write!(f, " {}{how}+{}", restart.node + 1, restart.pause_ms)?;
        }
        Ok(())
    }
}

/// The seeds of `count` schedules. The first one is `first` itself, so that a schedule's own seed repeats it.
pub fn seeds(first: u64, count: usize) -> Vec<u64> {
    let mut random = Random::new(first);
    (0..count)
        .map(|i| if i == 0 { first } else { random.number() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many() -> impl Iterator<Item = Schedule> {
        seeds(1, 300)
            .into_iter()
            .map(|seed| Schedule::from_seed(seed, None))
    }

    #[test]
    fn a_seed_fixes_the_schedule() {
        let schedule = |seed| Schedule::from_seed(seed, None);
        assert_eq!(schedule(5), schedule(5));
        assert_ne!(schedule(5), schedule(6));
        assert_eq!(seeds(9, 3)[0], 9);
        assert_eq!(seeds(seeds(9, 3)[2], 1), [seeds(9, 3)[2]]);
    }

    #[test]
    fn whoever_is_killed_is_started_again() {
        for schedule in many() {
            let mut killed: Vec<usize> = schedule.kills.iter().map(|kill| kill.node).collect();
            let mut started: Vec<usize> = schedule.restarts.iter().map(|r| r.node).collect();
            killed.sort_unstable();
            started.sort_unstable();
            assert_eq!(killed, started, "{schedule:?}");
            assert!(schedule.kills.iter().all(|k| k.at_ms <= KILL_WINDOW_MS));
            assert!(schedule.kills.windows(2).all(|k| k[0].at_ms <= k[1].at_ms));
        }
    }

    #[test]
    fn everything_that_can_be_drawn_is_drawn() {
        let all: Vec<Schedule> = many().collect();
        for victims in 1..=NODES {
            assert!(all.iter().any(|s| s.kills.len() == victims));
        }
        for flush in 0..=2 {
            assert!(all.iter().any(|s| s.flush == flush));
        }
        assert!(all.iter().any(|s| s.strong) && all.iter().any(|s| !s.strong));
        for recovered in [true, false] {
            let is = |s: &Schedule| s.restarts.iter().all(|r| r.recovered == recovered);
            assert!(all.iter().any(|s| s.kills.len() == NODES && is(s)));
        }
        let order = |s: &Schedule| s.restarts.iter().map(|r| r.node).collect::<Vec<_>>();
        assert!(all.iter().any(|s| order(s) == [2, 0, 1]));
    }

    #[test]
    fn a_power_loss_takes_all_at_one_instant() {
        for seed in 0..50 {
            let schedule = Schedule::from_seed(seed, Some(NODES));
            assert_eq!(schedule.kills.len(), NODES);
            assert_eq!(schedule.kills[0].at_ms, schedule.kills[2].at_ms);
        }
    }

    #[test]
    fn or_so_many_of_them() {
        let losses = (0..50).map(|seed| Schedule::from_seed(seed, Some(2)).kills);
        let (two, all): (Vec<_>, Vec<_>) = losses.partition(|kills| kills.len() == 2);
        assert!(!two.is_empty() && !all.is_empty());
        assert!(two.iter().all(|kills| kills[0].at_ms == kills[1].at_ms));
        assert!(all.iter().all(|kills| kills.len() == NODES));
    }
}
