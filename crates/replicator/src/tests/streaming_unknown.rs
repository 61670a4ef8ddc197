//! Fragments of unknown fate, and rollbacks that the group has let go of.

use trireme_group::{Delivery, Fate};

use super::driver::*;
use super::fragments::*;
use crate::{Action, Code, Event, GroupAction, Gtid, HostAction, Task, flags};

#[test]
fn an_abandoned_fragment_is_a_dummy_on_its_origin_only() {
    let mut cluster = cluster_of(2);
    let ticket = send(&mut cluster, 0, TRX, FIRST, "a");
    last_fails(&mut cluster, 0);
    let failed = answer(&mut cluster, 0, ticket).unwrap();
    assert_eq!((failed.code, failed.gtid), (Code::TrxFail, Gtid::UNDEFINED));
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    deliver_all(&mut cluster);
    let others: [(u32, &[u8]); 2] = [(FIRST, b"a"), (ROLLBACK, b"")];
    assert_eq!(seen(&apply_all(&mut cluster, 1)), others);
    let own: [(u32, &[u8]); 2] = [(DUMMY, b""), (ROLLBACK, b"")];
    assert_eq!(seen(&apply_all(&mut cluster, 0)), own);
}

/// Its server got a dummy, which proves nothing.
#[test]
fn its_origin_stays_when_the_others_agree_that_it_fails() {
    let mut cluster = cluster_of(3);
    send(&mut cluster, 0, TRX, FIRST, "a");
    last_fails(&mut cluster, 0);
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    let seqno = cluster.nodes[0].replicator.last_seqno().expect("in step") + 1;
    for node in [1, 2] {
        let errors = &mut cluster.nodes[node].server.errors;
        errors.insert(seqno, b"no room, Error_code: 1021;".to_vec());
    }
    cluster.nodes.iter_mut().for_each(|node| node.threads = 1);
    cluster.settle();
    for node in 0..3 {
        assert!(!cluster.nodes[node].closed, "node {node} has left");
    }
}

#[test]
fn the_last_fragment_waits_until_its_fate_is_known() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    let ticket = send(&mut cluster, 0, TRX, LAST, "b");
    last_fails(&mut cluster, 0);
    assert_eq!(answer(&mut cluster, 0, ticket), None);
    deliver_all(&mut cluster);
    assert_eq!(
        answer(&mut cluster, 0, ticket).unwrap().code,
        Code::Ok,
        "it was ordered"
    );
    assert!(apply_all(&mut cluster, 0).is_empty());
}

#[test]
fn the_last_fragment_is_lost_when_something_later_is_ordered() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    let ticket = send(&mut cluster, 0, TRX, LAST, "b");
    let lost = cluster.last_submission(0);
    last_fails(&mut cluster, 0);
    // Its number is used up by a void.
    let is_lost = |delivery: &_| matches!(delivery, Delivery::Submission { id, .. } if *id == lost);
    cluster.order.retain(|(_, delivery)| !is_lost(delivery));
    assert_eq!(answer(&mut cluster, 0, ticket), None);
    // The node says something by itself.
    cluster.pass(5000);
    cluster.pass(5000);
    deliver_all(&mut cluster);
    let lost = answer(&mut cluster, 0, ticket).expect("decided");
    assert_eq!((lost.code, lost.gtid), (Code::ConnFail, Gtid::UNDEFINED));
}

/// Its client was told of a certain failure, and the branch that the forced view left had committed the fragment.
#[test]
fn the_fate_of_a_last_fragment_stays_unknown_behind_a_forced_view() {
    for is_forced in [true, false] {
        let mut cluster = cluster_of(2);
        fragment(&mut cluster, 0, FIRST, "a");
        let ticket = send(&mut cluster, 0, TRX, LAST, "b");
        let lost = cluster.last_submission(0);
        last_fails(&mut cluster, 0);
        let is_lost =
            |delivery: &_| matches!(delivery, Delivery::Submission { id, .. } if *id == lost);
        let at = (cluster.order.iter()).position(|(_, delivery)| is_lost(delivery));
        let later = cluster.order.split_off(at.expect("submitted"));
        let above = cluster.order.last().map_or(0, |(position, _)| *position);
        let id = is_forced.then_some(trireme_group::Uuid([3; 16]));
        cluster.reconfigure(|c| (c.override_id, c.fork_after) = (id, above));
        for (_, delivery) in later.into_iter().skip(1) {
            cluster.append(delivery);
        }
        cluster.pass(5000);
        cluster.pass(5000);
        deliver_all(&mut cluster);
        let code = match is_forced {
            true => Code::NodeFail,
            false => Code::ConnFail,
        };
        let told = answer(&mut cluster, 0, ticket).expect("decided");
        assert_eq!((told.code, told.gtid), (code, Gtid::UNDEFINED));
        let corrupt = Action::Host(HostAction::MarkCorrupt);
        assert!(!cluster.nodes[0].actions.contains(&corrupt));
    }
}

