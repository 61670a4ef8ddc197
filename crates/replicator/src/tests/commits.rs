//! Transactions and total-order actions on nodes that are in step.

use trireme_certification::KeyType;
use trireme_group::{Delivery, Fate, SubmissionId};

use super::driver::{Cluster, HISTORY, draft};
use super::server::Toi;
use crate::{Action, Code, Event, Gtid, HostAction, Owner};

#[test]
fn a_commit_reaches_every_node() {
    let mut cluster = Cluster::of(3);
    let before = cluster.nodes[0].replicator.last_committed().seqno;
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(0, trx), Code::Ok);
    for node in &cluster.nodes {
        assert_eq!(node.server.database[&(before + 1)], b"0/1/k");
    }
    let status = cluster.status(0);
    assert_eq!(
        (
            status.replicated,
            status.local_commits,
            status.open_transactions
        ),
        (1, 1, 0)
    );
    assert!(status.repl_keys > 0 && status.repl_data_bytes == 5);
    // `wsrep_local_cached_downto` follows the log without waiting for an idle moment.
    cluster.nodes[0].records.first = before + 1;
    assert_eq!(cluster.status(0).local_cached_downto, before + 1);
    cluster.assert_settled();
}

#[test]
fn of_two_writers_of_a_row_the_first_wins() {
    let mut cluster = Cluster::of(2);
    let first = cluster.certify(0, "k", KeyType::Exclusive);
    let second = cluster.certify(1, "k", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(0, first), Code::Ok);
    assert_eq!(cluster.outcome(1, second), Code::TrxFail);
    let dummy = cluster.nodes[0].replicator.last_seqno().unwrap();
    assert!(cluster.nodes[0].records.by_seqno[&dummy].failed);
    assert_eq!(cluster.nodes[0].server.commits.last(), Some(&dummy));
    assert_eq!(cluster.status(1).local_cert_failures, 1);
    assert_eq!(cluster.status(1).conflicts.certification, 1);
    assert_eq!(cluster.status(0).local_cert_failures, 0);
    cluster.assert_settled();
}

