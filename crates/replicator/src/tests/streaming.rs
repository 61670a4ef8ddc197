//! Streaming transactions: fragments, their rollback, and what becomes of them at a view.

use trireme_certification::{KeySetBuilder, KeyType, Seqno};
use trireme_group::{Configuration, Delivery, Fate};

use super::driver::*;
use super::server::Happened;
use crate::message::Message;
use crate::{Action, Answer, Apply, Code, Event, Gtid, Owner, Task, TrxId, WriteSetDraft, flags};

const FIRST: u32 = flags::TRX_START;
const MIDDLE: u32 = 0;
const LAST: u32 = flags::TRX_END | flags::PA_UNSAFE;
const ROLLBACK: u32 = flags::ROLLBACK | flags::PA_UNSAFE;
const DUMMY: u32 = flags::TRX_START | flags::TRX_END | flags::ROLLBACK;
const TRX: TrxId = 70;

/// Nodes whose appliers the test moves itself.
fn cluster_of(count: usize) -> Cluster {
    let mut cluster = Cluster::of(count);
    cluster.nodes.iter_mut().for_each(|node| node.threads = 0);
    cluster
}

/// Sends a fragment; the ticket of its certify().
fn send(cluster: &mut Cluster, node: usize, trx: TrxId, flags: u32, key: &str) -> u64 {
    let mut keys = KeySetBuilder::new();
    keys.append(&[b"db", b"t", key.as_bytes()], KeyType::Exclusive);
    let draft = WriteSetDraft::new(flags, trx, 1, &keys, &[key.as_bytes()]);
    let ticket = cluster.nodes[node].server.ticket();
    let certify = Event::Certify {
        ticket,
        trx,
        conn: 1,
        draft,
    };
    cluster.event(node, certify);
    ticket
}

fn answer(cluster: &mut Cluster, node: usize, ticket: u64) -> Option<Answer> {
    cluster.nodes[node].server.take(ticket)
}

fn deliver_all(cluster: &mut Cluster) {
    for node in 0..cluster.nodes.len() {
        while cluster.deliver(node) {}
    }
}

/// Sends a fragment and has it ordered.
fn certify(cluster: &mut Cluster, node: usize, flags: u32, key: &str) -> Answer {
    let ticket = send(cluster, node, TRX, flags, key);
    deliver_all(cluster);
    answer(cluster, node, ticket).expect("ordered")
}

fn enter(cluster: &mut Cluster, node: usize) -> Option<Answer> {
    let owner = Owner::Trx(TRX);
    cluster.call(node, |ticket| Event::CommitOrderEnter { ticket, owner })
}

fn leave(cluster: &mut Cluster, node: usize) {
    let owner = Owner::Trx(TRX);
    let leave = |ticket| Event::CommitOrderLeave {
        ticket,
        owner,
        error: None,
    };
    assert_eq!(cluster.call(node, leave).unwrap().code, Code::Ok);
}

fn release(cluster: &mut Cluster, node: usize) -> Answer {
    cluster
        .call(node, |ticket| Event::Release { ticket, trx: TRX })
        .unwrap()
}

fn rollback(cluster: &mut Cluster, node: usize) -> Code {
    let rollback = |ticket| Event::Rollback { ticket, trx: TRX };
    cluster.call(node, rollback).expect("at once").code
}

/// A fragment from certify() to release().
fn fragment(cluster: &mut Cluster, node: usize, flags: u32, key: &str) -> Seqno {
    let certified = certify(cluster, node, flags, key);
    assert_eq!(certified.code, Code::Ok);
    assert_eq!(enter(cluster, node).unwrap().code, Code::Ok);
    leave(cluster, node);
    let released = release(cluster, node);
    let goes_on = flags & flags::TRX_END == 0;
    assert_eq!((released.code, released.lives_on), (Code::Ok, goes_on));
    certified.gtid.seqno
}

