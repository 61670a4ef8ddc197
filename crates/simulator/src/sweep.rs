//! Runs many schedules.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::coverage::Coverage;
use crate::digest::{Digest, Digests};
use crate::edit::Edit;
use crate::run;

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);

/// The schedules to run.
pub struct Sweep {
    /// The seeds.
    pub seeds: Range<u64>,
    /// Only this profile; None: all take turns.
    pub profile: Option<String>,
    /// Go on after a violation.
    pub keep_going: bool,
    /// Number of threads.
    pub jobs: usize,
}

#[derive(Default)]
struct Sums {
    coverage: Coverage,
    events: Vec<u64>,
    faults: Vec<u64>,
    violations: u64,
    told: Option<Instant>,
}

impl Sweep {
    /// Runs all schedules; true if nothing was violated. The digests go to `digests`. Err: no such profile.
    pub fn run(&self, digests: Option<&Digests>) -> Result<bool, String> {
        Edit::whole(0, self.profile.clone()).plan()?;
        let next = AtomicU64::new(self.seeds.start);
        let sums = Mutex::new(Sums::default());
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| self.work(&next, &sums, digests, begun));
            }
        });
        let mut sums = sums.into_inner().unwrap_or_else(|e| e.into_inner());
        println!("{}", sums.coverage);
        println!("{}", sums.line(begun));
        Ok(sums.violations == 0)
    }

    fn work(
        &self,
        next: &AtomicU64,
        sums: &Mutex<Sums>,
        digests: Option<&Digests>,
        begun: Instant,
    ) {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.seeds.end {
                return;
            }
            let Ok(plan) = Edit::whole(seed, self.profile.clone()).plan() else {
                return;
            };
            let profile = plan.profile;
            let outcome = run::run_digested(plan, digests.map(|_| Digest::default()));
            if let (Some(digests), Some(digest)) = (digests, &outcome.watch.digest) {
                digests.take(format!("{seed} --profile {profile}"), digest);
            }
            let mut sums = sums.lock().unwrap_or_else(|e| e.into_inner());
            sums.events.push(outcome.events);
            sums.faults.push(outcome.coverage.faults.values().sum());
            sums.coverage.add(&outcome.coverage);
            if let Some(violation) = outcome.violation {
                sums.violations += 1;
                let text: String = violation
                    .text
                    .replace('\n', " ")
                    .chars()
                    .take(400)
                    .collect();
                println!(
                    "seed {seed} --profile {profile}: {}: {text}",
                    violation.what
                );
                if !self.keep_going {
                    next.store(self.seeds.end, Ordering::Relaxed);
                }
            }
            if sums.told.unwrap_or(begun).elapsed() >= PROGRESS {
                sums.told = Some(Instant::now());
                eprintln!("{}", sums.line(begun));
            }
        }
    }
}

impl Sums {
    fn line(&mut self, begun: Instant) -> String {
        let seconds = begun.elapsed().as_secs_f64();
        let schedules = self.events.len();
        let events: u64 = self.events.iter().sum();
        let [median_events, median_faults] = [&mut self.events, &mut self.faults].map(|all| {
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or(0)
        });
        let loaded = 100 * self.coverage.loaded_schedules / (schedules as u64).max(1);
        format!(
            "{schedules} schedules in {seconds:.1} s ({:.1}/s), {events} events ({:.0}/s), median {median_events} events \
             and {median_faults} faults, a view changed under load in {loaded} %, {} violations",
            schedules as f64 / seconds,
            events as f64 / seconds,
            self.violations,
        )
    }
}
