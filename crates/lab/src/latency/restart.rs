//! Part `restart`: three nodes are restarted cleanly, one after the other, while clients insert rows.
//!
//! A client begins at each node. When its node goes away, the client continues at the next node that answers, and
//! returns when its own node is back. Every acknowledged insert must be in the table at the end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use trireme_testbed::cluster::START_TIMEOUT;
use trireme_testbed::interrupt;
use trireme_testbed::node::StartMode;

use super::error::LatencyError;
use super::failover::FAULT_AT;
use super::figures::{Window, by_second, longest_gap, measured, per_second};
use super::load::Commit;
use super::roaming::{Roaming, Seen, TABLE};
use super::site::Site;
use crate::frame::Measured;

/// The number of nodes.
pub const NODES: usize = 3;

/// The load before the first node is stopped, and after each node is back.
const SETTLING: Duration = Duration::from_secs(3);

/// The duration of a trial, in seconds.
pub const SECONDS: f64 = 30.0;

/// The figure: the longest time between two commits of one client; the worst of the clients.
pub const GAP: &str = "gap_ms";

/// The figure: the time from the start of a node's server, after the recovery of its position, until the node is
/// synced; the longest of the nodes.
pub const BACK: &str = "back_s";

/// The figures of each node.
pub const OF_NODE: [&str; 4] = ["gap_ms", "stop_s", "recover_s", "back_s"];

/// The name of a figure of node `number`, from 1.
pub fn figure_of_node(number: usize, name: &str) -> String {
    format!("node{number}_{name}")
}

/// The restart of one node.
struct Restart {
    /// The time from before the stop until some time after the node was back.
    window: Window,
    stop_s: f64,
    recover_s: f64,
    back_s: f64,
}

/// Runs one trial.
pub fn measure(site: &mut Site, kept: &mut Measured) -> Result<Measured, LatencyError> {
    site.cluster.sql(0)?.exec(&format!(
        "CREATE TABLE {TABLE} (client INT, number INT, text VARCHAR(128), PRIMARY KEY (client, number))"
    ))?;
    let load = Roaming::start(&site.cluster);
    interrupt::sleep(SETTLING)?;
    let began = Instant::now();
    interrupt::sleep(SETTLING)?;
    let stopped = Instant::now();
    let mut restarts = Vec::new();
    for node in 0..NODES {
        restarts.push(restart(site, &load, node)?);
    }
    let seconds = began.elapsed().as_secs() as usize;
    let clients = load.end()?;
    let commits: Vec<Commit> = clients.iter().flat_map(|c| c.commits.clone()).collect();
    kept.per_second = by_second(&commits, began, seconds);
    check(site, &clients)?;

    let whole = Window {
        from: stopped,
        to: restarts.last().map_or(stopped, |last| last.window.to),
    };
    let quiet = Window {
        from: began,
        to: stopped,
    };
    let mut figures = figures(&clients, &restarts, whole);
    figures.extend([
        (
            "commits_per_s_before".to_string(),
            per_second(&commits, quiet),
        ),
        ("commits_per_s".to_string(), per_second(&commits, whole)),
        (FAULT_AT.to_string(), (stopped - began).as_secs_f64()),
    ]);
    Ok(measured(figures, by_second(&commits, began, seconds)))
}

fn restart(site: &mut Site, load: &Roaming, node: usize) -> Result<Restart, LatencyError> {
    let from = Instant::now();
    site.cluster.stop_node(node)?;
    let ended = Instant::now();
    site.cluster.spawn_node(node, StartMode::Join)?;
    let started = Instant::now();
    site.cluster.wait_node(node, START_TIMEOUT)?;
    let back = Instant::now();
    load.is_back(node);
    interrupt::sleep(SETTLING)?;
    Ok(Restart {
        window: Window {
            from,
            to: Instant::now(),
        },
        stop_s: (ended - from).as_secs_f64(),
        recover_s: (started - ended).as_secs_f64(),
        back_s: (back - started).as_secs_f64(),
    })
}

/// Fails if an acknowledged insert is missing.
fn check(site: &Site, clients: &[Seen]) -> Result<(), LatencyError> {
    let mut sql = site.cluster.sql(0)?;
    for (client, seen) in clients.iter().enumerate() {
        let acknowledged = seen.commits.len() as u64;
        let found = sql.value(&format!(
            "SELECT COUNT(*) FROM {TABLE} WHERE client = {client} AND number <= {acknowledged}"
        ))?;
        let found = found.and_then(|n| n.parse().ok()).unwrap_or(0);
        if found != acknowledged {
            return Err(LatencyError::Lost {
                client,
                acknowledged,
                found,
            });
        }
    }
    Ok(())
}

fn figures(clients: &[Seen], restarts: &[Restart], whole: Window) -> Vec<(String, f64)> {
    let worst_ms = |window: Window| {
        let gaps = clients.iter().map(|c| longest_gap(&c.commits, window).ms());
        gaps.fold(0.0, f64::max)
    };
    let all: Vec<Commit> = clients.iter().flat_map(|c| c.commits.clone()).collect();
    let back_s = restarts.iter().map(|r| r.back_s).fold(0.0, f64::max);
    let mut figures = vec![
        (GAP.to_string(), worst_ms(whole)),
        ("all_silent_ms".to_string(), longest_gap(&all, whole).ms()),
        (BACK.to_string(), back_s),
    ];
    for (number, restart) in (1..).zip(restarts) {
        let values = [
            worst_ms(restart.window),
            restart.stop_s,
            restart.recover_s,
            restart.back_s,
        ];
        let named = OF_NODE.iter().zip(values);
        figures.extend(named.map(|(name, value)| (figure_of_node(number, name), value)));
    }
    let mut failed: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, count) in clients.iter().flat_map(|c| &c.failed) {
        *failed.entry(kind).or_default() += count;
    }
    figures.push(("failed".to_string(), failed.values().sum::<u64>() as f64));
    let failed = failed.into_iter();
    figures.extend(failed.map(|(kind, count)| (format!("failed_{kind}"), count as f64)));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_client_and_all_failures_count() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let seen = |done: &[u64], failed: &[(&str, u64)]| Seen {
            commits: (done.iter())
                .map(|ms| Commit {
                    due: start,
                    done: at(*ms),
                })
                .collect(),
            failed: (failed.iter())
                .map(|(kind, count)| (kind.to_string(), *count))
                .collect(),
        };
        let clients = [
            seen(&[0, 10, 300, 390], &[("error_1047", 2)]),
            seen(&[0, 200, 399], &[("error_1047", 1), ("connection_lost", 1)]),
        ];
        let window = |from, to| Window {
            from: at(from),
            to: at(to),
        };
        let restart = |window, back_s| Restart {
            window,
            stop_s: 0.1,
            recover_s: 0.2,
            back_s,
        };
        let restarts = [restart(window(0, 200), 0.5), restart(window(200, 400), 0.7)];
        let found = figures(&clients, &restarts, window(0, 400));
        let value = |wanted: &str| found.iter().find(|(name, _)| name == wanted).unwrap().1;
        assert_eq!((value(GAP), value("all_silent_ms")), (290.0, 190.0));
        assert_eq!((value(BACK), value("node1_back_s")), (0.7, 0.5));
        assert_eq!((value("failed"), value("failed_error_1047")), (4.0, 3.0));
    }
}
