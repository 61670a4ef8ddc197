//! The reports of one client process, on the clock of the run.

use trireme_testbed::sysbench_report::{Bucket, IntervalReport, Summary};

use crate::frame::LabError;

/// The end of a process.
pub(super) enum Ended {
    /// The run was over.
    Finished(Summary, Vec<Bucket>),
    /// Waiting transactions filled the queue.
    Saturated,
    /// It was stopped, because another process broke off.
    Stopped,
    /// It failed.
    Failed(LabError),
}

impl Ended {
    /// Whether the load is no longer the same without this process.
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::Saturated | Self::Failed(_))
    }
}

/// The reports of one process.
pub(super) struct Client {
    /// The reports of its seconds, in order.
    reports: Vec<IntervalReport>,
    /// The begin of its load on the clock of the run, in seconds; `None` before the first report.
    begin: Option<f64>,
    /// The end of the process.
    pub ended: Ended,
}

impl Client {
    /// A process without reports yet. It counts as stopped until it ends by itself.
    pub fn new() -> Self {
        Self {
            reports: Vec::new(),
            begin: None,
            ended: Ended::Stopped,
        }
    }

    /// A process that never ran.
    pub fn failed(error: LabError) -> Self {
        Self {
            ended: Ended::Failed(error),
            ..Self::new()
        }
    }

    /// Takes further reports, which are there at `now` on the clock of the run, in seconds.
    pub fn take(&mut self, reports: Vec<IntervalReport>, now: f64) {
        if let Some(last) = reports.last() {
            self.has_run(last.second, now);
        }
        self.reports.extend(reports);
    }

    /// Notes the end, which is seen at `now` on the clock of the run, in seconds.
    pub fn end(&mut self, ended: Ended, now: f64) {
        if let Ended::Finished(summary, _) = &ended {
            self.has_run(summary.seconds, now);
        }
        self.ended = ended;
    }

    /// At `now` the process has run for so many seconds, or for longer, since news come late: the earliest begin counts.
    fn has_run(&mut self, seconds: f64, now: f64) {
        let begin = now - seconds;
        self.begin = Some(self.begin.map_or(begin, |known| known.min(begin)));
    }

    /// The commits in each second. sysbench does not always report the last second: then it gets the rest of the
    /// summary's total.
    pub fn commits(&self, seconds: u64) -> Course {
        let mut all: Vec<f64> = self.reports.iter().map(|r| r.tps.round()).collect();
        if let Ended::Finished(summary, _) = &self.ended {
            if all.len() as u64 + 1 == seconds {
                let rest = summary.transactions as f64 - all.iter().sum::<f64>();
                all.push(rest.max(0.0));
            }
        }
        self.course(all)
    }

    /// The conflicts in each second that is reported.
    pub fn conflicts(&self) -> Course {
        let all = self.reports.iter().map(|r| r.conflicts_per_s.round());
        self.course(all.collect())
    }

    fn course(&self, per_second: Vec<f64>) -> Course {
        Course {
            begin: self.begin.unwrap_or(0.0),
            per_second,
        }
    }
}

/// A count in each second of a process, from its begin on the clock of the run.
pub(super) struct Course {
    begin: f64,
    per_second: Vec<f64>,
}

impl Course {
    /// The count until `at` on the clock of the run, in seconds. A second that is not over then counts in proportion.
    fn until(&self, at: f64) -> f64 {
        let passed = |i: usize| (at - self.begin - i as f64).clamp(0.0, 1.0);
        let counts = self.per_second.iter().enumerate();
        counts.map(|(i, count)| passed(i) * count).sum()
    }

    /// The count between two times on the clock of the run, in seconds.
    pub fn between(&self, from: f64, to: f64) -> f64 {
        self.until(to) - self.until(from)
    }
}

/// The time in which all processes ran: its begin on the clock of the run and its length, in seconds; 0 if there is none.
pub(super) fn common(courses: &[Course]) -> (f64, f64) {
    let begins = courses.iter().map(|c| c.begin);
    let from = begins.reduce(f64::max).unwrap_or(0.0);
    // In this order, so that a course alone has exactly its own length.
    let left = |c: &Course| (c.begin - from) + c.per_second.len() as f64;
    let length = courses.iter().map(left).reduce(f64::min);
    (from, length.unwrap_or(0.0).max(0.0))
}

#[cfg(test)]
impl Client {
    /// A client that began at `begin` and has reported these seconds, with 2 conflicts in each.
    pub fn reported(begin: f64, tps: &[f64], ended: Ended) -> Self {
        let report = |(second, tps): (u32, &f64)| IntervalReport {
            second: f64::from(second),
            tps: *tps,
            p95_ms: 1.0,
            conflicts_per_s: 2.0,
        };
        Self {
            reports: (1..).zip(tps).map(report).collect(),
            begin: Some(begin),
            ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_news_tell_the_begin_of_a_client() {
        let reports = Client::reported(0.0, &[1.0; 3], Ended::Stopped).reports;
        let mut client = Client::new();
        client.take(Vec::new(), 0.1);
        assert_eq!(client.begin, None);
        client.take(reports[..1].to_vec(), 1.5);
        client.take(reports[1..].to_vec(), 3.25);
        assert_eq!(client.begin, Some(0.25));
        // A run of a second has no report.
        let mut short = Client::new();
        let summary = Summary {
            transactions: 5,
            conflicts: 0,
            seconds: 1.25,
            mean_ms: 1.0,
            p95_ms: 1.0,
        };
        short.end(Ended::Finished(summary, Vec::new()), 2.0);
        assert_eq!(short.begin, Some(0.75));
        assert_eq!(short.commits(1).per_second, [5.0]);
    }
}
