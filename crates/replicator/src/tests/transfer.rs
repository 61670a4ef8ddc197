//! State transfers that go wrong, or otherwise than usual.

use bytes::Bytes;
use trireme_certification::KeyType;
use trireme_group::{Delivery, SubmissionId, Uuid};

use super::blackout::doubts;
use super::clients::{copy_new, join_and_pull, pulls};
use super::driver::{Cluster, HISTORY, draft, incarnation, peer_message};
use super::server::{Applier, Happened};
use crate::membership::CANCELED;
use crate::message::Message;
use crate::peer_message::PeerMessage;
use crate::{Action, Code, Event, GroupAction, Gtid, HostAction, Recorded, Seqno, Task};

/// Two members; a third lacks `missing` write-sets, and its first pull is on its way to node 0.
pub fn pulling(missing: usize) -> (Cluster, usize, Seqno) {
    let mut cluster = Cluster::of(2);
    let (joiner, behind) = copy_new(&mut cluster);
    for _ in 0..missing {
        cluster.certify(0, "a", KeyType::Exclusive);
        cluster.settle();
    }
    join_and_pull(&mut cluster, joiner, behind, 0);
    (cluster, joiner, behind.seqno + 1)
}

/// An empty node whose server answers this to sst_request.
fn asking(request: Option<&[u8]>) -> Cluster {
    let mut cluster = Cluster::of(1);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = request.map(<[u8]>::to_vec);
    cluster.settle();
    cluster
}

fn asked_for_snapshot(cluster: &Cluster, node: usize) -> bool {
    cluster.nodes[node]
        .server
        .happened
        .contains(&Happened::SstRequest)
}

fn fatal(cluster: &Cluster, node: usize) -> &str {
    cluster.nodes[node].fatal.as_deref().expect("fatal")
}

/// Its server may have been ready before, and not know yet that the history that it still applies is dropped.
#[test]
fn a_read_of_a_node_that_awaits_a_snapshot_fails() {
    let mut cluster = asking(Some(b"rsync"));
    let ticket = 999;
    cluster.event(1, Event::SyncWait { ticket, upto: None });
    let answer = cluster.nodes[1].server.take(ticket).expect("at once");
    assert_eq!(answer.code, Code::TrxFail);
}

#[test]
fn members_that_never_answer_a_pull_are_given_up() {
    let (mut cluster, joiner, _) = pulling(1);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    for waits_ms in [1, 1, 2, 2, 4, 4, 8, 8, 16].map(|seconds| seconds * 1000) {
        let asked = |cluster: &Cluster| pulls(cluster, 0).len() + pulls(cluster, 1).len();
        assert_eq!(asked(&cluster), 1, "one after the other");
        for node in 0..2 {
            cluster.nodes[node].inbox.clear();
        }
        cluster.pass(waits_ms - 1);
        assert_eq!(asked(&cluster), 0, "it may still answer");
        cluster.pass(1);
    }
    cluster.settle();
    assert!(asked_for_snapshot(&cluster, joiner));
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}

#[test]
fn a_chunk_is_taken_as_far_as_it_fits() {
    let record = |seqno, depends_on, payload| Recorded {
        position: 1,
        seqno,
        depends_on,
        failed: false,
        delivery: Delivery::Submission {
            id: SubmissionId {
                incarnation: incarnation(0),
                number: 1,
            },
            payload,
        },
    };
    let write_set = || draft(1, "a", KeyType::Exclusive, b"wrong").finish(0, 0, -1);
    let garbage = Bytes::from_static(b"no message");
    let no_write_set = Message::Joined.encode();
    let (cluster, _, next) = pulling(2);
    drop(cluster);
    for (what, from, records) in [
        ("unasked", 1, vec![record(next, next - 1, write_set())]),
        ("nothing", 0, vec![]),
        ("another", 0, vec![record(next + 1, next, write_set())]),
        ("itself", 0, vec![record(next, next, write_set())]),
        ("garbage", 0, vec![record(next, next - 1, garbage)]),
        (
            "no write-set",
            0,
            vec![record(next, next - 1, no_write_set)],
        ),
    ] {
        let (mut cluster, joiner, next) = pulling(2);
        let bytes = PeerMessage::IstChunk {
            from: next,
            records,
        }
        .encode();
        cluster.nodes[0].inbox.clear();
        cluster.event(joiner, peer_message(incarnation(from), bytes));
        // Who has nothing that fits is not asked again; who was not asked is not heard.
        let asked = pulls(&cluster, 1);
        assert_eq!(asked.is_empty(), what == "unasked", "{what}");
        cluster.settle();
        assert_eq!(cluster.comment(joiner), "Synced", "{what}");
        cluster.assert_settled();
    }
}

