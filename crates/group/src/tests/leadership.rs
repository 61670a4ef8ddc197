//! Who takes leadership, and who gives it away again.

use bytes::Bytes;

use super::cores::{Cores, member};
use crate::codec::encode;
use crate::configuration::Member;
use crate::event::{Action, Event, Recovered};
use crate::ids::{Incarnation, TimeMs, Uuid};
use crate::message::{ComponentState, Message};

fn leaders(cores: &Cores) -> Vec<usize> {
    let nodes = 0..cores.nodes.len();
    nodes
        .filter(|node| cores.nodes[*node].group.is_leader())
        .collect()
}

/// Node 2 is killed; another process of its replica starts, and does not ask to join.
fn restart_unheard(cores: &mut Cores) -> usize {
    cores.kill(2);
    let again = Member {
        incarnation: Incarnation(Uuid([66; 16])),
        name: "again".into(),
        ..member(2)
    };
    let amnesiac = Recovered {
        amnesiac: true,
        ..Recovered::default()
    };
    let node = cores.start(again, amnesiac);
    cores.nodes[node]
        .group
        .component
        .asked_to_join(TimeMs::MAX / 2);
    node
}

/// Rules 3, 14: its log is needed, and it must lead because it is the best.
#[test]
fn a_restarted_process_with_the_best_log_leads_and_admits_itself() {
    let mut cores = Cores::of(3);
    cores.part(&[0], &[1]);
    // It is given the log while its request to join is lost.
    let node = restart_unheard(&mut cores);
    cores.pass_for(&[0], 300);
    cores.submit(0, 1);
    let end = cores.nodes[0].group.commit();
    assert_eq!(cores.nodes[node].group.commit(), end);
    assert!(cores.nodes[1].group.end() < end);
    assert_eq!(cores.component_state(node), ComponentState::Outside);
    cores.kill(0);
    cores.refuses(0);
    cores.pass_for(&[1, node], 2_000);
    assert_eq!(leaders(&cores), [0, node]);
    assert_eq!(cores.members(1), ["node1", "again"]);
    assert_eq!(cores.component_state(node), ComponentState::Primary);
    assert!(cores.nodes[1].group.commit() > end);
}

/// Two of three are a majority also if one of them has restarted and the third is not proven dead: its seat is
/// given up when it has been silent for long enough, and not before that is certain to be possible.
#[test]
fn a_restarted_process_is_not_admitted_at_the_price_of_the_majority() {
    let mut cores = Cores::of(3);
    // It is given the log, which makes it intact, while its request to join is lost.
    let node = restart_unheard(&mut cores);
    cores.pass_for(&[0, 1], 300);
    cores.kill(0);
    cores.nodes[node].group.component.asked_to_join(0);
    cores.pass_for(&[1, node], 12_000);
    assert_eq!(cores.members(1), ["node1", "again"]);
    assert_eq!(cores.component_state(1), ComponentState::Primary);
    assert_eq!(cores.component_state(node), ComponentState::Primary);
}

/// Rule 3: the entry that removes it is in nobody else's log, whether it requested that or not.
#[test]
fn who_takes_over_a_log_that_ends_with_its_own_removal_hands_leadership_on() {
    for asks in [true, false] {
        let mut cores = Cores::of(5);
        cores.part(&[0], &[1, 3, 4]);
        if asks {
            cores.event(2, Event::Leave);
        } else {
            cores.say(2, 0, Message::Leave);
        }
        let best = cores.nodes[2].group.end();
        assert!(cores.nodes[1].group.end() < best);
        assert_eq!(cores.members(2).len(), 5, "not committed");
        cores.kill(0);
        cores.refuses(0);
        // Node 1 sees the better log first, and then needs all the others' promises.
        cores.pass_for(&[1], 1_000);
        assert!(cores.nodes[2].group.counters().leaderships_taken > 0);
        cores.pass_for(&[1, 3, 4], 4_000);
        let is_left = |action: &Action| matches!(action, Action::Left);
        assert_eq!(cores.nodes[2].actions.iter().any(is_left), asks);
        let hands_over =
            |a: &Action| matches!(a, Action::Note { text } if text.starts_with("handing"));
        assert!(cores.nodes[2].actions.iter().any(hands_over));
        assert!(cores.nodes[1].group.end() > best);
        // A member that did not ask to leave has come back.
        let members = match asks {
            true => vec!["node1", "node3", "node4"],
            false => vec!["node1", "node2", "node3", "node4"],
        };
        assert_eq!(cores.members(1), members);
        let leaders = leaders(&cores);
        assert!(leaders[..] != [0, 2], "{leaders:?}");
    }
}

