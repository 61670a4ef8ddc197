//! Every schedule written by hand reaches its situation, and nothing is violated in it.

use simulator::{directed, invariants, watch::Watch};

/// The seeds run in tests of their own, so that they share the processors.
fn stood(seed: u64) {
    for (name, directed) in directed::ALL {
        let (outcome, reached) = directed.run(seed, Watch::new(invariants::all()));
        assert_eq!(outcome.violation, None, "{name} --seed {seed}");
        assert_eq!(reached, Ok(()), "{name} --seed {seed}");
    }
}

#[test]
fn every_situation_is_reached_and_stood() {
    stood(0);
}

#[test]
fn every_situation_is_reached_and_stood_once_more() {
    stood(1);
}

#[test]
fn every_situation_is_reached_and_stood_a_third_time() {
    stood(2);
}
