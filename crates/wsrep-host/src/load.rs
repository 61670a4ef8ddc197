//! Clients that commit one write-set after the other.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use trireme_wsrep_abi::host::HostError;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::commits::{Commits, WriteSet};
use crate::protocol::{LoadPlan, LoadResult};
use crate::sequence::Sequence;
use crate::usage::Usage;

/// Rows that only one client changes, per client.
const OWN_ROWS: u64 = 100_000;

/// Rows that all nodes change.
const HOT_ROWS: u64 = 16;

/// Rows that a write-set changes.
const ROWS_PER_WRITE_SET: usize = 2;

/// Runs a load to its end.
pub fn run(
    plan: &LoadPlan,
    commits: &dyn Commits,
    sequence: &Sequence,
) -> Result<LoadResult, HostError> {
    let warmup = Duration::from_millis(plan.warmup_ms);
    let measured = Duration::from_millis(plan.measured_ms);
    let stop = AtomicBool::new(false);
    // The clients and this thread.
    let ready = Barrier::new(plan.clients as usize + 1);
    let (clients, spent) = thread::scope(|scope| {
        let handles: Vec<_> = (0..plan.clients)
            .map(|n| {
                let (stop, ready) = (&stop, &ready);
                let number = plan.first_client + n;
                scope.spawn(move || {
                    ready.wait();
                    let mut client = Client::new(plan, number, Instant::now() + warmup);
                    let result = client.run(plan, commits, sequence, stop);
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    result.map(|()| client)
                })
            })
            .collect();
        ready.wait();
        // The clients continue until this thread has seen both ends of the measured time.
        sleep(warmup, &stop);
        let before = Usage::now();
        sleep(measured, &stop);
        let spent = Usage::now().since(before);
        stop.store(true, Ordering::Relaxed);
        let clients: Vec<_> = handles
            .into_iter()
            .map(|handle| {
                handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect();
        (clients, spent)
    });
    let mut result = LoadResult {
        cpu_us: spent.cpu.as_micros() as u64,
        voluntary_switches: spent.voluntary_switches,
        per_second: vec![0; plan.measured_ms.div_ceil(1000) as usize],
        ..LoadResult::default()
    };
    let mut latency = histogram();
    for client in clients {
        let client = client?;
        result.write_sets += client.write_sets;
        result.conflicts += client.conflicts;
        for (sum, n) in result.per_second.iter_mut().zip(&client.per_second) {
            *sum += n;
        }
        // Both histograms have the same bounds.
        let _ = latency.add(&client.latency_ns);
    }
    let buckets = latency.iter_recorded();
    result.latency_ns = buckets
        .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
        .collect();
    result.last_seqno = sequence.digest().last;
    Ok(result)
}

/// Sleeps, unless a client has failed.
fn sleep(time: Duration, stop: &AtomicBool) {
    let end = Instant::now() + time;
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(Duration::from_millis(50)));
    }
}

/// A histogram from a nanosecond to a minute, with a resolution of 1 %.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("the bounds are in order")
}

/// One client, with its counts of the measured time.
struct Client {
    number: u64,
    begin: Instant,
    end: Instant,
    write_sets: u64,
    conflicts: u64,
    per_second: Vec<u64>,
    latency_ns: Histogram<u64>,
}

impl Client {
    fn new(plan: &LoadPlan, number: u64, begin: Instant) -> Self {
        Self {
            number,
            begin,
            end: begin + Duration::from_millis(plan.measured_ms),
            write_sets: 0,
            conflicts: 0,
            per_second: vec![0; plan.measured_ms.div_ceil(1000) as usize],
            latency_ns: histogram(),
        }
    }