#[test]
fn a_forced_candidate_goes_beyond_what_others_have_promised() {
    let mut cores = Cores::of(5);
    for node in 0..3 {
        cores.kill(node);
    }
    cores.pass(6_000);
    assert_eq!(cores.component_state(3), ComponentState::NonPrimary);
    let promised = crate::ids::Term {
        number: cores.nodes[3].group.term().number + 10,
        ..cores.nodes[4].group.term()
    };
    cores.nodes[4].group.elections().promise_term(promised);
    let override_id = Uuid([3; 16]);
    cores.event(3, Event::ForcePrimary { override_id });
    cores.pass(2_000);
    for node in 3..5 {
        assert_eq!(cores.component_state(node), ComponentState::Primary);
        let overrides = &cores.nodes[node].group.log.committed().overrides;
        assert_eq!(*overrides, [override_id]);
        assert!(cores.nodes[node].group.term() > promised);
    }
}

#[test]
fn who_knows_that_it_was_removed_cannot_be_forced() {
    let mut cores = Cores::of(3);
    // It hears, and is not heard.
    cores.cut.extend([(2, 0), (2, 1)]);
    cores.pass(8_000);
    assert_eq!(cores.members(0), ["node0", "node1"]);
    assert_eq!(cores.component_state(2), ComponentState::NonPrimary);
    let term = cores.nodes[2].group.term();
    let override_id = Uuid([3; 16]);
    cores.event(2, Event::ForcePrimary { override_id });
    let note = |a: &Action| matches!(a, Action::Note { text } if text.contains("joins by itself"));
    assert!(cores.nodes[2].actions.iter().any(note));
    assert_eq!(cores.nodes[2].group.term(), term);
    cores.cut.clear();
    cores.pass(1_000);
    assert_eq!(cores.component_state(2), ComponentState::Primary);
}

#[test]
fn a_majority_is_not_overridden() {
    let mut cores = Cores::of(3);
    let term = cores.nodes[1].group.term();
    let override_id = Uuid([3; 16]);
    cores.event(1, Event::ForcePrimary { override_id });
    // Somebody else believes that it must be.
    let forced = crate::ids::Term {
        number: term.number + 1,
        replica: super::cores::replica(2),
    };
    let message = Message::Prepare {
        term: forced,
        forced: Some(override_id),
    };
    cores.say(2, 1, message);
    assert_eq!(cores.nodes[1].group.term(), term);
    assert_eq!(leaders(&cores), [0]);
}

/// A message holds one large entry, or several whose sum is bounded.
#[test]
fn who_missed_large_entries_is_fed_in_bounded_messages() {
    const LARGE_BYTES: usize = 600 << 10;
    let mut cores = Cores::of(3);
    cores.part(&[2], &[0, 1]);
    for number in 1..=5 {
        let payload = Bytes::from(vec![number as u8; LARGE_BYTES]);
        cores.submit_bytes(0, number, payload);
    }
    let end = cores.nodes[0].group.commit();
    assert_eq!(cores.nodes[1].group.commit(), end);
    cores.cut.clear();
    cores.arrived.clear();
    cores.pass(2_000);
    assert!(cores.nodes[2].group.commit() >= end);
    let sizes = cores
        .arrived
        .iter()
        .filter_map(|(to, message)| match message {
            Message::Append(append) if *to == 2 => {
                Some(encode(&Message::Append(append.clone())).len())
            }
            _ => None,
        });
    let most = sizes.max().expect("fed");
    assert!(most > LARGE_BYTES && most < 2 * LARGE_BYTES, "{most}");
}

/// In a group of three the leader's word is the vote that an origin waits for. Where logs are flushed it comes after the
/// order record, and must not wait for a heartbeat.
#[test]
fn a_leader_says_when_it_has_flushed() {
    let mut cores = Cores::of(3);
    for node in 0..3 {
        cores.nodes[node].group.config_mut().append_is_durable = false;
    }
    cores.submit(1, 1);
    cores.flushed(2);
    cores.flushed(1);
    assert_eq!(cores.delivered(1), 0);
    cores.flushed(0);
    assert_eq!(cores.delivered(1), 1);
}

/// Where an append is as good as a flush, the order record has said it all.
#[test]
fn a_leader_that_need_not_flush_says_nothing_more() {
    let mut cores = Cores::of(3);
    cores.arrived.clear();
    cores.submit(1, 1);
    assert_eq!(cores.delivered(1), 1);
    let from_the_leader =
        |(to, message): &(usize, Message)| *to != 0 && matches!(message, Message::Ack { .. });
    assert!(!cores.arrived.iter().any(from_the_leader));
}

