//! The figures of a cell, by name. A name ends with its unit; a figure without a unit is a count.

use std::collections::BTreeMap;

use trireme_testbed::sysbench::Whole;

use super::load::Counters;
use crate::cpu::CpuTimes;
use crate::frame::Measured;
use crate::stats::{percentile, standard_deviation};

/// Committed transactions per second.
pub const TX_PER_S: &str = "tx_per_s";

/// Deadlocks and failed certifications per second.
pub const DEADLOCKS_PER_S: &str = "deadlocks_per_s";

/// Commits and deadlocks per second: the commits that there would be without conflicts.
pub const ATTEMPTS_PER_S: &str = "attempts_per_s";

/// The errors of deadlocks and failed certifications; the last two are Group Replication's.
const DEADLOCKS: &[u16] = &[1213, 1180, 3101];

/// The errors after which a client retries, with the figures that count them.
pub const ERRORS: [(&[u16], &str); 4] = [
    (DEADLOCKS, "deadlocks"),
    (&[1020], "snapshot_errors"),
    (&[1205], "lock_wait_timeouts"),
    (&[1062], "duplicates"),
];

/// The figure of all other ignored errors.
pub const OTHER_ERRORS: &str = "other_errors";

/// The name of the figure that counts the COMMITs that clients asked of node `i`, from 1, failed ones included.
pub fn commits_of_node(i: usize) -> String {
    format!("node{i}_commits")
}

/// The figures of a run; the run itself has noted its seconds.
pub fn of_run(whole: &Whole, servers: &Counters, cpu: CpuTimes, measured: &mut Measured) {
    let (statistics, summary) = (&whole.statistics, &whole.statistics.summary);
    let mut put = |name: &str, value: f64| measured.figures.insert(name.to_string(), value);
    let seconds = summary.seconds.max(0.001);
    let commits = summary.transactions as f64;
    let each = commits.max(1.0);
    let mut known = 0;
    for (errors, name) in ERRORS {
        let count = count(&whole.restarts, errors);
        known += count;
        put(name, count as f64);
    }
    let others = summary.conflicts.saturating_sub(known);
    put(OTHER_ERRORS, others as f64);
    let deadlocks = count(&whole.restarts, DEADLOCKS) as f64;
    for (name, value) in [
        (TX_PER_S, commits / seconds),
        (DEADLOCKS_PER_S, deadlocks / seconds),
        (ATTEMPTS_PER_S, (commits + deadlocks) / seconds),
        ("deadlocks_per_commit", deadlocks / each),
        ("seconds", summary.seconds),
        ("transactions", commits),
        ("ignored_errors", summary.conflicts as f64),
        ("reconnects", statistics.reconnects as f64),
        ("queries_read", statistics.reads as f64),
        ("queries_write", statistics.writes as f64),
        ("queries_other", statistics.others as f64),
        ("queries_total", statistics.queries as f64),
        ("events", statistics.events as f64),
        ("min_ms", statistics.min_ms),
        ("mean_ms", summary.mean_ms),
        ("max_ms", statistics.max_ms),
        ("p95_ms", summary.p95_ms),
        ("thread_events_mean", statistics.events_per_thread.mean),
        ("thread_events_sd", statistics.events_per_thread.sd),
        (
            "thread_execution_mean_s",
            statistics.execution_s_per_thread.mean,
        ),
        (
            "thread_execution_sd_s",
            statistics.execution_s_per_thread.sd,
        ),
        (
            "certification_failures",
            servers.certification_failures as f64,
        ),
        ("brute_force_aborts", servers.brute_force_aborts as f64),
        ("innodb_deadlocks", servers.innodb_deadlocks as f64),
        (
            "leader_changes_needless",
            servers.leader_changes_needless as f64,
        ),
        ("server_cpu_ms_per_tx", cpu.servers_ms as f64 / each),
        ("client_cpu_ms_per_tx", cpu.client_ms as f64 / each),
    ] {
        put(name, value);
    }
    for (i, commits) in servers.commits.iter().enumerate() {
        put(&commits_of_node(i + 1), *commits as f64);
    }
    let mut per_second: Vec<f64> = whole.intervals.iter().map(|i| i.tps).collect();
    per_second.sort_by(f64::total_cmp);
    let mut put = |name: &str, value: f64| measured.figures.insert(name.to_string(), value);
    put(
        "tx_per_s_sd",
        standard_deviation(&per_second).unwrap_or(0.0),
    );
    put(
        "slowest_second",
        percentile(&per_second, 0.0).unwrap_or(0.0),
    );
}

/// The number of times that clients met one of these errors.
fn count(restarts: &BTreeMap<u16, u64>, errors: &[u16]) -> u64 {
    errors.iter().filter_map(|error| restarts.get(error)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_certification_is_a_deadlock_on_every_system() {
        let restarts = [(1213, 1), (3101, 20), (1180, 300), (1062, 4000)].into();
        assert_eq!(count(&restarts, DEADLOCKS), 321);
    }
}
