//! Flow control: what is held back, and what the counters say.

use trireme_certification::KeyType;

use super::driver::{Cluster, incarnation, member, peer_message};
use super::server::{Session, Toi};
use crate::peer_message::PeerMessage;
use crate::{Code, Event, Gtid, Options};

/// Node 0 asks the others to stop, so that node 1's writers are held back.
fn stopped() -> Cluster {
    let mut cluster = Cluster::of(2);
    let options = Options {
        fc_limit: 0,
        ..Options::default()
    };
    cluster.event(0, Event::SetOptions(options));
    cluster.nodes[0].threads = 0;
    cluster.certify(1, "a", KeyType::Exclusive);
    cluster.outlast_a_stumble();
    assert!(cluster.status(1).flow_control_active);
    cluster
}

#[test]
fn what_is_held_back_fails_for_good_when_the_majority_is_lost() {
    let mut cluster = stopped();
    let held = cluster.certify(1, "b", KeyType::Exclusive);
    cluster.toi(1, 5);
    cluster.nodes[1].primary = false;
    let component = vec![member(1)];
    cluster.event(1, Event::NonPrimary { component });
    cluster.step_session(1, held);
    cluster.step_toi(1, 5);
    assert_eq!(cluster.outcome(1, held), Code::ConnFail);
    assert_eq!(
        cluster.nodes[1].server.tois[&5].0,
        Toi::Done(Code::ConnFail)
    );
}

#[test]
fn what_is_held_back_fails_for_good_when_its_node_leaves() {
    let mut cluster = stopped();
    let held = cluster.certify(1, "b", KeyType::Exclusive);
    cluster.toi(1, 5);
    cluster.event(1, Event::Disconnect);
    // At once: the stop still holds.
    cluster.step_session(1, held);
    cluster.step_toi(1, 5);
    assert_eq!(cluster.outcome(1, held), Code::ConnFail);
    assert_eq!(
        cluster.nodes[1].server.tois[&5].0,
        Toi::Done(Code::ConnFail)
    );
}

#[test]
fn what_is_held_back_is_sent_when_nobody_asks_to_wait_any_more() {
    let mut cluster = stopped();
    let held = cluster.certify(1, "b", KeyType::Exclusive);
    cluster.toi(1, 5);
    cluster.settle_now();
    let waiting = &cluster.nodes[1].server.sessions[&held].0;
    assert!(matches!(waiting, Session::Certifying(_)), "{waiting:?}");
    cluster.nodes[0].threads = 1;
    cluster.settle();
    assert_eq!(cluster.outcome(1, held), Code::Ok);
    assert_eq!(cluster.nodes[1].server.tois[&5].0, Toi::Done(Code::Ok));
    cluster.assert_settled();
}

#[test]
fn flush_status_counts_anew() {
    let mut cluster = stopped();
    cluster.pass(100);
    let before = cluster.status(1);
    assert!(before.replicated == 1 && before.flow_control_recv > 0);
    assert!(before.flow_control_paused_ns >= 100_000_000);
    cluster.nodes[1].replicator.reset_counters();
    let after = cluster.status(1);
    assert_eq!((after.replicated, after.flow_control_recv), (0, 0));
    assert!(after.flow_control_active, "a stop goes on");
    assert_eq!(after.flow_control_paused_ns, 0);
}

#[test]
fn with_a_single_writer_the_queues_limit_does_not_grow_with_the_cluster() {
    let stops = |fc_single_primary| {
        let mut cluster = Cluster::of(2);
        let options = Options {
            fc_limit: 4,
            fc_single_primary,
            ..Options::default()
        };
        cluster.event(1, Event::SetOptions(options));
        let mut count = 0;
        cluster.nodes[1].threads = 0;
        while !cluster.status(1).flow_control_requested {
            cluster.certify(0, &format!("k{count}"), KeyType::Exclusive);
            cluster.outlast_a_stumble();
            count += 1;
            assert!(count < 10, "never stopped");
        }
        count
    };
    // One above 4, and above 4 times the square root of 2.
    assert_eq!((stops(true), stops(false)), (5, 6));
}

