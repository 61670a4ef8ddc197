//! Overrides of `pc.ignore_quorum` and `pc.ignore_sb` give way to a primary component without them (rule 11).

use super::branches::comes_back;
use super::cores::{Cores, member, replica};
use crate::configuration::Member;
use crate::event::{Action, Event, Recovered};
use crate::ids::{Incarnation, Term, Uuid};
use crate::message::{ComponentState, Message};
use crate::yielding::{unvouched, yields};

const OPERATORS: Uuid = Uuid([3; 16]);

fn all_primary(cores: &Cores, nodes: &[usize]) -> bool {
    nodes
        .iter()
        .all(|node| cores.component_state(*node) == ComponentState::Primary)
}

/// A node's heartbeat.
fn status_of(cores: &mut Cores, node: usize) -> Message {
    Message::Status(
        cores.nodes[node]
            .group
            .membership()
            .status_for(Incarnation::default()),
    )
}

/// Nodes 3 and 4 ignore the quorum and are cut off, with nobody else.
fn gone_on_alone(others: &[usize]) -> Cores {
    let mut cores = Cores::of(5);
    for node in [3, 4] {
        cores.nodes[node].group.config_mut().ignore_quorum = true;
    }
    cores.part(&[3, 4], &[0, 1, 2]);
    if let [one, rest @ ..] = others {
        cores.part(&[*one], rest);
    }
    cores.pass(12_000);
    assert!(all_primary(&cores, &[3, 4]));
    assert_eq!(cores.members(3), ["node3", "node4"]);
    assert!(cores.nodes[3].group.overrides_in_log().iter().all(yields));
    cores
}

#[test]
fn those_who_ignore_the_quorum_give_way_to_the_majority() {
    let mut cores = gone_on_alone(&[]);
    assert!(all_primary(&cores, &[0, 1, 2]));
    (1..=5).for_each(|number| cores.submit(3, number));
    (1..=9).for_each(|number| cores.submit(0, number));
    cores.cut.clear();
    for _ in 0..200 {
        cores.pass(50);
        assert!(all_primary(&cores, &[0, 1, 2]), "at {}", cores.now);
    }
    assert!(all_primary(&cores, &[0, 1, 2, 3, 4]));
    for node in &cores.nodes {
        assert!(node.group.overrides_in_log().is_empty());
    }
}

/// `pc.ignore_sb` wants half of the votes, for its own forced views only.
#[test]
fn a_bootstrap_needs_no_half() {
    for override_id in [unvouched(OPERATORS), OPERATORS] {
        let mut cores = Cores::of(3);
        cores.nodes[2].group.config_mut().ignore_split_brain = true;
        cores.part(&[2], &[0, 1]);
        cores.pass(12_000);
        assert!(!all_primary(&cores, &[2]));
        cores.event(2, Event::ForcePrimary { override_id });
        cores.pass(1_000);
        assert!(all_primary(&cores, &[2]));
    }
}

/// Nobody need wait until a submission is sent again because it is old.
#[test]
fn those_who_go_on_alone_order_at_once_what_waits() {
    let mut cores = Cores::of(5);
    for node in [3, 4] {
        cores.nodes[node].group.config_mut().ignore_quorum = true;
    }
    cores.part(&[3, 4], &[0, 1, 2]);
    cores.submit(3, 1);
    cores.submit(4, 1);
    cores.step_ms = 10;
    while cores.members(3).len() > 2 || cores.members(4).len() > 2 {
        cores.pass(10);
    }
    cores.pass(200);
    assert_eq!([cores.delivered(3), cores.delivered(4)], [2, 2]);
}

