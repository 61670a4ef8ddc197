//! Part `slow`: what two nodes feel of a third that has too little processor or a slow disk.

use std::time::{Duration, Instant};

use super::LatencyError;
use super::failover::Victim;
use super::fault::sleep_until;
use super::figures::{Window, latencies_ms, per_second};
use super::load::{Commit, Load};
use super::report::{Figure, Measure};
use super::site::{Ground, Site};
use super::slow_disk::SlowDisk;
use crate::stats::percentile;
use trireme_testbed::cpu_share::{CpuShare, CpuShareError};
use trireme_testbed::interrupt;
use trireme_testbed::systems::Wsrep;

/// Clients on each of the two nodes.
const CLIENTS: usize = 8;

/// The share of a processor that the third node is left.
const TENTH: f64 = 0.1;

/// The length of a period, the kernel's default.
const CPU_PERIOD: Duration = Duration::from_millis(100);

/// Before anything is measured, and between the begin of the slowness and its measurement.
const SETTLING: Duration = Duration::from_secs(3);

/// Length of the search for the maximum.
const MAXIMUM_LENGTH: Duration = Duration::from_secs(8);

/// After a window, for what was due within it.
const GRACE: Duration = Duration::from_secs(1);

/// What holds the third node back.
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
}

const RATE: Measure = Measure::median("rate /s", 0);
const USUAL_TPS: Measure = Measure::median("usual commits/s", 0);
const USUAL_P99: Measure = Measure::median("usual p99 ms", 2);
const SLOW_TPS: Measure = Measure::median("slow commits/s", 0);
const SLOW_P99: Measure = Measure::median("slow p99 ms", 2);
const P99_RATIO: Measure = Measure::median("p99 ratio", 2);
const TPS_RATIO: Measure = Measure::median("commits ratio", 2);
const P99_FIGURE: Measure = Measure::count("p99 <= 1.3 x");
const TPS_FIGURE: Measure = Measure::count("commits >= 0.9 x");

/// One trial.
pub fn trial(
    ground: &Ground,
    system: &Wsrep,
    hindrance: Hindrance,
    victim: Victim,
    length: Duration,
) -> Result<Vec<Figure>, LatencyError> {
    // The first started is the sequencer at the start.
    let slow = match victim {
        Victim::Sequencer => 0,
        Victim::Other => 2,
    };
    let mut disk = None;
    let site = Site::on_loopback(ground, system, 3, |cluster| {
        if hindrance == Hindrance::Disk {
            disk = Some(SlowDisk::prepare(cluster, slow));
        }
    })?;
    let disk = disk.transpose()?;
    let cpu = match (hindrance, site.cluster.node(slow).pid()) {
        (Hindrance::Cpu, Some(pid)) => Some(held_back(pid)?),
        _ => None,
    };
    let outcome = measure(&site, slow, length, || {
        let limit = |share: &CpuShare| share.limit(TENTH, CPU_PERIOD);
        cpu.as_ref().map_or(Ok(()), limit)?;
        disk.as_ref().map_or(Ok(()), SlowDisk::apply)?;
        Ok(())
    });
    // Also the end of a server takes time of the processor and of the disk.
    cpu.as_ref().map_or(Ok(()), CpuShare::lift)?;
    disk.as_ref().map_or(Ok(()), SlowDisk::lift)?;
    site.end(outcome.is_err())?;
    // After its process, so that the group can go.
    drop(cpu);
    outcome
}

/// A group that holds process `pid`, without a limit so far.
fn held_back(pid: u32) -> Result<CpuShare, CpuShareError> {
    let share = CpuShare::new("slow")?;
    share.add(pid)?;
    Ok(share)
}

fn measure(
    site: &Site<'_>,
    slow: usize,
    length: Duration,
    hinder: impl FnOnce() -> Result<(), LatencyError>,
) -> Result<Vec<Figure>, LatencyError> {
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
    let usual = observe(&steady, rate, length)?;
    hinder()?;
    interrupt::sleep(SETTLING)?;
    let hindered = observe(&steady, rate, length)?;

    let p99_ratio = hindered.p99_ms / usual.p99_ms;
    let tps_ratio = hindered.tps / usual.tps;
    Ok(vec![
        (RATE, rate),
        (USUAL_TPS, usual.tps),
        (USUAL_P99, usual.p99_ms),
        (SLOW_TPS, hindered.tps),
        (SLOW_P99, hindered.p99_ms),
        (P99_RATIO, p99_ratio),
        (P99_FIGURE, f64::from(u8::from(p99_ratio <= 1.3))),
        (TPS_RATIO, tps_ratio),
        (TPS_FIGURE, f64::from(u8::from(tps_ratio >= 0.9))),
    ])
}

/// Throughput and 99th percentile of one stretch.
pub(super) struct Observed {
    tps: f64,
    pub(super) p99_ms: f64,
}

fn observe(load: &Load, rate: f64, length: Duration) -> Result<Observed, LatencyError> {
    let window = Window::new(Instant::now(), length);
    sleep_until(window.to + GRACE)?;
    Ok(observed(&all(load), rate, window))
}

/// What clients at this rate saw in `window`.
pub(super) fn observed(commits: &[Commit], rate: f64, window: Window) -> Observed {
    let length = window.to - window.from;
    let mut ms = latencies_ms(commits, window);
    // What was due and is not done counts as if it took the whole window: a stall must not vanish from the percentile.
    let due = (rate * length.as_secs_f64()) as usize;
    ms.resize(ms.len().max(due), length.as_secs_f64() * 1000.0);
    ms.sort_by(f64::total_cmp);
    Observed {
        // A backlog worked off may exceed the rate; that is no more throughput than was asked for.
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
