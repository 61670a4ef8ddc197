//! How nodes get their state by a snapshot.

use trireme_certification::KeyType;

use super::clients::{copy, kinds};
use super::driver::{Cluster, incarnation, peer_message};
use crate::peer_message::PeerMessage;
use crate::{Action, Code, Event, GroupAction, Gtid, HostAction, Options};

#[test]
fn an_empty_node_takes_a_snapshot() {
    let mut cluster = Cluster::new();
    cluster.found();
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    assert_eq!(kinds(&cluster, 1), ["connected 2", "sst_request"]);
    assert_eq!(kinds(&cluster, 0)[3..], ["view 2 at 1", "donate 2"]);
    assert_eq!(
        (cluster.comment(0), cluster.comment(1)),
        ("Donor/Desynced", "Joining: receiving State Transfer")
    );
    // The donor writes on meanwhile; what the snapshot has is not applied again.
    let a = cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    let gtid = cluster.nodes[0].replicator.last_committed();
    copy(&mut cluster, joiner);
    let b = cluster.certify(0, "b", KeyType::Exclusive);
    cluster.settle();
    cluster.call(0, |ticket| Event::SstSent {
        ticket,
        gtid,
        rcode: 0,
    });
    let answer = cluster
        .call(joiner, |ticket| Event::SstReceived {
            ticket,
            gtid,
            rcode: 0,
        })
        .unwrap();
    assert_eq!(answer.code, Code::Ok);
    cluster.settle();
    assert_eq!(
        (cluster.outcome(0, a), cluster.outcome(0, b)),
        (Code::Ok, Code::Ok)
    );
    assert_eq!(
        (cluster.comment(0), cluster.comment(1)),
        ("Synced", "Synced")
    );
    assert_eq!(
        kinds(&cluster, 1)[2..],
        ["synced"],
        "no view that the snapshot contains"
    );
    let marks: Vec<_> = cluster.nodes[1]
        .actions
        .iter()
        .filter(|a| {
            matches!(
                a,
                Action::Host(HostAction::MarkUnsafe)
                    | Action::Host(HostAction::MarkSafe)
                    | Action::Host(HostAction::MarkUncorrupt)
            )
        })
        .collect();
    assert_eq!(
        marks,
        [
            &Action::Host(HostAction::MarkUnsafe),
            &Action::Host(HostAction::MarkUncorrupt),
            &Action::Host(HostAction::MarkSafe)
        ]
    );
    let joined = (cluster.nodes[0].actions.iter().rev()).find_map(|action| match action {
        Action::Group(GroupAction::SetJoined { members, .. }) => Some(members.clone()),
        _ => None,
    });
    assert_eq!(joined, Some(vec![incarnation(0), incarnation(1)]));
    cluster.assert_settled();
}

#[test]
fn a_snapshot_behind_the_join_is_completed_from_the_log() {
    let mut cluster = Cluster::new();
    cluster.found();
    for key in ["a", "b"] {
        cluster.certify(0, key, KeyType::Exclusive);
        cluster.settle();
    }
    let joiner = cluster.start();
    let behind = copy(&mut cluster, joiner);
    cluster.certify(0, "c", KeyType::Exclusive);
    cluster.settle();
    cluster.join(joiner, Gtid::UNDEFINED, false);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    cluster.snapshot_ends(0, joiner, behind);
    cluster.settle();
    assert_eq!(cluster.comment(1), "Synced");
    cluster.assert_settled();
}

#[test]
fn two_joiners_share_one_donor_one_after_the_other() {
    let mut cluster = Cluster::new();
    cluster.found();
    for _ in 0..2 {
        let node = cluster.add(Gtid::UNDEFINED);
        cluster.nodes[node].server.sst_request = Some(b"rsync".to_vec());
    }
    cluster.settle();
    assert!(
        cluster.nodes[2]
            .logs
            .iter()
            .any(|l| l.starts_with("Requesting state transfer failed"))
    );
    cluster.snapshot_from(0, 1);
    cluster.settle();
    let donor = (0..2).find(|n| {
        kinds(&cluster, *n)
            .iter()
            .filter(|k| k.starts_with("donate"))
            .count()
            > *n ^ 1
    });
    cluster.snapshot_from(donor.unwrap_or(0), 2);
    cluster.settle();
    assert_eq!([0, 1, 2].map(|n| cluster.comment(n)), ["Synced"; 3]);
    cluster.assert_settled();
}

#[test]
fn the_preferred_donor_is_taken_or_none() {
    for (preference, donor) in [
        ("node1", Some(1)),
        ("nobody", None),
        ("nobody,", Some(0)),
        ("nobody,node1", Some(1)),
    ] {
        let mut cluster = Cluster::of(2);
        let joiner = cluster.start();
        let options = crate::Options {
            sst_donor: preference.into(),
            ..Default::default()
        };
        cluster.event(joiner, Event::SetOptions(options));
        cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
        cluster.join(joiner, Gtid::UNDEFINED, false);
        cluster.settle();
        let chosen = (0..2).find(|n| cluster.comment(*n) == "Donor/Desynced");
        assert_eq!(chosen, donor, "{preference}");
    }
}

#[test]
fn a_joiner_whose_donor_dies_gives_up() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    assert_eq!(cluster.comment(0), "Donor/Desynced");
    cluster.nodes[0].left = true;
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(0)));
    cluster.settle();
    assert!(
        cluster.nodes[joiner]
            .fatal
            .as_ref()
            .unwrap()
            .starts_with("Will never receive state. Need to abort. ")
    );
}

