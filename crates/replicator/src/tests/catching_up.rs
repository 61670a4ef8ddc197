//! How nodes whose database has a past get what it lacks, or a snapshot if nobody has that.

use trireme_certification::KeyType;
use trireme_group::Delivery;

use super::clients::{copy, copy_new, join_and_pull, kinds};
use super::driver::{Cluster, HISTORY, incarnation, peer_message};
use crate::peer_message::PeerMessage;
use crate::{Action, Code, Event, Gtid, HostAction, LocalState, Seqno};

/// A cluster of two, and a third node whose database lacks their last write-set: its number, and where it is.
fn one_behind() -> (Cluster, usize, Gtid) {
    let mut cluster = Cluster::of(2);
    let (joiner, behind) = copy_new(&mut cluster);
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    (cluster, joiner, behind)
}

/// The logs of the two hold nothing any more.
fn nobody_has_entries(cluster: &mut Cluster) {
    for node in 0..2 {
        cluster.nodes[node].records.first = i64::MAX;
    }
}

#[test]
fn a_restarted_node_gets_the_missing_entries() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.start();
    let behind = copy(&mut cluster, joiner);
    let first = cluster.certify(0, "a", KeyType::Exclusive);
    let fails = cluster.certify(1, "a", KeyType::Exclusive);
    cluster.toi(1, 4);
    cluster.settle();
    assert_eq!(
        (cluster.outcome(0, first), cluster.outcome(1, fails)),
        (Code::Ok, Code::TrxFail)
    );
    let n = behind.seqno;
    cluster.join(joiner, behind, false);
    // Writes go on while it joins.
    cluster.certify(0, "b", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(
        kinds(&cluster, joiner),
        [
            format!("connected {}", n + 4),
            format!("view {n} at {}", n - 1),
            format!("view {} at {}", n + 4, n + 3),
            "synced".into()
        ]
    );
    assert_eq!(cluster.comment(joiner), "Synced");
    assert!(
        cluster.nodes[joiner]
            .logs
            .iter()
            .any(|l| l.contains("Receiving IST... 100.0% ("))
    );
    cluster.assert_settled();
    let trx = cluster.certify(joiner, "c", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(joiner, trx), Code::Ok);
    cluster.assert_settled();
}

#[test]
fn who_catches_up_says_how_far_it_has_come() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.start();
    let behind = copy(&mut cluster, joiner);
    for key in ["a", "b", "c"] {
        cluster.certify(0, key, KeyType::Exclusive);
    }
    cluster.settle();
    assert_eq!(cluster.status(0).progress, None, "it is in step");
    cluster.join(joiner, behind, false);
    cluster.nodes[joiner].threads = 0;
    for _ in 0..50 {
        cluster.settle_now();
        cluster.pass(500);
    }
    let progress = cluster.status(joiner).progress.expect("it catches up");
    assert_eq!((progress.done, progress.total), (0, 4));
    let told = |cluster: &Cluster, text: &str| {
        let logs = cluster.nodes[joiner].logs.iter();
        logs.filter(|line| line.contains(text)).count()
    };
    let line = "Catching up with the cluster: 0 of 4 entries (0.0 %), 0/s";
    assert_eq!(told(&cluster, line), 2, "within 25 s");
    cluster.nodes[joiner].threads = 4;
    cluster.settle();
    assert_eq!(cluster.status(joiner).progress, None);
    assert_eq!(
        told(&cluster, "Caught up with the cluster: 4 entries in "),
        1
    );
    cluster.assert_settled();
}

#[test]
fn without_a_gap_nothing_is_pulled() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.start();
    let gtid = copy(&mut cluster, joiner);
    nobody_has_entries(&mut cluster);
    cluster.join(joiner, gtid, false);
    cluster.settle();
    assert_eq!(
        cluster.comment(joiner),
        "Synced",
        "only the join view was missing, and that is known"
    );
    cluster.assert_settled();
}

