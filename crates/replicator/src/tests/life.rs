//! Views, pause, desync, flow control, the end of a connection.

use trireme_certification::KeyType;
use trireme_group::{Fate, SubmissionId};

use super::driver::{Cluster, HISTORY, member};
use super::server::{Applier, Happened, Toi};
use crate::{
    Action, Code, Event, GroupAction, Gtid, HostAction, LocalState, NoHistory, Options, Task,
};

fn views(cluster: &Cluster, node: usize) -> Vec<(bool, i64, usize)> {
    let happened = cluster.nodes[node].server.happened.iter();
    happened
        .filter_map(|h| match h {
            Happened::View(view, _) => Some((view.primary, view.gtid.seqno, view.members.len())),
            _ => None,
        })
        .collect()
}

#[test]
fn a_bootstrap_shows_connected_view_synced() {
    let mut cluster = Cluster::new();
    cluster.found();
    let happened = &cluster.nodes[0].server.happened;
    assert!(
        matches!(&happened[0], Happened::Connected(v) if v.gtid.seqno == 1 && v.my_index == Some(0))
    );
    assert!(matches!(&happened[1], Happened::View(v, 0) if v.gtid.seqno == 1 && v.primary));
    assert_eq!(happened[2..], [Happened::Synced]);
    assert!(
        cluster.nodes[0]
            .actions
            .contains(&Action::Host(HostAction::Admitted))
    );
    let saved = Action::Host(HostAction::SaveState {
        gtid: Gtid {
            uuid: HISTORY,
            seqno: -1,
        },
        safe_to_bootstrap: true,
    });
    assert!(cluster.nodes[0].actions.contains(&saved));
    let status = cluster.status(0);
    assert_eq!(
        (status.local_state, status.local_state_comment),
        (LocalState::Synced, "Synced")
    );
    assert_eq!(status.cluster_weight, 1);
}

#[test]
fn a_bootstrap_continues_its_history() {
    let mut cluster = Cluster::new();
    let node = cluster.start();
    cluster.connect(
        node,
        Gtid {
            uuid: HISTORY,
            seqno: 41,
        },
        Some(HISTORY),
        false,
    );
    cluster.nodes[node].server.commits = (1..=41).collect();
    cluster.reconfigure(|c| c.members.push(member(0)));
    cluster.settle();
    assert_eq!(views(&cluster, 0), [(true, 42, 1)]);
}

#[test]
fn weights_alone_are_no_view() {
    let mut cluster = Cluster::of(2);
    let before = (views(&cluster, 0), cluster.nodes[0].replicator.last_seqno());
    cluster.configuration.members[0].weight = 9;
    cluster.configuration.number -= 1;
    cluster.reconfigure(|_| ());
    cluster.settle();
    assert_eq!(
        (views(&cluster, 0), cluster.nodes[0].replicator.last_seqno()),
        before
    );
    assert_eq!(cluster.status(0).cluster_weight, 9);
}

#[test]
fn nothing_overtakes_a_view() {
    let mut cluster = Cluster::of(2);
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.reconfigure(|c| c.members[0].incoming = "elsewhere".into());
    cluster.certify(0, "b", KeyType::Exclusive);
    while cluster.deliver(1) {}
    assert!(cluster.take_work(1));
    assert!(
        !cluster.take_work(1),
        "the view waits for the write-set before it"
    );
    while !cluster.nodes[1].server.appliers.is_empty() {
        cluster.step_applier(1, 0);
    }
    assert!(cluster.take_work(1));
    assert!(
        matches!(&cluster.nodes[1].server.appliers[0], Applier::Started(w) if matches!(w.task, Task::View(_)))
    );
    assert!(
        !cluster.take_work(1),
        "the write-set after the view waits for it"
    );
    let last = cluster.nodes[1]
        .records
        .by_seqno
        .last_key_value()
        .unwrap()
        .1;
    assert_eq!(
        last.depends_on,
        last.seqno - 1,
        "also when it is applied from the log"
    );
    cluster.settle();
    cluster.assert_settled();
}

