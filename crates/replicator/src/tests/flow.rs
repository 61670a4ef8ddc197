//! Flow control: what is held back, and what the counters say.

use trireme_certification::KeyType;

use super::driver::{Cluster, incarnation, member};
use super::server::{Session, Toi};
use crate::{Code, Event, Options};

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
    cluster.settle_now();
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
            cluster.settle_now();
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
