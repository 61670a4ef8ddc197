//! Part `failover`: the pause in the commits of two nodes when a fault strikes the third.

use std::time::{Duration, Instant};

use trireme_testbed::interrupt;

use super::error::LatencyError;
use super::fault::{Fault, sleep_until};
use super::figures::{Window, by_second, longest_gap, measured, per_second};
use super::load::{Commit, Load};
use super::plan::Victim;
use super::site::Site;
use crate::frame::Measured;

/// The figure: the longest time between two commits of one client from the fault on; the worse of the two clients.
pub const GAP: &str = "gap_ms";

/// The same figure for the time before the fault.
pub const QUIET_GAP: &str = "gap_without_fault_ms";

/// The figure: 1 if the leader changed before the fault, so that the fault struck another member than the trial names;
/// else 0.
pub const MOVED_BEFORE: &str = "leader_moved_before";

/// The figure: the second of the trial's time series at which the fault comes.
pub const FAULT_AT: &str = "fault_at_s";

/// The load before any measurement.
const WARMUP: Duration = Duration::from_secs(3);

/// The length of the time without a fault, and of the time from the fault on.
const LENGTH: Duration = Duration::from_secs(12);

/// The duration of a trial, in seconds.
pub const SECONDS: f64 = 27.0;

/// Runs one trial.
pub fn measure(
    site: &mut Site,
    fault: Fault,
    victim: Victim,
    leader_option: Option<&str>,
    kept: &mut Measured,
) -> Result<Measured, LatencyError> {
    // If no member names the leader yet, the node that was started first is taken.
    let leader = site.leader(0)?.unwrap_or(0);
    let (struck, others) = split(leader, victim);
    if let (Victim::Leader, Some(option)) = (victim, leader_option) {
        let statement = format!("SET GLOBAL wsrep_provider_options = '{option}'");
        site.cluster.sql(struck)?.exec(&statement)?;
    }
    let load = Load::start(&site.cluster, &others, 1, None);
    let _kept = load.keep_in(kept);
    interrupt::sleep(WARMUP)?;
    let quiet = Window::new(Instant::now(), LENGTH);
    sleep_until(quiet.to)?;

    let is_leader = site.leader(others[0])?.map(|now| now == struck);
    let held_back_ms = flow_control_ms(site, others[0])?;
    let struck_window = Window::new(Instant::now(), LENGTH);
    fault.strike(site, struck, struck_window.to)?;
    let clients: Vec<Vec<Commit>> = load.commits().into_iter().map(|(_, c)| c).collect();
    let mut figures = figures(&clients, quiet, struck_window);
    let held_back_ms = flow_control_ms(site, others[0])? - held_back_ms;
    figures.push(("flow_control_ms", held_back_ms));
    if let Some(is_leader) = is_leader {
        let moved = is_leader != (victim == Victim::Leader);
        figures.push((MOVED_BEFORE, f64::from(u8::from(moved))));
    }
    // There are as many seconds before the fault as after it.
    let from = struck_window.from - LENGTH;
    let seconds = by_second(&clients.concat(), from, 2 * LENGTH.as_secs() as usize);
    // The rows of the others are compared: a member that is cut off lacks some.
    site.cluster.kill_node(struck)?;
    Ok(measured(figures, seconds))
}

/// The time for which flow control has stopped node `i` since its start, in ms.
fn flow_control_ms(site: &Site, i: usize) -> Result<f64, LatencyError> {
    let mut sql = site.cluster.sql(i)?;
    let ns = sql.status("wsrep_flow_control_paused_ns")?;
    Ok(ns.and_then(|ns| ns.parse().ok()).unwrap_or(0.0) / 1e6)
}

/// The number of the victim, and those of the other two nodes.
fn split(leader: usize, victim: Victim) -> (usize, [usize; 2]) {
    let struck = match victim {
        Victim::Leader => leader,
        Victim::Other => (leader + 2) % 3,
    };
    (struck, [(struck + 1) % 3, (struck + 2) % 3])
}

fn figures(clients: &[Vec<Commit>], quiet: Window, struck: Window) -> Vec<(&'static str, f64)> {
    let worst = |window: Window| {
        let gaps = clients.iter().map(|commits| longest_gap(commits, window));
        gaps.max_by_key(|gap| gap.length)
            .unwrap_or_else(|| longest_gap(&[], window))
    };
    let all: Vec<Commit> = clients.concat();
    let gap = worst(struck);
    let begin = gap.begin.saturating_duration_since(struck.from);
    vec![
        (GAP, gap.ms()),
        ("gap_begins_at_s", begin.as_secs_f64()),
        ("all_silent_ms", longest_gap(&all, struck).ms()),
        (QUIET_GAP, worst(quiet).ms()),
        ("commits_per_s_before", per_second(&all, quiet)),
        (FAULT_AT, LENGTH.as_secs_f64()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_victim_has_no_client() {
        for leader in 0..3 {
            assert_eq!(split(leader, Victim::Leader).0, leader);
            for victim in [Victim::Other, Victim::Leader] {
                let (struck, others) = split(leader, victim);
                assert_eq!(struck == leader, victim == Victim::Leader);
                let mut all = vec![struck, others[0], others[1]];
                all.sort_unstable();
                assert_eq!(all, [0, 1, 2]);
            }
        }
    }

    #[test]
    fn the_gap_from_the_fault_on_counts() {
        let start = Instant::now();
        let at = |ms: u64| Commit {
            due: start,
            done: start + Duration::from_millis(ms),
        };
        let window = |from_ms, to_ms| Window {
            from: start + Duration::from_millis(from_ms),
            to: start + Duration::from_millis(to_ms),
        };
        let mut stall: Vec<u64> = (0..2000).step_by(10).collect();
        stall.retain(|ms| !(1100..1700).contains(ms));
        let commits: Vec<Commit> = stall.into_iter().map(at).collect();
        let found = figures(&[commits], window(0, 1000), window(1000, 2000));
        let value = |wanted: &str| found.iter().find(|(name, _)| *name == wanted).unwrap().1;
        assert_eq!((value(GAP), value(QUIET_GAP)), (610.0, 10.0));
        assert_eq!(value("gap_begins_at_s"), 0.09);
    }
}
