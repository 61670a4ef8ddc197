//! The judge sees what it is there to see.

use std::panic::catch_unwind;

use bytes::Bytes;
use trireme_group::{Member, ReplicaId, Uuid};

use super::*;

fn term(number: u64) -> Term {
    Term {
        number,
        replica: ReplicaId(Uuid([1; 16])),
    }
}

fn origin() -> Incarnation {
    Incarnation(Uuid([2; 16]))
}

fn view(number: u64) -> Configuration {
    let member = Member {
        incarnation: origin(),
        weight: 1,
        voter: true,
        ..Member::default()
    };
    Configuration {
        number,
        members: vec![member],
        override_id: None,
        fork_after: 0,
    }
}

fn submission(number: u64) -> Body {
    Body::Submission {
        id: SubmissionId {
            incarnation: origin(),
            number,
        },
        payload: Bytes::from_static(b"x"),
    }
}

/// Commits these, as one process after the other would.
fn history(entries: &[(u64, u64, Body)]) -> Judge {
    let mut judge = Judge::default();
    for (position, number, body) in entries {
        let entry = Entry {
            position: *position,
            term: term(*number),
            body: body.clone(),
        };
        let delivery = match body {
            Body::Submission { id, payload } => Some(Delivery::Submission {
                id: *id,
                payload: payload.clone(),
            }),
            Body::Configuration(configuration) => {
                Some(Delivery::Configuration(configuration.clone()))
            }
            _ => None,
        };
        judge.committed("n", term(*number), &entry, delivery.as_ref());
    }
    judge
}

fn breaks(rule: &str, test: impl FnOnce() + std::panic::UnwindSafe) {
    let panic = catch_unwind(test).expect_err("the judge lets it pass");
    let text = panic
        .downcast_ref::<String>()
        .expect("assertions have a text");
    assert!(text.contains(rule), "expected {rule}: {text}");
}

fn good() -> Vec<(u64, u64, Body)> {
    vec![
        (1, 1, Body::TermStart),
        (2, 1, Body::Configuration(view(1))),
        (3, 1, submission(1)),
        (4, 1, submission(2)),
    ]
}

fn good_and(more: (u64, u64, Body)) -> Vec<(u64, u64, Body)> {
    good().into_iter().chain([more]).collect()
}

#[test]
fn a_sound_history_passes() {
    let mut judge = history(&good_and((3, 1, submission(1))));
    judge.acknowledged(
        SubmissionId {
            incarnation: origin(),
            number: 2,
        },
        4,
    );
    judge.acknowledged_is_kept(&[("n".into(), 4)]);
    judge.reads_are_current("n", judge.last_acknowledged(), 4);
}

#[test]
fn broken_histories_do_not() {
    breaks("rule 1", || {
        drop(history(&good_and((3, 1, Body::TermStart))))
    });
    breaks("rule 1", || drop(history(&good_and((3, 2, submission(1))))));
    breaks("rule 3", || {
        drop(history(&good_and((5, 0, Body::TermStart))))
    });
    breaks("rule 3", || {
        drop(history(&good_and((5, 1, Body::Configuration(view(3))))))
    });
    breaks("rule 9", || drop(history(&good_and((5, 1, submission(4))))));
    breaks("rule 9", || drop(history(&good_and((5, 1, submission(2))))));
}

#[test]
fn lost_commits_and_stale_reads_are_seen() {
    let id = SubmissionId {
        incarnation: origin(),
        number: 2,
    };
    breaks("below acknowledged", || {
        let mut judge = history(&good());
        judge.acknowledged(id, 4);
        judge.acknowledged_is_kept(&[("n".into(), 3)]);
    });
    breaks("rule 17", || {
        let mut judge = history(&good());
        judge.acknowledged(id, 4);
        judge.reads_are_current("n", judge.last_acknowledged(), 3);
    });
    breaks("rule 7", || {
        history(&good()).failed("n", id, Fate::Withdrawn)
    });
    breaks("rule 7", || {
        let mut judge = history(&good());
        judge.failed("n", SubmissionId { number: 3, ..id }, Fate::Withdrawn);
        let entry = Entry {
            position: 5,
            term: term(1),
            body: submission(3),
        };
        judge.committed("n", term(1), &entry, None);
    });
}