#[test]
fn what_is_held_back_fails_for_good_when_its_node_must_join_again() {
    let mut cluster = stopped();
    let held = cluster.certify(1, "b", KeyType::Exclusive);
    cluster.toi(1, 5);
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(1)));
    cluster.reconfigure(|c| c.members.push(member(1)));
    // The stop has lapsed by then.
    cluster.now_ms += 1000;
    cluster.deliver(1);
    cluster.step_session(1, held);
    cluster.step_toi(1, 5);
    assert_eq!(cluster.outcome(1, held), Code::ConnFail);
    assert_eq!(
        cluster.nodes[1].server.tois[&5].0,
        Toi::Done(Code::ConnFail)
    );
    cluster.nodes[0].threads = 4;
    cluster.settle();
    cluster.assert_settled();
}

/// A cluster of three in which node 2 applies nothing and node 0 writes, so that all wait.
fn held_up_by_one(count: usize) -> (Cluster, u64) {
    let mut cluster = Cluster::of(count);
    let slow = count - 1;
    let options = Options {
        fc_limit: 2,
        ..Options::default()
    };
    cluster.event(slow, Event::SetOptions(options));
    cluster.nodes[slow].threads = 0;
    for key in ["a", "b", "c", "d", "e"] {
        cluster.certify(0, key, KeyType::Exclusive);
    }
    cluster.outlast_a_stumble();
    assert!(cluster.status(0).flow_control_active);
    let held = cluster.certify(0, "f", KeyType::Exclusive);
    (cluster, held)
}

fn pass(cluster: &mut Cluster, ms: u64) {
    for _ in 0..ms / 10 {
        cluster.pass(10);
        cluster.settle_now();
    }
}

#[test]
fn who_alone_holds_up_the_writers_is_left_out_until_it_has_caught_up() {
    let (mut cluster, held) = held_up_by_one(3);
    pass(&mut cluster, 30);
    assert_eq!(cluster.comment(2), "Synced");
    pass(&mut cluster, 60);
    assert_eq!(cluster.outcome(0, held), Code::Ok);
    for node in 0..3 {
        assert_eq!(cluster.status(node).left_out, ["node2"]);
        let told = |line: &String| line.contains("does not keep pace");
        assert_eq!(
            cluster.nodes[node].logs.iter().filter(|l| told(l)).count(),
            1
        );
    }
    assert_eq!(
        (cluster.comment(2), cluster.comment(1)),
        ("Donor/Desynced", "Synced")
    );
    assert!(!cluster.status(0).flow_control_active && !cluster.status(2).flow_control_requested);
    // However long its queue gets.
    for key in ["g", "h", "i", "j", "k", "l", "m"] {
        cluster.certify(0, key, KeyType::Exclusive);
    }
    pass(&mut cluster, 100);
    assert!(!cluster.status(0).flow_control_active);
    // It catches up, but does not come and go all the time.
    cluster.nodes[2].threads = 4;
    pass(&mut cluster, 500);
    assert_eq!(cluster.comment(2), "Donor/Desynced");
    // More is on its way to it, or may be.
    cluster.nodes[2].replicator.note_commit(None);
    pass(&mut cluster, 2_000);
    assert_eq!(cluster.comment(2), "Donor/Desynced");
    cluster.nodes[2].replicator.note_commit(Some(10_000));
    pass(&mut cluster, 2_000);
    assert_eq!(cluster.comment(2), "Donor/Desynced");
    cluster.nodes[2].replicator.note_commit(Some(0));
    pass(&mut cluster, 500);
    assert_eq!(
        (cluster.comment(2), cluster.status(1).left_out.len()),
        ("Synced", 0)
    );
    cluster.settle();
    cluster.assert_settled();
}

/// Load balancers may keep it. It is no donor and no leader for that, and what else desyncs it shows.
#[test]
fn who_is_left_out_may_show_as_synced() {
    let (mut cluster, _) = held_up_by_one(3);
    pass(&mut cluster, 90);
    assert_eq!(cluster.comment(2), "Donor/Desynced");
    for node in [1, 2] {
        let options = Options {
            fc_limit: 2,
            left_out_shows_synced: true,
            ..Options::default()
        };
        cluster.event(node, Event::SetOptions(options));
    }
    let desync = |cluster: &mut Cluster, node: usize| {
        let ticket = cluster.nodes[node].server.ticket();
        cluster.event(node, Event::Desync { ticket });
        pass(cluster, 10);
    };
    desync(&mut cluster, 1);
    assert_eq!(
        (cluster.comment(2), cluster.comment(1)),
        ("Synced", "Donor/Desynced")
    );
    assert_eq!(cluster.status(0).left_out, ["node2"]);
    assert!(!cluster.nodes[2].replicator.is_synced());
    desync(&mut cluster, 2);
    assert_eq!(cluster.comment(2), "Donor/Desynced");
}

