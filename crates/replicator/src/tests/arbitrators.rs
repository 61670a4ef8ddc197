//! Members without a database: they keep the log, and nobody waits for what they apply.

use trireme_certification::{KeyType, Seqno};

use super::driver::{Cluster, incarnation, peer_message};
use super::server::Toi;
use crate::peer_message::PeerMessage;
use crate::{Action, Code, Connect, Event, GroupAction, Gtid, HostAction, Options, Status};

/// So many nodes with a database, and the number of the arbitrator beside them.
fn with_arbitrator(nodes: usize) -> (Cluster, usize) {
    let mut cluster = Cluster::of(nodes);
    let arbitrator = cluster.add_arbitrator();
    cluster.settle();
    await_vote(&mut cluster);
    (cluster, arbitrator)
}

/// Lets the time pass in which the nodes flush what the log of an arbitrator lacks.
fn await_vote(cluster: &mut Cluster) {
    cluster.pass(Options::default().thresholds.unflushed_ms);
    cluster.settle();
}

/// Who may vote, as a node has told its group last.
fn voters(cluster: &Cluster, node: usize) -> usize {
    let told = cluster.nodes[node].actions.iter().rev();
    let mut told = told.filter_map(|action| match action {
        Action::Group(GroupAction::SetJoined { members, .. }) => Some(members.len()),
        _ => None,
    });
    told.next().expect("it was told")
}

#[test]
fn an_arbitrator_joins_without_a_server() {
    let (mut cluster, arbitrator) = with_arbitrator(2);
    assert_eq!(voters(&cluster, 0), 3);
    let node = &mut cluster.nodes[arbitrator];
    assert!(node.actions.contains(&Action::Host(HostAction::Admitted)));
    assert_eq!(node.replicator.take_work(), None);
    assert_eq!(cluster.comment(arbitrator), "Joined");
    cluster.assert_settled();
}

#[test]
fn an_arbitrator_votes_when_the_nodes_have_flushed_what_its_log_lacks() {
    let mut cluster = Cluster::of(2);
    let arbitrator = cluster.add_arbitrator();
    cluster.settle(); // they have applied it
    assert_eq!(voters(&cluster, 0), 2);
    assert_eq!(cluster.comment(arbitrator), "Joining");
    await_vote(&mut cluster);
    assert_eq!(voters(&cluster, 0), 3);
}

#[test]
fn what_an_arbitrator_has_certified_counts_as_applied() {
    let (mut cluster, arbitrator) = with_arbitrator(2);
    for key in ["a", "b"] {
        cluster.certify(0, key, KeyType::Exclusive);
    }
    cluster.toi(1, 5);
    cluster.settle();
    let last = |node: usize| cluster.nodes[node].replicator.last_committed();
    assert_eq!(last(arbitrator), last(0));
    let written = cluster.nodes[0].records.by_seqno.clone();
    let kept = &cluster.nodes[arbitrator].records.by_seqno;
    assert!(
        written
            .range(last(0).seqno - 2..)
            .eq(kept.range(last(0).seqno - 2..))
    );
    cluster.assert_settled();
}

#[test]
fn a_joiner_finds_all_it_lacks_at_the_arbitrator() {
    let (mut cluster, arbitrator) = with_arbitrator(1);
    let (joiner, behind) = super::clients::copy_new(&mut cluster);
    for _ in 0..3 {
        cluster.certify(0, "a", KeyType::Exclusive);
        cluster.settle();
    }
    let (expected, last) = (
        cluster.nodes[0].server.database.clone(),
        cluster.nodes[0].replicator.last_committed(),
    );
    cluster.event(0, Event::Disconnect);
    cluster.settle();
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    assert_eq!(cluster.nodes[joiner].server.database, expected);
    assert!(cluster.nodes[joiner].replicator.last_committed().seqno > last.seqno);
    assert_eq!(cluster.comment(arbitrator), "Joined");
    let trx = cluster.certify(joiner, "a", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(joiner, trx), Code::Ok);
}

#[test]
fn an_arbitrator_waits_with_its_vote_until_the_nodes_have_what_its_log_lacks() {
    let mut cluster = Cluster::of(2);
    for key in ["a", "b"] {
        cluster.certify(0, key, KeyType::Exclusive);
    }
    cluster.settle();
    // Node 1 does not apply what comes now, and lives.
    let threads = std::mem::take(&mut cluster.nodes[1].threads);
    cluster.certify(0, "c", KeyType::Exclusive);
    cluster.settle();
    let arbitrator = cluster.add_arbitrator();
    cluster.settle();
    assert_eq!(voters(&cluster, 0), 2);
    cluster.nodes[1].threads = threads;
    cluster.settle();
    await_vote(&mut cluster);
    assert_eq!(voters(&cluster, 0), 3);
    assert_eq!(cluster.comment(arbitrator), "Joined");
    cluster.assert_settled();
}

#[test]
fn an_arbitrator_waits_with_its_vote_for_who_is_behind_the_floor() {
    let mut cluster = Cluster::of_length(2, 2);
    let threads = std::mem::take(&mut cluster.nodes[1].threads);
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    let arbitrator = cluster.add_arbitrator();
    for key in ["b", "c", "d", "e"] {
        cluster.certify(0, key, KeyType::Exclusive);
        cluster.settle();
    }
    assert_eq!(voters(&cluster, 0), 2);
    cluster.nodes[1].threads = threads;
    cluster.settle();
    await_vote(&mut cluster);
    assert_eq!(voters(&cluster, 0), 3);
    assert_eq!(cluster.comment(arbitrator), "Joined");
    cluster.assert_settled();
}

