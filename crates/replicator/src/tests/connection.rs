//! A connection's beginning and end: the control state, a log that begins anew, a second disconnect.

use bytes::Bytes;
use trireme_certification::KeyType;
use trireme_group::{Checkpoint, Configuration, Uuid};

use super::clients::copy_new;
use super::driver::{Cluster, HISTORY, incarnation, member, peer_message};
use super::server::Happened;
use crate::peer_message::{PeerMessage, SnapshotChunk};
use crate::{Action, Code, Event, GroupAction, Gtid, HostAction, NoHistory, Replicator, Task};

#[test]
fn a_control_state_that_cannot_be_used_is_asked_for_again() {
    let mut cluster = Cluster::of(2);
    let old = cluster.nodes[0].replicator.control_snapshot();
    let old = old.expect("in step");
    let (joiner, gtid) = copy_new(&mut cluster);
    cluster.join(joiner, gtid, false);
    while cluster.deliver(joiner) {}
    cluster.nodes[0].inbox.clear();
    let garbage = Bytes::from_static(b"no control state");
    let chunk_of = |part: &Bytes, from, round, offset| {
        let (part, total) = (part.clone(), part.len() as u64);
        let bytes = PeerMessage::SnapshotChunk(SnapshotChunk {
            round,
            offset,
            total,
            part,
        })
        .encode();
        let from = incarnation(from);
        peer_message(from, bytes)
    };
    let chunk = |from, round, offset| chunk_of(&garbage, from, round, offset);
    // Of another member, of an earlier attempt, of elsewhere: nothing of it is looked at.
    for event in [chunk(1, 1, 0), chunk(0, 0, 0), chunk(0, 1, 7)] {
        cluster.event(joiner, event);
    }
    let complaints = |c: &Cluster| {
        let logs = c.nodes[joiner].logs.iter();
        logs.filter(|l| l.contains("cannot be used")).count()
    };
    assert_eq!(complaints(&cluster), 0);
    cluster.event(joiner, chunk(0, 1, 0));
    assert_eq!(complaints(&cluster), 1);
    // Node 1 is asked next, and answers with a state of before the joiner came.
    cluster.pass(60);
    cluster.nodes[1].inbox.clear();
    cluster.event(joiner, chunk_of(&old, 1, 2, 0));
    assert_eq!(cluster.comment(joiner), "Initialized");
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    // Nobody asks any more.
    cluster.event(joiner, chunk(0, 1, 0));
    assert_eq!(complaints(&cluster), 1);
    cluster.assert_settled();
}

#[test]
fn a_control_state_takes_no_more_than_its_first_part_has_said() {
    let mut cluster = Cluster::of(2);
    let (joiner, gtid) = copy_new(&mut cluster);
    cluster.join(joiner, gtid, false);
    while cluster.deliver(joiner) {}
    cluster.nodes[0].inbox.clear();
    let say = |cluster: &mut Cluster, offset, total, len| {
        let part = Bytes::from(vec![0; len]);
        let bytes = PeerMessage::SnapshotChunk(SnapshotChunk {
            round: 1,
            offset,
            total,
            part,
        })
        .encode();
        let from = incarnation(0);
        cluster.event(joiner, peer_message(from, bytes));
        let pull = cluster.nodes[joiner].replicator.transfer().pull();
        pull.expect("it has no state yet").received_bytes()
    };
    assert_eq!(say(&mut cluster, 0, 20, 21), 0, "longer than the whole");
    assert_eq!(say(&mut cluster, 0, 20, 8), 8);
    assert_eq!(say(&mut cluster, 8, 1 << 30, 8), 8, "another whole");
    assert_eq!(say(&mut cluster, 8, 20, 13), 8, "beyond its end");
    // A donor that sends nothing more is given up, whatever it says.
    for _ in 0..30 {
        say(&mut cluster, 8, 20, 0);
        cluster.pass(50);
    }
    assert_eq!(say(&mut cluster, 8, 20, 12), 0, "the next member is asked");
}

#[test]
fn who_is_alone_has_nobody_to_ask_for_the_control_state() {
    let mut cluster = Cluster::of(1);
    let (joiner, gtid) = copy_new(&mut cluster);
    let others = cluster.configuration.members.clone();
    cluster.connect(joiner, gtid, None, false);
    cluster.reset(joiner);
    cluster.reconfigure(|c| c.members = vec![member(joiner)]);
    while cluster.deliver(joiner) {}
    assert!(cluster.nodes[0].inbox.is_empty());
    assert_eq!(cluster.comment(joiner), "Initialized");
    cluster.reconfigure(|c| c.members.extend(others));
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}

