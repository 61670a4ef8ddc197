//! Large payloads that are written ahead of their entries: as fast as that goes, they come.

use bytes::Bytes;

use super::cores::{Cores, member};
use super::large::{
    HEAD, cores, make_large, may_submit, parts_to, payload, payloads, spread, submit,
};
use crate::configuration::Member;
use crate::entry::Body;
use crate::event::{Action, Event, Fate, Recovered};
use crate::ids::{BulkId, SubmissionId, Uuid};
use crate::message::{BulkPayload, ComponentState, Message, Source};

/// A node is told that so much of the first bulk payload of node 0 is written.
fn staged(cores: &mut Cores, node: usize, until: u32) {
    let origin = cores.incarnation(0);
    let bulk = BulkId { origin, number: 1 };
    cores.event(node, Event::StagedUpTo { bulk, until });
    cores.settle();
}

fn held_by_all(cores: &Cores) -> usize {
    let held = |(_, message): &&(usize, Message)| matches!(message, Message::Held { .. });
    cores.arrived.iter().filter(held).count()
}

/// Pieces that this node is to write.
fn pieces(cores: &Cores, node: usize) -> usize {
    let piece = |action: &&Action| matches!(action, Action::Stage { .. });
    cores.nodes[node].actions.iter().filter(piece).count()
}

/// A piece of the first bulk payload of node 0, for node 1.
fn say_part(cores: &mut Cores, offset: u32, bytes: Bytes) {
    let source = Source::Offered { bulk: 1 };
    let part = Message::Part {
        source,
        offset,
        bytes,
    };
    cores.say(0, 1, part);
}

/// Cores that stage everything that is large, on disks that write when they are told to.
fn staging(count: usize) -> Cores {
    stage_all(cores(count))
}

fn stage_all(mut cores: Cores) -> Cores {
    cores.slow_disks = true;
    for node in &mut cores.nodes {
        node.group.config_mut().staged_bytes = 1;
    }
    cores
}

#[test]
fn pieces_come_as_fast_as_they_are_written() {
    let mut cores = staging(2);
    spread(&mut cores, 0, 1);
    assert_eq!(parts_to(&cores, 1), 4);
    staged(&mut cores, 0, 1_000);
    staged(&mut cores, 1, 128);
    assert_eq!(parts_to(&cores, 1), 6);
    cores.pass(3_000);
    assert_eq!(parts_to(&cores, 1), 6, "nothing is missing");
    for until in [256, 512, 768, 960] {
        staged(&mut cores, 1, until);
    }
    assert_eq!(parts_to(&cores, 1), 16);
    assert_eq!(held_by_all(&cores), 0, "not all is written");
    staged(&mut cores, 1, 1_000);
    assert_eq!(held_by_all(&cores), 1);
    staged(&mut cores, 0, 1_000);
    submit(&mut cores, 0, 1, 1);
    assert_eq!(payloads(&cores, 1), [payload(HEAD)]);
}

#[test]
fn what_cannot_be_written_ahead_comes_all_the_same() {
    let mut cores = staging(2);
    spread(&mut cores, 0, 1);
    staged(&mut cores, 1, u32::MAX);
    assert_eq!(parts_to(&cores, 1), 16);
    assert_eq!(held_by_all(&cores), 1);
    assert_eq!(pieces(&cores, 1), 4, "and nothing more is to be written");
}

#[test]
fn an_own_one_is_submitted_when_it_is_written() {
    let mut cores = staging(2);
    spread(&mut cores, 0, 1);
    staged(&mut cores, 1, u32::MAX);
    assert!(!may_submit(&cores, 0, 1));
    staged(&mut cores, 0, 960);
    assert!(!may_submit(&cores, 0, 1));
    staged(&mut cores, 0, 1_000);
    assert!(may_submit(&cores, 0, 1));
}

