//! Every schedule written by hand reaches its situation, and nothing is violated in it.

use simulator::{directed, invariants, watch::Watch};

#[test]
fn every_situation_is_reached_and_stood() {
    for (name, directed) in directed::ALL {
        for seed in 0..3 {
            let (outcome, reached) = directed.run(seed, Watch::new(invariants::all()));
            assert_eq!(outcome.violation, None, "{name} --seed {seed}");
            assert_eq!(reached, Ok(()), "{name} --seed {seed}");
        }
    }
}
