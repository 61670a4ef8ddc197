//! What the measuring of stages costs a commit under the node's lock, clock included; and what it costs to copy the histograms, under
//! that lock, and to look for percentiles, without it:
//! `cargo run --release -p trireme-node --example commit_clock`. Time of the processor counts, so that a busy machine measures the same.

use rustix::time::{ClockId, clock_gettime};
use trireme_node::{CommitClock, STAGES, StageTimer, commit_times, monotonic_ns};

const COMMITS: u64 = 2_000_000;
const ROUNDS: usize = 5;
const LOOKS: u32 = 1_000;

fn main() {
    let mut clock = CommitClock::default();
    let mut costs: Vec<f64> = (0..ROUNDS as u64)
        .map(|round| {
            let began_ns = cpu_ns();
            for number in round * COMMITS + 1..=(round + 1) * COMMITS {
                commit(&mut clock, number);
            }
            (cpu_ns() - began_ns) as f64 / COMMITS as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!(
        "{:.0} ns per commit (median of {ROUNDS} rounds of {COMMITS}; least {:.0}, most {:.0})",
        costs[ROUNDS / 2],
        costs[0],
        costs[ROUNDS - 1]
    );
    for (longest, longest_ns) in [("10 ms", 10_000_000), ("a minute", 60_000_000_000)] {
        let timer = spread(longest_ns);
        let copied = cost_us(|| timer.clone());
        let looked = cost_us(|| commit_times(&[&timer]));
        println!(
            "stages of up to {longest}: {copied:.1} us to copy the histograms, {looked:.1} us to look for percentiles"
        );
    }
}

/// Samples in every stage, evenly up to this.
fn spread(longest_ns: u64) -> StageTimer {
    let mut timer = StageTimer::default();
    for (stage, _) in STAGES {
        (1..=1_000).for_each(|part| timer.add(stage, longest_ns / 1_000 * part));
    }
    timer
}

fn cost_us<T>(act: impl Fn() -> T) -> f64 {
    let began_ns = cpu_ns();
    for _ in 0..LOOKS {
        std::hint::black_box(act());
    }
    (cpu_ns() - began_ns) as f64 / f64::from(LOOKS) / 1_000.0
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// All that an own commit does to the clock.
fn commit(clock: &mut CommitClock, number: u64) {
    clock.asked(number, monotonic_ns());
    clock.submitted(number, number, monotonic_ns());
    clock.appended(number, monotonic_ns());
    clock.log_write_begins(monotonic_ns());
    clock.log_written(monotonic_ns());
    clock.delivered(number, monotonic_ns());
    if clock.is_certifying() {
        clock.certified(monotonic_ns());
    }
}
