//! What waits to be applied: how much memory it takes, and how it is read back from the log.

use trireme_certification::KeyType;

use super::driver::{Cluster, draft, incarnation};
use super::server::Happened;
use crate::{Event, Gtid, Options, Seqno, Unread};

/// Data of each write-set; with its keys it is somewhat more.
const DATA_BYTES: usize = 1_000;
const WHOLE_BYTES: usize = DATA_BYTES + 200;
const BOUND_BYTES: usize = 4_000;

/// Two synced nodes with a bound.
fn bounded() -> Cluster {
    let mut cluster = Cluster::of(2);
    cluster.bound_queues(BOUND_BYTES);
    cluster
}

/// Node 0 commits so many write-sets; what of it goes to others is not seen to.
fn commit(cluster: &mut Cluster, count: usize) {
    for number in 0..count {
        let server = &mut cluster.nodes[0].server;
        server.next_trx += 1;
        let (trx, ticket) = (server.next_trx, server.ticket());
        let data = [format!("{trx}/").as_bytes(), &[trx as u8; DATA_BYTES]].concat();
        let draft = draft(trx, &format!("key {number}"), KeyType::Exclusive, &data);
        let session = (super::server::Session::Certifying(ticket), data);
        server.sessions.insert(trx, session);
        let conn = trx;
        cluster.event(
            0,
            Event::Certify {
                ticket,
                trx,
                conn,
                draft,
            },
        );
        while cluster.deliver(0) || cluster.step_session(0, trx) {}
    }
}

fn held(cluster: &Cluster, node: usize) -> usize {
    cluster.nodes[node].replicator.payload_bytes()
}

/// No more than this, since the last one may go beyond the bound.
fn assert_bounded(cluster: &Cluster, node: usize) {
    let held = held(cluster, node);
    assert!(held < BOUND_BYTES + WHOLE_BYTES, "{held}");
}

/// Everything that was committed comes to node `node`, which never holds more than it may.
fn deliver_all(cluster: &mut Cluster, node: usize) {
    while cluster.deliver(node) {
        assert_bounded(cluster, node);
    }
}

fn apply_all(cluster: &mut Cluster, node: usize) {
    loop {
        let mut any = cluster.take_work(node) | cluster.tick_now(node);
        for index in (0..cluster.nodes[node].server.appliers.len()).rev() {
            any |= cluster.step_applier(node, index);
        }
        assert_bounded(cluster, node);
        if !any {
            return;
        }
    }
}

fn assert_equal(cluster: &Cluster) {
    let database = |node: usize| &cluster.nodes[node].server.database;
    for node in 1..cluster.nodes.len() {
        assert_eq!(database(node), database(0), "node {node}");
    }
}

#[test]
fn a_slow_node_holds_no_more_than_the_bound() {
    let mut cluster = bounded();
    commit(&mut cluster, 50);
    deliver_all(&mut cluster, 1);
    assert!(held(&cluster, 1) > BOUND_BYTES / 2, "it is made use of");
    assert_eq!(cluster.nodes[1].replicator.read_back_count(), 0);
    apply_all(&mut cluster, 1);
    assert!(cluster.nodes[1].replicator.read_back_count() > 40);
    assert_eq!(held(&cluster, 1), 0);
    cluster.settle();
    cluster.assert_settled();
    assert_equal(&cluster);
}

#[test]
fn what_is_larger_than_the_bound_is_applied_one_by_one() {
    let mut cluster = bounded();
    cluster.bound_queues(WHOLE_BYTES / 4);
    commit(&mut cluster, 5);
    while cluster.deliver(1) {}
    assert!(held(&cluster, 1) <= WHOLE_BYTES);
    apply_all(&mut cluster, 1);
    let read_back = cluster.nodes[1].replicator.read_back_count();
    assert_eq!(read_back, 4, "all but the first");
    assert_equal(&cluster);
}

#[test]
fn a_paused_node_holds_no_more_than_the_bound() {
    let mut cluster = bounded();
    assert!(cluster.call(1, |ticket| Event::Pause { ticket }).is_some());
    commit(&mut cluster, 50);
    deliver_all(&mut cluster, 1);
    assert!(held(&cluster, 1) > BOUND_BYTES / 2);
    cluster.call(1, |ticket| Event::Resume { ticket });
    let so_far = cluster.nodes[1].replicator.last_seqno();
    assert!(
        so_far < cluster.nodes[0].replicator.last_seqno(),
        "not all at once, under the lock"
    );
    apply_all(&mut cluster, 1);
    cluster.settle();
    cluster.assert_settled();
    assert_equal(&cluster);
}

