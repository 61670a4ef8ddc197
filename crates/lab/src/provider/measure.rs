//! One measurement: the same load on every node, and its figures.

use hdrhistogram::Histogram;
use trireme_wsrep_host::{LoadPlan, LoadResult};

use super::RATE;
use super::group::Group;
use crate::frame::{LabError, Measured};
use crate::stats::percentile;

/// A load, without its number of clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The number of nodes.
    pub nodes: u64,
    /// The measured time, in seconds.
    pub seconds: u64,
    /// The load before the measurement, in seconds.
    pub warmup_seconds: u64,
    /// The percentage of write-sets that change a row which all nodes change.
    pub hot_percent: f64,
    /// The size of a write-set's data.
    pub payload_bytes: u32,
    /// The write-sets per second that all clients together begin; `None`: as many as possible.
    pub rate: Option<u64>,
}

impl Load {
    /// The plan for each node.
    fn plans(&self, clients: u64) -> Vec<LoadPlan> {
        let all = clients * self.nodes;
        (0..self.nodes)
            .map(|node| LoadPlan {
                clients,
                first_client: node * clients,
                warmup_ms: self.warmup_seconds * 1000,
                measured_ms: self.seconds * 1000,
                hot_percent: self.hot_percent,
                payload_bytes: self.payload_bytes as usize,
                interval_us: self.rate.map(|rate| all * 1_000_000 / rate),
            })
            .collect()
    }
}

/// Measures with `clients` clients on each node. Then all nodes must have committed the same write-sets in the same
/// order.
pub fn measure(
    load: &Load,
    clients: u64,
    group: &mut Group,
    measured: &mut Measured,
) -> Result<(), LabError> {
    let results = group.load(&load.plans(clients))?;
    *measured = figures(&results, load.seconds);
    if group.library().path().is_none() {
        // The stand-in's nodes do not know each other.
        return Ok(());
    }
    let last = results.iter().map(|result| result.last_seqno).max();
    group.compare(last.unwrap_or(0))
}

/// Computes the figures of all nodes together.
fn figures(results: &[LoadResult], seconds: u64) -> Measured {
    let sum = |part: fn(&LoadResult) -> u64| results.iter().map(part).sum::<u64>() as f64;
    let (write_sets, conflicts) = (sum(|r| r.write_sets), sum(|r| r.conflicts));
    let each = write_sets.max(1.0);
    let mut per_second = vec![0; seconds as usize];
    let mut latency_ns = histogram();
    for result in results {
        for (total, n) in per_second.iter_mut().zip(&result.per_second) {
            *total += n;
        }
        for (value, count) in &result.latency_ns {
            // This cannot fail: the values come from a histogram with the same bounds.
            let _ = latency_ns.record_n(*value, *count);
        }
    }
    let at_us = |share: f64| latency_ns.value_at_quantile(share) as f64 / 1000.0;
    let mut sorted: Vec<f64> = per_second.iter().map(|n| *n as f64).collect();
    sorted.sort_by(f64::total_cmp);
    let seconds = seconds as f64;
    let figures = [
        (RATE, write_sets / seconds),
        ("conflicts_per_s", conflicts / seconds),
        (
            "conflicts_percent",
            100.0 * conflicts / (write_sets + conflicts).max(1.0),
        ),
        ("write_sets", write_sets),
        ("seconds", seconds),
        ("mean_us", latency_ns.mean() / 1000.0),
        ("p50_us", at_us(0.5)),
        ("p95_us", at_us(0.95)),
        ("p99_us", at_us(0.99)),
        ("p999_us", at_us(0.999)),
        ("max_us", latency_ns.max() as f64 / 1000.0),
        ("slowest_second", percentile(&sorted, 0.0).unwrap_or(0.0)),
        ("cpu_us_per_write_set", sum(|r| r.cpu_us) / each),
        (
            "switches_per_write_set",
            sum(|r| r.voluntary_switches) / each,
        ),
    ];
    Measured {
        figures: figures
            .map(|(name, value)| (name.to_string(), value))
            .into(),
        per_second,
    }
}

/// The same histogram as in the hosts: from a nanosecond to a minute, exact to 1 %.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("the bounds are in order")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(write_sets: u64, latency_ns: u64) -> LoadResult {
        LoadResult {
            write_sets,
            conflicts: 10,
            latency_ns: vec![(latency_ns, write_sets)],
            per_second: vec![write_sets / 2, write_sets / 2],
            cpu_us: 300,
            voluntary_switches: 600,
            last_seqno: 0,
        }
    }

    #[test]
    fn figures_are_of_all_nodes_together() {
        let measured = figures(&[result(90, 1_000_000), result(10, 9_000_000)], 2);
        let figure = |name: &str| measured.figures[name];
        assert_eq!(figure(RATE), 50.0);
        assert_eq!(figure("conflicts_per_s"), 10.0);
        assert_eq!(figure("cpu_us_per_write_set"), 6.0);
        assert_eq!(figure("switches_per_write_set"), 12.0);
        assert!((figure("p50_us") - 1000.0).abs() < 10.0);
        assert!((figure("p95_us") - 9000.0).abs() < 90.0);
        assert_eq!(measured.per_second, [50, 50]);
    }

    #[test]
    fn a_rate_is_shared_by_all_clients() {
        let load = Load {
            nodes: 3,
            seconds: 1,
            warmup_seconds: 0,
            hot_percent: 0.0,
            payload_bytes: 16,
            rate: Some(1200),
        };
        let plans = load.plans(8);
        // 24 clients, each 50 times a second.
        assert_eq!(plans[0].interval_us, Some(20_000));
        let first: Vec<u64> = plans.iter().map(|plan| plan.first_client).collect();
        assert_eq!(first, [0, 8, 16]);
    }
}