#[test]
fn a_message_that_cannot_be_read_is_dropped() {
    let mut cluster = Cluster::of(2);
    let bytes = Bytes::from_static(b"no message");
    let from = incarnation(1);
    for _ in 0..100 {
        let bytes = bytes.clone();
        cluster.event(0, peer_message(from, bytes));
    }
    let lines = cluster.nodes[0].logs.iter();
    let lines = lines.filter(|line| line.contains("cannot be read"));
    assert_eq!(lines.count(), 1, "few lines, however many messages");
    cluster.settle();
    cluster.assert_settled();
}

#[test]
fn a_node_without_a_log_has_no_entries() {
    let mut out = Vec::new();
    let (from, bytes) = (incarnation(1), PeerMessage::IstPull { from: 1 }.encode());
    let event = peer_message(from, bytes);
    Cluster::of(2).nodes[0]
        .replicator
        .handle(0, event, &NoHistory, &mut out);
    let records = Vec::new();
    let bytes = PeerMessage::IstChunk { from: 1, records }.encode();
    assert_eq!(out, [Action::SendTo { to: from, bytes }]);
}

#[test]
fn a_log_that_begins_anew_where_nobody_is_connected_changes_nothing() {
    let mut replicator = Replicator::new(Default::default());
    let mut out = Vec::new();
    let event = Event::Reset(Box::<Checkpoint>::default());
    replicator.handle(0, event, &NoHistory, &mut out);
    assert_eq!(out, []);
    // Nor is there any work: a recv() thread that comes too early may go.
    let exits = [(); 2].map(|()| replicator.take_work().map(|work| work.task));
    let exit = |code| Some(Task::Exit { code });
    assert_eq!(exits, [exit(Code::Ok), exit(Code::ConnFail)]);
}

#[test]
fn a_log_that_begins_anew_ends_the_reads_that_wait_for_it() {
    let mut cluster = Cluster::of(2);
    cluster.certify(0, "a", KeyType::Exclusive);
    let ticket = 901;
    cluster.event(1, Event::SyncWait { ticket, upto: None });
    cluster.reset(1);
    let answer = cluster.nodes[1].server.take(ticket).expect("answered");
    assert_eq!(answer.code, Code::TrxFail);
}

#[test]
fn a_recovered_control_state_that_is_damaged_is_not_used() {
    let mut cluster = Cluster::of(2);
    let (joiner, local) = copy_new(&mut cluster);
    let bytes = cluster.nodes[0].replicator.control_snapshot();
    let mut damaged = bytes.expect("in step").to_vec();
    *damaged.last_mut().expect("not empty") ^= 1;
    let connect = crate::Connect {
        incarnation: incarnation(joiner),
        me: member(joiner),
        local,
        bootstrap: None,
        server_running: false,
        control: Some(damaged.into()),
        overrides: Vec::new(),
        last_action: crate::LastAction::NONE,
    };
    cluster.nodes[joiner].threads = 4;
    cluster.event(joiner, Event::Connect(Box::new(connect)));
    let logs = &cluster.nodes[joiner].logs;
    assert!(logs[0].starts_with("recovered control state cannot be used"));
    // It asks a member, as if it had none.
    cluster.reset(joiner);
    cluster.reconfigure(|c| c.members.push(member(joiner)));
    cluster.settle();
    assert_eq!(cluster.comment(joiner), "Synced");
    cluster.assert_settled();
}

