//! The members that a joiner asks for missing entries, when they come, go, or cannot be reached.

use std::collections::VecDeque;

use trireme_certification::Seqno;

use super::clients::{copy_new, pulls};
use super::driver::{Cluster, incarnation, member, peer_message};
use super::server::Happened;
use super::transfer::pulling;
use crate::peer_message::PeerMessage;
use crate::{Event, Options};

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

/// Node 0 answers that it does not have this entry.
fn say_nothing_is_there(cluster: &mut Cluster, joiner: usize, seqno: Seqno) {
    let (from, records) = (incarnation(0), Vec::new());
    let nothing = PeerMessage::IstChunk {
        from: seqno,
        records,
    };
    let bytes = nothing.encode();
    cluster.event(joiner, peer_message(from, bytes));
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
    say_nothing_is_there(&mut cluster, joiner, next);
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

#[test]
fn an_answer_that_is_late_counts() {
    let (mut cluster, joiner, next) = pulling(2);
    cluster.pass(1_001);
    assert_eq!(pulls(&cluster, 1), [next]);
    cluster.receive(0);
    cluster.receive(joiner);
    let complete = |line: &String| line.starts_with("Receiving IST... 100.0%");
    assert!(cluster.nodes[joiner].logs.iter().any(complete));
    assert_follows_by_ist(cluster, joiner);
}

#[test]
fn a_member_that_lacks_an_entry_may_say_so_late() {
    let (mut cluster, joiner, next) = pulling(2);
    cluster.pass(1_001);
    cluster.nodes[0].inbox.clear();
    say_nothing_is_there(&mut cluster, joiner, next);
    cluster.pass(500);
    assert_eq!(pulls(&cluster, 1), [next], "the other one is waited for");
    cluster.pass(500);
    assert_eq!(pulls(&cluster, 1), [next, next]);
    assert!(pulls(&cluster, 0).is_empty());
    assert_follows_by_ist(cluster, joiner);
}

/// It has still to yield: its entries above the override are other ones.
#[test]
fn a_member_on_another_branch_is_not_heard() {
    let (mut cluster, joiner, next) = pulling(2);
    cluster.receive(0);
    let answer = cluster.nodes[joiner].inbox.pop_front();
    let (from, bytes) = answer.expect("the entries");
    let says = |of_own_branch| Event::PeerMessage {
        from,
        bytes: bytes.clone(),
        of_own_branch,
    };
    let complete = |cluster: &Cluster| {
        let is_last = |line: &String| line.starts_with("Receiving IST... 100.0%");
        cluster.nodes[joiner].logs.iter().any(is_last)
    };
    cluster.event(joiner, says(false));
    assert!(!complete(&cluster));
    cluster.pass(1_001);
    assert_eq!(pulls(&cluster, 1), [next], "another member is asked");
    cluster.event(joiner, says(true));
    assert!(complete(&cluster));
    assert_follows_by_ist(cluster, joiner);
}

/// Lets time pass until `until`. What is sent to the joiner arrives in its order, a message each `per_message_ms`.
fn pass_on_slow_link(
    cluster: &mut Cluster,
    joiner: usize,
    per_message_ms: u64,
    until: impl Fn(&Cluster) -> bool,
) -> u64 {
    let began_ms = cluster.now_ms;
    let mut free_ms = [began_ms; 2];
    let mut on_the_way = Vec::new();
    while !until(cluster) {
        assert!(cluster.now_ms < began_ms + 600_000, "for ever");
        for (node, free_ms) in free_ms.iter_mut().enumerate() {
            while cluster.deliver(node) | cluster.receive(node) {}
            let (answers, others): (VecDeque<_>, VecDeque<_>) =
                (cluster.nodes[joiner].inbox.drain(..))
                    .partition(|(from, _)| *from == incarnation(node));
            cluster.nodes[joiner].inbox = others;
            for answer in answers {
                *free_ms = cluster.now_ms.max(*free_ms) + per_message_ms;
                on_the_way.push((*free_ms, answer));
            }
        }
        let now_ms = cluster.now_ms;
        let (here, later): (Vec<_>, Vec<_>) =
            (on_the_way.into_iter()).partition(|(at_ms, _)| *at_ms <= now_ms);
        on_the_way = later;
        for (_, (from, bytes)) in here {
            cluster.event(joiner, peer_message(from, bytes));
        }
        while cluster.deliver(joiner) {}
        cluster.pass(100);
    }
    cluster.now_ms - began_ms
}

/// Each answer takes longer than the first patience.
#[test]
fn entries_come_over_a_slow_link() {
    for per_message_ms in [1_500, 4_000] {
        let (mut cluster, joiner, _) = pulling(8);
        for node in 0..2 {
            let options = Options {
                ist_chunk_bytes: 1,
                ..Options::default()
            };
            cluster.event(node, Event::SetOptions(options));
        }
        let took_ms = pass_on_slow_link(&mut cluster, joiner, per_message_ms, |cluster| {
            cluster.comment(joiner) == "Joining" // the transfer is over
        });
        assert!(took_ms <= 8 * 2 * per_message_ms, "{took_ms}");
        assert_follows_by_ist(cluster, joiner);
    }
}

/// The control state comes in parts, each of which takes longer than the first patience.
#[test]
fn a_control_state_comes_over_a_slow_link() {
    for per_message_ms in [1_500, 4_000] {
        let mut cluster = Cluster::of(2);
        for node in 0..2 {
            let mut options = Options::default();
            options.thresholds.chunk_bytes = 300;
            cluster.event(node, Event::SetOptions(options));
        }
        let (joiner, here) = copy_new(&mut cluster);
        cluster.join(joiner, here, false);
        let size = cluster.nodes[0].replicator.control_snapshot();
        let parts = size.expect("in step").len().div_ceil(300) as u64;
        assert!(parts > 2, "{parts}");
        let took_ms = pass_on_slow_link(&mut cluster, joiner, per_message_ms, |cluster| {
            cluster.nodes[joiner]
                .replicator
                .control_position()
                .is_some()
        });
        assert!(took_ms <= parts * 10 * per_message_ms, "{took_ms}");
        assert_follows_by_ist(cluster, joiner);
    }
}
