//! Runs the same load without faults: measures stale reads and the cost of current reads.

use std::time::Duration;

use super::client::Isolation;
use super::history::Transaction;
use super::load::Load;
use super::stage::Stage;
use super::trial::{form, judge};
use super::{CrashError, Plan, isolation};
use trireme_lab::stats::{median, percentile};
use trireme_testbed::cluster::Cluster;
use trireme_testbed::interrupt;
use trireme_testbed::output::{line, piece};
use trireme_testbed::systems::Wsrep;
use trireme_testbed::table;

/// Duration of the load before the measurement.
const WARM_UP: Duration = Duration::from_secs(2);

/// The settings that are compared, the strongest first.
const WAYS: [(&str, Isolation); 3] = [
    (
        "sync_wait=1, snapshot ON",
        Isolation {
            snapshot: true,
            current: true,
        },
    ),
    (
        "sync_wait=0, snapshot ON",
        Isolation {
            snapshot: true,
            current: false,
        },
    ),
    (
        "sync_wait=0, snapshot OFF",
        Isolation {
            snapshot: false,
            current: false,
        },
    ),
];

/// Runs the load under each setting, each on a fresh cluster, and prints a table. Returns the number of settings that
/// broke their promise.
pub fn run(plan: &Plan, system: &Wsrep, stage: &Stage, seed: u64) -> Result<usize, CrashError> {
    let mut rows = Vec::new();
    let mut failed = 0;
    for (name, isolation) in WAYS {
        let mut cluster = stage.cluster("no-faults", plan, system, |_| {})?;
        form(&mut cluster)?;
        let load = Load::start(&cluster, plan.clients, isolation, seed);
        interrupt::sleep(WARM_UP + Duration::from_secs(plan.seconds))?;
        let history = load.stop();
        let mut violations = Vec::new();
        let tables = judge(&mut cluster, &history, isolation, &mut violations)?;
        let tables = &tables[0].1;
        let stale = isolation::stale_reads(&history, tables).len();
        let lost = isolation::lost_updates(&history, tables).len();
        rows.push(row(name, &history, plan.seconds, stale, lost));
        for violation in violations.iter().take(10) {
            line(&format!("{name}: {violation}"));
        }
        failed += usize::from(!violations.is_empty());
        cluster.kill()?;
        Cluster::clear(&cluster.settings().dir)?;
    }
    let header = [
        "sessions",
        "commits/s",
        "conflicts %",
        "first read ms",
        "99 %",
        "whole ms",
        "99 %",
        "reads",
        "stale reads",
        "read, then append",
        "lost updates",
    ];
    piece(&table::render(&header, &rows));
    Ok(failed)
}

fn row(
    name: &str,
    history: &[Transaction],
    seconds: u64,
    stale: usize,
    lost: usize,
) -> Vec<String> {
    let counted = || history.iter().filter(|t| t.began >= WARM_UP);
    let committed = || counted().filter(|t| t.is_committed());
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let reading = committed().filter_map(|t| t.first_read).map(ms).collect();
    let whole = committed()
        .filter(|t| t.first_read.is_some())
        .map(|t| ms(t.ended - t.began));
    let reads = history.iter().map(|t| t.reads.len()).sum::<usize>();
    let updates = history.iter().filter(|t| t.is_committed());
    let updates = updates.map(|t| {
        let keys = t.reads.iter().map(|read| read.key);
        keys.filter(|key| t.appends.iter().any(|(of, _)| of == key))
            .count()
    });
    let (all, done) = (counted().count(), committed().count());
    let [first_median, first_99] = middle_and_99th(reading);
    let [whole_median, whole_99] = middle_and_99th(whole.collect());
    vec![
        name.to_string(),
        format!("{:.0}", done as f64 / seconds as f64),
        format!("{:.1}", 100.0 * (all - done) as f64 / all.max(1) as f64),
        first_median,
        first_99,
        whole_median,
        whole_99,
        reads.to_string(),
        stale.to_string(),
        updates.sum::<usize>().to_string(),
        lost.to_string(),
    ]
}

fn middle_and_99th(mut times: Vec<f64>) -> [String; 2] {
    times.sort_by(f64::total_cmp);
    [median(&times), percentile(&times, 0.99)].map(|value| match value {
        Some(value) => format!("{value:.2}"),
        None => "-".to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_of_a_hundred_is_the_last_but_one() {
        let times = (1..=100).map(f64::from).collect();
        assert_eq!(middle_and_99th(times), ["50.50", "99.00"]);
        assert_eq!(middle_and_99th(Vec::new()), ["-", "-"]);
    }
}
