//! Streaming transactions in step: fragments, their rollback, their victims.

use trireme_group::Delivery;

use super::driver::*;
use super::fragments::*;
use crate::message::Message;
use crate::{Action, Code, Event, GroupAction, Gtid, Owner, flags};

#[test]
fn a_transaction_reaches_the_others_in_fragments() {
    let mut cluster = cluster_of(2);
    let first = fragment(&mut cluster, 0, FIRST, "a");
    let second = fragment(&mut cluster, 0, MIDDLE, "b");
    assert_eq!(cluster.status(0).open_transactions, 1);
    let last = fragment(&mut cluster, 0, LAST, "c");
    assert_eq!((second, last), (first + 1, first + 2));
    let applied = apply_all(&mut cluster, 1);
    let expected: [(u32, &[u8]); 3] = [(FIRST, b"a"), (MIDDLE, b"b"), (LAST, b"c")];
    assert_eq!(seen(&applied), expected);
    assert!(
        applied
            .iter()
            .all(|a| a.trx == TRX && a.source == cluster.nodes[0].incarnation)
    );
    let status = cluster.status(0);
    assert_eq!(
        (
            status.replicated,
            status.local_commits,
            status.open_transactions
        ),
        (3, 3, 0)
    );
}

#[test]
fn a_fragment_is_applied_after_the_one_before_whatever_its_keys() {
    let mut cluster = cluster_of(2);
    let first = fragment(&mut cluster, 0, FIRST, "a");
    let between = send(&mut cluster, 1, 5, FIRST | flags::TRX_END, "x");
    deliver_all(&mut cluster);
    assert_eq!(answer(&mut cluster, 1, between).unwrap().code, Code::Ok);
    let second = certify(&mut cluster, 0, MIDDLE, "b");
    assert_eq!(second.gtid.seqno, first + 2);
    assert_eq!(second.depends_on, first, "but beside everything else");
}

#[test]
fn what_a_fragment_was_committed_after_has_been_seen() {
    let mut cluster = cluster_of(2);
    // Out of commit order on node 0, but not released there.
    let other = send(&mut cluster, 0, 5, FIRST | flags::TRX_END, "x");
    deliver_all(&mut cluster);
    assert_eq!(answer(&mut cluster, 0, other).unwrap().code, Code::Ok);
    let owner = Owner::Trx(5);
    cluster.call(0, |ticket| Event::CommitOrderEnter { ticket, owner });
    let error = None;
    cluster.call(0, |ticket| Event::CommitOrderLeave {
        ticket,
        owner,
        error,
    });
    fragment(&mut cluster, 0, FIRST, "a");
    // Whoever goes on with a row of the own transaction is no rival of it, in another epoch either.
    let victim = send(&mut cluster, 0, 6, FIRST | flags::TRX_END, "v");
    assert_eq!(cluster.abort(0, 6, 0), Code::Ok);
    assert_eq!(certify(&mut cluster, 0, MIDDLE, "a").code, Code::Ok);
    assert_eq!(answer(&mut cluster, 0, victim).unwrap().code, Code::BfAbort);
}

#[test]
fn a_rollback_comes_behind_the_fragments_and_to_the_origin_too() {
    let mut cluster = cluster_of(2);
    let first = fragment(&mut cluster, 0, FIRST, "a");
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    assert_eq!(cluster.status(0).open_transactions, 0);
    deliver_all(&mut cluster);
    let released = release(&mut cluster, 0);
    assert_eq!((released.code, released.lives_on), (Code::Ok, false));
    let expected: [(u32, &[u8]); 2] = [(FIRST, b"a"), (ROLLBACK, b"")];
    assert_eq!(seen(&apply_all(&mut cluster, 1)), expected);
    let own = apply_all(&mut cluster, 0);
    assert_eq!(seen(&own), expected[1..]);
    assert_eq!(
        (own[0].gtid.seqno, own[0].depends_on, own[0].trx),
        (first + 1, first, TRX)
    );
    let status = cluster.status(0);
    assert_eq!(
        (status.replicated, status.local_commits),
        (1, 1),
        "it is no write-set of a client"
    );
    assert_eq!(status.last_committed, first + 1);
}