#[test]
fn an_arbitrator_gives_all_that_it_keeps() {
    let mut cluster = Cluster::of(1);
    let arbitrator = cluster.add_arbitrator();
    // gcache.size is a byte.
    cluster.nodes[arbitrator].records.sized_from = Seqno::MAX;
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    await_vote(&mut cluster);
    assert_eq!(voters(&cluster, 0), 2);
    let (joiner, behind) = super::clients::copy_new(&mut cluster);
    for _ in 0..3 {
        cluster.certify(0, "a", KeyType::Exclusive);
        cluster.settle();
    }
    cluster.event(0, Event::Disconnect);
    cluster.settle();
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
}

#[test]
fn who_asks_for_a_database_that_nobody_has_says_once_what_to_do() {
    let (mut cluster, arbitrator) = with_arbitrator(1);
    cluster.event(0, Event::Disconnect);
    cluster.settle();
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    for _ in 0..3 {
        cluster.settle();
    }
    let said = |text: &str| {
        let logs = cluster.nodes[joiner].logs.iter();
        logs.filter(|log| log.contains(text)).count()
    };
    assert!(said("impossible to select State Transfer donor") > 1);
    assert_eq!(said("no node of the cluster has a database"), 1);
    assert_eq!(cluster.comment(arbitrator), "Joined");
}

#[test]
fn an_arbitrator_is_never_a_donor() {
    let (mut cluster, arbitrator) = with_arbitrator(1);
    let name = format!("node{arbitrator}");
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    let options = Options {
        sst_donor: name,
        ..Options::default()
    };
    cluster.event(joiner, Event::SetOptions(options));
    cluster.settle();
    let impossible = |log: &String| log.contains("impossible to select State Transfer donor");
    assert!(cluster.nodes[0].logs.iter().any(impossible));
    cluster.event(joiner, Event::SetOptions(Options::default()));
    cluster.settle();
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}

#[test]
fn an_arbitrator_holds_up_no_writer() {
    let (mut cluster, arbitrator) = with_arbitrator(2);
    let bytes = PeerMessage::FlowStop.encode();
    let from = incarnation(arbitrator);
    cluster.event(1, peer_message(from, bytes));
    assert!(!cluster.status(1).flow_control_active);
    let trx = cluster.certify(1, "a", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(1, trx), Code::Ok);
    // It says nothing of what it has applied: what is purged does not wait for it.
    for _ in 0..200 {
        cluster.certify(0, "a", KeyType::Exclusive);
        cluster.settle_now();
    }
    cluster.settle();
    let Status {
        cert_index_size, ..
    } = cluster.status(arbitrator);
    assert!(cert_index_size < 5, "{cert_index_size} keys");
    assert_eq!(cert_index_size, cluster.status(0).cert_index_size);
}

#[test]
fn an_arbitrator_has_no_say_in_how_a_write_set_ended() {
    let (mut cluster, arbitrator) = with_arbitrator(1);
    let seqno = cluster.nodes[0].replicator.last_seqno().expect("in step") + 1;
    (cluster.nodes[0].server.errors).insert(seqno, b"table exists".to_vec());
    cluster.toi(0, 5);
    cluster.settle();
    assert_eq!(cluster.nodes[0].server.tois[&5].0, Toi::Done(Code::Ok));
    assert_eq!(cluster.comment(arbitrator), "Joined");
    // Whoever gets it from either gets a dummy.
    for node in [0, arbitrator] {
        assert!(cluster.nodes[node].records.by_seqno[&seqno].failed);
    }
    cluster.assert_settled();
}

#[test]
fn an_arbitrator_leaves_at_once() {
    let (mut cluster, arbitrator) = with_arbitrator(2);
    cluster.event(arbitrator, Event::Disconnect);
    assert!(cluster.nodes[arbitrator].closed);
    cluster.settle();
    assert_eq!(voters(&cluster, 0), 2);
    cluster.assert_settled();
}

#[test]
fn an_arbitrator_goes_on_from_its_log() {
    let (mut cluster, before) = with_arbitrator(2);
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    let control = cluster.nodes[before].replicator.control_snapshot();
    let stood = cluster.order.len();
    cluster.event(before, Event::Disconnect);
    cluster.certify(0, "b", KeyType::Exclusive);
    cluster.settle();
    let after = cluster.start();
    cluster.nodes[after].arbitrator = true;
    let me = trireme_group::Member {
        arbitrator: true,
        ..super::driver::member(after)
    };
    let connect = Connect {
        incarnation: incarnation(after),
        me: me.clone(),
        local: Gtid::UNDEFINED,
        last_action: crate::LastAction::NONE,
        bootstrap: None,
        server_running: false,
        control,
        overrides: Vec::new(),
    };
    cluster.event(after, Event::Connect(Box::new(connect)));
    cluster.nodes[after].next = stood;
    cluster.reconfigure(|c| c.members.push(me));
    cluster.settle();
    await_vote(&mut cluster);
    assert_eq!(cluster.comment(after), "Joined");
    let last = |node: usize| cluster.nodes[node].replicator.last_committed();
    assert_eq!(last(after), last(0));
    cluster.assert_settled();
}
