//! The members that a joiner asks for missing entries, when they come, go, or cannot be reached.

use trireme_certification::Seqno;

use super::clients::{copy_new, pulls};
use super::driver::{Cluster, incarnation, member};
use super::server::Happened;
use super::transfer::pulling;
use crate::Event;
use crate::peer_message::PeerMessage;

/// A process ends, and the view that follows is without it.
fn ends(cluster: &mut Cluster, node: usize) {
    cluster.nodes[node].fatal = Some("killed".to_owned());
    cluster.nodes[node].inbox.clear();
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(node)));
}

/// A member with the log of node 0 joins.
fn add_with_log(cluster: &mut Cluster) -> usize {
    let (node, here) = copy_new(cluster);
    cluster.join(node, here, false);
    cluster.nodes[node].records = cluster.nodes[0].records.clone();
    node
}

/// Nothing that is said arrives.
fn lose_all(cluster: &mut Cluster) {
    (cluster.nodes.iter_mut()).for_each(|node| node.inbox.clear());
}

fn assert_follows_by_ist(mut cluster: Cluster, joiner: usize) {
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    let happened = &cluster.nodes[joiner].server.happened;
    assert!(!happened.contains(&Happened::SstRequest));
    cluster.assert_settled();
}

#[test]
fn a_member_that_comes_during_the_transfer_is_asked_when_the_others_have_gone() {
    let (mut cluster, joiner, _) = pulling(2);
    let restarted = add_with_log(&mut cluster);
    for node in [0, 1, restarted] {
        while cluster.deliver(node) | cluster.receive(node) {}
    }
    lose_all(&mut cluster);
    ends(&mut cluster, 0);
    ends(&mut cluster, 1);
    assert_follows_by_ist(cluster, joiner);
}

#[test]
fn a_member_that_leaves_while_it_is_asked_is_not_waited_for() {
    let (mut cluster, joiner, next) = pulling(2);
    ends(&mut cluster, 0);
    assert!(pulls(&cluster, 1).is_empty());
    while cluster.deliver(joiner) {}
    assert_eq!(pulls(&cluster, 1), [next]);
    assert_follows_by_ist(cluster, joiner);
}

/// It may have been behind, or unable to read its log.
#[test]
fn a_member_that_lacked_an_entry_is_asked_again_after_a_view() {
    let (mut cluster, joiner, next) = pulling(2);
    cluster.nodes[0].inbox.clear();
    let records = Vec::new();
    let bytes = PeerMessage::IstChunk {
        from: next,
        records,
    }
    .encode();
    let from = incarnation(0);
    cluster.event(joiner, Event::PeerMessage { from, bytes });
    assert_eq!(pulls(&cluster, 1), [next]);
    ends(&mut cluster, 1);
    while cluster.deliver(joiner) {}
    assert_eq!(pulls(&cluster, 0), [next]);
    assert_follows_by_ist(cluster, joiner);
}

#[test]
fn a_joiner_that_is_cut_off_waits_for_the_next_view() {
    let (mut cluster, joiner, next) = pulling(2);
    lose_all(&mut cluster);
    let component = vec![member(joiner)];
    cluster.event(joiner, Event::NonPrimary { component });
    for _ in 0..100 {
        cluster.pass(1_001);
        assert_eq!(
            [0, 1].map(|node| pulls(&cluster, node)),
            [vec![], vec![]] as [Vec<Seqno>; 2]
        );
    }
    cluster.reconfigure(|_| ());
    while cluster.deliver(joiner) {}
    assert_eq!(pulls(&cluster, 0), [next]);
    assert_follows_by_ist(cluster, joiner);
}

/// Its server was given something: it cannot take an SST any more.
#[test]
fn a_joiner_alone_in_its_view_gives_the_others_the_usual_time() {
    let (mut cluster, joiner, _) = pulling(2);
    ends(&mut cluster, 0);
    ends(&mut cluster, 1);
    while cluster.deliver(joiner) {}
    cluster.pass(1_001);
    assert!(!cluster.nodes[joiner].left);
    assert_eq!(cluster.comment(joiner), "Joining: receiving State Transfer");
}