#[test]
fn what_waited_in_memory_is_processed_a_slice_at_a_time() {
    const SLICE: u64 = 5;
    let mut cluster = Cluster::of(2);
    let mut options = Options::default();
    options.thresholds.slice_bytes = SLICE as usize * (DATA_BYTES + 1_024);
    cluster.event(1, Event::SetOptions(options));
    assert!(cluster.call(1, |ticket| Event::Pause { ticket }).is_some());
    commit(&mut cluster, 50);
    while cluster.deliver(1) {}
    let lags = |cluster: &Cluster| {
        let top = |node: usize| {
            cluster.nodes[node]
                .replicator
                .last_seqno()
                .expect("in step")
        };
        (top(0) - top(1)) as u64
    };
    let at_first = lags(&cluster);
    assert!(at_first >= 50);
    cluster.call(1, |ticket| Event::Resume { ticket });
    let mut left = at_first;
    while left > 0 {
        let now = lags(&cluster);
        assert!(now < left && left - now <= SLICE, "{left}, then {now}");
        left = now;
        assert_eq!(cluster.tick_now(1), left > 0, "the rest is due at once");
    }
    assert_eq!(cluster.nodes[1].replicator.read_back_count(), 0);
    cluster.settle();
    cluster.assert_settled();
    assert_equal(&cluster);
}

#[test]
fn a_joiner_holds_no_more_than_the_bound() {
    let mut cluster = bounded();
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.bound_queues(BOUND_BYTES);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    let snapshot = cluster.nodes[0].replicator.last_committed();
    let (database, commits) = {
        let server = &cluster.nodes[0].server;
        (server.database.clone(), server.commits.clone())
    };
    commit(&mut cluster, 50);
    deliver_all(&mut cluster, joiner);
    let server = &mut cluster.nodes[joiner].server;
    (server.database, server.commits) = (database, commits);
    let rcode = 0;
    for (node, sent) in [(0, true), (joiner, false)] {
        let gtid = snapshot;
        cluster.call(node, |ticket| match sent {
            true => Event::SstSent {
                ticket,
                gtid,
                rcode,
            },
            false => Event::SstReceived {
                ticket,
                gtid,
                rcode,
            },
        });
    }
    apply_all(&mut cluster, joiner);
    cluster.settle();
    cluster.assert_settled();
    assert_equal(&cluster);
    assert!(cluster.nodes[joiner].replicator.read_back_count() > 40);
}

#[test]
fn the_log_keeps_what_waits() {
    let mut cluster = bounded();
    commit(&mut cluster, 20);
    deliver_all(&mut cluster, 1);
    let first: Seqno = cluster.nodes[1].replicator.last_committed().seqno + 1;
    // Reports of what was applied move the pin, and long ago it was noted what is kept for a crash.
    for _ in 0..40 {
        cluster.pass(1_000);
        commit(&mut cluster, 1);
        deliver_all(&mut cluster, 0);
        deliver_all(&mut cluster, 1);
    }
    let records = &cluster.nodes[1].records;
    let position = records.by_seqno[&first].position;
    assert!(records.log.contains_key(&position));
    apply_all(&mut cluster, 1);
    cluster.settle();
    assert_equal(&cluster);
}

#[test]
fn the_log_keeps_what_another_has_not_reported() {
    let mut cluster = Cluster::of_length(2, 4);
    let log_keeps = |cluster: &Cluster, seqno| {
        let records = &cluster.nodes[0].records;
        records.log.contains_key(&records.by_seqno[&seqno].position)
    };
    let first: Seqno = cluster.nodes[0].replicator.last_committed().seqno + 1;
    // As above; the certification floor does not wait for node 1.
    for _ in 0..100 {
        cluster.pass(1_000);
        commit(&mut cluster, 1);
        while cluster.deliver(0) || cluster.deliver(1) {}
    }
    let control = cluster.nodes[0].replicator.context().control();
    assert!(control.unwrap().certification.floor() > first + 80);
    assert!(log_keeps(&cluster, first));
    cluster.settle();
    for _ in 0..15 {
        cluster.pass(1_000);
        commit(&mut cluster, 1);
        cluster.settle();
    }
    assert!(!log_keeps(&cluster, first));
    assert_equal(&cluster);
}

