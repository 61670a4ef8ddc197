//! The small bounds, to their ends: no property is broken, and what they are for does happen.

use trireme_model::{Bound, SMALL, Search, examples, explore};

const WHOLE: Search = Search {
    threads: 2,
    depth: None,
    breadth_first: false,
    reduced: true,
    timeout: None,
};

#[test]
fn the_small_bounds_hold() {
    let mut seen = Vec::new();
    for bound in SMALL {
        let report = explore(bound, None, &WHOLE).expect("three processes form a group");
        println!("{}: {report}", bound.name);
        if let Some((property, path)) = report.violation {
            panic!("{}: {property}\n{path}", bound.name);
        }
        seen.extend(report.seen);
    }
    for example in examples() {
        assert!(seen.contains(&example), "never seen: {example}");
    }
}

/// The reduction leaves out orders of events, and nothing that can happen to a process.
#[test]
fn the_reduction_leaves_out_no_state_of_a_process() {
    for bound in SMALL {
        // Few enough states to take every order as well.
        let bound = Bound {
            submissions: [0; 3],
            ..bound.clone()
        };
        let of = |reduced| {
            let search = Search { reduced, ..WHOLE };
            explore(&bound, None, &search).expect("three processes form a group")
        };
        let (reduced, full) = (of(true), of(false));
        assert_eq!(reduced.processes, full.processes, "{}", bound.name);
        assert!(reduced.states < full.states, "{}", bound.name);
    }
}
