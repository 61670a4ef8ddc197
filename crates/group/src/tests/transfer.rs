//! Where leadership goes by itself, and where it does not.

use std::ops::Range;

use super::cores::Cores;
use crate::event::Event;
use crate::ids::TimeMs;
use crate::message::{Link, Message, Outlook, Preference};
use crate::transfer::Transfer;

fn leader(cores: &Cores) -> usize {
    let mut nodes = 0..cores.nodes.len();
    let is_leading = |node: &usize| cores.nodes[*node].group.is_leader();
    nodes.find(is_leading).expect("somebody has leadership")
}

/// Node 0 has founded the group and is 100 ms away from the others, which are near one another.
fn far_founder(count: usize) -> Cores {
    founder_away(count, 50)
}

/// As far as that.
fn founder_away(count: usize, line_ms: TimeMs) -> Cores {
    let mut cores = Cores::of(count);
    for near in 1..count {
        cores.lines_ms.insert((0, near), line_ms);
        cores.lines_ms.insert((near, 0), line_ms);
    }
    cores
}

fn leaderships(cores: &Cores) -> (u64, u64) {
    let counters = cores.nodes.iter().map(|node| node.group.counters());
    counters.fold((0, 0), |(taken, handed), c| {
        (taken + c.leaderships_taken, handed + c.leaderships_handed)
    })
}

#[test]
fn it_leaves_a_far_member_once_and_without_an_election() {
    let mut cores = far_founder(3);
    let view = cores.nodes[1].group.configuration().number;
    cores.pass(8_000);
    assert_ne!(leader(&cores), 0);
    cores.pass(60_000);
    assert_ne!(leader(&cores), 0);
    assert_eq!(leaderships(&cores), (2, 1), "and stays there");
    let node = &cores.nodes[1].group;
    assert_eq!(node.counters().leaderships_needless, 0);
    assert_eq!(node.configuration().number, view, "no view");
    let name = node.leader_member().map(|member| member.name.as_str());
    assert_eq!(name, Some(format!("node{}", leader(&cores)).as_str()));
}

/// These nodes submit every 50 ms until leadership has left node 0, fewer than `most` times; how often they did.
fn submits_until_it_moves(cores: &mut Cores, nodes: Range<usize>, most: u64) -> u64 {
    let mut number = 0;
    while leader(cores) == 0 {
        number += 1;
        for node in nodes.clone() {
            cores.submit(node, number);
        }
        cores.pass(50);
        assert!(number < most, "leadership stays where it was");
    }
    number
}

#[test]
fn what_is_submitted_meanwhile_is_delivered_once() {
    let mut cores = far_founder(3);
    let number = submits_until_it_moves(&mut cores, 0..3, 300);
    cores.pass(1_000);
    for node in 0..3 {
        assert_eq!(cores.delivered(node), 3 * number, "node {node}");
    }
}

/// Who is far acknowledges late, the later the smaller the window: that is no lag but the reason to leave.
#[test]
fn it_leaves_a_member_at_the_other_end_of_the_world_under_a_steady_load() {
    for (line_ms, window_bytes) in [(100, 1_000), (130, 8 << 20), (180, 8 << 20), (180, 1_000)] {
        let mut cores = founder_away(4, line_ms);
        cores.nodes[0].group.config_mut().window_bytes = window_bytes;
        let number = submits_until_it_moves(&mut cores, 1..4, 200);
        let kept = cores.nodes[0].group.counters().leaderships_kept;
        assert_eq!(kept, 0, "{line_ms} ms, {window_bytes} bytes");
        cores.pass(2_000);
        assert_eq!(cores.delivered(0), 3 * number);
    }
}

#[test]
fn it_stays_where_the_writes_come_from() {
    let mut cores = far_founder(3);
    for number in 1..=600 {
        cores.submit(0, number);
        cores.pass(50);
    }
    assert_eq!(leader(&cores), 0, "from here no seat is better");
}

#[test]
fn small_differences_do_not_matter() {
    let mut cores = Cores::of(3);
    for near in 1..3 {
        cores.lines_ms.insert((0, near), 2);
    }
    cores.step_ms = 1;
    cores.pass(20_000);
    assert_eq!(leaderships(&cores), (1, 0));
}

#[test]
fn it_goes_where_the_operator_wants_it() {
    let mut cores = Cores::of(3);
    cores.nodes[2].group.config_mut().preference = Preference::Prefer;
    cores.pass(5_000);
    assert_eq!(leader(&cores), 2);
    // And away from where it is not wanted, without waiting for long.
    cores.pass(10_000);
    cores.nodes[2].group.config_mut().preference = Preference::Never;
    cores.nodes[0].group.config_mut().preference = Preference::Never;
    cores.pass(2_500);
    assert_eq!(leader(&cores), 1);
    for node in 0..3 {
        cores.nodes[node].group.config_mut().preference = Preference::Never;
    }
    cores.pass(30_000);
    assert_eq!(leader(&cores), 1, "somebody must have it");
}