#[test]
fn a_snapshot_that_nobody_can_complete_is_useless() {
    let mut cluster = Cluster::of(1);
    let (joiner, behind) = copy_new(&mut cluster);
    cluster.certify(0, "c", KeyType::Exclusive);
    cluster.settle();
    cluster.nodes[0].records.first = Seqno::MAX;
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.join(joiner, Gtid::UNDEFINED, false);
    cluster.settle();
    cluster.call(joiner, |ticket| Event::SstReceived {
        ticket,
        gtid: behind,
        rcode: 0,
    });
    cluster.call(0, |ticket| Event::SstSent {
        ticket,
        gtid: behind,
        rcode: 0,
    });
    cluster.settle();
    let text = format!("The snapshot ends at {}, and no member has", behind.seqno);
    assert!(fatal(&cluster, joiner).contains(&text));
    assert_eq!(cluster.comment(joiner), "Joining: State Transfer failed");
}

#[test]
fn a_database_that_its_administrator_vouches_for_is_taken_as_it_is() {
    let mut cluster = Cluster::of(1);
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    let (joiner, _) = copy_new(&mut cluster);
    cluster.nodes[joiner].server.sst_request = Some(b"trivial\0".to_vec());
    cluster.join(joiner, Gtid::UNDEFINED, false);
    cluster.settle();
    assert_eq!(
        [0, 1].map(|node| cluster.comment(node)),
        ["Synced", "Synced"]
    );
    let donates = |h: &Happened| matches!(h, Happened::Donate(_));
    assert!(!cluster.nodes[0].server.happened.iter().any(donates));
    cluster.assert_settled();
}

#[test]
fn a_server_that_cannot_prepare_gives_up() {
    let cluster = asking(None);
    let expected = "The server could not prepare for a state transfer";
    assert!(fatal(&cluster, 1).contains(expected));
}

#[test]
fn a_snapshot_of_another_history_or_none_is_fatal() {
    let there = |seqno| Gtid {
        uuid: HISTORY,
        seqno,
    };
    let other = Gtid {
        uuid: Uuid([9; 16]),
        seqno: 2,
    };
    for (gtid, rcode, text) in [
        (there(2), -32, "State transfer failed: -32"),
        (there(-1), 0, "State transfer failed: 0"),
        (other, 0, "State transfer brought"),
    ] {
        let mut cluster = asking(Some(b"rsync"));
        cluster.call(1, |ticket| Event::SstReceived {
            ticket,
            gtid,
            rcode,
        });
        cluster.call(0, |ticket| Event::SstSent {
            ticket,
            gtid: there(2),
            rcode: 0,
        });
        cluster.settle();
        assert!(fatal(&cluster, 1).contains(text), "{text}");
        assert!(
            !cluster.nodes[1]
                .actions
                .contains(&Action::Host(HostAction::MarkSafe))
        );
    }
}

#[test]
fn a_server_that_ends_itself_within_a_transfer_leaves() {
    let mut cluster = asking(Some(b"rsync"));
    let (gtid, rcode) = (Gtid::UNDEFINED, CANCELED);
    cluster.call(1, |ticket| Event::SstReceived {
        ticket,
        gtid,
        rcode,
    });
    assert_eq!(cluster.nodes[1].fatal, None);
    let leave = Action::Group(GroupAction::Leave);
    assert!(cluster.nodes[1].actions.contains(&leave));
}

#[test]
fn a_snapshot_that_was_not_asked_for_is_refused() {
    let mut cluster = Cluster::of(1);
    let gtid = cluster.nodes[0].replicator.last_committed();
    let answer = cluster.call(0, |ticket| Event::SstReceived {
        ticket,
        gtid,
        rcode: 0,
    });
    assert_eq!(answer.map(|a| a.code), Some(Code::ConnFail));
    assert_eq!(cluster.comment(0), "Synced");
}

#[test]
fn a_donor_that_sent_a_state_of_another_history_has_failed() {
    let mut cluster = asking(Some(b"rsync"));
    cluster.call(0, |ticket| Event::SstSent {
        ticket,
        gtid: Gtid::UNDEFINED,
        rcode: 0,
    });
    cluster.settle();
    assert!(fatal(&cluster, 1).contains("failed: -125"));
}