#[test]
fn the_entries_come_from_the_own_segment() {
    let (mut cluster, joiner, behind) = one_behind();
    cluster.reconfigure(|configuration| {
        configuration.members[0].segment = 1;
        configuration.members[1].voter = true;
    });
    cluster.settle();
    join_and_pull(&mut cluster, joiner, behind, 1);
}

#[test]
fn a_member_without_the_entries_is_passed_over() {
    let (mut cluster, joiner, behind) = one_behind();
    cluster.nodes[0].records.first = i64::MAX;
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}

#[test]
fn if_nobody_has_them_a_snapshot_is_taken() {
    let (mut cluster, joiner, behind) = one_behind();
    nobody_has_entries(&mut cluster);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.join(joiner, behind, false);
    cluster.settle();
    assert_eq!(
        kinds(&cluster, joiner)[1..],
        ["sst_request"],
        "and no view before it"
    );
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}

/// Found by MariaDB's suite: a server that was shown what its node's own log had could only leave, and start again.
#[test]
fn a_gap_behind_what_the_own_log_has_is_found_before_anything_is_shown() {
    for others_have_it in [false, true] {
        let (mut cluster, joiner, behind) = one_behind();
        for key in ["b", "c"] {
            cluster.certify(1, key, KeyType::Exclusive);
            cluster.settle();
        }
        let own = cluster.nodes[0].records.by_seqno[&(behind.seqno + 1)].clone();
        (cluster.nodes[joiner].records.by_seqno).insert(own.seqno, own);
        if !others_have_it {
            // What they have begins above what is asked for.
            for node in 0..2 {
                cluster.nodes[node].records.first = behind.seqno + 3;
            }
        }
        cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
        cluster.join(joiner, behind, false);
        cluster.settle();
        let asked = kinds(&cluster, joiner).contains(&"sst_request".to_owned());
        assert_eq!(asked, !others_have_it);
        if asked {
            assert_eq!(kinds(&cluster, joiner).len(), 2, "and no view before it");
            let logs = &cluster.nodes[0].logs;
            let told = |line: &&String| line.contains("not found from cache, falling back to SST");
            assert_eq!(logs.iter().filter(told).count(), 1);
            cluster.snapshot_from(0, joiner);
            cluster.settle();
        }
        assert_eq!(cluster.comment(joiner), "Synced");
        cluster.assert_settled();
    }
}

/// Found by MariaDB's suite: the second entry was refused, because the other members had reported meanwhile that they have it.
#[test]
fn who_has_begun_to_give_entries_gives_the_rest() {
    let (mut cluster, joiner, behind) = one_behind();
    for key in ["b", "c"] {
        cluster.certify(1, key, KeyType::Exclusive);
    }
    cluster.settle();
    cluster.pass(5_000);
    cluster.settle(); // all cuts are reported
    let member_state = super::driver::member(joiner);
    cluster.reconfigure(|configuration| configuration.members.push(member_state));
    cluster.settle();
    let given = |cluster: &mut Cluster, from: Seqno| {
        let bytes = PeerMessage::IstPull { from }.encode();
        let peer = incarnation(joiner);
        cluster.event(0, peer_message(peer, bytes));
        let (_, answer) = cluster.nodes[joiner].inbox.pop_back().expect("an answer");
        match PeerMessage::decode(answer) {
            Ok(PeerMessage::IstChunk { records, .. }) => !records.is_empty(),
            other => panic!("{other:?}"),
        }
    };
    let second = behind.seqno + 2;
    assert!(given(&mut cluster, second));
    cluster.nodes[0].records.sized_from = Seqno::MAX;
    assert!(given(&mut cluster, second) && given(&mut cluster, second + 1));
    assert!(!given(&mut cluster, second - 1), "nobody has promised that");
    cluster.pass(15_000);
    assert!(given(&mut cluster, second + 1), "its server may be slow");
}

