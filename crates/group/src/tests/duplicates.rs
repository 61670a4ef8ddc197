//! Two processes on one data directory: a copy of it was made (rule 14).

use super::cores::{Cores, HISTORY, member, replica};
use crate::checkpoint::Checkpoint;
use crate::configuration::Member;
use crate::event::{Action, Event, Recovered, RecoveredLog};
use crate::ids::{Incarnation, Term, Uuid};
use crate::message::{ComponentState, Message};

/// A process that goes on with what is in `node`'s log now.
fn with_log_of(cores: &Cores, node: usize) -> Recovered {
    // That of node 0 begins with the first entry.
    let mut entries = cores.log_of(0);
    let end = cores.nodes[node].group.end();
    entries.retain(|entry| entry.position <= end);
    Recovered {
        promised: cores.nodes[node].group.term(),
        amnesiac: false,
        lost_views: false,
        log: Some(RecoveredLog {
            checkpoint: Checkpoint {
                history: HISTORY,
                ..Checkpoint::default()
            },
            commit: entries.len() as u64,
            entries,
            left: 0,
        }),
        ..Recovered::default()
    }
}

fn named(node: usize, byte: u8) -> Member {
    Member {
        incarnation: Incarnation(Uuid([byte; 16])),
        name: format!("process{byte}"),
        ..member(node)
    }
}

/// Three nodes, of which node 1 was stopped, copied and started again as node 3; the copy, node 4, comes to life in
/// the cluster and is refused.
fn with_copy() -> Cores {
    let mut cores = Cores::of(3);
    cores.kill(1);
    let left = with_log_of(&cores, 1);
    cores.start(named(1, 50), left.clone());
    cores.pass(1_000);
    cores.all_joined();
    cores.start(named(1, 40), left);
    cores.pass(1_000);
    assert_eq!(cores.members(0), ["node0", "node2", "process50"]);
    assert_eq!(cores.nodes[2].group.configuration().total_weight(), 3);
    cores
}

/// Only nodes 0 and 3 have what was acknowledged last, and node 0 is dead.
fn only_the_copied_has_it() -> Cores {
    let mut cores = with_copy();
    cores.part(&[2, 4], &[0, 3]);
    cores.submit(0, 1);
    assert_eq!((cores.delivered(0), cores.delivered(2)), (1, 0));
    cores.kill(0);
    cores
}

#[test]
fn the_promise_of_a_copy_elects_nobody() {
    let mut cores = only_the_copied_has_it();
    cores.cut.clear();
    // The copy's answers come first, and the other does not stand itself.
    cores.lines_ms.extend([((2, 3), 30), ((3, 2), 30)]);
    cores.step_ms = 10;
    cores.pass_for(&[2, 4], 2_000);
    cores.lines_ms.clear();
    cores.pass(3_000);
    for node in [2, 3] {
        assert_eq!(cores.component_state(node), ComponentState::Primary);
        assert_eq!(cores.delivered(node), 1, "node {node}");
    }
    assert_eq!(cores.component_state(4), ComponentState::NonPrimary);
}

/// Also when the other one has died meanwhile: what it had is not in its copy.
#[test]
fn a_copy_that_knows_of_its_duplicate_has_no_vote_when_that_is_gone() {
    let mut cores = only_the_copied_has_it();
    cores.kill(3);
    cores.cut.clear();
    cores.pass(10_000);
    for node in [2, 4] {
        assert_eq!(cores.component_state(node), ComponentState::NonPrimary);
        assert!(!cores.nodes[node].group.is_leader());
    }
}

/// The leader loses its connection to the original, and takes the copy for it.
#[test]
fn a_leader_and_a_copy_are_no_majority() {
    let mut cores = with_copy();
    cores.part(&[0, 4], &[2, 3]);
    for (node, peer) in [(0, 3), (0, 2), (4, 3), (4, 2)] {
        let incarnation = cores.incarnation(peer);
        cores.event(node, Event::PeerDown { incarnation });
    }
    cores.submit(0, 1);
    cores.event(0, Event::Read { token: 7 });
    cores.pass(10_000);
    assert_eq!(cores.delivered(0), 0);
    assert!(
        !cores.nodes[0]
            .actions
            .iter()
            .any(|a| matches!(a, Action::ReadPoint { .. }))
    );
    for node in [0, 4] {
        assert_eq!(
            cores.component_state(node),
            ComponentState::NonPrimary,
            "node {node}"
        );
    }
    cores.submit(3, 1);
    assert_eq!(cores.delivered(2), 1);
    cores.cut.clear();
    for (node, peer) in [(0, 3), (0, 2), (4, 3), (4, 2)] {
        cores.reconnect(node, peer);
    }
    cores.pass(10_000);
    assert_eq!(cores.members(0), ["node0", "node2", "process50"]);
}