#[test]
fn a_donor_that_could_not_begin_has_failed() {
    let mut cluster = Cluster::of(1);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    let donate = loop {
        let appliers = &mut cluster.nodes[0].server.appliers;
        if let Some(Applier::Started(work)) = appliers.last() {
            if matches!(work.task, Task::Donate { .. }) {
                let id = work.id;
                appliers.pop();
                break id;
            }
        }
        let low = cluster.nodes[0].replicator.last_committed().seqno;
        if let Some(event) = cluster.nodes[0].server.step_applier(0, low) {
            cluster.event(0, event);
        }
        cluster.step_applier(joiner, 0);
        for node in 0..2 {
            cluster.deliver(node);
            cluster.receive(node);
            cluster.take_work(node);
        }
        cluster.pass(10);
        assert!(cluster.now_ms < 60_000, "never asked to donate");
    };
    let done = |work| Event::Donated { work, ok: false };
    cluster.event(0, done(donate));
    // Of an earlier connection: not this donation's.
    cluster.event(0, done(donate));
    cluster.settle();
    assert!(fatal(&cluster, joiner).contains("failed: -125"));
    assert_eq!(cluster.comment(0), "Synced");
    let failures = cluster.nodes[0].logs.iter();
    let failures =
        failures.filter(|l| l.contains("State transfer to 1.0 (node1) failed: this server"));
    assert_eq!(failures.count(), 1);
}

#[test]
fn a_donor_that_is_gone_when_the_joiner_is_back_in_step_is_lost() {
    let mut cluster = Cluster::of(2);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    cluster.settle();
    assert_eq!(cluster.comment(0), "Donor/Desynced");
    cluster.nodes[0].left = true;
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(0)));
    while cluster.deliver(1) {}
    cluster.reset(joiner);
    cluster.reconfigure(|_| ());
    cluster.settle();
    assert!(fatal(&cluster, joiner).contains("is no longer in the group"));
}

/// Seed 16045093: who was cut off had not heard of it, and waited for ever.
#[test]
fn a_donor_that_has_failed_when_the_joiner_is_back_in_step_is_not_waited_for() {
    for rcode in [0, -5] {
        let mut cluster = Cluster::of(2);
        let joiner = cluster.add(Gtid::UNDEFINED);
        cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
        cluster.settle();
        let all = cluster.configuration.members.clone();
        cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(joiner)));
        while cluster.deliver(0) | cluster.deliver(1) {}
        let gtid = cluster.nodes[0].replicator.last_committed();
        cluster.call(0, |ticket| Event::SstSent {
            ticket,
            gtid,
            rcode,
        });
        while cluster.deliver(0) | cluster.deliver(1) {}
        cluster.reset(joiner);
        cluster.reconfigure(|c| c.members = all);
        cluster.settle();
        let gave_up = cluster.nodes[joiner].fatal.is_some();
        assert_eq!(gave_up, rcode < 0, "{rcode}");
    }
}

/// The server has been told to give up: a log that begins anew does not revive the transfer.
#[test]
fn a_transfer_that_was_given_up_stays_so() {
    let mut cluster = asking(None);
    cluster.nodes[1].fatal = None;
    cluster.reset(1);
    cluster.reconfigure(|_| ());
    cluster.settle();
    assert_eq!(cluster.comment(1), "Joining: State Transfer failed");
    assert!(asked_for_snapshot(&cluster, 1));
    assert_eq!(cluster.nodes[1].server.happened.len(), 2, "not asked again");
}

#[test]
fn a_server_that_prepares_itself_while_its_node_leaves_is_not_heard() {
    let mut cluster = Cluster::of(1);
    let joiner = cluster.add(Gtid::UNDEFINED);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    let asked = |c: &Cluster| {
        let appliers = c.nodes[joiner].server.appliers.iter();
        let mut tasks = appliers.filter_map(|a| match a {
            Applier::Started(work) => Some(&work.task),
            _ => None,
        });
        tasks.any(|task| matches!(task, Task::SstRequest))
    };
    while !asked(&cluster) {
        cluster.step_applier(joiner, 0);
        for node in 0..2 {
            cluster.deliver(node);
            cluster.receive(node);
        }
        cluster.take_work(joiner);
        cluster.pass(10);
        assert!(cluster.now_ms < 60_000, "never asked");
    }
    cluster.event(joiner, Event::Disconnect);
    assert!(!cluster.nodes[joiner].closed, "a callback is under way");
    cluster.settle();
    assert!(cluster.nodes[joiner].closed);
    assert!(
        !cluster.nodes[joiner]
            .actions
            .contains(&Action::Host(HostAction::MarkUnsafe))
    );
}

