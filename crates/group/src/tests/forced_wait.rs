//! A candidate for a forced view waits for the promises of the members that could have answered (rule 11).

use super::branches::force;
use super::cores::{Cores, replica};
use crate::ids::Term;
use crate::message::Message;

/// Nodes 2, 3 and 4 have lost the others, and have no majority. Node 4 alone of them has an entry that is committed.
fn one_holds_more() -> Cores {
    let mut cores = Cores::of(6);
    cores.part(&[2, 3], &[0, 1, 4, 5]);
    cores.submit(0, 1);
    assert_eq!(cores.nodes[0].group.commit(), cores.nodes[4].group.end());
    cores.cut.clear();
    cores.part(&[0, 1, 5], &[2, 3, 4]);
    // None of the three elects another before the operator comes.
    cores.lost = |message| matches!(message, Message::PreVote { .. });
    cores.pass(12_000);
    let end = |node: usize| cores.nodes[node].group.end();
    assert!(end(4) > end(2) && end(2) == end(3));
    cores
}

/// All of the three are in the forced view, and the entry is kept.
fn goes_on_with_all(cores: &mut Cores) {
    cores.lost = |_| false;
    cores.pass(3_000);
    for node in [2, 3, 4] {
        let mut names = cores.members(node);
        names.sort_unstable();
        assert_eq!(names, ["node2", "node3", "node4"]);
    }
    assert_eq!(cores.delivered(2), 1);
}

/// The time in which node 2 writes its own promise counts for nothing: nobody is asked yet.
#[test]
fn its_own_slow_disk_is_not_the_silence_of_others() {
    let mut cores = one_holds_more();
    cores.promise_ms.insert(2, 400);
    force(&mut cores, 2);
    goes_on_with_all(&mut cores);
}

/// The others' promises are there when it wakes, the shorter log's first.
#[test]
fn its_own_pause_is_not_the_silence_of_others() {
    let mut cores = one_holds_more();
    cores.lines_ms.extend([((3, 2), 100), ((4, 2), 100)]);
    force(&mut cores, 2);
    cores.step_ms = 400;
    cores.pass_for(&[], 400);
    cores.step_ms = 50;
    goes_on_with_all(&mut cores);
}

/// Node 2 is about to make a forced view. Node 4's promise is late, and node 4 is heard meanwhile.
fn one_promises_late() -> Cores {
    let mut cores = one_holds_more();
    cores.lines_ms.insert((4, 2), 700);
    cores.pass(1_000);
    force(&mut cores, 2);
    cores
}

#[test]
fn it_waits_longer_while_a_member_is_heard() {
    let mut cores = one_promises_late();
    goes_on_with_all(&mut cores);
}

/// A member that is connected and silent is not waited for.
#[test]
fn it_does_not_wait_long_for_the_silent() {
    let mut cores = one_holds_more();
    cores.cut.insert((4, 2));
    cores.pass(1_000);
    cores.lost = |_| false;
    force(&mut cores, 2);
    cores.pass(600);
    assert_eq!(cores.members(2).len(), 2);
}

/// Another member that stands meanwhile does not overtake the operator's decision.
#[test]
fn it_grants_no_pre_vote_meanwhile() {
    let mut cores = one_promises_late();
    cores.pass(600);
    cores.arrived.clear();
    let term = Term {
        number: cores.nodes[2].group.term().number + 1,
        replica: replica(3),
    };
    cores.say(3, 2, Message::PreVote { term });
    let replies = cores
        .arrived
        .iter()
        .filter_map(|(to, message)| match message {
            Message::PreVoteReply { granted, .. } => Some((*to, *granted)),
            _ => None,
        });
    assert_eq!(replies.collect::<Vec<_>>(), [(3, false)]);
}