/// Node 2 has gone on alone, and node 0 has committed nothing since: node 0's checkpoint lies below the forced view.
#[test]
fn a_log_of_another_branch_gives_way_to_a_checkpoint_that_it_holds() {
    let mut cores = Cores::of(3);
    let checkpoint = cores.nodes[0].group.checkpoint().clone();
    cores.nodes[2].group.config_mut().ignore_quorum = true;
    cores.part(&[2], &[0, 1]);
    cores.pass(12_000);
    assert_eq!(cores.members(2), ["node2"]);
    cores.reconnect(0, 2);
    let status = status_of(&mut cores, 0);
    cores.say(0, 2, status);
    assert!(!all_primary(&cores, &[2]));
    let message = Message::Install {
        term: Term {
            number: cores.nodes[2].group.term().number + 1,
            replica: replica(0),
        },
        intact_at: checkpoint.position + 5,
        checkpoint: checkpoint.clone(),
    };
    cores.say(0, 2, message);
    assert_eq!(cores.nodes[2].group.end(), checkpoint.position);
    assert!(cores.nodes[2].group.overrides_in_log().is_empty());
    // Entries between the checkpoint and the fork, which it has acknowledged, are missing now.
    assert!(cores.nodes[2].group.is_amnesiac());
}

/// Node 0 has gone on alone, and is restarted. Its request for admission named its forced view; it has given way since.
#[test]
fn a_refusal_of_what_is_given_up_is_not_final() {
    let mut cores = Cores::of(3);
    cores.nodes[0].group.config_mut().ignore_quorum = true;
    cores.part(&[0], &[1, 2]);
    cores.pass(12_000);
    assert_eq!(cores.members(0), ["node0"]);
    let (again, recovered) = comes_back(&cores, cores.nodes[0].group.commit());
    cores.kill(0);
    cores.lost = |message| !matches!(message, Message::Status(_) | Message::JoinRefused { .. });
    let again = cores.start(again, recovered);
    cores.pass(100);
    assert!(cores.nodes[again].group.branches().gives_up_overrides());
    let is_leader = |node: &usize| cores.nodes[*node].group.is_leader();
    let leader = [1, 2].into_iter().find(is_leader).expect("they go on");
    let reason = "another branch".to_owned();
    cores.say(leader, again, Message::JoinRefused { reason });
    let refused = |action: &Action| matches!(action, Action::Refused { .. });
    assert!(!cores.nodes[again].actions.iter().any(refused));
}

#[test]
fn who_is_not_primary_gives_way_to_them() {
    let mut cores = gone_on_alone(&[0, 1, 2]);
    assert!(!all_primary(&cores, &[1, 2]));
    cores.cut.remove(&(0, 3));
    cores.cut.remove(&(3, 0));
    cores.cut.remove(&(0, 4));
    cores.cut.remove(&(4, 0));
    cores.pass(10_000);
    assert!(all_primary(&cores, &[0, 3, 4]));
    assert_eq!(cores.nodes[0].group.overrides_in_log().len(), 1);
}

/// Node 2 has a view without it in its log when it loses the others: it cannot know whether that is in force.
#[test]
fn who_may_be_voted_out_does_not_go_on_alone() {
    let mut cores = Cores::of(3);
    cores.nodes[2].group.config_mut().ignore_quorum = true;
    cores.cut.extend([(2, 0), (2, 1), (1, 2)]);
    cores.lines_ms.extend([((0, 1), 100), ((1, 0), 100)]);
    let is_without = |cores: &Cores| {
        let latest = cores.nodes[2].group.log.latest();
        latest.member(cores.incarnation(2)).is_none()
    };
    while !is_without(&cores) {
        cores.pass(50);
    }
    cores.part(&[2], &[0, 1]);
    assert_eq!(cores.members(2).len(), 3);
    cores.pass(12_000);
    assert!(all_primary(&cores, &[0, 1]));
    assert_eq!(cores.component_state(2), ComponentState::NonPrimary);
}

/// Node 2 goes on alone. Node 0 has the view without it in its log and does not know that it is committed: it loses node 1
/// as soon as `until` holds, with what is on its way along the slow `line`.
fn view_without_it(line: (usize, usize), until: fn(&Cores) -> bool) -> Cores {
    let mut cores = Cores::of(3);
    cores.nodes[2].group.config_mut().ignore_quorum = true;
    cores.part(&[2], &[0, 1]);
    (cores.step_ms, cores.lines_ms) = (1, [(line, 10)].into());
    while !until(&cores) {
        cores.pass(1);
    }
    cores.part(&[0], &[1]);
    (cores.step_ms, cores.lines_ms) = (50, Default::default());
    cores.pass(12_000);
    assert!(cores.members(0).len() == 3 && cores.nodes[0].group.log.latest().members.len() == 2);
    assert!(all_primary(&cores, &[2]) && !all_primary(&cores, &[0]));
    cores
}

