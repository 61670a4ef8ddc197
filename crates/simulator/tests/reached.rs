//! Ordinary schedules come upon what ships: a constant or a flag that keeps them from it is seen here, not years later.

use simulator::coverage::{Coverage, RARE};
use simulator::edit::Edit;
use simulator::profiles;
use simulator::run::run;

/// A log is rarely away for long enough: these are looked for in the profile `disks`.
const IN_DISKS: [&str; 3] = [
    "connect given up",
    "connect without the log's volume",
    "log's volume back after another log",
];

#[test]
fn some_of_the_first_schedules_reach_each_of_what_is_rare() {
    let mut reached = Coverage::default();
    for seed in 0..profiles::ALL.len() as u64 {
        let plan = Edit::whole(seed, None).plan().expect("it has a profile");
        reached.add(&run(plan).coverage);
    }
    let unreached = |reached: &Coverage| -> Vec<&str> {
        let names = RARE.iter().map(|(name, _)| *name);
        names.filter(|name| reached.reached[name] == 0).collect()
    };
    for name in unreached(&reached) {
        assert!(IN_DISKS.contains(&name), "no schedule reaches: {name}");
    }
    // The first of these seeds reaches most of them.
    for seed in 24..84 {
        if unreached(&reached).is_empty() {
            break;
        }
        let plan = Edit::whole(seed, Some("disks".to_owned())).plan();
        reached.add(&run(plan.expect("it has a profile")).coverage);
    }
    assert_eq!(unreached(&reached), [""; 0]);
}
