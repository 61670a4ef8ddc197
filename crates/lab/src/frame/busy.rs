//! The processors of the whole machine: whether other programs use them before a measurement, and how much of them the
//! hypervisor takes during it.

use std::fs;
use std::time::{Duration, Instant};

use trireme_testbed::interrupt::{self, Interrupted};

use super::record::Measured;

/// A machine that does nothing else uses less.
const QUIET_PERCENT: f64 = 10.0;

/// The time for which the processors are watched.
const WATCHED: Duration = Duration::from_millis(500);

/// Watches the processors for half a second. Returns the warning if other programs use them.
pub fn warning() -> Result<Option<String>, Interrupted> {
    let before = read();
    interrupt::sleep(WATCHED)?;
    let percent = match (before, read()) {
        (Some(before), Some(after)) => after.busy_percent_since(before),
        _ => return Ok(None),
    };
    Ok((percent > QUIET_PERCENT).then(|| {
        format!(
            "other programs use {percent:.0} % of the processors: the figures will be worse and vary more. Stop them \
             (`top` names them), or measure again later"
        )
    }))
}

/// The clock and the processors at the begin of a measurement.
pub struct Watch {
    began: Instant,
    before: Option<Ticks>,
}

impl Watch {
    /// Begins now.
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
            before: read(),
        }
    }

    /// Adds to the figures: how long the measurement took with all that belongs to it (warm-up, comparison of rows), and
    /// the share of the processors that the hypervisor gave to other machines meanwhile.
    pub fn note(&self, measured: &mut Measured) {
        let mut put = |name: &str, value: f64| measured.figures.insert(name.to_string(), value);
        put("wall_s", self.began.elapsed().as_secs_f64());
        if let (Some(before), Some(after)) = (self.before, read()) {
            put("machine_steal_percent", after.steal_percent_since(before));
        }
    }
}

/// The time of all processors since the machine's start, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    idle: u64,
    steal: u64,
}

impl Ticks {
    /// From the line `cpu` of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal; guests are
    /// in `user` already.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .take(8)
            .map_while(|n| n.parse().ok())
            .collect();
        let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
        let steal = ticks.get(7).copied().unwrap_or(0);
        let all = ticks.iter().sum();
        Some(Self { all, idle, steal })
    }

    fn busy_percent_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        let idle = self.idle.saturating_sub(before.idle);
        percent(all.saturating_sub(idle), all)
    }

    fn steal_percent_since(self, before: Self) -> f64 {
        let steal = self.steal.saturating_sub(before.steal);
        percent(steal, self.all.saturating_sub(before.all))
    }
}

fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

fn read() -> Option<Ticks> {
    Ticks::parse(&fs::read_to_string("/proc/stat").ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_disks_is_idle_and_guests_count_once() {
        let parse = |line: &str| Ticks::parse(line).expect("a line");
        let before = parse("cpu  100 0 50 800 50 0 0 0 7 0\ncpu0 1 2 3 4");
        assert_eq!((before.all, before.idle), (1000, 850));
        let after = parse("cpu  130 0 60 840 60 0 0 10 9 0");
        assert_eq!(after.busy_percent_since(before), 50.0);
        assert_eq!(after.busy_percent_since(after), 0.0);
        assert_eq!(after.steal_percent_since(before), 10.0);
        assert_eq!(Ticks::parse("intr 1 2"), None);
        assert_eq!(Ticks::parse("cpu  1 2"), None);
    }
}