#[test]
fn a_pause_stands_still_at_a_seqno() {
    let mut cluster = Cluster::of(2);
    let open = cluster.certify(0, "a", KeyType::Exclusive);
    cluster.deliver(0);
    let ticket = 999;
    cluster.event(0, Event::Pause { ticket });
    let later = cluster.certify(0, "b", KeyType::Exclusive);
    while cluster.deliver(0) {}
    assert!(
        cluster.nodes[0].server.take(ticket).is_none(),
        "a transaction is open"
    );
    cluster.settle();
    let answer = cluster.nodes[0]
        .server
        .take(ticket)
        .expect("all that was certified is released");
    assert_eq!(answer.gtid, cluster.nodes[0].replicator.last_committed());
    assert_eq!(cluster.outcome(0, open), Code::Ok);
    // Found by the simulator: a crash may leave the database behind the position of a pause, which must not be believed
    // then.
    let saved = |action: &&Action| matches!(action, Action::Host(HostAction::SaveState { gtid, .. }) if gtid.seqno >= 0);
    assert_eq!(cluster.nodes[0].actions.iter().find(saved), None);
    let trx = &cluster.nodes[0].server.sessions[&later].0;
    assert!(
        matches!(trx, super::server::Session::Certifying(_)),
        "{trx:?}"
    );
    cluster.call(0, |ticket| Event::Resume { ticket }).unwrap();
    cluster.settle();
    assert_eq!(cluster.outcome(0, later), Code::Ok);
    cluster.assert_settled();
}

#[test]
fn a_pause_does_not_keep_a_victim_from_its_place_in_the_order() {
    let mut cluster = Cluster::of(2);
    cluster.certify(1, "a", KeyType::Exclusive);
    let victim = cluster.certify(0, "b", KeyType::Exclusive);
    cluster.deliver(0);
    cluster.take_work(0);
    let lag = |cluster: &Cluster| (cluster.status(0).lag_seqnos, cluster.status(0).lag_ms);
    cluster.pass(70);
    let (seqnos, ms) = lag(&cluster);
    assert!(seqnos > 0 && (70..=80).contains(&ms), "{seqnos} {ms}");
    // The applier of "a" needs the victim's locks: until the victim has rolled back it cannot go on.
    assert_eq!(cluster.abort(0, victim, 5), Code::Ok);
    let ticket = 999;
    cluster.event(0, Event::Pause { ticket });
    cluster.deliver(0);
    let answered = cluster.step_session(0, victim);
    assert!(
        answered,
        "certify() must return, else the applier waits for ever"
    );
    cluster.settle();
    assert!(cluster.nodes[0].server.take(ticket).is_some());
    assert_eq!(cluster.outcome(0, victim), Code::Ok);
    assert_eq!(lag(&cluster), (0, 0));
}

#[test]
fn desync_is_counted_and_resync_ends_it() {
    let mut cluster = Cluster::of(2);
    for _ in 0..2 {
        let ticket = cluster.nodes[0].server.ticket();
        cluster.event(0, Event::Desync { ticket });
        cluster.settle();
        assert_eq!(cluster.nodes[0].server.take(ticket).unwrap().code, Code::Ok);
    }
    assert_eq!(
        (cluster.comment(0), cluster.status(0).desync_count),
        ("Donor/Desynced", 2)
    );
    cluster.call(0, |ticket| Event::Resync { ticket }).unwrap();
    cluster.settle();
    assert_eq!(
        (cluster.comment(0), cluster.status(0).desync_count),
        ("Donor/Desynced", 1)
    );
    let synced = |c: &Cluster| {
        c.nodes[0]
            .server
            .happened
            .iter()
            .filter(|h| **h == Happened::Synced)
            .count()
    };
    let before = synced(&cluster);
    cluster.call(0, |ticket| Event::Resync { ticket }).unwrap();
    cluster.settle();
    assert_eq!(
        (cluster.comment(0), synced(&cluster)),
        ("Synced", before + 1)
    );
}