/// The second of two, found inconsistent while its server runs: it has left.
fn outvoted() -> Cluster {
    let mut cluster = Cluster::of(2);
    let seqno = cluster.nodes[0].replicator.last_seqno().expect("in step") + 1;
    let error = b"disk full".to_vec();
    cluster.nodes[1].server.errors.insert(seqno, error);
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    assert!(cluster.nodes[1].closed);
    cluster
}

/// It connects again under another name; its server asks with this, or (empty) takes no snapshot.
fn connect_again(cluster: &mut Cluster, name: usize, request: &[u8]) {
    let node = &mut cluster.nodes[1];
    node.server.happened.clear();
    node.incarnation = incarnation(name);
    node.server.sst_request = Some(request.to_vec());
    cluster.join(1, Gtid::UNDEFINED, true);
    cluster.settle();
}

#[test]
fn a_node_that_was_inconsistent_takes_a_snapshot_though_its_server_runs() {
    let mut cluster = outvoted();
    connect_again(&mut cluster, 50, b"rsync");
    assert!(asked_for_snapshot(&cluster, 1));
    cluster.snapshot_from(0, 1);
    cluster.settle();
    assert_eq!(cluster.comment(1), "Synced");
    cluster.assert_settled();
}

/// Found in the simulator: from the second connection on, the database counted as being where the write-sets
/// that were not applied had passed.
#[test]
fn a_node_that_was_inconsistent_takes_nothing_but_a_snapshot_however_often_it_connects() {
    let mut cluster = outvoted();
    let commits = cluster.nodes[1].server.commits.clone();
    for name in [50, 51, 52] {
        connect_again(&mut cluster, name, b"");
        assert!(asked_for_snapshot(&cluster, 1), "connection {name}");
        assert!(cluster.nodes[1].closed);
        assert_eq!(cluster.nodes[1].server.commits, commits);
        cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(name)));
        cluster.certify(0, "b", KeyType::Exclusive);
        cluster.settle();
    }
    connect_again(&mut cluster, 53, b"rsync");
    cluster.snapshot_from(0, 1);
    cluster.settle();
    assert_eq!(cluster.comment(1), "Synced");
    cluster.assert_settled();
}

/// Otherwise grastate.dat would name no history for the rest of the process's life.
#[test]
fn a_snapshot_ends_the_marks_of_the_connections_before() {
    let mut cluster = outvoted();
    let before = doubts(&cluster, 1);
    connect_again(&mut cluster, 50, b"mysqldump");
    cluster.event(1, Event::Disconnect);
    cluster.settle();
    assert!(cluster.nodes[1].closed);
    assert_eq!(doubts(&cluster, 1), before + 1);
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(50)));
    let gtid = cluster.nodes[0].replicator.last_committed();
    cluster.call(0, |ticket| Event::SstSent {
        ticket,
        gtid,
        rcode: -32,
    });
    cluster.settle();
    connect_again(&mut cluster, 51, b"mysqldump");
    cluster.snapshot_from(0, 1);
    cluster.settle();
    assert_eq!(cluster.comment(1), "Synced");
    assert_eq!(doubts(&cluster, 1), 0);
    cluster.assert_settled();
}

#[test]
fn a_server_prepares_itself_once() {
    let mut cluster = asking(Some(b"rsync"));
    let request = Some(Bytes::from_static(b"again"));
    cluster.event(1, Event::SstRequested { work: 0, request });
    cluster.settle();
    let marks = cluster.nodes[1].actions.iter();
    let marks = marks
        .filter(|a| **a == Action::Host(HostAction::MarkUnsafe))
        .count();
    assert_eq!(marks, 1);
    cluster.snapshot_from(0, 1);
    cluster.settle();
    assert_eq!(cluster.comment(1), "Synced");
}

/// Found with real servers: the view without a majority came while entries were being pulled, or a database was in
/// doubt, and was shown after the snapshot, which had brought the primary view behind it.
#[test]
fn a_view_from_before_a_snapshots_view_is_not_shown_after_it() {
    let (mut cluster, joiner, _) = pulling(2);
    cluster.nodes[joiner].server.sst_request = Some(b"rsync".to_vec());
    let component = vec![super::driver::member(joiner)];
    cluster.event(joiner, Event::NonPrimary { component });
    cluster.reconfigure(|c| c.members[0].incoming = "elsewhere".into());
    for node in 0..3 {
        cluster.nodes[node].records.first = Seqno::MAX;
    }
    cluster.settle();
    cluster.snapshot_from(0, joiner);
    cluster.settle();
    let happened = &cluster.nodes[joiner].server.happened;
    let lost = |h: &&Happened| matches!(h, Happened::View(view, _) if !view.primary);
    assert_eq!(happened.iter().find(lost), None);
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}