#[test]
fn a_view_without_them_that_may_be_in_force_counts() {
    let mut cores = view_without_it((1, 0), |cores| cores.members(1).len() == 2);
    cores.cut.remove(&(0, 2));
    cores.cut.remove(&(2, 0));
    cores.pass(10_000);
    assert!(!all_primary(&cores, &[0]), "node 1 may have gone on");
    cores.cut.clear();
    cores.pass(20_000);
    assert!(all_primary(&cores, &[0, 1, 2]));
    for node in &cores.nodes {
        assert!(node.group.overrides_in_log().is_empty());
    }
}

/// Node 0 heeded node 2 before the view without node 2 came. Nobody else may be able to lead (seed 124105 of `mistakes`).
#[test]
fn who_has_heeded_them_may_stand_once_it_has_a_view_without_them() {
    let mut cores = view_without_it((1, 0), |cores| cores.members(1).len() == 2);
    let theirs = cores.nodes[2].group.overrides_in_log();
    cores.nodes[0].group.forced_views.heed(&theirs);
    assert!(cores.nodes[0].group.branches().is_overridden());
    cores.cut.remove(&(0, 2));
    cores.cut.remove(&(2, 0));
    cores.pass(10_000);
    assert!(!cores.nodes[0].group.branches().is_overridden());
    assert!(!all_primary(&cores, &[0]));
}

/// It has left, and knows of the view without it, which those who stay have.
#[test]
fn who_has_left_those_who_went_on_waits_for_them() {
    let mut cores = gone_on_alone(&[]);
    cores.event(0, Event::Leave);
    cores.pass(1_000);
    assert_eq!(cores.members(0), ["node1", "node2"]);
    let (again, recovered) = comes_back(&cores, cores.nodes[0].group.commit());
    cores.kill(0);
    let again = cores.start(again, recovered);
    cores.cut.clear();
    cores.part(&[1, 2], &[3, 4, again]);
    cores.pass(10_000);
    assert!(!all_primary(&cores, &[again]));
    cores.cut.clear();
    cores.pass(20_000);
    assert!(all_primary(&cores, &[1, 2, 3, 4, again]));
}

/// Node 3, which has no vote, is restarted and joins node 0, which has gone on alone. The others still list it.
#[test]
fn whoever_has_joined_those_who_went_on_alone_is_outvoted_with_them() {
    let mut cores = Cores::of(3);
    cores.start(member(3), Recovered::default());
    cores.pass(1_000);
    cores.nodes[0].group.config_mut().ignore_quorum = true;
    cores.part(&[0], &[1, 2, 3]);
    cores.pass(12_000);
    assert!(all_primary(&cores, &[0, 1, 2, 3]));
    assert_eq!(cores.members(1), ["node1", "node2", "node3"]);
    cores.kill(3);
    cores.part(&[1], &[2]);
    cores.pass(12_000);
    assert!(!all_primary(&cores, &[1]) && !all_primary(&cores, &[2]));
    let again = Member {
        incarnation: Incarnation(Uuid([50; 16])),
        ..member(3)
    };
    let again = cores.start(again, Recovered::default());
    cores.part(&[again], &[1, 2]);
    cores.pass(3_000);
    assert_eq!(cores.members(0), ["node0", "node3"]);
    cores.cut.clear();
    cores.pass(20_000);
    assert!(all_primary(&cores, &[0, 1, 2, again]));
    assert!(cores.nodes[0].group.overrides_in_log().is_empty());
}

