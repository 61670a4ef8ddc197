//! The time of a commit, by stage: a histogram of fixed size for each stage.
//!
//! In: the moments that an own write-set passes, with the time. Out: counts and percentiles. It never blocks, and
//! allocates only when it is made.

use hdrhistogram::Histogram;

use crate::state_file::{CommitTimes, StageTimes};

/// A part of a commit's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From certify() to the submission: flow control, and the way of a bulk payload to a majority.
    FlowControl,
    /// From the submission until the own log has the entry: the leader's answer.
    Ordering,
    /// Until a majority holds the entry, and this node knows that.
    Majority,
    /// Until the entry has its verdict.
    Certification,
    /// The wait in commit_order_enter(), for own and applied write-sets.
    CommitOrder,
    /// The time that the server applies another node's write-set.
    Apply,
    /// A write to the log.
    LogWrite,
    /// A flush of the log.
    LogFlush,
}

/// All stages, with their names.
pub const STAGES: [(Stage, &str); 8] = [
    (Stage::FlowControl, "flow_control"),
    (Stage::Ordering, "ordering"),
    (Stage::Majority, "majority"),
    (Stage::Certification, "certification"),
    (Stage::CommitOrder, "commit_order"),
    (Stage::Apply, "apply"),
    (Stage::LogWrite, "log_write"),
    (Stage::LogFlush, "log_flush"),
];

/// The longest time that a histogram distinguishes: a minute.
const LONGEST_NS: u64 = 60_000_000_000;
/// Significant digits of the histograms: percentiles are exact to 1 %.
const DIGITS: u8 = 2;
/// Number of slots for write-sets in flight. If more are in flight, some give no sample.
const IN_FLIGHT: usize = 1_024;

/// Percentiles of a stage, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Number of samples.
    pub count: u64,
    /// Half of the samples took no longer.
    pub p50_ns: u64,
    /// 99 of 100 samples took no longer.
    pub p99_ns: u64,
    /// The longest sample.
    pub max_ns: u64,
}

/// The times of each stage. A copy costs a fraction of a search for percentiles: see [`commit_times`].
#[derive(Clone, Debug)]
pub struct StageTimer(Vec<Histogram<u64>>);

impl Default for StageTimer {
    fn default() -> Self {
        let histogram = || Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        let all = STAGES.iter().map(|_| histogram());
        // The bounds are valid constants. Without histograms nothing would be recorded.
        StageTimer(all.collect::<Result<_, _>>().unwrap_or_default())
    }
}

impl StageTimer {
    /// Adds a sample of a stage.
    pub fn add(&mut self, stage: Stage, took_ns: u64) {
        if let Some(histogram) = self.0.get_mut(stage as usize) {
            histogram.saturating_record(took_ns.max(1));
        }
    }

    /// Removes all samples.
    pub fn reset(&mut self) {
        self.0.iter_mut().for_each(Histogram::reset);
    }

    /// Returns the percentiles of a stage.
    pub fn percentiles(&self, stage: Stage) -> Percentiles {
        let Some(histogram) = self.0.get(stage as usize).filter(|h| !h.is_empty()) else {
            return Percentiles::default();
        };
        Percentiles {
            count: histogram.len(),
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        }
    }
}

/// Returns the stages with samples, for the state-and-event file. The search goes through every histogram: call it with
/// copies, not under a lock.
pub fn commit_times(timers: &[&StageTimer]) -> Option<CommitTimes> {
    let mut times = CommitTimes::new();
    for (stage, name) in STAGES {
        let of = timers.iter().map(|timer| timer.percentiles(stage));
        for seen in of.filter(|seen| seen.count > 0) {
            let stage_times = StageTimes {
                count: seen.count,
                p50: seen.p50_ns / 1_000,
                p99: seen.p99_ns / 1_000,
                max: seen.max_ns / 1_000,
            };
            times.insert(name.to_owned(), stage_times);
        }
    }
    (!times.is_empty()).then_some(times)
}

/// An own write-set in flight.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    number: u64,
    at_ns: u64,
    is_appended: bool,
}

/// Follows own write-sets from certify() to their verdict.
#[derive(Debug)]
pub struct CommitClock {
    timer: StageTimer,
    /// Write-sets in flight, by submission number.
    in_flight: Box<[InFlight]>,
    /// Ids of transactions, with the time when each came to certify(), by id.
    asked: Box<[(u64, u64)]>,
    /// The time when the own write-set that is being certified was delivered; None if there is none.
    delivered_at_ns: Option<u64>,
    writes_since_ns: u64,
}

impl Default for CommitClock {
    fn default() -> Self {
        CommitClock {
            timer: StageTimer::default(),
            in_flight: vec![InFlight::default(); IN_FLIGHT].into(),
            asked: vec![(0, 0); IN_FLIGHT].into(),
            delivered_at_ns: None,
            writes_since_ns: 0,
        }
    }
}

impl CommitClock {
    /// Starts over for a new connection: its submission numbers start again.
    pub fn start_over(&mut self) {
        self.in_flight.fill(InFlight::default());
        self.asked.fill((0, 0));
        self.delivered_at_ns = None;
    }

    /// Removes all samples (FLUSH STATUS).
    pub fn reset(&mut self) {
        self.timer.reset();
    }

    /// Returns the measured times.
    pub fn timer(&self) -> &StageTimer {
        &self.timer
    }

    /// Notes that a transaction came to certify().
    pub fn asked(&mut self, trx: u64, at_ns: u64) {
        self.asked[slot(trx)] = (trx, at_ns);
    }