#[test]
fn a_long_queue_stops_the_writers_until_it_is_short() {
    let mut cluster = Cluster::of(2);
    cluster.event(
        1,
        Event::SetOptions(Options {
            fc_limit: 2,
            ..Options::default()
        }),
    );
    cluster.nodes[1].threads = 0;
    for key in ["a", "b", "c", "d"] {
        cluster.certify(0, key, KeyType::Exclusive);
    }
    for _ in 0..3 {
        cluster.settle_now();
        cluster.pass(100);
    }
    let status = cluster.status(0);
    assert!(status.flow_control_active && status.flow_control_recv == 1);
    assert!(cluster.status(1).flow_control_requested);
    let held = cluster.certify(0, "e", KeyType::Exclusive);
    let victim = cluster.certify(0, "f", KeyType::Exclusive);
    let submitted = cluster.last_submission(0);
    assert_eq!(cluster.abort(0, victim, -1), Code::Ok);
    cluster.step_session(0, victim);
    assert_eq!(
        cluster.outcome(0, victim),
        Code::ConnFail,
        "it was not sent: a definite failure"
    );
    cluster.nodes[1].threads = 4;
    cluster.settle();
    assert!(cluster.last_submission(0) > submitted);
    assert_eq!(cluster.outcome(0, held), Code::Ok);
    assert!(cluster.status(0).flow_control_paused_ns > 0);
    cluster.assert_settled();
}

#[test]
fn a_stop_lapses_with_silence() {
    let mut cluster = Cluster::of(2);
    cluster.event(
        1,
        Event::SetOptions(Options {
            fc_limit: 0,
            ..Options::default()
        }),
    );
    cluster.nodes[1].threads = 0;
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.outlast_a_stumble();
    assert!(cluster.status(0).flow_control_active);
    let deadline = cluster.nodes[0].replicator.next_deadline_ms().unwrap();
    assert!(deadline <= cluster.now_ms + 200);
    // Node 1 is paused: it says nothing more.
    let held = cluster.certify(0, "b", KeyType::Exclusive);
    cluster.now_ms += 201;
    cluster.event(0, Event::Tick);
    while cluster.deliver(0) || cluster.step_session(0, held) {}
    assert_eq!(cluster.outcome(0, held), Code::Ok);
}

#[test]
fn without_a_majority_nothing_is_accepted() {
    let mut cluster = Cluster::of(2);
    let open = cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    cluster.nodes[0].primary = false;
    cluster.event(
        0,
        Event::NonPrimary {
            component: vec![member(0)],
        },
    );
    let trx = cluster.certify(0, "k", KeyType::Exclusive);
    cluster.step_session(0, trx);
    assert_eq!(
        (cluster.outcome(0, open), cluster.outcome(0, trx)),
        (Code::Ok, Code::ConnFail)
    );
    let read = cluster
        .call(0, |ticket| Event::SyncWait { ticket, upto: None })
        .unwrap();
    assert_eq!(read.code, Code::TrxFail);
    let desync = cluster.call(0, |ticket| Event::Desync { ticket }).unwrap();
    assert_eq!(desync.code, Code::TrxFail);
    cluster.settle();
    let last = cluster.nodes[0].replicator.last_committed().seqno;
    assert_eq!(views(&cluster, 0).last(), Some(&(false, last, 1)));
    assert_eq!(cluster.status(0).local_state, LocalState::Initialized);
    // The majority comes back: a new view, and synced again.
    cluster.nodes[0].primary = true;
    let synced = cluster.nodes[0]
        .server
        .happened
        .iter()
        .filter(|h| **h == Happened::Synced)
        .count();
    cluster.reconfigure(|_| ());
    cluster.settle();
    assert_eq!(cluster.comment(0), "Synced");
    let again = cluster.nodes[0]
        .server
        .happened
        .iter()
        .filter(|h| **h == Happened::Synced)
        .count();
    assert_eq!(again, synced + 1);
    cluster.assert_settled();
}