/// Node 3, which has no vote, joins node 0, which has gone on alone, and is left there by itself. The others, whose view
/// still lists it, form theirs meanwhile.
#[test]
fn a_member_without_a_vote_that_is_primary_with_them_is_admitted_again() {
    let mut cores = Cores::of(3);
    cores.start(member(3), Recovered::default());
    cores.pass(1_000);
    cores.nodes[0].group.config_mut().ignore_quorum = true;
    cores.part(&[0, 1, 2, 3], &[0, 1, 2, 3]);
    cores.pass(12_000);
    cores.cut.remove(&(0, 3));
    cores.cut.remove(&(3, 0));
    cores.pass(3_000);
    let (position, members) = (cores.nodes[0].group.commit(), vec![cores.incarnation(3)]);
    cores.event(0, Event::Joined { position, members });
    cores.pass(1_000);
    cores.event(0, Event::Leave);
    cores.pass(1_000);
    cores.kill(0);
    cores.refuses(0);
    assert_eq!(cores.members(3), ["node3"]);
    cores.cut.clear();
    cores.part(&[3], &[1, 2]);
    while !all_primary(&cores, &[1, 2]) {
        cores.pass(50);
    }
    assert!(all_primary(&cores, &[3]));
    assert_eq!(cores.members(1), ["node1", "node2", "node3"]);
    cores.cut.clear();
    cores.pass(20_000);
    assert!(all_primary(&cores, &[1, 2, 3]));
    assert!(cores.nodes[3].group.overrides_in_log().is_empty());
}

/// Nodes 0 and 1 go on without node 2, and lose each other. Node 0 is restarted, and joins node 2, which has gone on
/// alone.
#[test]
fn a_view_in_force_that_nobody_can_form_again_does_not_count() {
    let mut cores = Cores::of(3);
    cores.nodes[2].group.config_mut().ignore_quorum = true;
    cores.part(&[0, 1], &[2]);
    cores.pass(12_000);
    assert!(all_primary(&cores, &[0, 1, 2]));
    cores.kill(0);
    cores.pass(12_000);
    assert!(!all_primary(&cores, &[1]));
    let again = Member {
        incarnation: Incarnation(Uuid([50; 16])),
        ..member(0)
    };
    let again = cores.start(again, Recovered::default());
    cores.part(&[again], &[1]);
    cores.pass(3_000);
    assert_eq!(cores.members(2), ["node2", "node0"]);
    cores.cut.clear();
    cores.pass(20_000);
    assert!(all_primary(&cores, &[1, 2, again]));
}

/// Nobody has gone on without a node that was never a member.
#[test]
fn a_new_node_that_has_joined_them_makes_no_difference() {
    let mut cores = Cores::of(3);
    cores.nodes[0].group.config_mut().ignore_quorum = true;
    cores.part(&[0, 1, 2], &[0, 1, 2]);
    cores.pass(12_000);
    cores.start(member(3), Recovered::default());
    cores.part(&[3], &[1, 2]);
    cores.pass(3_000);
    assert_eq!(cores.members(0), ["node0", "node3"]);
    cores.kill(2);
    cores.cut.clear();
    cores.pass(10_000);
    assert!(all_primary(&cores, &[0, 1, 3]));
}

#[test]
fn a_view_whose_majority_has_gone_with_them_does_not() {
    let mut cores = view_without_it((0, 1), |c| c.nodes[0].group.log.latest().members.len() == 2);
    cores.cut.remove(&(1, 2));
    cores.cut.remove(&(2, 1));
    cores.pass(10_000);
    assert!(all_primary(&cores, &[1, 2]));
    cores.cut.clear();
    cores.pass(20_000);
    assert!(all_primary(&cores, &[0, 1, 2]));
}

#[test]
fn they_give_way_to_what_an_operator_has_decided() {
    let mut cores = gone_on_alone(&[0, 1, 2]);
    let override_id = OPERATORS;
    cores.event(1, Event::ForcePrimary { override_id });
    cores.pass(3_000);
    assert!(all_primary(&cores, &[1, 2, 3, 4]));
    cores.cut.clear();
    cores.pass(20_000);
    assert!(all_primary(&cores, &[0, 1, 2, 3, 4]));
    for node in &cores.nodes {
        assert_eq!(node.group.overrides_in_log(), [OPERATORS]);
    }
}

#[test]
fn two_that_yield_exclude_each_other() {
    let mut cores = Cores::of(4);
    for node in &mut cores.nodes {
        node.group.config_mut().ignore_split_brain = true;
    }
    cores.part(&[0, 1], &[2, 3]);
    cores.pass(12_000);
    assert!(all_primary(&cores, &[0, 1, 2, 3]));
    cores.cut.clear();
    cores.pass(20_000);
    // Nobody drops anything by itself: both sides tell it (`split.rs`).
    assert!(all_primary(&cores, &[0, 1, 2, 3]));
    assert_eq!(cores.members(0).len() + cores.members(2).len(), 4);
}