#[test]
fn a_joiner_whose_donor_fails_gives_up() {
    let mut cluster = Cluster::of(1);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    let answer = cluster
        .call(0, |ticket| Event::SstSent {
            ticket,
            gtid: Gtid::UNDEFINED,
            rcode: -32,
        })
        .unwrap();
    assert_eq!(answer.code, Code::Ok);
    cluster.settle();
    assert!(
        cluster.nodes[joiner]
            .fatal
            .as_ref()
            .unwrap()
            .contains("-32")
    );
    assert_eq!(cluster.comment(0), "Synced");
    let late = cluster
        .call(0, |ticket| Event::SstSent {
            ticket,
            gtid: Gtid::UNDEFINED,
            rcode: 0,
        })
        .unwrap();
    assert_eq!(late.code, Code::ConnFail);
}

#[test]
fn a_donor_holds_its_state_until_the_callback_has_returned() {
    let mut cluster = Cluster::of(1);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    // Until the donate callback runs.
    while !cluster.nodes[0]
        .server
        .appliers
        .iter()
        .any(|a| format!("{a:?}").contains("Donate"))
    {
        cluster.receive(0);
        for node in 0..2 {
            cluster.deliver(node);
            cluster.receive(node);
            cluster.take_work(node);
        }
        cluster.step_applier(1, 0);
        if !cluster.nodes[0]
            .server
            .appliers
            .iter()
            .any(|a| format!("{a:?}").contains("Donate"))
        {
            cluster.step_applier(0, 0);
        }
        cluster.pass(100);
    }
    let low = cluster.nodes[0].replicator.last_committed();
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    while cluster.deliver(0) || cluster.step_session(0, trx) {}
    assert_eq!(cluster.nodes[0].replicator.last_committed(), low);
    cluster.settle();
    assert_eq!(cluster.outcome(0, trx), Code::Ok);
}

#[test]
fn who_is_no_member_is_given_nothing_and_stops_nobody() {
    let mut cluster = Cluster::of(2);
    let written = cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(0, written), Code::Ok);
    // Which messages a peer gets for what it says.
    let answers = |cluster: &mut Cluster, from, message: PeerMessage| {
        let before = cluster.nodes[0].actions.len();
        let bytes = message.encode();
        cluster.event(0, peer_message(from, bytes));
        let sent = cluster.nodes[0].actions[before..].iter();
        let to_peer = sent.filter_map(|action| match action {
            Action::SendTo { to, bytes } if *to == from => PeerMessage::decode(bytes.clone()).ok(),
            _ => None,
        });
        to_peer.collect::<Vec<_>>()
    };
    let (member, stranger) = (cluster.nodes[1].incarnation, incarnation(9));
    let asks = |round| PeerMessage::SnapshotRequest { round, at_least: 0 };
    assert!(matches!(
        answers(&mut cluster, member, asks(1))[..],
        [PeerMessage::SnapshotChunk(_)]
    ));
    assert!(matches!(
        answers(&mut cluster, stranger, asks(1))[..],
        [PeerMessage::SnapshotRefused { round: 1 }]
    ));
    let pull = || PeerMessage::IstPull { from: 1 };
    assert!(matches!(
        answers(&mut cluster, member, pull())[..],
        [PeerMessage::IstChunk { .. }]
    ));
    assert_eq!(answers(&mut cluster, stranger, pull()), []);
    let part = || PeerMessage::IstPullPart { from: 1, offset: 0 };
    assert_eq!(answers(&mut cluster, stranger, part()), []);
    answers(&mut cluster, stranger, PeerMessage::FlowStop);
    let written = cluster.certify(0, "b", KeyType::Exclusive);
    cluster.settle_now();
    assert_eq!(cluster.outcome(0, written), Code::Ok, "nobody waits");
}

/// A node without a database comes into the view of two, and is connected with the first of them.
fn beside_unreached() -> (Cluster, usize) {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.event(joiner, Event::Connected(vec![incarnation(0)]));
    cluster.settle_now();
    (cluster, joiner)
}

fn receives(cluster: &Cluster, joiner: usize) -> bool {
    cluster.comment(joiner) == "Joining: receiving State Transfer"
}

#[test]
fn a_joiner_asks_for_a_state_when_it_is_connected_with_all_that_have_one() {
    let (mut cluster, joiner) = beside_unreached();
    let happened = kinds(&cluster, joiner);
    assert_eq!(happened[1..], ["sst_request"], "it is prepared");
    assert!(!receives(&cluster, joiner));
    let both = vec![incarnation(0), incarnation(1)];
    cluster.event(joiner, Event::Connected(both));
    cluster.settle_now();
    assert!(receives(&cluster, joiner));
}

#[test]
fn a_joiner_asks_when_the_member_that_it_does_not_reach_is_removed() {
    let (mut cluster, joiner) = beside_unreached();
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(1)));
    cluster.settle_now();
    assert!(receives(&cluster, joiner));
}

#[test]
fn a_joiner_waits_no_longer_than_the_group_takes_to_remove_the_dead() {
    let (mut cluster, joiner) = beside_unreached();
    let ends_ms = cluster.now_ms + Options::default().suspect_timeout_ms + 1_000;
    let deadline_ms = cluster.nodes[joiner].replicator.next_deadline_ms();
    assert_eq!(deadline_ms, Some(ends_ms));
    for (now_ms, asks) in [(ends_ms - 1, false), (ends_ms, true)] {
        cluster.now_ms = now_ms;
        cluster.event(joiner, Event::Tick);
        cluster.settle_now();
        assert_eq!(receives(&cluster, joiner), asks);
    }
}