/// Its origin had withdrawn it, and an override elsewhere committed it all the same.
#[test]
fn who_gave_up_a_last_fragment_that_is_committed_has_diverged() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    let ticket = send(&mut cluster, 0, TRX, LAST, "b");
    let id = cluster.last_submission(0);
    let fate = Fate::Withdrawn;
    cluster.event(0, Event::Failed { id, fate });
    let failed = answer(&mut cluster, 0, ticket).expect("it is certain");
    assert_eq!(failed.code, Code::ConnFail);
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    let corrupt = Action::Host(HostAction::MarkCorrupt);
    assert!(!cluster.nodes[0].actions.contains(&corrupt));
    deliver_all(&mut cluster);
    apply_all(&mut cluster, 1);
    assert!(cluster.nodes[0].actions.contains(&corrupt));
    assert!(!cluster.nodes[1].actions.contains(&corrupt));
    let next = cluster.nodes[0].replicator.take_work();
    let is_apply = next.is_some_and(|work| matches!(work.task, Task::Apply(_)));
    assert!(!is_apply, "its server gets no dummy");
}

#[test]
fn a_last_fragment_that_will_never_be_known_ends_the_connection() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    let ticket = send(&mut cluster, 0, TRX, LAST, "b");
    cluster.reset(0);
    assert_eq!(
        answer(&mut cluster, 0, ticket).unwrap().code,
        Code::NodeFail
    );
    assert!(
        cluster.nodes[0]
            .actions
            .contains(&Action::Host(HostAction::MarkCorrupt))
    );
}

/// Found by the simulator: told of a failure at once, its client rolled back, and the fragment that was
/// ordered before the group let go committed everywhere but here.
#[test]
fn the_last_fragment_waits_until_the_group_lets_go() {
    for is_ordered in [true, false] {
        let mut cluster = cluster_of(2);
        fragment(&mut cluster, 0, FIRST, "a");
        let ticket = send(&mut cluster, 0, TRX, LAST, "b");
        let mut out = Vec::new();
        let node = &mut cluster.nodes[0];
        (node.replicator).handle(
            cluster.now_ms,
            Event::Disconnect,
            &crate::NoHistory,
            &mut out,
        );
        assert_eq!(out, [Action::Group(GroupAction::Leave)]);
        if is_ordered {
            deliver_all(&mut cluster);
        } else {
            cluster.event(0, Event::Left);
        }
        let code = match is_ordered {
            true => Code::Ok,
            false => Code::NodeFail,
        };
        assert_eq!(answer(&mut cluster, 0, ticket).unwrap().code, code);
    }
}

/// Found by the simulator: the majority was lost, and the next view had the origin among other members.
#[test]
fn a_rollback_that_was_let_go_of_is_sent_again_before_anything_else() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    cluster.order.pop();
    last_fails(&mut cluster, 0);
    let ticket = send(&mut cluster, 0, 90, FIRST | flags::TRX_END, "a");
    let refused = answer(&mut cluster, 0, ticket).expect("not sent");
    assert_eq!(refused.code, Code::ConnFail);
    cluster.pass(200);
    deliver_all(&mut cluster);
    let expected: [(u32, &[u8]); 2] = [(FIRST, b"a"), (ROLLBACK, b"")];
    assert_eq!(seen(&apply_all(&mut cluster, 1)), expected);
}

/// The same of a total-order action.
#[test]
fn no_action_overtakes_a_rollback_that_was_let_go_of() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    cluster.order.pop();
    last_fails(&mut cluster, 0);
    let ordered = cluster.order.len();
    cluster.toi(0, 5);
    assert_eq!(cluster.order.len(), ordered, "nothing is sent yet");
    cluster.pass(200);
    cluster.settle_now();
    let toi = &cluster.nodes[0].server.tois[&5].0;
    assert_eq!(*toi, super::server::Toi::Done(Code::ConnFail));
}

/// And of what has waited for flow control.
#[test]
fn nothing_held_overtakes_a_rollback_that_was_let_go_of() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    let from = cluster.nodes[1].incarnation;
    let say = |cluster: &mut Cluster, message: crate::peer_message::PeerMessage| {
        let bytes = message.encode();
        cluster.event(0, peer_message(from, bytes));
    };
    say(&mut cluster, crate::peer_message::PeerMessage::FlowStop);
    send(&mut cluster, 0, 90, FIRST | flags::TRX_END, "b");
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    cluster.order.pop();
    last_fails(&mut cluster, 0);
    let ordered = cluster.order.len();
    say(&mut cluster, crate::peer_message::PeerMessage::FlowContinue);
    assert_eq!(
        cluster.order.len(),
        ordered,
        "the rollback cannot be sent yet"
    );
    cluster.pass(200);
    deliver_all(&mut cluster);
    let expected: [(u32, &[u8]); 3] = [
        (FIRST, b"a"),
        (ROLLBACK, b""),
        (FIRST | flags::TRX_END, b"b"),
    ];
    assert_eq!(seen(&apply_all(&mut cluster, 1)), expected);
}
