//! The figures of a cell, by name. A name ends with its unit; a figure without a unit is a count.

use super::clients::Outcome;
use super::consistency::CONDITIONS;
use super::input::Kind;
use super::loader::Loaded;
use crate::frame::Measured;
use crate::stats::{percentile, standard_deviation};

/// New orders committed per minute.
pub const NOTPM: &str = "notpm";

/// Transactions of all types committed per second.
pub const TX_PER_S: &str = "tx_per_s";

/// The standard deviation of the transactions per second, in percent of their mean.
pub const TX_SD_PERCENT: &str = "tx_per_s_sd_percent";

/// The transactions that were in hand at the end of the measurement.
const UNFINISHED: &str = "unfinished";

/// The age of the oldest of them, from its first attempt on, in milliseconds.
pub const OLDEST_UNFINISHED_MS: &str = "oldest_unfinished_ms";

/// The commits of the slowest client, in percent of the mean of all clients.
pub const SLOWEST_CLIENT_PERCENT: &str = "slowest_client_percent";

/// The clients that committed nothing.
pub const CLIENTS_WITHOUT_COMMIT: &str = "clients_without_commit";

/// The time of a load, in seconds.
pub const LOAD_S: &str = "load_s";

/// The name of a figure of one type.
pub fn of_kind(kind: Kind, figure: &str) -> String {
    format!("{}_{figure}", kind.name())
}

/// The name of the figure that counts violations of a condition.
pub fn of_condition(number: u32) -> String {
    format!("condition_{number}_violations")
}

/// The figures of a load. `settle_s`: the time that the other nodes took to catch up, in seconds.
pub fn of_load(loaded: Loaded, settle_s: f64, measured: &mut Measured) {
    put(measured, "generate_s", loaded.generate_s);
    put(measured, LOAD_S, loaded.load_s);
    put(measured, "settle_s", settle_s);
}

/// The violations of each condition.
pub fn of_conditions(violations: &[u64], measured: &mut Measured) {
    for (condition, n) in CONDITIONS.iter().zip(violations) {
        put(measured, &of_condition(condition.number), *n as f64);
    }
}

/// The figures of a measurement of `seconds`.
pub fn of_run(outcome: &Outcome, seconds: u64, measured: &mut Measured) {
    let tally = &outcome.tally;
    let committed = tally.committed();
    let new_orders = tally.kind(Kind::NewOrder);
    let mut per_second: Vec<f64> = tally.per_second().iter().map(|n| *n as f64).collect();
    per_second.sort_by(f64::total_cmp);
    let minutes = seconds as f64 / 60.0;
    let each = committed.max(1) as f64;
    let deviation = standard_deviation(&per_second).unwrap_or(0.0);
    let clients = &outcome.commits;
    let slowest_client = clients.iter().min().copied().unwrap_or(0);
    let oldest_ms = tally.oldest_unfinished().as_secs_f64() * 1000.0;
    for (name, value) in [
        (NOTPM, new_orders.committed as f64 / minutes),
        (TX_PER_S, committed as f64 / seconds as f64),
        ("tx_per_s_sd", deviation),
        (TX_SD_PERCENT, 100.0 * deviation * seconds as f64 / each),
        (
            "slowest_second",
            percentile(&per_second, 0.0).unwrap_or(0.0),
        ),
        (
            "deliberate_rollback_percent",
            new_orders.percent(new_orders.rolled_back),
        ),
        (UNFINISHED, tally.unfinished() as f64),
        (OLDEST_UNFINISHED_MS, oldest_ms),
        (
            SLOWEST_CLIENT_PERCENT,
            100.0 * slowest_client as f64 * clients.len() as f64 / each,
        ),
        (
            CLIENTS_WITHOUT_COMMIT,
            clients.iter().filter(|commits| **commits == 0).count() as f64,
        ),
        ("server_cpu_ms_per_tx", outcome.cpu.servers_ms as f64 / each),
        ("client_cpu_ms_per_tx", outcome.cpu.client_ms as f64 / each),
    ] {
        put(measured, name, value);
    }
    for kind in Kind::ALL {
        let t = tally.kind(kind);
        for (figure, value) in [
            ("committed", t.committed as f64),
            ("conflicts", t.conflicts as f64),
            ("conflict_percent", t.percent(t.conflicts)),
            ("mean_ms", t.response_us.mean() / 1000.0),
            ("p50_ms", t.response_ms(0.5)),
            ("p95_ms", t.response_ms(0.95)),
            ("p99_ms", t.response_ms(0.99)),
        ] {
            put(measured, &of_kind(kind, figure), value);
        }
    }
    measured.per_second = tally.per_second().to_vec();
}

fn put(measured: &mut Measured, name: &str, value: f64) {
    measured.figures.insert(name.to_string(), value);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cpu::CpuTimes;
    use crate::tpcc::tally::Tally;
    use crate::tpcc::transactions::Ended;

    /// The figures of clients with so many commits each; one of them has a transaction left after 12 s.
    fn figures(commits: &[u64]) -> Measured {
        let mut tally = Tally::new(1);
        let at = Some(Duration::ZERO);
        for _ in 0..commits.iter().sum::<u64>() {
            tally.ended(Kind::Payment, Ended::Committed, at, Duration::ZERO);
        }
        tally.left(Kind::NewOrder, Duration::from_secs(12));
        let outcome = Outcome {
            tally,
            commits: commits.to_vec(),
            cpu: CpuTimes {
                servers_ms: 1,
                client_ms: 1,
            },
            failure: None,
        };
        let mut measured = Measured::default();
        of_run(&outcome, 1, &mut measured);
        measured
    }

    #[test]
    fn starved_clients_are_told() {
        for (commits, slowest_percent, without) in [
            (&[40, 60, 10, 50][..], 25.0, 0.0),
            (&[100, 0, 0, 60], 0.0, 2.0),
            (&[0, 0], 0.0, 2.0),
        ] {
            let figures = figures(commits).figures;
            assert_eq!(figures[SLOWEST_CLIENT_PERCENT], slowest_percent);
            assert_eq!(figures[CLIENTS_WITHOUT_COMMIT], without);
            assert_eq!(figures[UNFINISHED], 1.0);
            assert_eq!(figures[OLDEST_UNFINISHED_MS], 12_000.0);
        }
    }
}