#[test]
fn who_does_not_want_it_stands_after_all_others() {
    let mut cores = Cores::of(3);
    cores.nodes[1].group.config_mut().preference = Preference::Never;
    cores.kill(0);
    cores.pass(2_000);
    assert!(cores.nodes[2].group.is_leader());
    assert_eq!(cores.nodes[1].group.counters().leaderships_taken, 0);
}

#[test]
fn it_is_not_given_to_who_is_not_able() {
    let mut cores = far_founder(3);
    cores.nodes[1].group.config_mut().able = false;
    cores.event(2, Event::Leave);
    cores.pass(15_000);
    assert_eq!(cores.members(0), ["node0", "node1"]);
    assert_eq!(leader(&cores), 0);
    cores.nodes[1].group.config_mut().able = true;
    cores.pass(15_000);
    assert_eq!(leader(&cores), 0, "of two, no seat is better");
}

#[test]
fn it_is_not_given_to_who_lags() {
    let mut cores = far_founder(3);
    for node in 1..3 {
        cores.nodes[node].group.config_mut().append_is_durable = false;
    }
    // Their disks do not answer: nothing is acknowledged.
    cores.submit(0, 1);
    cores.pass(15_000);
    assert_eq!(leader(&cores), 0);
}

#[test]
fn a_successor_that_does_not_come_forward_costs_a_moment_only() {
    let mut cores = Cores::of(3);
    cores.nodes[2].group.config_mut().preference = Preference::Prefer;
    cores.lost = |message| matches!(message, Message::TakeLeadership { .. });
    cores.pass(5_000);
    assert_eq!(leader(&cores), 0);
    assert_eq!(cores.nodes[0].group.counters().leaderships_kept, 1);
    cores.submit(1, 1);
    cores.pass(200);
    assert_eq!(cores.delivered(1), 1);
    // It tries again, less and less often.
    cores.pass(5_000);
    assert_eq!(cores.nodes[0].group.counters().leaderships_kept, 2);
    cores.pass(30_000);
    assert_eq!(cores.nodes[0].group.counters().leaderships_kept, 6);
    cores.lost = |_| false;
    cores.pass(15_000);
    assert_eq!(leader(&cores), 2);
}

/// Who has leadership only because its log was better than a candidate's may give it up sooner.
#[test]
fn who_was_handed_leadership_keeps_it_longer_than_who_was_left_it() {
    for (from, rest_ms) in [(0, 10_000), (1, 3_000)] {
        let mut cores = Cores::of(3);
        cores.pass(2_000);
        let now = cores.now;
        let from = cores.incarnation(from);
        let group = &mut cores.nodes[2].group;
        let won = group.elections().take_leadership(from, 1_000, None);
        group.membership().lead(won);
        let offered = group.election_timer.was_offered(group.context.now());
        let rest_until = Transfer::rest_until(group.known(), offered);
        assert_eq!(rest_until, now + rest_ms);
    }
}

/// A peer cannot make itself near, nor give back stamps that were never sent.
#[test]
fn lies_about_distances_are_seen_through() {
    let mut cores = far_founder(3);
    let (far, near) = (cores.incarnation(0), cores.incarnation(1));
    let lie = |stamp_ms, peer| Outlook {
        able: true,
        stamp_ms,
        links: vec![Link {
            peer,
            echo_ms: TimeMs::MAX,
            held_ms: u32::MAX,
            round_trip_us: 0,
        }],
        ..Outlook::default()
    };
    cores.pass(2_000);
    for node in [1, 2] {
        let group = &mut cores.nodes[node].group;
        let (me, now) = (group.me(), group.context.now());
        group.peers.measure(far, me, &lie(u64::MAX, near), now);
        let links = cores.nodes[node].group.known().own_outlook(false).links;
        let to_far = links.iter().find(|link| link.peer == far);
        let trip_us = to_far.expect("connected").round_trip_us;
        assert!((90_000..130_000).contains(&trip_us), "{trip_us}");
    }
}

#[test]
fn leadership_taken_from_a_living_leader_is_counted() {
    let mut cores = Cores::of(3);
    // It stands still for a while, but listens.
    cores.pass_for(&[1, 2], 900);
    assert_eq!(leader(&cores), 1);
    assert_eq!(cores.nodes[1].group.counters().leaderships_needless, 1);
    assert_eq!(leaderships(&cores), (2, 0));
}

#[test]
fn silences_that_were_broken_make_patient() {
    let mut cores = Cores::of(3);
    let usual_ms = timeout_ms(&cores);
    cores.pass_for(&[1, 2], 350);
    cores.pass(200);
    assert_eq!(leader(&cores), 0);
    let now_ms = timeout_ms(&cores);
    assert!(now_ms > usual_ms && now_ms <= 2 * usual_ms, "{now_ms}");
    cores.pass(60_000);
    assert_eq!(timeout_ms(&cores), usual_ms);
}

/// How long node 1 bears its leader's silence.
fn timeout_ms(cores: &Cores) -> TimeMs {
    let group = &cores.nodes[1].group;
    group.election_timer.timeout_ms(group.context.config())
}
