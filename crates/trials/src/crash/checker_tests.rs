//! Made-up histories, each with one thing wrong.

use std::time::Duration;

use super::*;
use crate::crash::history::{Read, Transfer};

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A transaction of node 1 that appended these.
fn appended(outcome: Outcome, appends: &[(Key, Id)]) -> Transaction {
    Transaction {
        appends: appends.to_vec(),
        outcome,
        ended: at(10),
        ..Transaction::new(0, 0, at(5))
    }
}

fn read(key: Key, list: &[Id]) -> Transaction {
    Transaction {
        reads: vec![Read {
            key,
            list: list.to_vec(),
        }],
        outcome: Outcome::Committed,
        ..Transaction::new(1, 1, at(20))
    }
}

fn tables(lists: &[(Key, &[Id])]) -> Tables {
    Tables {
        lists: lists.iter().map(|(k, l)| (*k, l.to_vec())).collect(),
        accounts: (0..ACCOUNTS).map(|id| (id, BALANCE)).collect(),
    }
}

fn found(history: &[Transaction], tables: Tables) -> Vec<&'static str> {
    let found = check(history, &[("node1".to_string(), tables)]);
    found.iter().map(Violation::kind).collect()
}

use Outcome::{Committed, Failed, Unknown};

#[test]
fn a_history_without_fault_passes() {
    let history = [
        appended(Committed, &[(1, 10), (2, 11)]),
        appended(Unknown, &[(1, 12)]),
        appended(Unknown, &[(1, 13)]),
        appended(Failed, &[(1, 14)]),
        read(1, &[]),
        read(1, &[10]),
        read(7, &[]),
    ];
    let held = tables(&[(1, &[10, 12]), (2, &[11])]);
    assert!(found(&history, held).is_empty());
}

#[test]
fn a_lost_append_is_found() {
    let history = [appended(Committed, &[(1, 10)])];
    assert_eq!(found(&history, tables(&[])), ["lost appends"]);
    // In another list it is not there either.
    let elsewhere = found(&history, tables(&[(2, &[10])]));
    assert_eq!(elsewhere, ["lost appends", "phantoms"]);
}

#[test]
fn what_was_read_and_is_gone_is_found() {
    let history = [appended(Unknown, &[(1, 10)]), read(1, &[10])];
    assert_eq!(found(&history, tables(&[])), ["seen and lost"]);
}

#[test]
fn a_repeated_append_is_found() {
    let history = [appended(Committed, &[(1, 10)])];
    let held = tables(&[(1, &[10, 10])]);
    assert_eq!(found(&history, held), ["appended twice"]);
}

#[test]
fn a_failed_append_that_is_there_is_found() {
    let history = [appended(Failed, &[(1, 10)])];
    assert_eq!(found(&history, tables(&[(1, &[10])])), ["phantoms"]);
    assert_eq!(found(&[], tables(&[(1, &[10])])), ["phantoms"]);
}

#[test]
fn half_a_transaction_is_found() {
    let history = [appended(Unknown, &[(1, 10), (2, 11)])];
    let held = tables(&[(1, &[10])]);
    assert_eq!(found(&history, held), ["torn transactions"]);
}

#[test]
fn a_dirty_read_is_found() {
    let history = [appended(Failed, &[(1, 10)]), read(1, &[10])];
    assert_eq!(found(&history, tables(&[])), ["dirty reads"]);
}

#[test]
fn a_read_in_another_order_is_found() {
    let history = [appended(Committed, &[(1, 10), (1, 11)]), read(1, &[11])];
    let held = tables(&[(1, &[10, 11])]);
    assert_eq!(found(&history, held), ["reads out of order"]);
}

#[test]
fn money_made_or_lost_is_found() {
    let moved = |outcome| Transaction {
        transfer: Some(Transfer {
            from: 0,
            to: 1,
            amount: 30,
        }),
        ..appended(outcome, &[(1, 10)])
    };
    let mut held = tables(&[(1, &[10])]);
    assert_eq!(
        found(&[moved(Committed)], held.clone()),
        ["money errors", "money errors"]
    );
    held.accounts.insert(0, BALANCE - 30);
    held.accounts.insert(1, BALANCE + 30);
    assert!(found(&[moved(Committed)], held.clone()).is_empty());
    assert!(found(&[moved(Unknown)], held.clone()).is_empty());
    held.lists.clear();
    assert_eq!(
        found(&[moved(Unknown)], held),
        ["money errors", "money errors"]
    );
}

#[test]
fn a_sum_seen_in_the_middle_of_a_transfer_is_found() {
    let seen = |total| Transaction {
        total: Some(total),
        ..read(1, &[])
    };
    let all = BALANCE * i64::from(ACCOUNTS);
    assert!(found(&[seen(all)], tables(&[])).is_empty());
    assert_eq!(found(&[seen(all - 5)], tables(&[])), ["money errors"]);
}

#[test]
fn nodes_that_differ_are_found_and_each_is_checked() {
    let history = [appended(Committed, &[(1, 10)])];
    let held = [
        ("node1".to_string(), tables(&[(1, &[10])])),
        ("node2".to_string(), tables(&[])),
        ("node3".to_string(), tables(&[(1, &[10])])),
    ];
    let kinds: Vec<&str> = check(&history, &held).iter().map(Violation::kind).collect();
    assert_eq!(kinds, ["nodes differing", "lost appends"]);
}