/// That it is slow is known: the second time it leaves flow control before anybody has waited for it.
#[test]
fn who_falls_behind_again_steps_out_by_itself() {
    let (mut cluster, _) = held_up_by_one(3);
    pass(&mut cluster, 90);
    cluster.nodes[2].threads = 4;
    pass(&mut cluster, 1_000);
    assert_eq!(cluster.comment(2), "Synced");
    for (returns_after_ms, again_ms) in [(2_000, 3_000), (4_000, 29_000)] {
        cluster.nodes[2].threads = 0;
        for key in ["g", "h", "i", "j", "k", "l", "m"] {
            cluster.certify(0, key, KeyType::Exclusive);
        }
        for _ in 0..10 {
            pass(&mut cluster, 10);
            assert!(!cluster.status(0).flow_control_active);
        }
        assert_eq!(cluster.status(1).left_out, ["node2"]);
        cluster.nodes[2].threads = 4;
        pass(&mut cluster, returns_after_ms);
        assert_eq!(cluster.comment(2), "Synced");
        pass(&mut cluster, again_ms);
    }
    // It is forgiven.
    cluster.pass(1_000);
    cluster.nodes[2].threads = 0;
    for key in ["n", "o", "p", "q", "r", "s"] {
        cluster.certify(0, key, KeyType::Exclusive);
    }
    cluster.outlast_a_stumble();
    assert!(cluster.status(0).flow_control_active);
}

/// A flush that takes long, a processor that is busy elsewhere: nobody waits for who goes on soon. Who has stopped the others
/// a moment ago does not get that credit again.
#[test]
fn who_only_stumbles_stops_nobody() {
    let mut cluster = Cluster::of(2);
    let options = Options {
        fc_limit: 2,
        ..Options::default()
    };
    cluster.event(1, Event::SetOptions(options));
    let mut count = 0;
    let mut stops_after_ms = |cluster: &mut Cluster, most_ms: u64| {
        cluster.nodes[1].threads = 0;
        for _ in 0..8 {
            count += 1;
            cluster.certify(0, &format!("k{count}"), KeyType::Exclusive);
        }
        cluster.settle_now();
        let begun_ms = cluster.now_ms;
        while cluster.now_ms < begun_ms + most_ms && !cluster.status(0).flow_control_active {
            cluster.pass(1);
            cluster.settle_now();
        }
        let stopped = cluster.status(0).flow_control_active;
        let after_ms = cluster.now_ms - begun_ms;
        cluster.nodes[1].threads = 4;
        cluster.settle_now();
        assert!(!cluster.status(0).flow_control_active, "it has caught up");
        stopped.then_some(after_ms)
    };
    for _ in 0..3 {
        assert_eq!(stops_after_ms(&mut cluster, 55), None);
        cluster.pass(100);
    }
    assert_eq!(stops_after_ms(&mut cluster, 100), Some(60));
    cluster.pass(900);
    assert_eq!(stops_after_ms(&mut cluster, 100), Some(0));
    cluster.pass(1_000);
    assert_eq!(stops_after_ms(&mut cluster, 100), Some(60));
    cluster.settle();
    cluster.assert_settled();
}

#[test]
fn of_two_members_none_is_left_out() {
    let (mut cluster, held) = held_up_by_one(2);
    pass(&mut cluster, 1000);
    assert!(cluster.status(0).flow_control_active && cluster.status(0).left_out.is_empty());
    cluster.nodes[1].threads = 4;
    cluster.settle();
    assert_eq!(cluster.outcome(0, held), Code::Ok);
    cluster.assert_settled();
}