/// Node 2 fetches a payload of node 1 from the log of node 0, which leads, and is to write it under this id.
fn fetching_from_a_log() -> (Cores, BulkId) {
    let mut cores = staging(3);
    cores.part(&[2], &[1]);
    let origin = cores.incarnation(1);
    spread(&mut cores, 1, 1);
    for node in [0, 1] {
        let bulk = BulkId { origin, number: 1 };
        cores.event(
            node,
            Event::StagedUpTo {
                bulk,
                until: u32::MAX,
            },
        );
    }
    cores.settle();
    submit(&mut cores, 1, 1, 1);
    assert_eq!(parts_to(&cores, 2), 4);
    let staged = cores.nodes[2]
        .actions
        .iter()
        .find_map(|action| match action {
            Action::Stage { bulk, .. } => Some(*bulk),
            _ => None,
        });
    let bulk = staged.expect("it is to be written");
    cores.cut.clear();
    (cores, bulk)
}

#[test]
fn what_comes_from_a_log_comes_as_fast_as_it_is_written() {
    let (mut cores, bulk) = fetching_from_a_log();
    // Who was not asked says something.
    let mut log = cores.log_of(0).into_iter();
    let entry = log
        .find(|entry| entry.payload_bytes() > 0)
        .expect("it is ordered");
    let (position, id) = (entry.position, entry.submission().expect("it is one"));
    let late = Message::Part {
        source: Source::Logged { position, id },
        offset: 0,
        bytes: Bytes::from_static(b"late"),
    };
    cores.say(1, 2, late);
    for until in [256, 512, 768, 1_000] {
        assert_eq!(cores.delivered(2), 0);
        cores.event(2, Event::StagedUpTo { bulk, until });
        cores.settle();
    }
    assert_eq!(payloads(&cores, 2), [payload(HEAD)]);
    assert_eq!(parts_to(&cores, 2), 16, "no part twice");
}

#[test]
fn what_comes_from_a_log_goes_on_from_the_next_leaders() {
    let (mut cores, bulk) = fetching_from_a_log();
    cores.event(2, Event::StagedUpTo { bulk, until: 256 });
    cores.settle();
    assert_eq!(parts_to(&cores, 2), 8);
    cores.kill(0);
    cores.pass(10_000);
    for until in [512, 768, 1_000] {
        assert_eq!(cores.delivered(2), 0);
        cores.event(2, Event::StagedUpTo { bulk, until });
        cores.pass(100);
    }
    assert_eq!(payloads(&cores, 2), [payload(HEAD)]);
    assert_eq!(parts_to(&cores, 2), 16, "no part twice");
}

#[test]
fn what_comes_from_the_log_of_another_branch_is_dropped() {
    let (mut cores, bulk) = fetching_from_a_log();
    cores.part(&[2], &[0, 1]);
    cores.pass(10_000);
    let dropped = |cores: &Cores| {
        let unstage = |action: &Action| matches!(action, Action::Unstage { bulk: b } if *b == bulk);
        cores.nodes[2].actions.iter().any(unstage)
    };
    assert!(!dropped(&cores));
    let override_id = Uuid([77; 16]);
    cores.event(2, Event::ForcePrimary { override_id });
    cores.pass(1_000);
    assert_eq!(cores.component_state(2), ComponentState::Primary);
    assert!(dropped(&cores));
}

#[test]
fn nothing_is_taken_that_was_not_asked_for() {
    let mut cores = staging(2);
    spread(&mut cores, 0, 1);
    let rest = payload(&[0; HEAD.len()]).slice(256..);
    say_part(&mut cores, 256, rest.slice(..64));
    assert_eq!(pieces(&cores, 1), 4);
    staged(&mut cores, 1, 128);
    assert_eq!(pieces(&cores, 1), 6);
    say_part(&mut cores, 384, rest.slice(128..));
    assert_eq!(pieces(&cores, 1), 6);
}

#[test]
fn what_is_all_here_does_not_depend_on_its_origin_any_more() {
    let mut cores = staging(2);
    spread(&mut cores, 0, 1);
    for until in [256, 512, 768, 960] {
        staged(&mut cores, 1, until);
    }
    assert_eq!((pieces(&cores, 1), held_by_all(&cores)), (16, 0));
    say_part(&mut cores, 960, Bytes::new());
    staged(&mut cores, 1, 1_000);
    assert_eq!(held_by_all(&cores), 1);
}

