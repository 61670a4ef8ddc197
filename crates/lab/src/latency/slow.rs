//! Part `slow`: the effect on two nodes of a third with too little processor time or a slow disk.

use std::time::{Duration, Instant};

use trireme_testbed::cluster::Cluster;
use trireme_testbed::cpu_share::CpuShare;
use trireme_testbed::interrupt;
use trireme_testbed::preload::PreloadError;

use super::error::LatencyError;
use super::failover::FAULT_AT;
use super::fault::sleep_until;
use super::figures::{Window, by_second, latencies_ms, measured, per_second};
use super::load::{Commit, Load};
use super::plan::Victim;
use super::site::Site;
use super::slow_disk::SlowDisk;
use crate::frame::Measured;
use crate::stats::percentile;

/// The clients on each of the two nodes.
const CLIENTS: usize = 8;

/// The share of a processor that the third node gets.
const TENTH: f64 = 0.1;

/// The length of a period: the kernel's default.
const CPU_PERIOD: Duration = Duration::from_millis(100);

/// The load before any measurement, and between the begin of the hindrance and its measurement.
const SETTLING: Duration = Duration::from_secs(3);

/// The length of the search for the maximum.
const MAXIMUM_LENGTH: Duration = Duration::from_secs(8);

/// The pause after a window, in which the commits that were due in it may end.
const GRACE: Duration = Duration::from_secs(1);

/// The hindrance of the third node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// A tenth of a processor.
    Cpu,
    /// A slow disk.
    Disk,
}

impl Hindrance {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "a tenth of a CPU",
            Self::Disk => "slow disk",
        }
    }

    /// Prepares node `slow` of a cluster that has not started yet.
    pub fn prepare(self, cluster: &mut Cluster, slow: usize) -> Result<(), PreloadError> {
        match self {
            Self::Cpu => Ok(()),
            Self::Disk => SlowDisk::prepare(cluster, slow),
        }
    }
}

/// The figure: the 99th percentile with the hindrance, divided by the usual one.
pub const P99_RATIO: &str = "p99_ratio";

/// The figure: the commits per second with the hindrance, divided by the usual ones.
pub const COMMITS_RATIO: &str = "commits_ratio";

/// The node with the hindrance. At the start, the node that was started first is the leader.
pub fn node_of(victim: Victim) -> usize {
    match victim {
        Victim::Leader => 0,
        Victim::Other => 2,
    }
}

/// Runs one trial on a cluster that is prepared for the hindrance.
pub fn measure(
    site: &Site,
    hindrance: Hindrance,
    victim: Victim,
    length: Duration,
    kept: &mut Measured,
) -> Result<Measured, LatencyError> {
    let slow = node_of(victim);
    let node = site.cluster.node(slow);
    match (hindrance, node.pid()) {
        (Hindrance::Cpu, Some(pid)) => {
            // The drop lifts the limit, so that the server can end fast.
            let share = CpuShare::new("slow")?;
            share.add(pid)?;
            observe_both(site, slow, length, kept, || {
                Ok(share.limit(TENTH, CPU_PERIOD)?)
            })
        }
        (Hindrance::Cpu, None) => Err(LatencyError::NoCommits(slow + 1)),
        (Hindrance::Disk, _) => {
            let disk = SlowDisk::of(node);
            let outcome = observe_both(site, slow, length, kept, || Ok(disk.apply()?));
            disk.lift()?;
            outcome
        }
    }
}

/// Observes the load without the hindrance, and with it.
fn observe_both(
    site: &Site,
    slow: usize,
    length: Duration,
    kept: &mut Measured,
    hinder: impl FnOnce() -> Result<(), LatencyError>,
) -> Result<Measured, LatencyError> {
    let others = [(slow + 1) % 3, (slow + 2) % 3];
    let start = |rate| Load::start(&site.cluster, &others, CLIENTS, rate);

    let full = start(None);
    interrupt::sleep(SETTLING)?;
    let window = Window::new(Instant::now(), MAXIMUM_LENGTH);
    sleep_until(window.to)?;
    let rate = per_second(&all(&full), window) / 2.0;
    drop(full);
    if rate < 1.0 {
        return Err(LatencyError::NoCommits(others[0] + 1));
    }

    let steady = start(Some(rate));
    interrupt::sleep(SETTLING)?;
    let _kept = steady.keep_in(kept);
    let began = Instant::now();
    let usual = observe(&steady, rate, length)?;
    let hindered_at = Instant::now();
    hinder()?;
    interrupt::sleep(SETTLING)?;
    let hindered = observe(&steady, rate, length)?;

    let figures = [
        ("rate_per_s", rate),
        ("usual_commits_per_s", usual.tps),
        ("usual_p99_ms", usual.p99_ms),
        ("slow_commits_per_s", hindered.tps),
        ("slow_p99_ms", hindered.p99_ms),
        (P99_RATIO, hindered.p99_ms / usual.p99_ms),
        (COMMITS_RATIO, hindered.tps / usual.tps),
        (FAULT_AT, (hindered_at - began).as_secs_f64()),
    ];
    let seconds = began.elapsed().as_secs() as usize;
    Ok(measured(figures, by_second(&all(&steady), began, seconds)))
}

/// The throughput and the 99th percentile in one window.
pub(super) struct Observed {
    tps: f64,
    pub(super) p99_ms: f64,
}

fn observe(load: &Load, rate: f64, length: Duration) -> Result<Observed, LatencyError> {
    let window = Window::new(Instant::now(), length);
    sleep_until(window.to + GRACE)?;
    Ok(observed(&all(load), rate, window))
}

/// Evaluates the commits in `window` of clients with this rate.
pub(super) fn observed(commits: &[Commit], rate: f64, window: Window) -> Observed {
    let length = window.to - window.from;
    let mut ms = latencies_ms(commits, window);
    // An update that was due and is not done counts with the whole window: a stall must not vanish from the percentile.
    let due = (rate * length.as_secs_f64()) as usize;
    ms.resize(ms.len().max(due), length.as_secs_f64() * 1000.0);
    ms.sort_by(f64::total_cmp);
    Observed {
        // The clients may work off a backlog faster than the rate; that is no higher throughput than the rate.
        tps: per_second(commits, window).min(rate),
        p99_ms: percentile(&ms, 0.99).unwrap_or_default(),
    }
}

/// The commits of all clients.
pub(super) fn all(load: &Load) -> Vec<Commit> {
    load.commits().into_iter().flat_map(|(_, c)| c).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stall_held_up_counts() {
        let start = Instant::now();
        let window = Window::new(start, Duration::from_secs(1));
        let commits: Vec<Commit> = (0..500)
            .map(|ms| start + Duration::from_millis(ms))
            .map(|due| Commit {
                due,
                done: due + Duration::from_millis(1),
            })
            .collect();
        let stalled = observed(&commits, 1000.0, window);
        assert_eq!((stalled.tps, stalled.p99_ms), (500.0, 1000.0));
        let steady = observed(&commits, 500.0, window);
        assert_eq!(steady.p99_ms, 1.0);
    }
}