#[test]
fn a_rollback_that_cannot_be_sent_yet_is_kept() {
    let mut cluster = cluster_of(1);
    fragment(&mut cluster, 0, FIRST, "a");
    let component = vec![member(0)];
    cluster.event(0, Event::NonPrimary { component });
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    assert_eq!(cluster.status(0).open_transactions, 0);
    let released = release(&mut cluster, 0);
    assert_eq!((released.code, released.lives_on), (Code::Ok, false));
    cluster.reconfigure(|_| ());
    cluster.settle();
    let sent = cluster.order.iter().any(|(_, delivery)| match delivery {
        Delivery::Submission { payload, .. } => matches!(
            Message::decode(payload),
            Ok(Message::WriteSet(ws)) if ws.flags & flags::ROLLBACK != 0
        ),
        Delivery::Configuration(_) => false,
    });
    assert!(sent, "when the node is primary again");
}

#[test]
fn a_fragment_that_conflicts_uses_up_its_place_at_once() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    let rival = send(&mut cluster, 1, 5, FIRST | flags::TRX_END, "b");
    let failed = certify(&mut cluster, 0, MIDDLE, "b");
    assert_eq!(answer(&mut cluster, 1, rival).unwrap().code, Code::Ok);
    assert_eq!(failed.code, Code::TrxFail);
    assert!(failed.gtid.seqno > 0);
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    deliver_all(&mut cluster);
    release(&mut cluster, 0);
    // Nobody waits for it on the origin.
    let expected: [(u32, &[u8]); 2] = [(FIRST | flags::TRX_END, b"b"), (ROLLBACK, b"")];
    assert_eq!(seen(&apply_all(&mut cluster, 0)), expected);
    assert_eq!(cluster.status(0).last_committed, failed.gtid.seqno + 1);
    assert_eq!(cluster.status(0).local_cert_failures, 1);
}

#[test]
fn a_victim_between_two_fragments_sends_no_more() {
    let mut cluster = cluster_of(2);
    let first = fragment(&mut cluster, 0, FIRST, "a");
    assert_eq!(
        cluster.abort(0, TRX, first + 5),
        Code::Ok,
        "an older one is aborted all the same"
    );
    assert_eq!(cluster.abort(0, TRX, first + 5), Code::NotAllowed);
    let ticket = send(&mut cluster, 0, TRX, MIDDLE, "b");
    let refused = answer(&mut cluster, 0, ticket).expect("not sent");
    assert_eq!(
        (refused.code, refused.gtid),
        (Code::ConnFail, Gtid::UNDEFINED)
    );
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    assert!(!release(&mut cluster, 0).lives_on);
    assert_eq!(cluster.status(0).open_transactions, 0);
}

#[test]
fn a_victim_in_flight_is_not_replayed() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    let ticket = send(&mut cluster, 0, TRX, MIDDLE, "b");
    assert_eq!(cluster.abort(0, TRX, -1), Code::Ok);
    deliver_all(&mut cluster);
    let failed = answer(&mut cluster, 0, ticket).unwrap();
    assert_eq!(failed.code, Code::TrxFail);
    assert_eq!(cluster.status(0).last_committed, failed.gtid.seqno);
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    deliver_all(&mut cluster);
    let expected: [(u32, &[u8]); 3] = [(FIRST, b"a"), (MIDDLE, b"b"), (ROLLBACK, b"")];
    assert_eq!(seen(&apply_all(&mut cluster, 1)), expected);
    assert_eq!(cluster.status(0).local_replays, 0);
}

#[test]
fn a_victim_that_commits_is_replayed() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    let ticket = send(&mut cluster, 0, TRX, LAST, "b");
    assert_eq!(cluster.abort(0, TRX, -1), Code::Ok);
    deliver_all(&mut cluster);
    assert_eq!(answer(&mut cluster, 0, ticket).unwrap().code, Code::BfAbort);
    let replay = cluster
        .call(0, |ticket| Event::Replay { ticket, trx: TRX })
        .unwrap();
    let replay = replay.replay.expect("its last fragment");
    assert_eq!((replay.flags, &replay.data[..]), (LAST, &b"b"[..]));
    assert_eq!(enter(&mut cluster, 0).unwrap().code, Code::Ok);
    leave(&mut cluster, 0);
    assert!(!release(&mut cluster, 0).lives_on);
    assert_eq!(cluster.status(0).local_replays, 1);
}

