//! What becomes of submissions that were given up with the majority (rules 7 and 9).

use super::branches::{all_primary, force};
use super::cores::{Cores, HISTORY, member};
use crate::checkpoint::Checkpoint;
use crate::configuration::Member;
use crate::entry::{Body, Entry};
use crate::event::{Action, Event, Fate, Recovered, RecoveredLog};
use crate::ids::{Incarnation, Position, Uuid};
use crate::lasting::Lasting;
use crate::message::{ComponentState, Message};

/// Node 1 has submitted 1, 2 and 3, which reached nobody but the leader; both have lost the majority before
/// any was ordered. Then the leader hears of what is withdrawn, but for the messages that are lost, and all meet
/// again.
fn given_up(lost: fn(&Message) -> bool) -> Cores {
    let mut cores = Cores::of(4);
    cores.part(&[0, 1], &[2, 3]);
    cores.pass(600);
    for number in 1..=3 {
        cores.submit(1, number);
    }
    cores.lost = lost;
    cores.pass(20_000);
    for node in [0, 1] {
        assert_eq!(cores.component_state(node), ComponentState::NonPrimary);
    }
    for number in 1..=3 {
        let is_it = |action: &Action| matches!(action, Action::Failed { id, fate: Fate::Unknown } if id.number == number);
        assert!(cores.nodes[1].actions.iter().any(is_it), "{number}");
    }
    cores.cut.clear();
    cores.pass(5_000);
    cores.lost = |_| false;
    cores.submit(1, 4);
    cores.pass(5_000);
    assert_eq!(cores.component_state(1), ComponentState::Primary);
    cores
}

/// Numbers of node 1's submissions in the leader's log, with false for a void.
fn ordered(cores: &Cores) -> Vec<(u64, bool)> {
    let log = cores.log_of(0).into_iter();
    log.filter(|entry| {
        let id = entry.submission();
        id.is_some_and(|id| id.incarnation == cores.incarnation(1))
    })
    .filter_map(|entry| match entry.body {
        Body::Submission { id, .. } => Some((id.number, true)),
        Body::Voided { id } => Some((id.number, false)),
        _ => None,
    })
    .collect()
}

fn withdraws(message: &Message) -> Option<u64> {
    match message {
        Message::Submit {
            number,
            payload: None,
        } => Some(*number),
        _ => None,
    }
}

#[test]
fn one_void_uses_up_the_numbers_of_all_that_is_withdrawn() {
    let cores = given_up(|_| false);
    assert_eq!(ordered(&cores), [(3, false), (4, true)]);
    assert_eq!(cores.delivered(3), 1);
}

/// A rollback fragment that was withdrawn, and what its client wrote afterwards.
#[test]
fn nothing_is_ordered_without_what_was_submitted_before_it() {
    let cores = given_up(|message| withdraws(message).is_some_and(|number| number > 1));
    let all = [(1, true), (2, true), (3, true), (4, true)];
    assert_eq!(ordered(&cores), all);
    assert_eq!(cores.delivered(3), 4);
}

/// A void may come to a leader that lacks what it covers, or has already ordered some of it.
#[test]
fn a_void_follows_whatever_was_ordered_before_it() {
    let mut cores = Cores::of(3);
    cores.lost = |message| matches!(message, Message::Submit { number: 2, .. });
    for number in 1..=3 {
        cores.submit(1, number);
    }
    assert_eq!(ordered(&cores), [(1, true)]);
    let withdrawn = Message::Submit {
        number: 3,
        payload: None,
    };
    cores.say(1, 0, withdrawn);
    assert_eq!(ordered(&cores), [(1, true), (3, false)]);
}

/// Its origin has counted on elsewhere.
#[test]
fn a_void_may_be_far_ahead() {
    let mut cores = Cores::of(2);
    let number = 1 << 40;
    cores.say(
        1,
        0,
        Message::Submit {
            number,
            payload: None,
        },
    );
    let next = Message::Submit {
        number: number + 1,
        payload: Some("payload".into()),
    };
    cores.say(1, 0, next);
    assert_eq!(ordered(&cores), [(number, false), (number + 1, true)]);
}

/// The view of a new leader may take away the need for the origin's promise: its void is below that view.
#[test]
fn a_new_leader_voids_before_its_view() {
    let mut cores = Cores::of(3);
    cores.part(&[0, 1, 2], &[0, 1, 2]);
    cores.submit(1, 1);
    cores.pass(12_000);
    for pair in [(1, 2), (2, 1)] {
        cores.cut.remove(&pair);
    }
    cores.pass(5_000);
    assert_eq!(cores.component_state(1), ComponentState::Primary);
    let log = cores.log_of(1);
    let voids = |e: &Entry| matches!(e.body, Body::Voided { .. });
    let is_view = |e: &Entry| matches!(e.body, Body::Configuration(_));
    let void = log.iter().position(voids).expect("it is withdrawn");
    let term = log[void].term;
    let view = log.iter().position(|e| e.term == term && is_view(e));
    assert!(view.is_some_and(|view| void < view));
}

