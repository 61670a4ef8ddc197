//! Transactions that a brute-force abort meets, wherever they are.

use trireme_certification::KeyType;

use super::driver::{Cluster, draft};
use super::server::Session;
use crate::{Code, ConflictCounts, Event, Gtid, Owner};

#[test]
fn a_victim_that_executes_fails_unordered() {
    let mut cluster = Cluster::of(2);
    let victim = 77;
    let answer = cluster
        .call(0, |ticket| Event::Abort {
            ticket,
            bf_seqno: 5,
            victim,
            executing: true,
        })
        .expect("answered at once");
    assert_eq!((answer.code, answer.gtid), (Code::Ok, Gtid::UNDEFINED));
    assert_eq!(cluster.status(0).open_transactions, 1);
    let draft = draft(victim, "k", KeyType::Exclusive, b"x");
    let answer = cluster
        .call(0, |ticket| Event::Certify {
            ticket,
            trx: victim,
            conn: 1,
            draft,
        })
        .expect("at once");
    assert_eq!(
        (answer.code, answer.gtid),
        (Code::ConnFail, Gtid::UNDEFINED)
    );
    assert_eq!(cluster.status(0).open_transactions, 0);
    // A victim that the provider does not know of leaves no trace.
    assert_eq!(cluster.abort(0, 78, 5), Code::Ok);
    assert_eq!(cluster.status(0).open_transactions, 0);
    let counts = ConflictCounts {
        brute_force_abort: 2,
        ..ConflictCounts::default()
    };
    assert_eq!(cluster.status(0).conflicts, counts);
}

/// The server passes the number of the view, which may be the seqno of an innocent write-set.
#[test]
fn a_view_that_closes_a_transaction_is_no_winner() {
    let mut cluster = Cluster::of(2);
    let winner_of = |cluster: &mut Cluster, victim| {
        cluster.call(0, |ticket| Event::Abort {
            ticket,
            bf_seqno: 1,
            victim,
            executing: true,
        });
        let released = cluster.call(0, |ticket| Event::Release {
            ticket,
            trx: victim,
        });
        let loss = released.expect("at once").loss.expect("it lost");
        loss.winner.map(|winner| winner.seqno)
    };
    assert_eq!(winner_of(&mut cluster, 77), Some(1));
    cluster.add(Gtid::UNDEFINED);
    while !cluster.take_work(0) {
        assert!(cluster.deliver(0), "the view comes");
    }
    assert_eq!(winner_of(&mut cluster, 78), None);
}

#[test]
fn a_victim_in_flight_that_passes_is_replayed() {
    let mut cluster = Cluster::of(2);
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    assert_eq!(cluster.abort(0, trx, -1), Code::Ok);
    assert_eq!(
        cluster.abort(0, trx, -1),
        Code::NotAllowed,
        "it is aborted already"
    );
    cluster.settle();
    assert_eq!(cluster.outcome(0, trx), Code::Ok);
    assert_eq!(cluster.status(0).local_replays, 1);
    let counts = ConflictCounts {
        replay: 1,
        ..ConflictCounts::default()
    };
    assert_eq!(cluster.status(0).conflicts, counts);
    cluster.assert_settled();
}

/// Found by the simulator: the victim lets go of its locks before it replays; another session of its node writes the same
/// row without having seen it, and would have been exempt as of the same origin: a lost update.
#[test]
fn who_writes_a_victims_row_before_its_replay_conflicts_with_it() {
    let mut cluster = Cluster::of(1);
    let victim = cluster.certify(0, "k", KeyType::Exclusive);
    assert_eq!(cluster.abort(0, victim, -1), Code::Ok);
    let hasty = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(0, victim), Code::Ok, "replayed");
    assert_eq!(cluster.outcome(0, hasty), Code::TrxFail);
    cluster.assert_settled();
}

#[test]
fn a_victim_in_flight_that_conflicts_fails() {
    let mut cluster = Cluster::of(2);
    cluster.certify(0, "k", KeyType::Exclusive);
    let trx = cluster.certify(1, "k", KeyType::Exclusive);
    assert_eq!(cluster.abort(1, trx, -1), Code::Ok);
    cluster.settle();
    assert_eq!(cluster.outcome(1, trx), Code::TrxFail);
    assert_eq!(cluster.status(1).local_replays, 0);
    cluster.assert_settled();
}

#[test]
fn a_certified_victim_learns_of_it_when_it_enters_commit_order() {
    let mut cluster = Cluster::of(1);
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.deliver(0);
    let seqno = cluster.nodes[0].replicator.last_seqno().unwrap();
    assert_eq!(
        cluster.abort(0, trx, seqno + 1),
        Code::NotAllowed,
        "it is ordered before the aborter"
    );
    assert_eq!(
        cluster.abort(0, trx, 0),
        Code::Ok,
        "no order is known: its state decides"
    );
    let answer = cluster
        .call(0, |ticket| Event::CommitOrderEnter {
            ticket,
            owner: Owner::Trx(trx),
        })
        .unwrap();
    assert_eq!((answer.code, answer.gtid.seqno), (Code::BfAbort, seqno));
    let replay = cluster
        .call(0, |ticket| Event::Replay { ticket, trx })
        .expect("nothing is before it");
    assert_eq!(replay.code, Code::Ok);
    assert_eq!(
        cluster.abort(0, trx, -1),
        Code::NotAllowed,
        "it is being replayed"
    );
}