#[test]
fn a_running_server_beyond_everybodys_log_leaves() {
    let (mut cluster, joiner, behind) = one_behind();
    nobody_has_entries(&mut cluster);
    cluster.nodes[joiner].server.sst_request = Some(Vec::new());
    cluster.join(joiner, behind, true);
    cluster.settle();
    assert!(
        cluster.nodes[joiner]
            .logs
            .iter()
            .any(|l| l.contains("state transfer needs a restart"))
    );
    assert!(cluster.nodes[joiner].closed);
    cluster.assert_settled();
}

#[test]
fn a_partitioned_node_whose_log_was_reset_catches_up_without_a_new_connection() {
    let mut cluster = Cluster::of(3);
    cluster.nodes[2].primary = false;
    cluster.event(
        2,
        Event::NonPrimary {
            component: vec![super::driver::member(2)],
        },
    );
    cluster.settle();
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(2)));
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    let before = cluster.nodes[2].server.happened.len();
    cluster.nodes[2].primary = true;
    cluster.reset(2);
    cluster.reconfigure(|c| {
        let mut back = super::driver::member(2);
        (back.weight, back.voter) = (0, false);
        c.members.push(back);
    });
    cluster.settle();
    let views = &kinds(&cluster, 2)[before..];
    assert_eq!(
        views.len(),
        3,
        "the view without it, the one with it, synced: {views:?}"
    );
    assert_eq!(views[2], "synced");
    assert_eq!(cluster.status(2).local_state, LocalState::Synced);
    cluster.assert_settled();
}

#[test]
fn a_process_connects_again() {
    let mut cluster = Cluster::of(2);
    cluster.event(1, Event::Disconnect);
    cluster.settle();
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    assert!(cluster.nodes[1].closed);
    cluster.nodes[1].threads = 4;
    cluster.nodes[1].incarnation = incarnation(50);
    let before = cluster.nodes[1].server.happened.len();
    cluster.join(1, Gtid::UNDEFINED, true);
    cluster.settle();
    let kinds = &kinds(&cluster, 1)[before..];
    assert!(kinds[0].starts_with("connected"), "{kinds:?}");
    assert!(
        !kinds.iter().any(|k| k == "sst_request"),
        "what it has applied counts: {kinds:?}"
    );
    assert_eq!(cluster.comment(1), "Synced");
    cluster.assert_settled();
}

#[test]
fn a_database_beyond_an_unknown_fork_is_not_continued() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.start();
    copy(&mut cluster, joiner);
    cluster.reconfigure(|c| c.override_id = Some(trireme_group::Uuid([3; 16])));
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    let ahead = cluster.nodes[0].replicator.last_committed();
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.join(
        joiner,
        Gtid {
            uuid: HISTORY,
            seqno: ahead.seqno,
        },
        false,
    );
    cluster.settle();
    assert!(kinds(&cluster, joiner).contains(&"sst_request".to_string()));
}

/// Found by the simulator (seed 7000000239 of profile mistakes): the second time, the log forgot the override that the
/// database includes, and the database went on beyond the fork.
#[test]
fn a_log_that_begins_anew_again_knows_the_overrides_of_the_database() {
    for resets in [1, 2] {
        let mut cluster = Cluster::of(3);
        let component = vec![super::driver::member(2)];
        cluster.event(2, Event::NonPrimary { component });
        cluster.settle();
        // It goes on alone; the two histories have other control states at one position.
        cluster.believes = false;
        let mut alone = cluster.configuration.clone();
        alone.members.retain(|m| m.incarnation == incarnation(2));
        alone.fork_after = cluster.order.last().expect("the views").0;
        alone.override_id = Some(trireme_group::Uuid([3; 16]));
        alone.number += 1;
        cluster.append(Delivery::Configuration(alone));
        let entry = cluster.order.last().cloned().expect("just appended");
        cluster.hand(2, entry, true);
        // So do the others.
        cluster.order.pop();
        cluster.nodes[2].primary = false;
        cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(2)));
        for key in ["a", "b", "c"] {
            cluster.certify(0, key, KeyType::Exclusive);
        }
        cluster.settle();
        cluster.nodes[2].primary = true;
        (0..resets).for_each(|_| cluster.reset(2));
        cluster.reconfigure(|c| c.members.push(super::driver::member(2)));
        cluster.settle();
        let told = |action: &Action| matches!(action, Action::Host(HostAction::Log { text, .. }) if text.contains("gone on without each other"));
        assert!(cluster.nodes[2].actions.iter().any(told), "{resets}");
    }
}