    fn run(
        &mut self,
        plan: &LoadPlan,
        commits: &dyn Commits,
        sequence: &Sequence,
        stop: &AtomicBool,
    ) -> Result<(), HostError> {
        let mut payload = vec![0; plan.payload_bytes];
        let mut due = Pace::new(plan, self.number, Instant::now());
        for n in 0_u64.. {
            let Some(start) = due.next(stop) else {
                break;
            };
            let rows = rows(self.number, n, plan.hot_percent);
            // No two payloads are the same, so that the nodes' hashes tell them apart.
            for (i, byte) in self
                .number
                .to_le_bytes()
                .iter()
                .chain(&n.to_le_bytes())
                .enumerate()
            {
                if let Some(place) = payload.get_mut(i) {
                    *place = *byte;
                }
            }
            let write_set = WriteSet {
                connection: self.number,
                // Unique on the node, and never 0.
                id: (self.number + 1) << 40 | n,
                rows: &rows,
                payload: &payload,
            };
            let hash = xxhash_rust::xxh3::xxh3_64(&payload);
            let committed = commits.commit(&write_set, &|seqno, commits| {
                sequence.add(seqno, commits.then_some(hash));
            })?;
            self.count(start, Instant::now(), committed);
        }
        self.count_unbegun(due);
        Ok(())
    }

    fn count(&mut self, start: Instant, now: Instant, committed: bool) {
        if now >= self.end && committed {
            self.count_unfinished(start);
        }
        if now < self.begin || now >= self.end {
            return;
        }
        match committed {
            true => {
                self.write_sets += 1;
                self.per_second[(now - self.begin).as_secs() as usize] += 1;
                self.latency_ns
                    .saturating_record((now - start).as_nanos() as u64);
            }
            false => self.conflicts += 1,
        }
    }
}

impl Client {
    /// A write-set that was due in the measured time, and is not committed at its end, took at least until then. Without
    /// these, no latency would show a library that stands still at the end.
    fn count_unfinished(&mut self, start: Instant) {
        if start < self.end {
            self.latency_ns
                .saturating_record((self.end - start).as_nanos() as u64);
        }
    }

    fn count_unbegun(&mut self, due: Pace) {
        let Some(interval) = due.interval else {
            return;
        };
        let mut start = due.next;
        while start < self.end {
            self.count_unfinished(start);
            start += interval;
        }
    }
}

/// When a client's write-sets are due.
struct Pace {
    interval: Option<Duration>,
    next: Instant,
}

impl Pace {
    fn new(plan: &LoadPlan, number: u64, now: Instant) -> Self {
        let interval = plan.interval_us.map(Duration::from_micros);
        // Clients start at different times within one interval.
        let share = (random(number, u64::MAX) >> 40) as f64 / (1_u64 << 24) as f64;
        let offset = interval.unwrap_or_default().mul_f64(share);
        Self {
            interval,
            next: now + offset,
        }
    }

    /// Returns the moment from which the next write-set's latency counts, after that moment has come; `None` when the
    /// load is over.
    fn next(&mut self, stop: &AtomicBool) -> Option<Instant> {
        let Some(interval) = self.interval else {
            return (!stop.load(Ordering::Relaxed)).then(Instant::now);
        };
        let due = self.next;
        sleep(due.saturating_duration_since(Instant::now()), stop);
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        self.next += interval;
        Some(due)
    }
}

/// Returns the rows of a client's `n`th write-set. They are the client's own. In `hot_percent` of the write-sets the
/// first row is one of the few that all nodes change.
fn rows(client: u64, n: u64, hot_percent: f64) -> [u64; ROWS_PER_WRITE_SET] {
    let draw = random(client, n);
    let own = HOT_ROWS + client * OWN_ROWS;
    let mut rows: [u64; ROWS_PER_WRITE_SET] =
        std::array::from_fn(|i| own + random(draw, i as u64) % OWN_ROWS);
    let share = (draw >> 40) as f64 / (1_u64 << 24) as f64;
    if share * 100.0 < hot_percent {
        rows[0] = draw % HOT_ROWS;
    }
    rows
}