/// Its log is the longest by an entry that nobody needs, and it reaches one of the others only.
#[test]
fn who_cannot_win_is_passed_over_for_all_its_log() {
    let mut cores = Cores::of(5);
    cores.cut.extend([(0, 2), (0, 3), (0, 4)]);
    cores.submit(0, 1);
    cores.part(&[1], &[3, 4]);
    cores.kill(0);
    let ends: Vec<_> = (1..5).map(|node| cores.nodes[node].group.end()).collect();
    assert!(ends[0] > ends[1] && ends[1] == ends[3], "{ends:?}");
    cores.pass(4_000);
    let mut leadership = leaders(&cores);
    leadership.retain(|node| *node > 0); // who is dead does not know
    assert!(leadership.len() == 1 && leadership[0] > 1, "{leadership:?}");
    cores.submit(3, 1);
    assert_eq!(cores.delivered(4), 1);
    // It follows leadership when it is heard again.
    cores.cut.clear();
    cores.pass(10_000);
    cores.submit(3, 2);
    assert_eq!(cores.delivered(1), 2);
}

/// Found by MariaDB's suite (galera_sr_threeway_split_no_primary): the third was left out for the moment that it came later.
#[test]
fn a_leader_whose_majority_is_back_waits_for_the_others() {
    let mut cores = Cores::of(3);
    let number = cores.nodes[0].group.configuration().number;
    cores.part(&[0], &[1, 2]);
    cores.part(&[1], &[2]);
    cores.pass(10_000);
    assert_eq!(
        [0, 1, 2].map(|n| cores.component_state(n)),
        [ComponentState::NonPrimary; 3]
    );
    assert_eq!(leaders(&cores), [0]);
    cores.cut.retain(|(from, to)| from + to != 1);
    cores.pass(1_000);
    assert_eq!(
        [0, 1].map(|n| cores.component_state(n)),
        [ComponentState::Primary; 2]
    );
    assert_eq!(cores.members(0).len(), 3, "the third may be on its way");
    assert_eq!(cores.nodes[0].group.configuration().number, number + 1);
    cores.pass(10_000);
    assert_eq!(cores.members(0).len(), 2, "it was not");
}

/// Otherwise it would serve beside a view without it.
#[test]
fn a_node_that_is_cut_off_stops_before_the_others_go_on() {
    for cut_off in [0, 2] {
        let mut cores = Cores::of(3);
        let others: Vec<usize> = (0..3).filter(|node| *node != cut_off).collect();
        cores.part(&[cut_off], &others);
        while cores.component_state(cut_off) == ComponentState::Primary {
            cores.pass(cores.step_ms);
            assert_eq!(cores.members(others[0]).len(), 3, "{cut_off} is primary");
        }
        cores.pass(1_000);
        assert_eq!(cores.members(others[0]).len(), 2);
    }
}

/// Found by MariaDB's suite (galera_pc_weight): the pair showed a component of one for a moment.
#[test]
fn a_component_is_whole_from_the_start() {
    let mut cores = Cores::of(4);
    cores.part(&[0, 1], &[2, 3]);
    let timeout_ms = cores.nodes[2].group.context.config().suspect_timeout_ms;
    for _ in 0..2 * timeout_ms / cores.step_ms {
        cores.pass(cores.step_ms);
        for node in [2, 3] {
            let group = &cores.nodes[node].group;
            let size = group.component.shown();
            assert!(
                cores.component_state(node) == ComponentState::Primary || size == 2,
                "{size}"
            );
        }
    }
    assert_eq!(cores.component_state(2), ComponentState::NonPrimary);
    cores.part(&[2], &[3]);
    cores.pass(3 * timeout_ms);
    cores.kill(3);
    cores.pass(1_000);
    assert_eq!(cores.nodes[2].group.component.shown(), 1);
}

/// Node 0 hears node 2 only. The others do not hear it, and have elected node 1. What node 2 submits then may rest on
/// what was committed there.
#[test]
fn a_leader_orders_nothing_of_a_member_that_is_ahead_of_it() {
    let mut cores = Cores::of(3);
    cores.cut.extend([(0, 1), (0, 2), (1, 0)]);
    cores.pass(1_000);
    assert_eq!(leaders(&cores), [0, 1]);
    let end = cores.nodes[0].group.end();
    cores.submit(2, 1);
    cores.pass(100);
    assert!(
        cores
            .log_of(1)
            .iter()
            .any(|entry| entry.submission().is_some())
    );
    assert_eq!(cores.nodes[0].group.end(), end);
    cores.reconnect(0, 2);
    assert_eq!(cores.nodes[0].group.end(), end, "it stays ahead");
}

/// The word of the new term comes before what may rest on it.
#[test]
fn a_promise_is_told_at_once() {
    let mut cores = Cores::of(3);
    cores.cut.extend([(0, 1), (0, 2)]);
    let term = cores.nodes[0].group.term();
    while cores.nodes[2].group.term() == term {
        cores.pass_when_due(&[0, 1, 2], 1);
    }
    let status = cores.nodes[0].group.peers.status_of(cores.incarnation(2));
    assert!(status.is_some_and(|status| status.term > term));
}