/// The original is gone for good: its copy, started again, takes the seat, and has the vote once it has joined.
#[test]
fn a_copy_takes_the_seat_of_an_original_that_is_gone() {
    let mut cores = with_copy();
    let left = with_log_of(&cores, 4);
    cores.kill(3);
    cores.kill(4);
    cores.submit(0, 1);
    cores.start(named(1, 45), left);
    cores.pass(10_000);
    assert_eq!(cores.members(0), ["node0", "node2", "process45"]);
    cores.all_joined();
    cores.kill(2);
    cores.submit(0, 2);
    assert_eq!(cores.delivered(5), 2);
}

/// Nobody can say which of the two is the copy.
#[test]
fn of_two_without_a_seat_none_has_a_vote() {
    let mut before = Cores::of(3);
    before.submit(0, 1);
    let (left, other) = (with_log_of(&before, 1), with_log_of(&before, 2));
    let mut cores = Cores::none();
    let node = cores.start(named(2, 60), other);
    let duplicates = [50, 40].map(|byte| cores.start(named(1, byte), left.clone()));
    cores.pass(12_000);
    assert_eq!(cores.component_state(node), ComponentState::NonPrimary);
    let actions = format!("{:?}", cores.nodes[node].actions);
    assert!(actions.contains("two processes run with the replica id"));
    cores.kill(duplicates[1]);
    cores.pass(3_000);
    assert_eq!(cores.component_state(node), ComponentState::Primary);
    assert_eq!(
        cores.component_state(duplicates[0]),
        ComponentState::Primary
    );
}

/// A process of node 1's data directory, which goes for leadership as `seek` says, and of whose directory a copy comes to
/// life before the promises of the others' processes are there.
fn meets_its_copy(seek: fn(&mut Cores, usize)) -> (Cores, usize) {
    let mut before = Cores::of(3);
    before.submit(0, 1);
    let left = [1, 0, 2].map(|node| with_log_of(&before, node));
    let mut cores = Cores::none();
    let seeker = cores.start(named(1, 50), left[0].clone());
    let electors = [(0, 60), (2, 70)].map(|(node, byte)| {
        let elector = cores.start(named(node, byte), left[1 + node / 2].clone());
        cores.lines_ms.insert((elector, seeker), 250);
        elector
    });
    seek(&mut cores, seeker);
    assert!(cores.nodes[seeker].group.role.is_candidate());
    cores.start(named(1, 40), left[0].clone());
    cores.pass_for(&[seeker, electors[0], electors[1]], 300);
    (cores, seeker)
}

#[test]
fn who_meets_its_copy_seeks_leadership_no_more() {
    let (cores, seeker) = meets_its_copy(|cores, seeker| {
        let (number, forced) = (9, None);
        cores.say(1, seeker, Message::TakeLeadership { number, forced });
    });
    assert!(!cores.nodes[seeker].group.is_leader());
}

/// The operator has said which of the two is to go on.
#[test]
fn an_override_is_not_held_up_by_a_copy() {
    let (cores, seeker) = meets_its_copy(|cores, seeker| {
        let override_id = Uuid([9; 16]);
        cores.event(seeker, Event::ForcePrimary { override_id });
    });
    assert!(cores.members(seeker).contains(&"process50"));
    assert_eq!(cores.component_state(seeker), ComponentState::Primary);
}

/// A copy of the leader's data directory is not taken for the leader, whatever it says.
#[test]
fn a_copy_of_the_leaders_is_not_followed() {
    let mut cores = Cores::of(3);
    let left = with_log_of(&cores, 0);
    // The first by name.
    let copy = cores.start(named(0, 0), left);
    cores.pass(1_000);
    (1..=5).for_each(|number| cores.submit(0, number));
    assert_eq!([0, 1, 2].map(|node| cores.delivered(node)), [5, 5, 5]);
    let term = cores.nodes[1].group.term();
    let higher = Term {
        number: term.number + 1,
        replica: replica(0),
    };
    for node in 0..3 {
        let forced = None;
        let term = higher;
        cores.say(copy, node, Message::Prepare { term, forced });
        assert!(cores.nodes[node].group.term() < higher);
    }
    assert!(cores.nodes[0].group.is_leader());
}

/// Copies of a majority's data directories, all refused, do not keep anybody else from being admitted.
#[test]
fn copies_do_not_keep_others_out() {
    let mut cores = Cores::of(2);
    for node in 0..2 {
        let left = with_log_of(&cores, node);
        cores.start(named(node, 40 + node as u8), left);
    }
    cores.pass(1_000);
    cores.start(member(5), Recovered::default());
    cores.pass(1_000);
    assert_eq!(cores.members(0), ["node0", "node1", "node5"]);
}