/// The term of a forced view needed no majority: others recognise it by its first entry. What is withdrawn follows, and
/// a pending view does not, but its request counts.
#[test]
fn a_forced_view_is_the_first_entry_of_its_term() {
    let mut cores = Cores::of(3);
    cores.part(&[0, 1, 2], &[0, 1, 2]);
    cores.cut.remove(&(1, 0));
    cores.submit(1, 1);
    cores.cut.insert((1, 0));
    cores.event(0, Event::SetWeight { weight: 3 });
    cores.pass(12_000);
    assert_eq!(kinds_from(&cores, 6), ["submission", "view"]);
    cores.cut.clear();
    force(&mut cores, 0);
    cores.pass(1_000);
    assert!(all_primary(&cores, &[0, 1, 2]));
    let kinds = ["forced view", "term start", "void", "view"];
    assert_eq!(kinds_from(&cores, 6), kinds);
    let view = cores.nodes[0].group.configuration();
    assert_eq!((view.number, view.total_weight()), (4, 5));
}

fn kinds_from(cores: &Cores, position: Position) -> Vec<&str> {
    let kind = |e: Entry| match e.body {
        Body::TermStart => "term start",
        Body::Submission { .. } => "submission",
        Body::Voided { .. } => "void",
        Body::Configuration(view) if view.override_id.is_some() => "forced view",
        Body::Configuration(_) => "view",
    };
    let log = cores.log_of(0).into_iter();
    log.filter(|e| e.position >= position).map(kind).collect()
}

/// A leader that takes leadership with the origin's promise does not hand on a part of it.
#[test]
fn a_new_leader_voids_as_one_what_it_has_in_its_log() {
    let mut cores = Cores::of(2);
    cores.cut.insert((0, 1));
    for number in 1..=3 {
        cores.submit(1, number);
    }
    assert_eq!(ordered(&cores), [(1, true), (2, true), (3, true)]);
    cores.pass(20_000);
    assert_eq!(cores.component_state(1), ComponentState::NonPrimary);
    cores.cut.clear();
    cores.pass(5_000);
    assert_eq!(ordered(&cores), [(3, false)]);
    cores.submit(1, 4);
    cores.pass(1_000);
    assert_eq!(ordered(&cores), [(3, false), (4, true)]);
    assert_eq!(cores.delivered(0), 1);
}

/// Node 1 has given up a submission that node 0 has ordered, and its process has connected again twice, under new names,
/// before the two meet. `recovers`: with its log. `keeps`: knowing what it has withdrawn.
fn connected_again(recovers: bool, keeps: bool) -> Cores {
    let mut cores = Cores::of(2);
    cores.cut.insert((0, 1));
    cores.submit(1, 1);
    assert_eq!(ordered(&cores), [(1, true)]);
    cores.pass(20_000);
    let is_it = |action: &Action| matches!(action, Action::Failed { id, fate: Fate::Withdrawn } if id.number == 1);
    assert!(cores.nodes[1].actions.iter().any(is_it), "it has failed");
    let end = cores.nodes[1].group.end();
    let mut last = 1;
    for again in 1..=2 {
        cores.kill(last);
        let before = &cores.nodes[last].group;
        let lasting = before.lasting();
        let mut entries = cores.log_of(0);
        entries.retain(|entry| entry.position <= end);
        let log = RecoveredLog {
            checkpoint: Checkpoint {
                history: HISTORY,
                ..Checkpoint::default()
            },
            commit: end,
            entries,
            left: 0,
        };
        let recovered = Recovered {
            // The last promise did not reach the disk.
            promised: cores.nodes[0].group.term(),
            amnesiac: !recovers,
            lost_views: !recovers,
            log: recovers.then_some(log),
            lasting: if keeps { lasting } else { Lasting::default() },
        };
        let me = Member {
            incarnation: Incarnation(Uuid([50 + again; 16])),
            ..member(1)
        };
        let next = cores.nodes.len();
        cores.part(&[0], &[next]);
        last = cores.start(me, recovered);
        cores.pass(2_000);
    }
    cores.cut.clear();
    cores.pass(5_000);
    for node in [0, last] {
        assert_eq!(cores.component_state(node), ComponentState::Primary);
    }
    cores
}

#[test]
fn what_was_withdrawn_stays_out_under_the_next_names() {
    for recovers in [true, false] {
        let cores = connected_again(recovers, true);
        assert_eq!(ordered(&cores), [(1, false)], "{recovers}");
        assert_eq!(cores.delivered(0), 0);
        let last = &cores.nodes[3].group;
        assert!(
            last.dissemination.withdrawals(last.me()).is_empty(),
            "a view seats it"
        );
        // A process that has died meanwhile does not tell of it.
        let cores = connected_again(recovers, false);
        assert_eq!(ordered(&cores), [(1, true)], "{recovers}");
    }
}