    /// Notes that the transaction's write-set is submitted under this number.
    pub fn submitted(&mut self, number: u64, trx: u64, at_ns: u64) {
        let (asked, since_ns) = self.asked[slot(trx)];
        if asked == trx && since_ns > 0 {
            self.took(Stage::FlowControl, since_ns, at_ns);
            self.asked[slot(trx)] = (0, 0);
        }
        self.in_flight[slot(number)] = InFlight {
            number,
            at_ns,
            is_appended: false,
        };
    }

    /// Notes that the own log has the write-set.
    pub fn appended(&mut self, number: u64, at_ns: u64) {
        let known = self.in_flight[slot(number)];
        if known.number != number || known.is_appended {
            return;
        }
        self.took(Stage::Ordering, known.at_ns, at_ns);
        self.in_flight[slot(number)] = InFlight {
            number,
            at_ns,
            is_appended: true,
        };
    }

    /// Notes that a majority holds the write-set.
    pub fn delivered(&mut self, number: u64, at_ns: u64) {
        let known = std::mem::take(&mut self.in_flight[slot(number)]);
        if known.number == number && known.is_appended {
            self.took(Stage::Majority, known.at_ns, at_ns);
            self.delivered_at_ns = Some(at_ns);
        }
    }

    /// Returns true if the last delivery was an own write-set whose verdict is not measured yet: call
    /// [`CommitClock::certified`] next.
    pub fn is_certifying(&self) -> bool {
        self.delivered_at_ns.is_some()
    }

    /// Notes that the last delivery has its verdict.
    pub fn certified(&mut self, at_ns: u64) {
        if let Some(since_ns) = self.delivered_at_ns.take() {
            self.took(Stage::Certification, since_ns, at_ns);
        }
    }

    /// Notes that a write of the log begins.
    pub fn log_write_begins(&mut self, at_ns: u64) {
        self.writes_since_ns = at_ns;
    }

    /// Notes that the write has ended.
    pub fn log_written(&mut self, at_ns: u64) {
        self.took(Stage::LogWrite, self.writes_since_ns, at_ns);
    }

    /// Adds the duration of a flush.
    pub fn log_flushed(&mut self, took_ns: u64) {
        self.timer.add(Stage::LogFlush, took_ns);
    }

    fn took(&mut self, stage: Stage, since_ns: u64, until_ns: u64) {
        self.timer.add(stage, until_ns.saturating_sub(since_ns));
    }
}

fn slot(id: u64) -> usize {
    (id % IN_FLIGHT as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_is_measured_from_the_one_before() {
        let mut clock = CommitClock::default();
        clock.asked(77, 1_000);
        clock.submitted(5, 77, 3_000);
        clock.appended(5, 10_000);
        clock.appended(5, 90_000);
        assert!(!clock.is_certifying());
        clock.delivered(5, 30_000);
        assert!(clock.is_certifying());
        clock.certified(31_000);
        clock.certified(99_000);
        let near = |stage, ns: u64| {
            let seen = clock.timer().percentiles(stage);
            assert_eq!(seen.count, 1, "{stage:?}");
            assert!(seen.p50_ns.abs_diff(ns) <= ns / 50, "{stage:?}: {seen:?}");
        };
        near(Stage::FlowControl, 2_000);
        near(Stage::Ordering, 7_000);
        near(Stage::Majority, 20_000);
        near(Stage::Certification, 1_000);
    }

    #[test]
    fn what_is_not_known_gives_no_sample() {
        let mut clock = CommitClock::default();
        clock.appended(5, 10);
        clock.delivered(5, 20);
        clock.certified(30);
        clock.submitted(6, 1, 40); // nobody has asked
        clock.submitted(6 + IN_FLIGHT as u64, 2, 50); // takes its place
        clock.appended(6, 60);
        for (stage, _) in STAGES {
            assert_eq!(clock.timer().percentiles(stage), Percentiles::default());
        }
        assert_eq!(commit_times(&[clock.timer()]), None);
    }

    #[test]
    fn percentiles_are_exact_to_one_percent_and_saturate() {
        let mut timer = StageTimer::default();
        for us in 1..=1_000 {
            timer.add(Stage::Apply, us * 1_000);
        }
        let seen = timer.percentiles(Stage::Apply);
        assert!(seen.p50_ns.abs_diff(500_000) <= 5_000, "{seen:?}");
        assert!(seen.p99_ns.abs_diff(990_000) <= 9_900, "{seen:?}");
        timer.add(Stage::Apply, u64::MAX);
        assert!(timer.percentiles(Stage::Apply).max_ns >= LONGEST_NS);
        let times = commit_times(&[&timer]).expect("some");
        assert_eq!(times.keys().collect::<Vec<_>>(), ["apply"]);
        timer.reset();
        assert_eq!(timer.percentiles(Stage::Apply).count, 0);
    }

    /// A node that applies 1,000 write-sets a second comes to 2^32 in 50 days.
    #[test]
    fn percentiles_stay_right_after_months() {
        let mut timer = StageTimer::default();
        for _ in 0..3 {
            let count = u32::MAX as _;
            timer.0[Stage::Apply as usize]
                .record_n(5_000, count)
                .unwrap();
        }
        let seen = timer.percentiles(Stage::Apply);
        assert!(seen.p50_ns.abs_diff(5_000) <= 50, "{seen:?}");
    }

    #[test]
    fn the_order_of_the_names_is_that_of_the_stages() {
        for (at, (stage, _)) in STAGES.iter().enumerate() {
            assert_eq!(*stage as usize, at);
        }
    }
}
