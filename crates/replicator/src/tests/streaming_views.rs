//! Streaming transactions at views: what they close, and what a server that comes back is shown.

use trireme_certification::KeyType;
use trireme_group::{Configuration, Delivery};

use super::driver::*;
use super::fragments::*;
use super::server::Happened;
use crate::message::Message;
use crate::streaming::was_closed;
use crate::{Code, Event, Gtid, flags};

#[test]
fn a_view_with_the_same_members_closes_what_is_under_way() {
    for same in [true, false] {
        let mut cluster = cluster_of(2);
        let member_state = member(9);
        fragment(&mut cluster, 0, FIRST, "a");
        cluster.reconfigure(|c| {
            if !same {
                c.members.push(member_state);
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
    let control = cluster.nodes[1].replicator.context().control().unwrap();
    let origin = cluster.nodes[0].incarnation;
    assert!(was_closed(&control.views, origin, joined - 2));
    assert!(!was_closed(&control.views, origin, joined - 1));
    assert!(!was_closed(
        &control.views,
        cluster.nodes[1].incarnation,
        joined - 2
    ));
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