/// Applies what can be applied.
fn apply_all(cluster: &mut Cluster, node: usize) -> Vec<Apply> {
    let mut applied = Vec::new();
    while let Some(work) = cluster.nodes[node].replicator.take_work() {
        if let Task::Apply(apply) = work.task {
            let owner = Owner::Applied(apply.gtid.seqno);
            cluster
                .call(node, |ticket| Event::CommitOrderEnter { ticket, owner })
                .expect("alone");
            let error = None;
            cluster.call(node, |ticket| Event::CommitOrderLeave {
                ticket,
                owner,
                error,
            });
            applied.push(*apply);
        }
        let done = Event::WorkDone {
            work: work.id,
            ok: true,
        };
        cluster.event(node, done);
    }
    applied
}

fn seen(applied: &[Apply]) -> Vec<(u32, &[u8])> {
    applied.iter().map(|a| (a.flags, &a.data[..])).collect()
}

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
fn a_rollback_that_cannot_be_sent_is_refused() {
    let mut cluster = cluster_of(1);
    fragment(&mut cluster, 0, FIRST, "a");
    let component = vec![member(0)];
    cluster.event(0, Event::NonPrimary { component });
    assert_eq!(rollback(&mut cluster, 0), Code::TrxFail);
    assert_eq!(cluster.status(0).open_transactions, 0);
    let released = release(&mut cluster, 0);
    assert_eq!((released.code, released.lives_on), (Code::Ok, false));
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

fn last_fails(cluster: &mut Cluster, node: usize) {
    let id = cluster.last_submission(node);
    let fate = Fate::Unknown;
    cluster.event(node, Event::Failed { id, fate });
}

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
    assert!(cluster.nodes[0].actions.contains(&Action::MarkCorrupt));
}

#[test]
fn a_view_with_the_same_members_closes_what_is_under_way() {
    for same in [true, false] {
        let mut cluster = cluster_of(2);
        let seat = member(9);
        fragment(&mut cluster, 0, FIRST, "a");
        cluster.reconfigure(|c| {
            if !same {
                c.members.push(seat);
            }
        });
        let ticket = send(&mut cluster, 0, TRX, LAST, "b");
        deliver_all(&mut cluster);
        let certified = answer(&mut cluster, 0, ticket).unwrap();
        let (code, shown) = match same {
            true => (Code::TrxFail, DUMMY),
            false => (Code::Ok, LAST),
        };
        assert_eq!(certified.code, code, "same members: {same}");
        let applied = apply_all(&mut cluster, 1);
        assert_eq!(applied.last().map(|a| a.flags), Some(shown));
        if same {
            // The failed commit of a streaming transaction takes its place like any other's.
            assert_eq!(rollback(&mut cluster, 0), Code::Ok);
            apply_all(&mut cluster, 0);
            assert_eq!(enter(&mut cluster, 0).unwrap().code, Code::Ok);
            leave(&mut cluster, 0);
            assert!(!release(&mut cluster, 0).lives_on);
            assert_eq!(cluster.status(0).last_committed, certified.gtid.seqno);
        }
        // What begins after the view has nothing to do with it.
        apply_all(&mut cluster, 0);
        let ticket = send(&mut cluster, 0, 90, FIRST, "c");
        deliver_all(&mut cluster);
        assert_eq!(answer(&mut cluster, 0, ticket).unwrap().code, Code::Ok);
    }
}

#[test]
fn a_view_without_its_origin_closes_a_transaction() {
    let mut cluster = cluster_of(3);
    fragment(&mut cluster, 0, FIRST, "a");
    let gone = member(0);
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != gone.incarnation));
    cluster.reconfigure(|c| c.members.push(gone));
    // Its node comes back without having seen the view: it sends as if nothing had happened.
    deliver_all(&mut cluster);
    let joined = cluster.nodes[1].replicator.last_seqno().unwrap();
    let control = cluster.nodes[1].replicator.control.as_ref().unwrap();
    let origin = cluster.nodes[0].incarnation;
    assert!(control.stream_was_closed(origin, joined - 2));
    assert!(!control.stream_was_closed(origin, joined - 1));
    assert!(!control.stream_was_closed(cluster.nodes[1].incarnation, joined - 2));
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