#[test]
fn last_seen_is_what_is_released_when_the_write_set_is_sent() {
    let mut cluster = Cluster::of(2);
    let first = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.settle();
    // Node 1 has seen it: no conflict.
    let second = cluster.certify(1, "k", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(
        (cluster.outcome(0, first), cluster.outcome(1, second)),
        (Code::Ok, Code::Ok)
    );
    cluster.assert_settled();
}

#[test]
fn what_is_ordered_but_not_applied_here_has_not_been_seen() {
    let mut cluster = Cluster::of(2);
    let first = cluster.certify(0, "k", KeyType::Exclusive);
    while cluster.deliver(1) {}
    let second = cluster.certify(1, "k", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(0, first), Code::Ok);
    assert_eq!(cluster.outcome(1, second), Code::TrxFail);
    cluster.assert_settled();
}

#[test]
fn release_completes_what_is_open() {
    for stages in 0..3 {
        let mut cluster = Cluster::of(1);
        let trx = cluster.certify(0, "k", KeyType::Exclusive);
        cluster.deliver(0);
        let owner = Owner::Trx(trx);
        if stages > 0 {
            cluster
                .call(0, |ticket| Event::CommitOrderEnter { ticket, owner })
                .unwrap();
        }
        if stages > 1 {
            cluster
                .call(0, |ticket| Event::CommitOrderLeave {
                    ticket,
                    owner,
                    error: None,
                })
                .unwrap();
        }
        cluster
            .call(0, |ticket| Event::Release { ticket, trx })
            .unwrap();
        let last = cluster.nodes[0].replicator.last_seqno().unwrap();
        assert_eq!(cluster.nodes[0].replicator.last_committed().seqno, last);
        assert_eq!(cluster.status(0).local_commits, u64::from(stages > 0));
        let again = cluster
            .call(0, |ticket| Event::Release { ticket, trx })
            .unwrap();
        assert_eq!(again.code, Code::Ok);
    }
}

#[test]
fn waiting_for_all_before_within_commit_order_does_not_block() {
    let mut cluster = Cluster::of(1);
    let (first, second) = (
        cluster.certify(0, "a", KeyType::Exclusive),
        cluster.certify(0, "b", KeyType::Exclusive),
    );
    while cluster.deliver(0) {}
    let last = cluster.nodes[0].replicator.last_seqno().unwrap();
    for trx in [first, second] {
        let owner = Owner::Trx(trx);
        assert!(
            cluster
                .call(0, |ticket| Event::CommitOrderEnter { ticket, owner })
                .is_some()
        );
        if trx == first {
            cluster.call(0, |ticket| Event::CommitOrderLeave {
                ticket,
                owner,
                error: None,
            });
        }
    }
    // `second` is inside, `first` has left and not released (server-contract-traps.md#waiting-inside-commit-order).
    let upto = Some(Gtid {
        uuid: HISTORY,
        seqno: last - 1,
    });
    let (ticket, later) = (999, 1000);
    cluster.event(0, Event::SyncWait { ticket, upto });
    let not_ordered = upto.map(|gtid| Gtid {
        seqno: last + 1,
        ..gtid
    });
    cluster.event(
        0,
        Event::SyncWait {
            ticket: later,
            upto: not_ordered,
        },
    );
    // Not by a disconnect either (simulator, seed 503469): the server would set the position of
    // `second` before `first` is visible.
    cluster.event(0, Event::Disconnect);
    assert!(cluster.nodes[0].server.take(ticket).is_none());
    let answer = cluster.nodes[0].server.take(later).unwrap();
    assert_eq!(answer.code, Code::TrxFail, "it may never come");
    cluster.call(0, |ticket| Event::Release { ticket, trx: first });
    assert_eq!(cluster.nodes[0].server.take(ticket).unwrap().code, Code::Ok);
}

#[test]
fn a_total_order_action_runs_alone_everywhere() {
    let mut cluster = Cluster::of(2);
    let earlier = cluster.certify(1, "a", KeyType::Exclusive);
    cluster.toi(0, 5);
    let later = cluster.certify(1, "b", KeyType::Exclusive);
    for _ in 0..3 {
        cluster.deliver(0);
    }
    assert!(
        !cluster.nodes[0]
            .actions
            .contains(&Action::Host(HostAction::MarkUnsafe)),
        "what is before it is not applied yet"
    );
    cluster.settle();
    assert_eq!(cluster.nodes[0].server.tois[&5].0, Toi::Done(Code::Ok));
    assert_eq!(cluster.outcome(1, earlier), Code::Ok);
    assert_eq!(
        cluster.outcome(1, later),
        Code::TrxFail,
        "it had not seen the action"
    );
    for node in &cluster.nodes {
        let unsafes = node
            .actions
            .iter()
            .filter(|a| **a == Action::Host(HostAction::MarkUnsafe))
            .count();
        let safes = node
            .actions
            .iter()
            .filter(|a| **a == Action::Host(HostAction::MarkSafe))
            .count();
        assert_eq!(safes, unsafes, "every mark is taken back");
        assert!(unsafes > 0);
    }
    cluster.assert_settled();
}

#[test]
fn a_lost_write_set_of_unknown_fate_is_applied_if_it_commits_after_all() {
    let mut cluster = Cluster::of(2);
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    let id = cluster.last_submission(0);
    cluster.event(
        0,
        Event::Failed {
            id,
            fate: Fate::Unknown,
        },
    );
    cluster.step_session(0, trx);
    assert_eq!(
        cluster.outcome(0, trx),
        Code::NodeFail,
        "never a deadlock error: it would be retried"
    );
    // A new write-set of the same origin does not profit from its locks: another epoch.
    let next = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(0, next), Code::TrxFail);
    assert_eq!(
        cluster.nodes[0].server.database.values().last().unwrap(),
        b"0/1/k"
    );
    cluster.assert_settled();
}

#[test]
fn a_withdrawn_write_set_fails_for_good() {
    let mut cluster = Cluster::of(2);
    cluster.nodes[0].primary = false;
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.toi(0, 9);
    cluster.step_session(0, trx);
    cluster.step_toi(0, 9);
    assert_eq!(cluster.outcome(0, trx), Code::ConnFail);
    assert_eq!(
        cluster.nodes[0].server.tois[&9].0,
        Toi::Done(Code::ConnFail)
    );
}

/// The server would report a deadlock, and repeat the statement if it commits by itself.
#[test]
fn of_a_victim_that_was_withdrawn_nothing_is_known_for_good() {
    let mut cluster = Cluster::of(2);
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    let bf_seqno = cluster.nodes[0].replicator.last_seqno().expect("in step") + 1;
    assert_eq!(cluster.abort(0, trx, bf_seqno), Code::Ok);
    let (id, fate) = (cluster.last_submission(0), Fate::Withdrawn);
    cluster.event(0, Event::Failed { id, fate });
    cluster.step_session(0, trx);
    assert_eq!(cluster.outcome(0, trx), Code::NodeFail);
}