#[test]
fn a_victim_that_waits_for_commit_order_gives_up_its_place() {
    let mut cluster = cluster_of(2);
    let other = send(&mut cluster, 1, 5, FIRST | flags::TRX_END, "x");
    deliver_all(&mut cluster);
    assert_eq!(answer(&mut cluster, 1, other).unwrap().code, Code::Ok);
    let certified = certify(&mut cluster, 0, FIRST, "a");
    let ticket = cluster.nodes[0].server.ticket();
    let owner = Owner::Trx(TRX);
    cluster.event(0, Event::CommitOrderEnter { ticket, owner });
    assert_eq!(answer(&mut cluster, 0, ticket), None, "one is before it");
    assert_eq!(cluster.abort(0, TRX, certified.gtid.seqno + 1), Code::Ok);
    assert_eq!(answer(&mut cluster, 0, ticket).unwrap().code, Code::TrxFail);
    assert_eq!(apply_all(&mut cluster, 0).len(), 1);
    assert_eq!(cluster.status(0).last_committed, certified.gtid.seqno);
}

#[test]
fn a_victim_that_has_not_asked_for_commit_order_learns_of_it_there() {
    let mut cluster = cluster_of(1);
    let certified = certify(&mut cluster, 0, FIRST, "a");
    assert_eq!(cluster.abort(0, TRX, -1), Code::Ok);
    assert_eq!(enter(&mut cluster, 0).unwrap().code, Code::TrxFail);
    assert_eq!(cluster.status(0).last_committed, certified.gtid.seqno);
    assert!(!release(&mut cluster, 0).lives_on);
}

#[test]
fn a_victim_inside_commit_order_learns_of_it_when_it_is_released() {
    let mut cluster = cluster_of(1);
    let certified = certify(&mut cluster, 0, FIRST, "a");
    assert_eq!(enter(&mut cluster, 0).unwrap().code, Code::Ok);
    assert_eq!(cluster.abort(0, TRX, -1), Code::Ok);
    leave(&mut cluster, 0);
    let released = release(&mut cluster, 0);
    assert_eq!((released.code, released.lives_on), (Code::BfAbort, true));
    assert_eq!(cluster.status(0).last_committed, certified.gtid.seqno);
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    assert!(!release(&mut cluster, 0).lives_on);
}

#[test]
fn a_fragment_that_its_server_could_not_store_gives_up_its_place() {
    for rolled_back in [true, false] {
        let mut cluster = cluster_of(1);
        let certified = certify(&mut cluster, 0, FIRST, "a");
        if rolled_back {
            assert_eq!(rollback(&mut cluster, 0), Code::Ok);
        }
        assert!(!release(&mut cluster, 0).lives_on);
        assert_eq!(cluster.status(0).last_committed, certified.gtid.seqno);
        assert_eq!(cluster.status(0).open_transactions, 0);
    }
}

#[test]
fn implicit_dependencies_are_all_that_was_seen() {
    let mut cluster = cluster_of(2);
    let flags = FIRST | flags::TRX_END | flags::IMPLICIT_DEPS;
    let seen = cluster.status(0).last_committed;
    let certified = certify(&mut cluster, 0, flags, "a");
    assert_eq!(certified.depends_on, seen);
    let applied = apply_all(&mut cluster, 1);
    assert_eq!(
        applied[0].flags,
        FIRST | flags::TRX_END,
        "the server knows no such flag"
    );
}

/// MariaDB's test galera_sr_kill_slave_after_apply_rollback.
#[test]
fn a_read_waits_for_the_rollbacks_sent_before() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    let asks = |cluster: &Cluster| {
        let actions = cluster.nodes[0].actions.iter();
        actions
            .filter(|a| matches!(a, Action::Group(GroupAction::Read { .. })))
            .count()
    };
    let before = asks(&cluster);
    let ticket = cluster.nodes[0].server.ticket();
    cluster.event(0, Event::SyncWait { ticket, upto: None });
    assert_eq!(asks(&cluster), before);
    deliver_all(&mut cluster);
    assert_eq!(asks(&cluster), before + 1);
    assert_eq!(
        answer(&mut cluster, 0, ticket),
        None,
        "it is not applied yet"
    );
    apply_all(&mut cluster, 0);
    assert_eq!(answer(&mut cluster, 0, ticket).unwrap().code, Code::Ok);
}