/// A number that looks random, and is the same for the same arguments.
fn random(seed: u64, n: u64) -> u64 {
    xxh3_64_with_seed(&n.to_le_bytes(), seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commits::Null;

    fn plan() -> LoadPlan {
        LoadPlan {
            clients: 3,
            first_client: 6,
            warmup_ms: 20,
            measured_ms: 200,
            hot_percent: 0.0,
            payload_bytes: 32,
            interval_us: None,
        }
    }

    #[test]
    fn what_commits_is_counted() {
        let (null, sequence) = (Null::default(), Sequence::default());
        let result = run(&plan(), &null, &sequence).unwrap();
        assert!(result.write_sets > 0);
        assert_eq!(result.per_second, [result.write_sets]);
        let recorded: u64 = result.latency_ns.iter().map(|(_, count)| count).sum();
        // One of each client may be in hand at the end.
        assert!((result.write_sets..=result.write_sets + 3).contains(&recorded));
        // Those before and after the measured time are in the sequence, too.
        assert!(sequence.digest().committed > result.write_sets);
        assert_eq!(result.last_seqno as u64, sequence.digest().committed);
    }

    #[test]
    fn a_rate_is_kept() {
        let paced = LoadPlan {
            measured_ms: 1_000,
            interval_us: Some(10_000),
            ..plan()
        };
        let result = run(&paced, &Null::default(), &Sequence::default()).unwrap();
        // 3 clients, 100 write-sets each; a busy machine does not lose any for good.
        assert!((225..=303).contains(&result.write_sets), "{result:?}");
    }

    /// Commits nothing more after its hundredth write-set, until this time has passed.
    struct StandsStill(std::sync::atomic::AtomicU64, Duration);

    impl Commits for StandsStill {
        fn commit(&self, _: &WriteSet<'_>, _: &dyn Fn(i64, bool)) -> Result<bool, HostError> {
            if self.0.fetch_add(1, Ordering::Relaxed) >= 100 {
                thread::sleep(self.1);
            }
            Ok(true)
        }

        fn last_committed(&self) -> Result<i64, HostError> {
            Ok(0)
        }
    }

    #[test]
    fn a_library_that_stands_still_at_the_end_has_long_latencies() {
        let paced = LoadPlan {
            clients: 1,
            warmup_ms: 0,
            measured_ms: 1_000,
            interval_us: Some(5_000),
            ..plan()
        };
        let stands = StandsStill(0.into(), Duration::from_secs(2));
        let result = run(&paced, &stands, &Sequence::default()).unwrap();
        // A hundred in the first half of the second, then nothing more: half of all were due later.
        assert!(result.write_sets <= 101, "{result:?}");
        let slow = result.latency_ns.iter().filter(|(ns, _)| *ns > 100_000_000);
        let slow: u64 = slow.map(|(_, count)| count).sum();
        assert!((60..=100).contains(&slow), "{slow}");
    }

    #[test]
    fn hot_rows_have_their_share_and_own_rows_one_client() {
        let hot = |percent: f64| {
            (0..10_000)
                .filter(|n| rows(5, *n, percent)[0] < HOT_ROWS)
                .count()
        };
        assert_eq!((hot(0.0), hot(100.0)), (0, 10_000));
        assert!((800..1_200).contains(&hot(10.0)), "{}", hot(10.0));
        let of = |client| (0..1_000).flat_map(move |n| rows(client, n, 0.0));
        let (least, most) = (of(6).min().unwrap(), of(5).max().unwrap());
        assert!(most < least);
    }

    /// Fails at its third write-set.
    struct Breaks(std::sync::atomic::AtomicU64);

    impl Commits for Breaks {
        fn commit(&self, _: &WriteSet<'_>, _: &dyn Fn(i64, bool)) -> Result<bool, HostError> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0..2 => Ok(true),
                _ => Err(HostError::Nul),
            }
        }

        fn last_committed(&self) -> Result<i64, HostError> {
            Ok(0)
        }
    }

    #[test]
    fn a_failure_ends_the_load_at_once() {
        let long = LoadPlan {
            measured_ms: 60_000,
            ..plan()
        };
        let began = Instant::now();
        assert!(run(&long, &Breaks(0.into()), &Sequence::default()).is_err());
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}
