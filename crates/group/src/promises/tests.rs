//! What promises elect, and what they foresee.

use super::*;
use crate::configuration::Member;
use crate::ids::Uuid;
use crate::message::{Proof, Summary};

fn id(number: usize) -> ReplicaId {
    ReplicaId(Uuid([number as u8; 16]))
}

fn term(number: u64) -> Term {
    let replica = ReplicaId::default();
    Term { number, replica }
}

/// A configuration of these replicas; the index is the replica, the value its weight.
fn configuration(weights: &[u8], is_in: impl Fn(usize) -> bool) -> Configuration {
    let members = weights.iter().enumerate().filter(|(at, _)| is_in(*at));
    let member = |(at, weight): (usize, &u8)| Member {
        replica: id(at),
        weight: *weight,
        ..Member::default()
    };
    Configuration {
        members: members.map(member).collect(),
        ..Configuration::default()
    }
}

const PENDING: Position = 12;

/// The promise of a log that ends with these entries above the committed ones: the term of each, and its
/// configuration, if it is one.
fn promise(committed: &Configuration, pending: &[(u64, Option<&Configuration>)]) -> Promise {
    let mut configurations = vec![(5, committed.clone())];
    let mut runs = vec![(term(4), 5, PENDING - 1)];
    for (position, (number, view)) in (PENDING..).zip(pending) {
        configurations.extend(view.map(|view| (position, view.clone())));
        runs.push((term(*number), position, position));
    }
    let (end_term, _, end) = runs[runs.len() - 1];
    Promise {
        term: term(20),
        summary: Summary {
            commit: 10,
            end,
            end_term,
            runs,
        },
        configurations,
        amnesiac: false,
        lost_views: false,
        proof: Proof::default(),
        withdrawn: Vec::new(),
    }
}

/// Going on by evidence relies on this (decision 4). Promises of two to four replicas: their logs end with one of
/// two pending views, with a forced view, with another leader's entry, or with none; they have kept everything,
/// forgotten entries, or forgotten views.
#[test]
fn whatever_part_elects_is_foreseen() {
    let mut elected = 0;
    for (weights, every) in [
        (&[1, 1][..], 1),
        (&[1, 1, 1], 1),
        (&[2, 1, 1], 1),
        (&[1, 1, 1, 1], 41),
    ] {
        let size = weights.len();
        let committed = configuration(weights, |_| true);
        let without_first = configuration(weights, |at| at != 0);
        let without_last = configuration(weights, |at| at + 1 != size);
        let forced = Configuration {
            override_id: Some(Uuid([9; 16])),
            ..configuration(weights, |at| at < 2)
        };
        let other_forced = Configuration {
            override_id: Some(Uuid([8; 16])),
            ..configuration(weights, |at| at + 2 >= size)
        };
        let ends: [&[(u64, Option<&Configuration>)]; 8] = [
            &[],
            &[(5, Some(&without_first))],
            &[(5, Some(&without_first)), (7, None)],
            &[(6, Some(&without_last))],
            &[(9, None)],
            &[(8, Some(&forced))],
            &[(10, None), (10, Some(&forced)), (10, None)],
            &[(11, Some(&other_forced))],
        ];
        let kinds = ends.len() * 3;
        for code in (0..kinds.pow(size as u32)).step_by(every) {
            let mut all = Promises::default();
            for at in 0..size {
                let kind = code / kinds.pow(at as u32) % kinds;
                let promise = Promise {
                    amnesiac: kind % 3 > 0,
                    lost_views: kind % 3 > 1,
                    ..promise(&committed, ends[kind / 3])
                };
                all.insert(id(at), Incarnation::default(), promise, None);
            }
            let is_foreseen = all.may_elect() || all.without_unmade_views().may_elect();
            for chosen in 1..1_usize << size {
                let mut part = all.clone();
                let is_in = |at: usize| chosen >> at & 1 == 1;
                (part.0).retain(|replica, _| (0..size).any(|at| id(at) == *replica && is_in(at)));
                let part = part.without_unmade_views();
                if part.elect(&part.required_configurations()) {
                    elected += 1;
                    assert!(is_foreseen, "{weights:?} {code} {chosen:b}: {all:?}");
                }
            }
        }
    }
    assert!(elected > 1_000, "{elected}");
}

#[test]
fn a_pending_view_counts_while_a_majority_may_hold_it() {
    let weights = [1; 4];
    let committed = configuration(&weights, |_| true);
    let pending = configuration(&weights, |at| at != 1);
    let elects = |holders: &[usize], forgetful: &[usize], lost_views: &[usize]| {
        let mut promises = Promises::default();
        for at in 0..4 {
            let end = [(5, Some(&pending))];
            let promise = Promise {
                amnesiac: forgetful.contains(&at),
                lost_views: lost_views.contains(&at),
                ..promise(&committed, if holders.contains(&at) { &end } else { &[] })
            };
            promises.insert(id(at), Incarnation::default(), promise, None);
        }
        promises.elect(&promises.required_configurations())
    };
    assert!(elects(&[0, 3], &[0, 2], &[]), "1 and 2 never held it");
    assert!(!elects(&[0, 3], &[0, 2], &[2]), "2 may have lost it");
    assert!(!elects(&[0, 2, 3], &[0, 2], &[]));
    assert!(elects(&[0, 2, 3], &[0], &[]));
}

/// n1 and n2 of four hold the entry at 11, and the view of n1, n2 and n3 at 13. The fourth has half of the votes.
#[test]
fn a_forced_view_commits_what_is_below_it() {
    let weights = [1, 1, 1, 3];
    let view = configuration(&weights, |at| at < 3);
    let forced = Configuration {
        override_id: Some(Uuid([9; 16])),
        ..view.clone()
    };
    for (view, may_be) in [(view, false), (forced, true)] {
        let required = [(5, configuration(&weights, |_| true)), (13, view)];
        let may_hold = |m: &Member, _, _| [id(0), id(1)].contains(&m.replica);
        for position in [11, 13, 14] {
            let found = may_be_committed(position, &required, |_| Some(term(6)), may_hold);
            assert_eq!(found, may_be, "{position}");
        }
    }
}

#[test]
fn a_log_that_a_peer_begins_at_position_0_is_left_as_it_is() {
    let committed = configuration(&[1, 1], |_| true);
    let forced = Configuration {
        override_id: Some(Uuid([9; 16])),
        ..committed.clone()
    };
    let mut all = Promises::default();
    for at in 0..2 {
        let mut promise = promise(&committed, &[]);
        promise.summary.runs = vec![(term(4), 0, 11)];
        if at == 0 {
            promise.configurations = vec![(1, forced.clone())];
            promise.summary.commit = 0;
            promise.summary.runs = vec![(term(8), 0, 11)];
        }
        all.insert(id(at), Incarnation::default(), promise, None);
    }
    let made = all.without_unmade_views();
    assert_eq!(made.of(id(0)), all.of(id(0)));
}