#[test]
fn a_disconnect_wakes_everybody_and_ends_with_the_final_view() {
    let mut cluster = Cluster::of(2);
    let done = cluster.certify(0, "a", KeyType::Exclusive);
    cluster.deliver(0);
    let flying = cluster.certify(0, "b", KeyType::Exclusive);
    cluster.toi(0, 3);
    let pause = cluster.nodes[0].server.ticket();
    cluster.event(0, Event::Pause { ticket: pause });
    cluster.event(0, Event::Disconnect);
    assert_eq!(
        cluster.nodes[0].server.take(pause).unwrap().code,
        Code::ConnFail
    );
    cluster.settle();
    assert_eq!(cluster.outcome(0, done), Code::Ok);
    assert_eq!(cluster.outcome(0, flying), Code::NodeFail);
    assert_eq!(
        cluster.nodes[0].server.tois[&3].0,
        Toi::Done(Code::ConnFail)
    );
    let last = cluster.nodes[0].replicator.last_committed().seqno;
    let shown = views(&cluster, 0);
    assert_eq!(
        shown[shown.len() - 2..],
        [(false, last, 1), (false, last, 0)]
    );
    let exits: Vec<_> = cluster.nodes[0]
        .server
        .happened
        .iter()
        .filter(|h| matches!(h, Happened::Exit(_)))
        .cloned()
        .collect();
    assert_eq!(exits[0], Happened::Exit(Code::Ok));
    assert_eq!(exits[1..], vec![Happened::Exit(Code::ConnFail); 3]);
    assert!(cluster.nodes[0].closed);
    let saved = cluster.nodes[0]
        .actions
        .iter()
        .rev()
        .find(|a| matches!(a, Action::Host(HostAction::SaveState { .. })));
    let gtid = Gtid {
        uuid: HISTORY,
        seqno: last,
    };
    assert_eq!(
        saved,
        Some(&Action::Host(HostAction::SaveState {
            gtid,
            safe_to_bootstrap: false
        }))
    );
    // A second disconnect() is harmless.
    cluster.nodes[0].closed = false;
    cluster.event(0, Event::Disconnect);
    assert!(cluster.nodes[0].closed);
    cluster.assert_settled();
}

#[test]
fn a_desynced_member_still_holds_back_the_floor() {
    let mut cluster = Cluster::of(2);
    let ticket = cluster.nodes[1].server.ticket();
    cluster.event(1, Event::Desync { ticket });
    cluster.settle();
    cluster.nodes[1].threads = 0;
    let low = cluster.nodes[1].replicator.last_committed().seqno;
    let floor = |c: &Cluster| {
        c.nodes[0]
            .replicator
            .context()
            .control()
            .unwrap()
            .certification
            .floor()
    };
    for _ in 0..10 {
        cluster.certify(0, "k", KeyType::Exclusive);
        cluster.settle();
    }
    assert_eq!(floor(&cluster), low);
    cluster.nodes[1].threads = 1;
    cluster.settle();
    assert!(floor(&cluster) >= low + 10);
}

/// Found with two real servers: a node that the group no longer took anything from said Joined
/// again within the same call, for ever, with the lock held.
#[test]
fn a_refused_control_message_is_not_said_again_at_once() {
    let mut cluster = Cluster::new();
    cluster.found();
    cluster.call(0, |ticket| Event::Desync { ticket });
    cluster.settle();
    let replicator = &mut cluster.nodes[0].replicator;
    let submitted = |out: &[Action]| {
        let numbers = out.iter().filter_map(|action| match action {
            Action::Group(GroupAction::Submit { number, .. }) => Some(*number),
            _ => None,
        });
        numbers.collect::<Vec<_>>()
    };
    let now = 1_000_000;
    let mut out = Vec::new();
    replicator.handle(now, Event::Resync { ticket: 900 }, &NoHistory, &mut out);
    let [number] = submitted(&out)[..] else {
        panic!("a resync is submitted: {out:?}");
    };
    let failed = |number| Event::Failed {
        id: SubmissionId {
            incarnation: member(0).incarnation,
            number,
        },
        fate: Fate::Withdrawn,
    };
    out.clear();
    replicator.handle(now, failed(number), &NoHistory, &mut out);
    assert_eq!(submitted(&out), []);
    let again = replicator
        .next_deadline_ms()
        .expect("it will be said again");
    assert!((now + 1..=now + 1_000).contains(&again), "{again}");
    replicator.handle(now + 200, Event::Tick, &NoHistory, &mut out);
    assert_eq!(submitted(&out), [number + 1]);
}
