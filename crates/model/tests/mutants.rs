//! Planted mistakes that the check finds, each within a bound as small as the mistake allows:
//! `cargo test --release -p trireme-model --features mutants --test mutants`.

use trireme_model::{Bound, Report, SMALL, Search, explore};
use trireme_mutants::Mutant;

/// Breadth first, so that `depth` is that of the shortest path but for one block of states.
fn search(mutant: Option<Mutant>, bound: &Bound, depth: usize) -> Report {
    let search = Search {
        threads: 1,
        depth: Some(depth),
        breadth_first: true,
        reduced: true,
        timeout: None,
    };
    explore(bound, mutant, &search).expect("three processes form a group")
}

/// Found with the mistake, and nothing without it.
fn is_caught(mutant: Mutant, bound: &Bound, depth: usize) {
    let report = search(Some(mutant), bound, depth);
    println!("{mutant:?}: {report}");
    let path = report.violation.map(|(_, path)| path);
    println!("{}", path.as_deref().unwrap_or_default());
    assert!(
        path.is_some(),
        "{mutant:?} is not caught within {depth} actions"
    );
    let sound = search(None, bound, depth);
    assert!(sound.violation.is_none(), "{:?}", sound.violation);
}

fn small(name: &str) -> Bound {
    let bound = SMALL.iter().find(|bound| bound.name == name);
    bound.expect("a small bound of this name").clone()
}

#[test]
fn half_is_a_majority() {
    is_caught(Mutant::HalfIsAMajority, &small("leader crash"), 12);
}

#[test]
fn promise_not_persisted() {
    is_caught(Mutant::PromiseNotPersisted, &small("leader crash"), 12);
}

#[test]
fn shorter_log_leads() {
    is_caught(Mutant::ShorterLogLeads, &small("leader crash"), 12);
}

#[test]
fn lower_term_followed() {
    is_caught(Mutant::LowerTermFollowed, &small("leader crash"), 18);
}

#[test]
fn old_term_acks_count() {
    let bound = Bound {
        submissions: [0, 0, 0],
        terms: 2,
        ..small("takeover")
    };
    is_caught(Mutant::OldTermAcksCount, &bound, 24);
}

#[test]
fn duplicate_ordered() {
    let bound = Bound {
        submissions: [0, 1, 0],
        terms: 2,
        ..small("takeover")
    };
    is_caught(Mutant::DuplicateOrdered, &bound, 24);
}

#[test]
fn amnesiac_counts_as_intact() {
    let bound = Bound {
        submissions: [1, 0, 0],
        waits: [0, 1, 0],
        terms: 1,
        ..small("member restart")
    };
    is_caught(Mutant::AmnesiacCountsAsIntact, &bound, 18);
}
