//! Ordinary schedules come upon what ships: a constant or a flag that keeps them from it is seen here, not years later.

use simulator::coverage::{Coverage, RARE};
use simulator::edit::Edit;
use simulator::profiles;
use simulator::run::run;

#[test]
fn some_of_the_first_schedules_reach_each_of_what_is_rare() {
    let mut reached = Coverage::default();
    for seed in 0..profiles::ALL.len() as u64 {
        let plan = Edit::whole(seed, None).plan().expect("it has a profile");
        reached.add(&run(plan).coverage);
    }
    // A log is rarely away for long enough: the first seed that has it is named, and the next ones stand in for it.
    for seed in 24..84 {
        if RARE.iter().all(|(name, _)| reached.reached[name] > 0) {
            break;
        }
        let plan = Edit::whole(seed, Some("disks".to_owned())).plan();
        reached.add(&run(plan.expect("it has a profile")).coverage);
    }
    for (name, _) in RARE {
        assert!(reached.reached[name] > 0, "no schedule reaches: {name}");
    }
}
