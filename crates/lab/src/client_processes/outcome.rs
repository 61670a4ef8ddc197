//! Adds up the reports of the client processes: counts, latencies and commits per second.
//!
//! The processes start one after the other, and each counts its seconds from its own begin. Throughput is of the time in
//! which all of them ran: outside of it, the ones that run have the servers for themselves.

use trireme_testbed::sysbench_report::{Bucket, Summary};

use super::LOOK;
use super::client::{Client, Course, Ended, common};
use crate::cpu::CpuTimes;
use crate::frame::{LabError, Measured, Record};
use crate::stats::{percentile, standard_deviation};

/// The figure: the processes that ended because the servers cannot hold the rate.
pub const SATURATED: &str = "saturated_clients";

/// The figure: 1 if the clients' rate limited the throughput, else 0; missing without a rate.
const LIMITED: &str = "limited_by_rate";

/// With at least this share of the rate, the servers may be able to do more.
const LIMIT: f64 = 0.97;

/// Whether the rate of the clients limited a measurement: its throughput says nothing about the servers.
pub fn is_limited(record: &Record) -> bool {
    let limited = record.measured.figures.get(LIMITED);
    record.complete && limited.is_some_and(|limited| *limited > 0.0)
}

/// The latencies of transactions over all processes. With a rate they include the wait for a free thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latencies {
    /// The mean.
    pub mean_ms: f64,
    /// The median. This and the following percentiles are exact to 2 %.
    pub p50_ms: f64,
    /// The 95th percentile.
    pub p95_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
}

impl Latencies {
    /// The latencies of transactions counted by latency; None if there are none.
    fn of(buckets: &[Bucket], mean_ms: f64) -> Option<Self> {
        let mut sorted = buckets.to_vec();
        sorted.sort_by(|a, b| a.ms.total_cmp(&b.ms));
        let all: u64 = sorted.iter().map(|b| b.transactions).sum();
        let at = |share: f64| {
            let rank = (share * all as f64).ceil() as u64;
            let mut passed = 0;
            let bucket = sorted.iter().find(|bucket| {
                passed += bucket.transactions;
                passed >= rank
            });
            bucket.map(|bucket| bucket.ms)
        };
        (all > 0).then_some(Self {
            mean_ms,
            p50_ms: at(0.5)?,
            p95_ms: at(0.95)?,
            p99_ms: at(0.99)?,
        })
    }
}

/// The sum of all processes' reports.
pub struct Outcome {
    /// The commits in the time in which all processes ran.
    pub transactions: u64,
    /// The commits of the whole run, to which its processor time belongs. If a process broke off: as `transactions`.
    pub commits: u64,
    /// The transactions that lost against another one and were retried, among those of `commits`.
    pub conflicts: u64,
    /// The time in which all processes ran.
    pub seconds: f64,
    /// The commits of all processes in each whole second of this time.
    pub per_second: Vec<u64>,
    /// The commits of each process.
    pub per_client: Vec<u64>,
    /// The latencies; `None` if a process broke off, because sysbench prints them only at its end.
    pub latencies: Option<Latencies>,
    /// The processes that ended because the servers cannot hold the rate. The others were stopped then.
    pub saturated: usize,
    /// The other reason why the run ended early, if there is one.
    pub failure: Option<LabError>,
}

impl Outcome {
    /// Commits per second.
    pub fn tps(&self) -> f64 {
        match self.seconds > 0.0 {
            true => self.transactions as f64 / self.seconds,
            false => 0.0,
        }
    }

    /// Fails if all processes together ran for less than half of a run of `seconds`, because they began far apart. A load
    /// that the system cannot hold ends early for another reason.
    pub(super) fn check_common_time(&self, seconds: u64) -> Result<(), LabError> {
        match self.saturated == 0 && self.seconds < seconds as f64 / 2.0 {
            true => Err(LabError::Apart {
                together: self.seconds,
                seconds,
            }),
            false => Ok(()),
        }
    }