#[test]
fn nobody_is_left_out_if_another_holds_up_the_writers_as_well() {
    let (mut cluster, held) = held_up_by_one(3);
    let options = Options {
        fc_limit: 2,
        ..Options::default()
    };
    cluster.event(1, Event::SetOptions(options));
    cluster.nodes[1].threads = 0;
    // Node 2's own write-sets fill the queue of node 1.
    cluster.nodes[2].threads = 4;
    pass(&mut cluster, 10);
    cluster.nodes[2].threads = 0;
    for key in ["g", "h", "i", "j", "k"] {
        cluster.certify(0, key, KeyType::Exclusive);
    }
    pass(&mut cluster, 1000);
    assert!(cluster.status(0).flow_control_active);
    assert!(cluster.status(0).left_out.is_empty());
    for node in [1, 2] {
        cluster.nodes[node].threads = 4;
    }
    cluster.settle();
    assert_eq!(cluster.outcome(0, held), Code::Ok);
    cluster.assert_settled();
}

#[test]
fn with_no_limit_of_timeout_nobody_is_left_out() {
    let (mut cluster, _) = held_up_by_one(3);
    let options = Options {
        fc_desync_after_ms: 0,
        ..Options::default()
    };
    cluster.event(0, Event::SetOptions(options));
    pass(&mut cluster, 1000);
    assert!(cluster.status(0).flow_control_active && cluster.status(0).left_out.is_empty());
}

/// Node 1 asks for a pace: not more than so many go in a second, evenly, and one that is aborted while it
/// waits is gone at once.
#[test]
fn a_paced_writer_writes_at_the_pace() {
    let mut cluster = Cluster::of(2);
    cluster.nodes[0].replicator.reset_counters();
    let pace = PeerMessage::FlowPace { per_second: 100 }.encode();
    let mut sent = Vec::new();
    let mut longest_ms = 0;
    let first = cluster.status(0).replicated;
    let victim = cluster.now_ms + 100;
    let mut last_ms = cluster.now_ms;
    for ms in 0..300 {
        if ms % 50 == 0 {
            let (from, bytes) = (incarnation(1), pace.clone());
            cluster.event(0, peer_message(from, bytes));
        }
        let before = cluster.status(0).replicated;
        let trx = cluster.certify(0, &format!("k{ms}"), KeyType::Exclusive);
        if cluster.now_ms == victim {
            assert_eq!(cluster.abort(0, trx, -1), Code::Ok);
            cluster.step_session(0, trx);
            assert_eq!(cluster.outcome(0, trx), Code::ConnFail);
        }
        cluster.now_ms += 1;
        cluster.event(0, Event::Tick);
        cluster.settle_now();
        if cluster.status(0).replicated > before {
            longest_ms = longest_ms.max(cluster.now_ms - last_ms);
            last_ms = cluster.now_ms;
            sent.push(cluster.now_ms);
        }
    }
    let count = cluster.status(0).replicated - first;
    assert!((29..=33).contains(&count), "{count}");
    assert!(longest_ms <= 12, "{longest_ms}");
    let status = cluster.status(0);
    assert!(!status.flow_control_active, "a pace is no stop");
    // Somebody waits nearly all the time.
    let paced_ms = status.paced_ns / 1_000_000;
    assert!((280..=300).contains(&paced_ms), "{paced_ms}");
    assert_eq!(status.flow_control_paused_ns, status.paced_ns);
    let paused = status.flow_control_paused;
    assert!((0.9..=1.0).contains(&paused), "{paused}");
    let queue = status.local_send_queue;
    assert!(queue.now > 200 && queue.max >= queue.now, "{queue:?}");
    assert!((100.0..200.0).contains(&queue.avg), "{queue:?}");
    // What waits goes when the pace lapses.
    cluster.settle();
    cluster.assert_settled();
}

/// Its queue is empty, because its log lacks what it is to apply: it was Synced thousands of positions behind.
#[test]
fn who_lacks_committed_entries_has_not_caught_up() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    let end = |cluster: &Cluster| cluster.order.last().map_or(0, |(position, _)| *position);
    let far = end(&cluster) + 10_000;
    cluster.nodes[joiner].replicator.note_commit(Some(far));
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Joined");
    // A few entries are always on their way.
    let near = end(&cluster) + 10;
    cluster.nodes[joiner].replicator.note_commit(Some(near));
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
}