/// Node 1 tries again soon, and goes on when its log can be read.
fn reads_later(cluster: &mut Cluster) {
    assert_eq!(cluster.nodes[1].fatal, None);
    let due_ms = cluster.nodes[1].replicator.next_deadline_ms();
    assert!(due_ms.is_some_and(|at| at > cluster.now_ms && at <= cluster.now_ms + 100));
    cluster.nodes[1].records.damage = None;
    cluster.pass(100);
    apply_all(cluster, 1);
    cluster.settle();
    cluster.assert_settled();
    assert_equal(cluster);
}

#[test]
fn a_log_that_cannot_be_read_now_is_read_later() {
    let mut cluster = bounded();
    commit(&mut cluster, 20);
    deliver_all(&mut cluster, 1);
    cluster.nodes[1].records.damage = Some(Unread::NotNow);
    apply_all(&mut cluster, 1);
    let applied = cluster.nodes[1].replicator.last_committed();
    assert!(applied < cluster.nodes[0].replicator.last_committed());
    reads_later(&mut cluster);
}

/// What was delivered during a pause is read back after it.
#[test]
fn a_backlog_that_cannot_be_read_now_is_read_later() {
    let mut cluster = bounded();
    assert!(cluster.call(1, |ticket| Event::Pause { ticket }).is_some());
    commit(&mut cluster, 20);
    deliver_all(&mut cluster, 1);
    cluster.nodes[1].records.damage = Some(Unread::NotNow);
    cluster.call(1, |ticket| Event::Resume { ticket });
    apply_all(&mut cluster, 1);
    reads_later(&mut cluster);
}

#[test]
fn what_waits_for_a_log_that_begins_anew_cannot_wait() {
    let mut cluster = bounded();
    commit(&mut cluster, 20);
    deliver_all(&mut cluster, 1);
    cluster.nodes[1].records.damage = Some(Unread::NotNow);
    cluster.event(1, Event::LogEnds);
    let text = cluster.nodes[1].fatal.clone().unwrap_or_default();
    assert!(text.contains("cannot be read back"), "{text}");
}

#[test]
fn what_cannot_be_read_back_is_not_applied() {
    let mut cluster = bounded();
    commit(&mut cluster, 20);
    deliver_all(&mut cluster, 1);
    cluster.nodes[1].records.damage = Some(Unread::Lost("a damaged record".to_owned()));
    while cluster.nodes[1].fatal.is_none() {
        let any = cluster.take_work(1) | cluster.step_applier(1, 0);
        assert!(any, "it ends with an error");
    }
    let text = cluster.nodes[1].fatal.clone().unwrap_or_default();
    assert!(text.contains("cannot be read back") && text.contains("a damaged record"));
    let database = &cluster.nodes[1].server.database;
    assert!(
        database
            .iter()
            .all(|(seqno, data)| { cluster.nodes[0].server.database.get(seqno) == Some(data) })
    );
}

#[test]
fn another_entry_is_not_taken_for_it() {
    let mut cluster = bounded();
    commit(&mut cluster, 20);
    deliver_all(&mut cluster, 1);
    let log = &mut cluster.nodes[1].records.log;
    let mut last = log.iter().rev().take(12).map(|(position, _)| *position);
    let (second, first) = (last.next().unwrap_or(0), last.next().unwrap_or(0));
    let (a, b) = (log[&first].clone(), log[&second].clone());
    log.insert(first, b);
    log.insert(second, a);
    while cluster.nodes[1].fatal.is_none() {
        let any = cluster.take_work(1) | cluster.step_applier(1, 0);
        assert!(any, "it ends with an error");
    }
}

#[test]
fn a_log_that_begins_anew_costs_nothing_that_waits() {
    let mut cluster = bounded();
    commit(&mut cluster, 20);
    deliver_all(&mut cluster, 1);
    cluster.reset(1);
    assert!(cluster.nodes[1].records.log.is_empty());
    cluster
        .configuration
        .members
        .retain(|m| m.incarnation != incarnation(1));
    cluster.reconfigure(|c| c.members.push(super::driver::member(1)));
    cluster.settle();
    assert_equal(&cluster);
}

#[test]
fn what_was_certified_before_a_node_left_is_applied() {
    let mut cluster = bounded();
    commit(&mut cluster, 20);
    deliver_all(&mut cluster, 1);
    cluster.event(1, Event::Disconnect);
    cluster.settle();
    let node = &cluster.nodes[1];
    assert!(node.closed && node.fatal.is_none());
    assert!(matches!(
        node.server.happened.last(),
        Some(Happened::Exit(_))
    ));
    assert_equal(&cluster);
}
