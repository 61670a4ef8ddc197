//! Ordinary schedules come upon what ships: a setting that keeps them from it is seen here, not years later.

use simulator::coverage::Coverage;
use simulator::edit::Edit;
use simulator::run::run;

/// What the first schedules of all profiles come upon.
fn reached(seeds: u64) -> Coverage {
    let mut reached = Coverage::default();
    for seed in 0..seeds {
        let plan = Edit::whole(seed, None).plan().expect("it has a profile");
        reached.add(&run(plan).coverage);
    }
    reached
}

#[test]
fn flushes_are_divided_up_as_in_the_provider() {
    let reached = reached(23);
    assert!(reached.flushes > 0, "flushes apart");
    assert!(reached.own_flushes > 0, "flushes by the reactor");
}