/// MariaDB's test galera_sr_cc_slave: without it the fragments find no transaction, and are lost.
#[test]
fn a_server_that_connects_anew_is_shown_a_view_before_the_fragments_it_missed() {
    for missed in [true, false] {
        let mut cluster = Cluster::of(2);
        if missed {
            cluster.certify(0, "a", KeyType::Exclusive);
        }
        cluster.call(1, |_| Event::Disconnect);
        cluster.settle();
        let local = cluster.nodes[1].replicator.last_committed();
        let node = &mut cluster.nodes[1];
        node.incarnation = incarnation(20);
        node.server.happened.clear();
        cluster.join(1, Gtid::UNDEFINED, true);
        cluster.settle();
        let happened = cluster.nodes[1].server.happened.iter();
        let views: Vec<_> = happened
            .filter_map(|h| match h {
                Happened::View(view, _) => Some((view.gtid.seqno, view.members.len())),
                _ => None,
            })
            .collect();
        // Its own view comes last, after the one that it left by.
        let at = local.seqno;
        match missed {
            // As it was in it before, and is now.
            true => assert_eq!(views, [(at, 3), (at + 2, 1), (at + 3, 2)]),
            false => assert_eq!(views, [(at + 1, 1), (at + 2, 2)]),
        }
        assert_eq!(cluster.comment(1), "Synced");
        cluster.assert_settled();
    }
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
        assert_eq!(out, [Action::Leave]);
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

/// MariaDB's test galera_sr_kill_slave_after_apply_rollback.
#[test]
fn a_read_waits_for_the_rollbacks_sent_before() {
    let mut cluster = cluster_of(2);
    fragment(&mut cluster, 0, FIRST, "a");
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    let asks = |cluster: &Cluster| {
        let actions = cluster.nodes[0].actions.iter();
        actions.filter(|a| matches!(a, Action::Read { .. })).count()
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

/// Found by the simulator: the state that a joiner was sent lacked a fragment that its donor had abandoned,
/// and it wrote the row before the rollback came. Elsewhere a streaming applier held it.
#[test]
fn a_joiner_writes_behind_the_rollbacks_of_its_donor() {
    let mut cluster = Cluster::new();
    cluster.found();
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    fragment(&mut cluster, 0, FIRST, "a");
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    cluster.order.pop();
    last_fails(&mut cluster, 0);
    let gtid = cluster.nodes[0].replicator.last_committed();
    let server = &cluster.nodes[0].server;
    let (database, commits) = (server.database.clone(), server.commits.clone());
    let server = &mut cluster.nodes[joiner].server;
    (server.database, server.commits) = (database, commits);
    let begun = cluster.order.len();
    let rcode = 0;
    let sent = |ticket| Event::SstSent {
        ticket,
        gtid,
        rcode,
    };
    let received = |ticket| Event::SstReceived {
        ticket,
        gtid,
        rcode,
    };
    cluster.call(joiner, received);
    let said = |cluster: &Cluster| {
        let said = cluster.order[begun..].iter();
        let said = said.filter_map(|(_, delivery)| match delivery {
            Delivery::Submission { payload, .. } => match Message::decode(payload) {
                Ok(Message::WriteSet(ws)) if ws.flags & flags::ROLLBACK != 0 => Some("rollback"),
                Ok(Message::Donated { .. }) => Some("donated"),
                Ok(Message::Joined) => Some("joined"),
                _ => None,
            },
            Delivery::Configuration(_) => None,
        });
        said.collect::<Vec<_>>()
    };
    deliver_all(&mut cluster);
    cluster.call(0, sent);
    cluster.settle();
    assert!(!said(&cluster).contains(&"donated") || said(&cluster)[0] == "rollback");
    cluster.pass(200);
    cluster.settle();
    let order = said(&cluster);
    assert_eq!(order[..3], ["rollback", "donated", "joined"]);
}

/// Found by the simulator: the others undo all streaming transactions there.
#[test]
fn a_server_that_connects_anew_sees_that_a_view_repeats_the_one_before() {
    let mut cluster = Cluster::of(3);
    // It is shown the view by which it leaves.
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(2)));
    cluster.settle();
    let left = cluster.nodes[2].replicator.last_committed().seqno;
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.call(2, |_| Event::Disconnect);
    cluster.settle();
    let node = &mut cluster.nodes[2];
    node.incarnation = incarnation(20);
    node.server.happened.clear();
    cluster.join(2, Gtid::UNDEFINED, true);
    cluster.settle();
    let happened = cluster.nodes[2].server.happened.iter();
    let views: Vec<_> = happened
        .filter_map(|h| match h {
            Happened::View(view, _) => Some((view.gtid.seqno, view.members.len())),
            _ => None,
        })
        .collect();
    let again = left + 2;
    assert_eq!(views, [(left, 4), (left, 2), (again, 2), (again + 1, 3)]);
    cluster.assert_settled();
}

/// A node has missed more views than anybody remembers; the second member of its last one has left since.
fn long_away(server_running: bool) -> Vec<(i64, bool)> {
    let mut cluster = Cluster::of(3);
    let away = |c: &mut Configuration| c.members.retain(|m| m.incarnation != incarnation(2));
    cluster.reconfigure(away);
    cluster.settle();
    let left = cluster.nodes[2].replicator.last_committed();
    cluster.certify(0, "a", KeyType::Exclusive);
    if server_running {
        cluster.call(2, |_| Event::Disconnect);
        cluster.settle();
    }
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(1)));
    for _ in 0..70 {
        cluster.reconfigure(|_| ());
    }
    cluster.settle();
    let node = &mut cluster.nodes[2];
    if !server_running {
        node.replicator = crate::Replicator::new(crate::Options::default());
    }
    node.incarnation = incarnation(20);
    node.server.happened.clear();
    cluster.join(2, left, server_running);
    cluster.settle();
    let happened = cluster.nodes[2].server.happened.iter();
    happened
        .filter_map(|h| match h {
            Happened::View(view, _) => {
                let is_old = view.members.iter().any(|m| m.incarnation == incarnation(1));
                Some((view.gtid.seqno - left.seqno, is_old))
            }
            Happened::SstRequest => Some((-1, false)),
            _ => None,
        })
        .collect()
}

/// At any other view it would undo what it has of the streaming transactions of who has left.
#[test]
fn a_server_is_shown_its_databases_view_though_the_group_has_forgotten_it() {
    let shown = long_away(true);
    assert_eq!(shown[0], (0, true));
    assert!(shown.len() > 70 && shown[5..].iter().all(|(_, is_old)| !is_old));
}

/// A process without a memory or a log of that view does not guess it.
#[test]
fn a_database_whose_view_nobody_knows_is_replaced() {
    assert_eq!(long_away(false), [(-1, false)]);
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
    let say = |cluster: &mut Cluster, message: crate::direct::Direct| {
        let bytes = message.encode();
        cluster.event(0, Event::Direct { from, bytes });
    };
    say(&mut cluster, crate::direct::Direct::FlowStop);
    send(&mut cluster, 0, 90, FIRST | flags::TRX_END, "b");
    assert_eq!(rollback(&mut cluster, 0), Code::Ok);
    cluster.order.pop();
    last_fails(&mut cluster, 0);
    let ordered = cluster.order.len();
    say(&mut cluster, crate::direct::Direct::FlowContinue);
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