/// Its own log brings it to the view that it is in; the ones on the way there are others'.
#[test]
fn views_of_before_a_process_started_are_not_its_own() {
    let mut cluster = Cluster::of(1);
    let control = cluster.nodes[0].replicator.control_snapshot();
    let next = cluster.nodes[0].next;
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.reconfigure(|c| c.members[0].incoming = "elsewhere".into());
    cluster.settle();
    let local = cluster.nodes[0].replicator.last_committed();
    // It is killed, and starts again with its log and its database.
    let me = incarnation(10);
    let member_state = trireme_group::Member {
        incarnation: me,
        ..member(0)
    };
    let connect = crate::Connect {
        incarnation: me,
        me: member_state.clone(),
        local,
        bootstrap: None,
        server_running: false,
        control,
        overrides: Vec::new(),
        last_action: crate::LastAction::NONE,
    };
    let at = &mut cluster.nodes[0];
    at.replicator = Replicator::new(Default::default());
    (at.incarnation, at.next) = (me, next);
    at.server.happened.clear();
    cluster.event(0, Event::Connect(Box::new(connect)));
    while cluster.deliver(0) {}
    assert!(
        !cluster.nodes[0]
            .actions
            .ends_with(&[Action::Host(HostAction::Admitted)])
    );
    cluster.reconfigure(|c| c.members = vec![member_state]);
    cluster.settle();
    let numbers = cluster.nodes[0].server.happened.iter();
    let numbers = numbers.filter_map(|happened| match happened {
        Happened::View(view, _) => Some(view.gtid.seqno),
        _ => None,
    });
    // The synthetic one at its database's position, and its own.
    let expected = [local.seqno, local.seqno + 1];
    assert_eq!(numbers.collect::<Vec<_>>(), expected);
    assert_eq!(cluster.comment(0), "Synced");
    cluster.assert_settled();
}

#[test]
fn a_second_disconnect_adds_nothing_while_the_first_is_under_way() {
    let mut cluster = Cluster::of(1);
    let leaves = |cluster: &mut Cluster| {
        let mut out = Vec::new();
        let replicator = &mut cluster.nodes[0].replicator;
        replicator.handle(0, Event::Disconnect, &NoHistory, &mut out);
        out
    };
    assert_eq!(leaves(&mut cluster), [Action::Group(GroupAction::Leave)]);
    assert_eq!(leaves(&mut cluster), []);
    cluster.event(0, Event::Left);
    // The last views are not shown yet.
    assert_eq!(leaves(&mut cluster), []);
    cluster.event(0, Event::Left);
    cluster.nodes[0].left = true;
    cluster.settle();
    let last = |h: &&Happened| matches!(h, Happened::View(view, _) if view.members.is_empty());
    let shown = cluster.nodes[0].server.happened.iter().filter(last).count();
    assert_eq!(shown, 1);
    assert_eq!(leaves(&mut cluster), [Action::Host(HostAction::Closed)]);
}

/// Found by the simulator: the state as of that view was kept as that of where the group's log was by then, and the
/// next process lacked what had been said in between, such as who has joined.
#[test]
fn who_takes_nothing_in_behind_the_view_it_leaves_by_keeps_no_state_of_later() {
    let mut cluster = Cluster::of(2);
    let is_kept = |cluster: &Cluster| cluster.nodes[1].replicator.control_snapshot().is_some();
    assert!(is_kept(&cluster));
    // The group still delivers to it while it leaves.
    let (now_ms, mut out) = (cluster.now_ms, Vec::new());
    let replicator = &mut cluster.nodes[1].replicator;
    replicator.handle(now_ms, Event::Disconnect, &NoHistory, &mut out);
    assert_eq!(out, [Action::Group(GroupAction::Leave)]);
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(1)));
    cluster.certify(0, "a", KeyType::Exclusive);
    assert!(is_kept(&cluster));
    while cluster.deliver(1) {}
    assert!(!is_kept(&cluster));
}

#[test]
fn only_so_many_views_are_remembered() {
    let mut cluster = Cluster::of(1);
    for number in 0..100 {
        let change = |c: &mut Configuration| c.members[0].incoming = format!("{number}");
        cluster.reconfigure(change);
    }
    cluster.settle();
    let control = cluster.nodes[0].replicator.context().control();
    assert_eq!(control.map(|c| c.views.len()), Some(64));
    cluster.assert_settled();
}

#[test]
fn who_is_bootstrapped_twice_at_one_position_still_has_the_first_override_in_its_past() {
    let mut cluster = Cluster::new();
    let node = cluster.start();
    let [first, second, later] = [11, 12, 13].map(|byte| Uuid([byte; 16]));
    cluster.nodes[node].overrides = vec![(first, 5), (second, 5), (later, 6)];
    let local = Gtid {
        uuid: HISTORY,
        seqno: 5,
    };
    cluster.connect(node, local, Some(HISTORY), false);
    cluster.reconfigure(|c| c.members.push(member(node)));
    cluster.settle();
    let known = cluster.nodes[node].replicator.overrides();
    assert_eq!(known, [first, second], "as far as the database has got");
}
