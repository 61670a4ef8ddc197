//! What the measuring of stages costs a commit under the node's lock, clock included:
//! `cargo run --release -p trireme-node --example commit_clock`. Time of the processor counts, so that a busy machine measures the same.

use rustix::time::{ClockId, clock_gettime};
use trireme_node::{CommitClock, monotonic_ns};

const COMMITS: u64 = 2_000_000;
const ROUNDS: usize = 5;

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