#[test]
fn a_lost_answer_is_asked_for_again() {
    let (mut cluster, joiner, behind) = one_behind();
    cluster.join(joiner, behind, false);
    for _ in 0..4 {
        // Whatever was said so far is lost.
        for node in 0..3 {
            cluster.deliver(node);
        }
        for node in 0..3 {
            cluster.nodes[node].inbox.clear();
        }
        cluster.pass(1100);
    }
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}

#[test]
fn a_cluster_that_went_down_whole_comes_back_from_its_logs() {
    let mut cluster = Cluster::of(2);
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    let early = (
        cluster.nodes[1].replicator.control_snapshot().unwrap(),
        cluster.nodes[1].next,
    );
    let behind = cluster.nodes[1].replicator.last_committed();
    let (database, commits) = (
        cluster.nodes[1].server.database.clone(),
        cluster.nodes[1].server.commits.clone(),
    );
    cluster.certify(0, "b", KeyType::Exclusive);
    cluster.certify(0, "c", KeyType::Exclusive);
    cluster.settle();
    let late = (
        cluster.nodes[0].replicator.control_snapshot().unwrap(),
        cluster.order.len(),
    );
    let ahead = cluster.nodes[0].replicator.last_committed();
    // Both are killed; the logs survive, node 1's database lags behind its log.
    let records = cluster.nodes[0].records.clone();
    let ahead_db = (
        cluster.nodes[0].server.database.clone(),
        cluster.nodes[0].server.commits.clone(),
    );
    cluster.nodes.clear();
    cluster.configuration.members.clear();
    for (index, (control, next)) in [late, early].into_iter().enumerate() {
        let node = cluster.start();
        let local = if index == 0 { ahead } else { behind };
        let at = &mut cluster.nodes[node];
        at.incarnation = incarnation(10 + index);
        at.records = records.clone();
        at.next = next;
        at.threads = 4;
        (at.server.database, at.server.commits) = if index == 0 {
            ahead_db.clone()
        } else {
            (database.clone(), commits.clone())
        };
        let mut me = super::driver::member(index);
        me.incarnation = incarnation(10 + index);
        let connect = crate::Connect {
            incarnation: me.incarnation,
            me: me.clone(),
            local,
            last_action: crate::LastAction::NONE,
            bootstrap: None,
            server_running: false,
            control: Some(control),
            overrides: Vec::new(),
        };
        cluster.event(node, Event::Connect(Box::new(connect)));
        cluster.configuration.members.push(me);
    }
    cluster.reconfigure(|_| ());
    cluster.settle();
    assert_eq!([0, 1].map(|n| cluster.comment(n)), ["Synced"; 2]);
    assert!(!kinds(&cluster, 1).contains(&"sst_request".to_string()));
    let trx = cluster.certify(1, "d", KeyType::Exclusive);
    cluster.settle();
    assert_eq!(cluster.outcome(1, trx), Code::Ok);
    cluster.assert_settled();
}

#[test]
fn a_database_ahead_of_the_group_is_replaced() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.start();
    let here = copy(&mut cluster, joiner);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.join(
        joiner,
        Gtid {
            uuid: HISTORY,
            seqno: here.seqno + 100,
        },
        false,
    );
    cluster.settle();
    assert_eq!(kinds(&cluster, joiner)[1..], ["sst_request"]);
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    cluster.assert_settled();
}