/// An engine that cannot prepare a certified transaction rolls it back, and the server replays it.
fn replaying() -> (Cluster, u64, i64) {
    let mut cluster = Cluster::of(2);
    let trx = cluster.certify(0, "a", KeyType::Exclusive);
    while cluster.deliver(0) {}
    let seqno = cluster.nodes[0].replicator.last_seqno().expect("in step");
    let replay = cluster
        .call(0, |ticket| Event::Replay { ticket, trx })
        .expect("nothing is before it");
    assert_eq!(replay.code, Code::Ok);
    assert_eq!(replay.replay.map(|apply| apply.gtid.seqno), Some(seqno));
    (cluster, trx, seqno)
}

#[test]
fn who_fails_without_a_victor_replays_too() {
    let (mut cluster, trx, seqno) = replaying();
    let owner = Owner::Trx(trx);
    let entered = cluster.call(0, |ticket| Event::CommitOrderEnter { ticket, owner });
    assert_eq!(
        entered.map(|a| (a.code, a.gtid.seqno)),
        Some((Code::Ok, seqno))
    );
    let again = cluster.call(0, |ticket| Event::Replay { ticket, trx });
    assert_eq!(again.map(|a| a.code), Some(Code::TrxFail), "it is inside");
}

/// Its locks are free until it replays, so what is sent now is its rival.
#[test]
fn a_write_set_that_is_sent_during_a_replay_is_certified_against_it() {
    let (mut cluster, ..) = replaying();
    let next = cluster.certify(0, "a", KeyType::Exclusive);
    while cluster.deliver(0) {}
    cluster.step_session(0, next);
    assert_eq!(cluster.status(0).conflicts.certification, 1);
}

#[test]
fn a_replay_that_fails_uses_up_its_place_and_the_node_leaves() {
    let (mut cluster, trx, seqno) = replaying();
    let failed = cluster.call(0, |ticket| Event::ReplayFailed { ticket, trx });
    assert_eq!(failed.map(|a| a.code), Some(Code::Ok));
    assert_eq!(cluster.nodes[0].replicator.last_committed().seqno, seqno);
    assert_eq!(cluster.comment(0), "Inconsistent");
    let released = cluster.call(0, |ticket| Event::Release { ticket, trx });
    assert_eq!(released.map(|a| a.code), Some(Code::Ok), "it is gone");
    cluster.settle();
    assert!(cluster.nodes[0].closed);
}

#[test]
fn a_victim_that_waits_for_commit_order_is_woken() {
    let mut cluster = Cluster::of(2);
    // Node 1's write-set comes first and is not applied yet at node 0.
    cluster.certify(1, "a", KeyType::Exclusive);
    let trx = cluster.certify(0, "b", KeyType::Exclusive);
    while cluster.deliver(0) {}
    cluster.step_session(0, trx);
    assert!(matches!(
        cluster.nodes[0].server.sessions[&trx].0,
        Session::Entering(..)
    ));
    assert_eq!(cluster.abort(0, trx, -1), Code::Ok);
    cluster.settle();
    assert_eq!(cluster.outcome(0, trx), Code::Ok);
    assert_eq!(cluster.status(0).local_replays, 1);
    cluster.assert_settled();
}

#[test]
fn whoever_is_inside_commit_order_cannot_be_aborted() {
    let mut cluster = Cluster::of(1);
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.deliver(0);
    let enter = cluster
        .call(0, |ticket| Event::CommitOrderEnter {
            ticket,
            owner: Owner::Trx(trx),
        })
        .unwrap();
    assert_eq!(enter.code, Code::Ok);
    assert_eq!(cluster.abort(0, trx, -1), Code::NotAllowed);
    cluster
        .call(0, |ticket| Event::CommitOrderLeave {
            ticket,
            owner: Owner::Trx(trx),
            error: None,
        })
        .unwrap();
    assert_eq!(cluster.abort(0, trx, -1), Code::NotAllowed);
}

#[test]
fn a_certified_victim_may_replay_without_asking_for_commit_order() {
    let mut cluster = Cluster::of(2);
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.deliver(0);
    let answer = cluster.nodes[0].server.answers.values().last().unwrap();
    assert_eq!(answer.code, Code::Ok);
    let seqno = answer.gtid.seqno;
    cluster.nodes[0].server.answers.clear();
    cluster.nodes[0].server.sessions.get_mut(&trx).unwrap().0 = Session::Certified(seqno);
    assert_eq!(cluster.abort(0, trx, -1), Code::Ok);
    cluster.settle();
    assert_eq!(cluster.outcome(0, trx), Code::Ok);
    assert_eq!(cluster.status(0).local_replays, 1);
    cluster.assert_settled();
}
