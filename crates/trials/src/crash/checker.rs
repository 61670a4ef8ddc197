//! Compares the clients' histories with the final tables.
//!
//! One transaction appends each element, so a list shows the order of its versions, and a read tells which version it
//! saw (the idea of Elle's list-append test).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::client::{ACCOUNTS, BALANCE};
use super::history::{Id, Key, Outcome, Tables, Transaction};
use super::violation::Violation;

/// Compares the clients' history with each node's tables. All lists in `tables` are complete.
pub fn check(history: &[Transaction], tables: &[(String, Tables)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut seen: Vec<&Tables> = Vec::new();
    for (name, held) in tables {
        if let (Some(first), false) = (seen.first(), seen.contains(&held)) {
            let difference = difference(&tables[0].0, first, name, held);
            violations.push(Violation::Different(difference));
        }
        if !seen.contains(&held) {
            seen.push(held);
        }
    }
    for held in seen {
        for violation in check_one(history, held) {
            if !violations.contains(&violation) {
                violations.push(violation);
            }
        }
    }
    violations
}

fn check_one(history: &[Transaction], tables: &Tables) -> Vec<Violation> {
    let appends: HashMap<Id, (Key, &Transaction)> = history
        .iter()
        .flat_map(|t| t.appends.iter().map(move |(key, id)| (*id, (*key, t))))
        .collect();
    let present: HashSet<(Key, Id)> = tables
        .lists
        .iter()
        .flat_map(|(key, list)| list.iter().map(move |id| (*key, *id)))
        .collect();
    let mut violations = Vec::new();
    for t in history {
        check_appends(t, &present, &mut violations);
    }
    for (key, list) in &tables.lists {
        check_list(*key, list, &appends, &mut violations);
    }
    check_reads(history, tables, &appends, &mut violations);
    check_money(history, tables, &present, &mut violations);
    violations
}

/// Checks that the appends of an acknowledged transaction exist, those of a failed one do not, and no transaction
/// exists in part.
fn check_appends(t: &Transaction, present: &HashSet<(Key, Id)>, violations: &mut Vec<Violation>) {
    let (there, missing): (Vec<_>, Vec<_>) = t.appends.iter().partition(|a| present.contains(a));
    if t.is_committed() {
        violations.extend(missing.iter().map(|(key, id)| Violation::Lost {
            key: *key,
            id: *id,
            node: node(t),
            at_ms: t.ended.as_millis(),
        }));
    }
    if t.outcome == Outcome::Failed {
        violations.extend(there.iter().map(|(key, id)| Violation::Phantom {
            key: *key,
            id: *id,
            told: t.error.clone(),
        }));
    }
    if !there.is_empty() && !missing.is_empty() {
        let ids = |appends: &[(Key, Id)]| appends.iter().map(|(_, id)| *id).collect();
        violations.push(Violation::Torn {
            there: ids(&there),
            missing: ids(&missing),
        });
    }
}

/// Checks that each element of a list was appended to it, once.
fn check_list(
    key: Key,
    list: &[Id],
    appends: &HashMap<Id, (Key, &Transaction)>,
    violations: &mut Vec<Violation>,
) {
    let mut times: BTreeMap<Id, usize> = BTreeMap::new();
    for id in list {
        *times.entry(*id).or_default() += 1;
    }
    for (id, times) in times {
        if times > 1 {
            violations.push(Violation::Twice { key, id, times });
        }
        if appends.get(&id).is_none_or(|(of, _)| *of != key) {
            let told = "nobody appended it there".to_string();
            violations.push(Violation::Phantom { key, id, told });
        }
    }
}

/// Checks that each read returned a prefix of the final list.
fn check_reads(
    history: &[Transaction],
    tables: &Tables,
    appends: &HashMap<Id, (Key, &Transaction)>,
    violations: &mut Vec<Violation>,
) {
    let empty = Vec::new();
    let mut told: HashSet<Id> = HashSet::new();
    for t in history {
        for read in &t.reads {
            let held = tables.lists.get(&read.key).unwrap_or(&empty);
            if held.starts_with(&read.list) {
                continue;
            }
            let gone: Vec<Id> = read
                .list
                .iter()
                .filter(|id| !held.contains(id))
                .copied()
                .collect();
            for id in &gone {
                if !told.insert(*id) {
                    continue;
                }
                let failed = appends
                    .get(id)
                    .is_some_and(|(_, t)| t.outcome == Outcome::Failed);
                let (key, id, node) = (read.key, *id, node(t));
                violations.push(if failed {
                    Violation::DirtyRead { key, id, node }
                } else {
                    Violation::SeenAndLost { key, id, node }
                });
            }
            if gone.is_empty() {
                let same = read.list.iter().zip(held).take_while(|(a, b)| a == b);
                let from = same.count();
                violations.push(Violation::Order {
                    key: read.key,
                    node: node(t),
                    read: read.list[from..].to_vec(),
                    found: held[from..].iter().take(8).copied().collect(),
                });
            }
        }
    }
}

/// Checks that the committed transfers explain every balance, and that every read of the total saw the same sum.
fn check_money(
    history: &[Transaction],
    tables: &Tables,
    present: &HashSet<(Key, Id)>,
    violations: &mut Vec<Violation>,
) {
    let mut expected: BTreeMap<u32, i64> = (0..ACCOUNTS).map(|id| (id, BALANCE)).collect();
    for t in history {
        let happened = t.appends.iter().any(|append| present.contains(append));
        if let Some(transfer) = t.transfer.filter(|_| happened) {
            *expected.entry(transfer.from).or_default() -= transfer.amount;
            *expected.entry(transfer.to).or_default() += transfer.amount;
        }
    }
    for (account, balance) in &expected {
        let found = tables.accounts.get(account);
        if found != Some(balance) {
            violations.push(Violation::Money(format!(
                "account {account} has {found:?}, its transfers make {balance}"
            )));
        }
    }
    let all = BALANCE * i64::from(ACCOUNTS);
    for t in history {
        if t.total.is_some_and(|total| total != all) {
            violations.push(Violation::Money(format!(
                "the sum of all accounts was {:?} on {} at {} ms, it is {all}",
                t.total,
                node(t),
                t.ended.as_millis()
            )));
        }
    }
}

fn difference(first: &str, a: &Tables, second: &str, b: &Tables) -> String {
    let keys = a.lists.keys().chain(b.lists.keys());
    for key in keys {
        let (in_a, in_b) = (a.lists.get(key), b.lists.get(key));
        if in_a != in_b {
            return format!("list {key} is {in_a:?} on {first} and {in_b:?} on {second}");
        }
    }
    format!(
        "accounts are {:?} on {first} and {:?} on {second}",
        a.accounts, b.accounts
    )
}

/// The name of a transaction's node.
pub fn node(t: &Transaction) -> String {
    format!("node{}", t.node + 1)
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
