//! A leader and members that follow another branch (rule 11): it orders nothing of theirs, and does not count on them.

use bytes::Bytes;

use super::branches::{OVERRIDE, all_primary, force, forked};
use super::cores::{Cores, HISTORY, member};
use crate::entry::Entry;
use crate::message::{ComponentState, Join, Message};
use crate::submissions::Submissions;

fn has_submission(log: &[Entry]) -> bool {
    log.iter().any(|entry| entry.submission().is_some())
}

/// Node 4 asked for admission before it went on with the others, and the request comes late. What it submits rests on the
/// commits of its own branch (simulator, seed 3600067514).
#[test]
fn what_a_node_submits_on_another_branch_is_not_ordered() {
    let mut cores = forked();
    let leader = [0, 1]
        .into_iter()
        .find(|node| cores.nodes[*node].group.is_leader());
    let leader = leader.expect("one of the two leads");
    let join = Join {
        member: member(4),
        history: HISTORY,
        known_number: 0,
        overrides: Vec::new(),
    };
    cores.say(4, leader, Message::Join(join));
    let payload = Some("4/1".into());
    cores.say(4, leader, Message::Submit { number: 1, payload });
    cores.pass(100);
    assert_eq!(cores.members(leader), ["node0", "node1", "node4"]);
    assert!(!has_submission(&cores.log_of(leader)));
    cores.cut.clear();
    cores.pass(10_000);
    assert!(all_primary(&cores, &[0, 1, 2, 3, 4]));
    // The first heartbeat names the branch, and comes before the next submission.
    cores.submit(4, 1);
    cores.pass(50);
    assert!(has_submission(&cores.log_of(leader)));
}

/// A heartbeat comes at once, not when one is due: no time passes at node 0.
#[test]
fn who_commits_an_override_tells_it_before_its_next_submission() {
    let mut cores = Cores::of(5);
    cores.part(&[0, 1, 2, 3, 4], &[2, 3, 4]);
    cores.pass(12_000);
    force(&mut cores, 1);
    cores.pass_for(&[1], 400);
    assert_eq!(cores.nodes[0].group.checkpoint().overrides, [OVERRIDE]);
    let told = cores.nodes[1].group.peers.status_of(cores.incarnation(0));
    assert!(told.is_some_and(|status| status.overrides == [OVERRIDE]));
}

/// Node 1 has committed an override since, which the leader has missed: what it submits rests on commits of that branch.
#[test]
fn what_a_node_submits_after_an_override_is_not_ordered_without_it() {
    let mut cores = Cores::of(3);
    let leader = cores.incarnation(0);
    let mut status = cores.nodes[1].group.membership().status_for(leader);
    status.overrides = vec![OVERRIDE];
    cores.say(1, 0, Message::Status(status));
    let payload = Some(Bytes::from_static(b"1/1"));
    cores.say(1, 0, Message::Submit { number: 1, payload });
    assert!(!has_submission(&cores.log_of(0)));
}

#[test]
fn a_change_of_branch_drops_what_waits_and_keeps_what_is_withdrawn() {
    let mut submissions = Submissions::default();
    let (one, other) = (member(1).incarnation, member(2).incarnation);
    let payload = || Some(Bytes::from_static(b"x"));
    submissions.keep(one, 1, payload());
    submissions.keep(other, 3, None);
    submissions.keep(other, 4, payload());
    submissions.leave_branch();
    assert_eq!(submissions.take_next(one, 0), None);
    assert_eq!(submissions.take_next(other, 2), Some((3, None)));
    assert_eq!(submissions.take_next(other, 3), None);
    assert_eq!(submissions.bytes_of(other), 0);
}

/// An operator has made node 2 primary beside the live majority of nodes 0 and 1. Node 1 hears of that and follows; node 0,
/// the leader, does not hear node 2. Without node 1 it can commit nothing.
#[test]
fn a_leader_whose_follower_has_followed_an_override_is_not_primary_for_long() {
    let mut cores = Cores::of(3);
    cores.part(&[2], &[0, 1]);
    cores.pass(12_000);
    assert!(all_primary(&cores, &[0, 1]));
    force(&mut cores, 2);
    cores.pass(1_000);
    assert!(all_primary(&cores, &[2]));
    cores.cut.remove(&(1, 2));
    cores.cut.remove(&(2, 1));
    cores.pass(12_000);
    assert_eq!(cores.members(2), ["node1", "node2"]);
    assert_ne!(cores.component_state(0), ComponentState::Primary);
    cores.cut.clear();
    cores.pass(12_000);
    assert!(all_primary(&cores, &[0, 1, 2]));
}
