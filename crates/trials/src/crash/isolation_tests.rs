//! Made-up histories, each with one anomaly.

use super::*;
use crate::crash::history::Read;

const STRONG: Isolation = Isolation {
    snapshot: true,
    current: true,
};

const SNAPSHOT: Isolation = Isolation {
    snapshot: true,
    current: false,
};

/// A committed transaction from `began` to `ended`, in milliseconds.
fn committed(
    (began, ended): (u64, u64),
    reads: &[(Key, &[Id])],
    appends: &[(Key, Id)],
) -> Transaction {
    let reads = reads.iter().map(|(key, list)| Read {
        key: *key,
        list: list.to_vec(),
    });
    Transaction {
        reads: reads.collect(),
        appends: appends.to_vec(),
        ended: Duration::from_millis(ended),
        outcome: Outcome::Committed,
        ..Transaction::new(0, 0, Duration::from_millis(began))
    }
}

fn found(
    history: &[Transaction],
    lists: &[(Key, &[Id])],
    isolation: Isolation,
) -> Vec<&'static str> {
    let tables = Tables {
        lists: lists.iter().map(|(k, l)| (*k, l.to_vec())).collect(),
        ..Tables::default()
    };
    let found = check(history, &tables, isolation);
    found.iter().map(Violation::kind).collect()
}

#[test]
fn transactions_one_after_the_other_pass() {
    let history = [
        committed((0, 1), &[(1, &[])], &[(1, 10)]),
        committed((2, 3), &[(1, &[10])], &[(1, 11), (2, 12)]),
        committed((4, 5), &[(1, &[10, 11]), (2, &[12])], &[]),
    ];
    assert!(found(&history, &[(1, &[10, 11]), (2, &[12])], STRONG).is_empty());
}

#[test]
fn a_stale_read_is_found_even_where_another_commit_was_acknowledged_later() {
    let history = [
        committed((0, 1), &[], &[(1, 10)]),
        committed((0, 2), &[], &[(1, 11)]),
        committed((3, 4), &[(1, &[10])], &[]),
    ];
    let lists: [(Key, &[Id]); 1] = [(1, &[10, 11])];
    assert_eq!(found(&history, &lists, STRONG), ["stale reads"]);
    assert!(found(&history, &lists, SNAPSHOT).is_empty());
    // The element that is further on was acknowledged first.
    let lists: [(Key, &[Id]); 1] = [(1, &[11, 10])];
    let history = [
        committed((0, 1), &[], &[(1, 10)]),
        committed((0, 2), &[], &[(1, 11)]),
        committed((3, 4), &[(1, &[11])], &[]),
    ];
    assert_eq!(found(&history, &lists, STRONG), ["stale reads"]);
}

#[test]
fn a_read_that_began_before_the_acknowledgement_is_not_stale() {
    let history = [
        committed((0, 5), &[], &[(1, 10)]),
        committed((4, 6), &[(1, &[])], &[]),
    ];
    assert!(found(&history, &[(1, &[10])], STRONG).is_empty());
}

#[test]
fn a_lost_update_is_found() {
    let history = [
        committed((0, 5), &[(1, &[])], &[(1, 10)]),
        committed((0, 5), &[(1, &[])], &[(1, 11)]),
    ];
    let lists: [(Key, &[Id]); 1] = [(1, &[10, 11])];
    assert_eq!(found(&history, &lists, SNAPSHOT), ["lost updates"]);
    let neither = Isolation {
        snapshot: false,
        current: false,
    };
    assert!(found(&history, &lists, neither).is_empty());
}

#[test]
fn read_skew_is_a_cycle() {
    // The reader sees the second append of a transaction, and not the first.
    let history = [
        committed((0, 9), &[], &[(1, 10), (2, 11)]),
        committed((0, 9), &[(1, &[]), (2, &[11])], &[]),
    ];
    let lists: [(Key, &[Id]); 2] = [(1, &[10]), (2, &[11])];
    assert_eq!(found(&history, &lists, SNAPSHOT), ["isolation cycles"]);
}

#[test]
fn two_readers_that_saw_two_writers_in_different_orders_are_a_cycle() {
    let history = [
        committed((0, 9), &[], &[(1, 10)]),
        committed((0, 9), &[], &[(2, 11)]),
        committed((0, 9), &[(1, &[10]), (2, &[])], &[]),
        committed((0, 9), &[(1, &[]), (2, &[11])], &[]),
    ];
    // A long fork: two anti-dependencies, but no two in a row.
    let lists: [(Key, &[Id]); 2] = [(1, &[10]), (2, &[11])];
    assert_eq!(found(&history, &lists, SNAPSHOT), ["isolation cycles"]);
}

#[test]
fn write_skew_is_allowed() {
    let history = [
        committed((0, 9), &[(1, &[]), (2, &[])], &[(1, 10)]),
        committed((0, 9), &[(1, &[]), (2, &[])], &[(2, 11)]),
    ];
    assert!(found(&history, &[(1, &[10]), (2, &[11])], STRONG).is_empty());
}

#[test]
fn versions_against_the_order_of_time_are_a_cycle() {
    let history = [
        committed((0, 1), &[], &[(1, 10)]),
        committed((2, 3), &[], &[(1, 11)]),
    ];
    let lists: [(Key, &[Id]); 1] = [(1, &[11, 10])];
    assert_eq!(found(&history, &lists, STRONG), ["isolation cycles"]);
    assert!(found(&history, &lists, SNAPSHOT).is_empty());
}