#[test]
fn another_bulk_under_its_number_is_written_anew() {
    let mut cores = staging(2);
    spread(&mut cores, 0, 1);
    let bulk = BulkPayload {
        number: 1,
        len: 1_000,
        ..BulkPayload::default()
    };
    let head = Bytes::new();
    let number = 1;
    let another = Message::SubmitBulk { number, bulk, head };
    cores.say(0, 1, another);
    let origin = cores.incarnation(0);
    let bulk = BulkId { origin, number: 1 };
    let mut written = cores.nodes[1].actions.iter().filter_map(|a| match a {
        Action::Stage { offset, .. } => Some(Some(*offset)),
        Action::Unstage { bulk: p } if *p == bulk => Some(None),
        _ => None,
    });
    assert!(written.any(|piece| piece.is_none()));
    assert_eq!(written.next(), Some(Some(0)));
}

#[test]
fn a_slow_disk_is_no_silent_origin() {
    let mut cores = staging(3);
    spread(&mut cores, 1, 1);
    for node in [0, 1] {
        let origin = cores.incarnation(1);
        let bulk = BulkId { origin, number: 1 };
        let until = u32::MAX;
        cores.event(node, Event::StagedUpTo { bulk, until });
    }
    submit(&mut cores, 1, 1, 1);
    cores.pass(5_000);
    assert_eq!((cores.delivered(0), cores.delivered(2)), (1, 0));
    assert_eq!(parts_to(&cores, 2), 4, "nobody else is asked");
}

/// Node 1 has half of the votes, and has told its client that the submission has failed for certain. The next leader
/// has all of the payload, but has not written all of it by then.
#[test]
fn what_was_withdrawn_stays_void_when_the_rest_is_written() {
    let mut cores = Cores::none();
    for (node, full_weight) in [(0, 1), (1, 2), (2, 1)] {
        let me = Member {
            full_weight,
            ..member(node)
        };
        cores.start(me, Recovered::default());
    }
    cores.found();
    assert_eq!(cores.nodes[2].group.configuration().total_weight(), 4);
    let mut cores = stage_all(make_large(cores));
    let origin = cores.incarnation(1);
    let bulk = BulkId { origin, number: 1 };
    let write = |cores: &mut Cores, node: usize, until: u32| {
        cores.event(node, Event::StagedUpTo { bulk, until });
    };
    spread(&mut cores, 1, 1);
    write(&mut cores, 0, u32::MAX);
    write(&mut cores, 1, u32::MAX);
    for until in [256, 512, 768, 960] {
        write(&mut cores, 2, until);
    }
    assert!(may_submit(&cores, 1, 1));
    cores.part(&[1], &[0]);
    submit(&mut cores, 1, 1, 1);
    cores.part(&[1], &[0, 2]);
    cores.pass(12_000);
    let failed = |action: &Action| matches!(action, Action::Failed { id, fate: Fate::Withdrawn } if id.number == 1);
    assert!(cores.nodes[1].actions.iter().any(failed));

    // The origin cannot know that the view is committed before the leader has flushed it.
    cores.nodes[2].group.config_mut().append_is_durable = false;
    cores.kill(0);
    cores.cut.clear();
    cores.lines_ms.insert((2, 1), 100);
    while !cores.nodes[2].group.is_leader() {
        cores.pass_for(&[2], 50);
        assert!(cores.now() < 60_000, "it is not elected");
    }
    cores.flushed(2);
    cores.pass_for(&[2], 250);
    assert_eq!(cores.component_state(2), ComponentState::NonPrimary);
    write(&mut cores, 2, 1_000);
    cores.flushed(2);
    assert_eq!(cores.component_state(2), ComponentState::Primary);
    cores.flushed(2);
    cores.pass(10_000);
    let id = SubmissionId {
        incarnation: origin,
        number: 1,
    };
    let log = cores.log_of(2);
    let mut ordered = log.iter().filter(|entry| entry.submission() == Some(id));
    let entry = ordered.next().expect("its number is used up");
    assert!(matches!(entry.body, Body::Voided { .. }), "it is ordered");
    assert_eq!((cores.delivered(1), cores.delivered(2)), (0, 0));
}