    /// Writes the figures, the seconds, and the processor time `spent`. `offered`: the transactions per second that all
    /// processes together offered at most.
    pub(super) fn put(&self, offered: Option<f64>, spent: CpuTimes, measured: &mut Measured) {
        let mut put = |name: &str, value: f64| {
            measured.figures.insert(name.to_string(), value);
        };
        let each = self.commits.max(1) as f64;
        put("tps", self.tps());
        if let Some(offered) = offered {
            put(LIMITED, f64::from(self.tps() >= LIMIT * offered));
        }
        put("transactions", self.transactions as f64);
        put("seconds", self.seconds);
        put("conflicts", self.conflicts as f64);
        put(
            "conflict_percent",
            100.0 * self.conflicts as f64 / (each + self.conflicts as f64),
        );
        put(SATURATED, self.saturated as f64);
        put("server_cpu_ms_per_tx", spent.servers_ms as f64 / each);
        put("client_cpu_ms_per_tx", spent.client_ms as f64 / each);
        let mut seconds: Vec<f64> = self.per_second.iter().map(|n| *n as f64).collect();
        seconds.sort_by(f64::total_cmp);
        put("tps_sd", standard_deviation(&seconds).unwrap_or(0.0));
        put("slowest_second", percentile(&seconds, 0.0).unwrap_or(0.0));
        let clients = || self.per_client.iter().map(|n| *n as f64);
        if let (Some(least), Some(most)) = (clients().reduce(f64::min), clients().reduce(f64::max))
        {
            put("least_to_most_client", least / most.max(1.0));
        }
        if let Some(latencies) = self.latencies {
            put("mean_ms", latencies.mean_ms);
            put("p50_ms", latencies.p50_ms);
            put("p95_ms", latencies.p95_ms);
            put("p99_ms", latencies.p99_ms);
        }
        measured.per_second.clone_from(&self.per_second);
    }
}

/// Adds up the clients' reports of a run of `seconds`.
pub(super) fn add_up(clients: Vec<Client>, seconds: u64) -> Outcome {
    let courses: Vec<Course> = clients.iter().map(|c| c.commits(seconds)).collect();
    let (from, length) = common(&courses);
    let in_common = |course: &Course| course.between(from, from + length).round() as u64;
    // Sums that are rounded once, so that the seconds add up to the whole.
    let until = |second: u64| {
        let to = from + second as f64;
        courses
            .iter()
            .map(|c| c.between(from, to))
            .sum::<f64>()
            .round() as u64
    };
    // The begins are known no better than this.
    let whole = (length + LOOK.as_secs_f64()).floor() as u64;
    let transactions = courses.iter().map(|c| c.between(from, from + length));
    let transactions = transactions.sum::<f64>().round() as u64;
    let mut outcome = Outcome {
        transactions,
        commits: transactions,
        conflicts: clients.iter().map(|c| in_common(&c.conflicts())).sum(),
        seconds: length,
        per_second: (0..whole).map(|n| until(n + 1) - until(n)).collect(),
        per_client: courses.iter().map(in_common).collect(),
        latencies: None,
        saturated: 0,
        failure: None,
    };
    let mut summaries = Vec::new();
    let mut buckets = Vec::new();
    let all = clients.len();
    for client in clients {
        match client.ended {
            Ended::Finished(summary, latencies) => {
                summaries.push(summary);
                buckets.extend(latencies);
            }
            Ended::Saturated => outcome.saturated += 1,
            Ended::Stopped => {}
            Ended::Failed(error) => {
                outcome.failure.get_or_insert(error);
            }
        }
    }
    if summaries.len() == all {
        outcome.finish(&summaries, &buckets);
    }
    outcome
}

