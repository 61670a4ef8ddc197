//! The same seed gives the same run, bit by bit.

use simulator::plan::Plan;
use simulator::watch::Watch;
use simulator::{invariants, profiles, run};

fn fingerprint(seed: u64) -> (u64, u64, Option<u64>) {
    let mut watch = Watch::new(invariants::all());
    watch.fingerprint = Some(0);
    let outcome = run::run_watched(Plan::new(profiles::by_turn(seed), seed), watch);
    (outcome.events, outcome.ended_us, outcome.watch.fingerprint)
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    for seed in 0..profiles::ALL.len() as u64 {
        assert_eq!(fingerprint(seed), fingerprint(seed), "seed {seed}");
    }
}

#[test]
fn another_seed_gives_another_run() {
    assert_ne!(fingerprint(1), fingerprint(13));
}