#[test]
fn a_read_sees_what_was_acknowledged_before() {
    let mut cluster = Cluster::of(2);
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.deliver(0);
    let ticket = 999;
    cluster.event(1, Event::SyncWait { ticket, upto: None });
    assert!(
        cluster.nodes[1].server.take(ticket).is_none(),
        "not even delivered here"
    );
    cluster.deliver(1);
    assert!(
        cluster.nodes[1].server.take(ticket).is_none(),
        "not applied here"
    );
    cluster.settle_now();
    assert_eq!(cluster.nodes[1].server.take(ticket).unwrap().code, Code::Ok);
    assert_eq!(cluster.outcome(0, trx), Code::Ok);
    // Nothing is open: at once.
    let answer = cluster
        .call(1, |ticket| Event::SyncWait { ticket, upto: None })
        .expect("at once");
    assert_eq!(answer.gtid, cluster.nodes[1].replicator.last_committed());
    let upto = Some(Gtid {
        uuid: trireme_group::Uuid([9; 16]),
        seqno: 1,
    });
    let other = cluster
        .call(1, |ticket| Event::SyncWait { ticket, upto })
        .unwrap();
    assert_eq!(other.code, Code::TrxMissing);
}

/// Found by the simulator: positions below a control state that came from a peer counted as released.
#[test]
fn a_read_waits_for_what_a_peers_control_state_covers() {
    let mut cluster = Cluster::of(2);
    cluster.certify(0, "k", KeyType::Exclusive);
    cluster.deliver(0);
    cluster.reset(1);
    cluster.reconfigure(|_| ());
    cluster.nodes[1].threads = 0;
    cluster.settle_now();
    let ticket = 999;
    cluster.event(1, Event::SyncWait { ticket, upto: None });
    assert!(
        cluster.nodes[1].server.take(ticket).is_none(),
        "it has not come from node 0, or is not applied"
    );
    cluster.nodes[1].threads = 4;
    cluster.settle();
    assert_eq!(cluster.nodes[1].server.take(ticket).unwrap().code, Code::Ok);
}

#[test]
fn a_write_set_of_a_joiner_is_void() {
    let mut cluster = Cluster::of(1);
    cluster.add(Gtid::UNDEFINED); // no server answers there: it stays a joiner
    cluster.settle_now();
    let before = cluster.nodes[0].replicator.last_seqno();
    let payload = draft(1, "k", KeyType::Exclusive, b"x").finish(before.unwrap(), 0, -1);
    let id = SubmissionId {
        incarnation: cluster.nodes[1].incarnation,
        number: 100,
    };
    cluster.append(Delivery::Submission { id, payload });
    cluster.settle_now();
    assert_eq!(cluster.nodes[0].replicator.last_seqno(), before);
}

#[test]
fn total_order_actions_of_two_connections_take_turns() {
    let mut cluster = Cluster::of(2);
    cluster.certify(1, "a", KeyType::Exclusive);
    cluster.toi(0, 9);
    cluster.toi(0, 3);
    while cluster.deliver(0) {}
    cluster.step_toi(0, 9);
    cluster.step_toi(0, 3);
    let running = |c: &Cluster| {
        [9, 3].map(|conn| matches!(c.nodes[0].server.tois[&conn].0, Toi::Running(..)))
    };
    assert_eq!(
        running(&cluster),
        [false, false],
        "another's write-set is before them"
    );
    while !running(&cluster)[0] {
        cluster.take_work(0);
        cluster.step_applier(0, 0);
        cluster.step_toi(0, 9);
        cluster.step_toi(0, 3);
    }
    assert_eq!(running(&cluster), [true, false]);
    cluster.settle();
    cluster.assert_settled();
}

#[test]
fn a_total_order_action_waits_until_all_before_it_is_visible() {
    let mut cluster = Cluster::of(1);
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.toi(0, 5);
    while cluster.deliver(0) {}
    let owner = Owner::Trx(trx);
    cluster.nodes[0].server.answers.clear();
    cluster
        .call(0, |ticket| Event::CommitOrderEnter { ticket, owner })
        .unwrap();
    cluster
        .call(0, |ticket| Event::CommitOrderLeave {
            ticket,
            owner,
            error: None,
        })
        .unwrap();
    // Early release: commit order is free, but nothing is durable or visible yet.
    let started = |c: &Cluster| {
        c.nodes[0]
            .actions
            .contains(&Action::Host(HostAction::MarkUnsafe))
    };
    assert!(!started(&cluster));
    cluster
        .call(0, |ticket| Event::Release { ticket, trx })
        .unwrap();
    assert!(started(&cluster));
}

#[test]
fn a_failed_total_order_action_is_not_executed_elsewhere() {
    use crate::flags::{ISOLATION, ROLLBACK, TRX_END, TRX_START};
    let dummy = |flags| {
        let keys = trireme_certification::KeySetBuilder::new();
        let payload = crate::WriteSetDraft::new(flags, 1, 1, &keys, &[]).finish(0, 0, -1);
        crate::writeset::WriteSet::parse(&payload)
            .unwrap()
            .dummy_flags()
    };
    assert_eq!(dummy(TRX_START | TRX_END | ISOLATION), TRX_START | ROLLBACK);
    assert_eq!(dummy(TRX_START | TRX_END), TRX_START | TRX_END | ROLLBACK);
}