impl Outcome {
    /// Uses the summaries of the finished processes for what is of the whole run.
    fn finish(&mut self, summaries: &[Summary], buckets: &[Bucket]) {
        self.commits = summaries.iter().map(|s| s.transactions).sum();
        self.conflicts = summaries.iter().map(|s| s.conflicts).sum();
        self.per_client = summaries.iter().map(|s| s.transactions).collect();
        let total_ms: f64 = summaries
            .iter()
            .map(|s| s.mean_ms * s.transactions as f64)
            .sum();
        let mean_ms = total_ms / self.commits.max(1) as f64;
        self.latencies = Latencies::of(buckets, mean_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(begin: f64, tps: &[f64], transactions: u64, buckets: &[(f64, u64)]) -> Client {
        let summary = Summary {
            transactions,
            conflicts: 7,
            seconds: 3.25,
            mean_ms: 2.0,
            p95_ms: 3.0,
        };
        let bucket = |(ms, transactions): &(f64, u64)| Bucket {
            ms: *ms,
            transactions: *transactions,
        };
        let ended = Ended::Finished(summary, buckets.iter().map(bucket).collect());
        Client::reported(begin, tps, ended)
    }

    #[test]
    fn clients_add_up_and_the_untold_last_second_is_the_rest() {
        let first = finished(0.0, &[10.0, 20.0], 60, &[(1.0, 50), (9.0, 10)]);
        let second = finished(0.0, &[1.0, 2.0, 3.0], 6, &[(2.0, 6)]);
        let outcome = add_up(vec![first, second], 3);
        assert_eq!(outcome.per_second, [11, 22, 33]);
        assert_eq!(outcome.per_client, [60, 6]);
        assert_eq!((outcome.transactions, outcome.conflicts), (66, 14));
        assert_eq!((outcome.commits, outcome.tps()), (66, 22.0));
        let latencies = outcome.latencies.unwrap();
        assert_eq!((latencies.p50_ms, latencies.p95_ms), (1.0, 9.0));
        assert_eq!(latencies.mean_ms, 2.0);
        assert!(outcome.saturated == 0 && outcome.failure.is_none());
    }

    #[test]
    fn a_full_queue_is_told_and_only_common_seconds_count() {
        let full = Client::reported(0.0, &[10.0, 10.0], Ended::Saturated);
        let stopped = Client::reported(0.0, &[5.0, 5.0, 5.0], Ended::Stopped);
        let outcome = add_up(vec![stopped, full], 30);
        assert_eq!((outcome.saturated, outcome.seconds), (1, 2.0));
        assert_eq!(outcome.per_second, [15, 15]);
        assert_eq!((outcome.transactions, outcome.conflicts), (30, 8));
        assert!(outcome.failure.is_none() && outcome.latencies.is_none());
        let mut measured = Measured::default();
        let spent = CpuTimes {
            servers_ms: 60,
            client_ms: 30,
        };
        outcome.put(None, spent, &mut measured);
        assert!(!measured.figures.contains_key(LIMITED));
        assert_eq!(measured.figures["saturated_clients"], 1.0);
        assert_eq!(measured.figures["tps"], 15.0);
        assert_eq!(measured.figures["server_cpu_ms_per_tx"], 2.0);
        assert_eq!(measured.figures["least_to_most_client"], 0.5);
        assert!(!measured.figures.contains_key("p95_ms"));
    }

    /// Two clients that share 20 commits per second, the second of which begins `late` seconds after the first.
    fn staggered(late: f64) -> Outcome {
        let alone = 20.0;
        let both = 10.0;
        let first = [both + (alone - both) * late, both, both];
        let second = [both, both, both + (alone - both) * late];
        let clients = [(0.25, first), (0.25 + late, second)]
            .map(|(begin, tps)| finished(begin, &tps, tps.iter().sum::<f64>() as u64, &[(1.0, 1)]));
        add_up(clients.into(), 3)
    }

    #[test]
    fn only_the_time_counts_in_which_all_clients_run() {
        let outcome = staggered(1.0);
        assert_eq!((outcome.seconds, outcome.tps()), (2.0, 20.0));
        assert_eq!(outcome.per_second, [20, 20]);
        assert_eq!((outcome.transactions, outcome.commits), (40, 80));
        // A second of the first client straddles two of the common ones.
        let first = Client::reported(0.0, &[10.0, 20.0, 30.0], Ended::Stopped);
        let second = Client::reported(0.5, &[1.0, 1.0, 1.0], Ended::Stopped);
        let outcome = add_up(vec![first, second], 30);
        assert_eq!((outcome.seconds, outcome.transactions), (2.5, 58));
        assert_eq!(outcome.per_second, [16, 26]);
        assert_eq!(outcome.per_client, [55, 3]);
        // The begins are not known that exactly.
        let outcome = staggered(0.03);
        assert_eq!(outcome.per_second.len(), 3);
        assert!((outcome.tps() - 20.0).abs() < 0.3, "{}", outcome.tps());
        assert_eq!(staggered(4.0).tps(), 0.0);
    }

    #[test]
    fn clients_that_begin_far_apart_measure_nothing() {
        assert!(staggered(1.0).check_common_time(3).is_ok());
        let error = staggered(2.0).check_common_time(3).unwrap_err();
        assert!(error.to_string().contains("only 1.0 of 3 s"), "{error}");
        let mut saturated = staggered(2.0);
        saturated.saturated = 1;
        assert!(saturated.check_common_time(3).is_ok());
    }

    #[test]
    fn a_throughput_near_the_rate_shows_the_rate() {
        let limited = |tps: f64| {
            let mut outcome = add_up(Vec::new(), 10);
            (outcome.transactions, outcome.seconds) = (10 * tps as u64, 10.0);
            let mut measured = Measured::default();
            let spent = CpuTimes {
                servers_ms: 0,
                client_ms: 0,
            };
            outcome.put(Some(2000.0), spent, &mut measured);
            measured.figures[LIMITED]
        };
        assert_eq!((limited(1930.0), limited(1940.0)), (0.0, 1.0));
    }

    #[test]
    fn a_client_that_failed_is_the_failure() {
        let clients = vec![
            finished(0.0, &[1.0], 1, &[(1.0, 1)]),
            Client::failed(LabError::Client),
        ];
        let outcome = add_up(clients, 1);
        assert!(matches!(outcome.failure, Some(LabError::Client)));
        assert_eq!((outcome.transactions, outcome.tps()), (0, 0.0));
        assert!(add_up(Vec::new(), 1).per_second.is_empty());
    }
}
