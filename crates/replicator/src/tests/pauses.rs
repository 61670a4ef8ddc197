//! What comes while the server holds its node still (server-contract.md#pause).

use trireme_certification::KeyType;
use trireme_group::{Delivery, Uuid};

use super::clients::kinds;
use super::driver::{Cluster, HISTORY, incarnation, member};
use super::server::Applier;
use crate::{Event, Gtid, Task};

/// Nodes of which the second is desynced and held still, as by FLUSH TABLES WITH READ LOCK.
fn held(count: usize) -> Cluster {
    let mut cluster = Cluster::of(count);
    hold_still(&mut cluster);
    cluster
}

fn hold_still(cluster: &mut Cluster) {
    let ticket = cluster.nodes[1].server.ticket();
    cluster.event(1, Event::Desync { ticket });
    cluster.settle();
    let paused = cluster.call(1, |ticket| Event::Pause { ticket });
    assert!(paused.is_some(), "nothing is under way");
}

/// The others give it up, and it sees itself alone.
fn cut_off(cluster: &mut Cluster) {
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(1)));
    let component = vec![member(1)];
    cluster.event(1, Event::NonPrimary { component });
}

/// What an idle recv() thread gets; None: nothing.
fn next_task(cluster: &mut Cluster) -> Option<Task> {
    let work = cluster.nodes[1].replicator.take_work()?;
    let task = work.task.clone();
    cluster.nodes[1]
        .server
        .appliers
        .push(Applier::Started(work));
    Some(task)
}

fn is_non_primary(task: Option<Task>) -> bool {
    matches!(task, Some(Task::View(view)) if !view.primary)
}

#[test]
fn the_loss_of_the_primary_component_is_shown_when_the_server_has_let_go() {
    for reset in [false, true] {
        let mut cluster = held(2);
        cut_off(&mut cluster);
        cluster.certify(0, "a", KeyType::Exclusive);
        if reset {
            cluster.settle();
            cluster.reset(1);
        }
        assert_eq!(next_task(&mut cluster), None, "reset: {reset}");
        assert_eq!(cluster.comment(1), "Initialized");
        cluster.reconfigure(|c| c.members.push(member(1)));
        cluster.settle();
        assert!(cluster.nodes[1].server.appliers.is_empty(), "held still");
        cluster.call(1, |ticket| Event::Resume { ticket });
        assert!(is_non_primary(next_task(&mut cluster)), "reset: {reset}");
        cluster.call(1, |ticket| Event::Resync { ticket });
        cluster.settle();
        let state = (cluster.comment(1), cluster.status(1).desync_count);
        assert_eq!(state, ("Synced", 0), "reset: {reset}");
        cluster.assert_settled();
    }
}

/// The second node is held still when the forced view is ordered that has committed the last entries of its database.
/// Then its log begins anew, on the branch of the others, with other entries there.
#[test]
fn a_forced_view_that_waits_when_the_log_begins_anew_forks_the_database() {
    for is_below in [false, true] {
        let mut cluster = Cluster::of(2);
        let last = |cluster: &Cluster| cluster.order.last().map_or(0, |(position, _)| *position);
        let before = last(&cluster);
        cluster.certify(0, "a", KeyType::Exclusive);
        cluster.settle();
        hold_still(&mut cluster);
        let mut forced = cluster.configuration.clone();
        forced.number += 1;
        forced.override_id = Some(Uuid([3; 16]));
        forced.fork_after = if is_below { before } else { last(&cluster) };
        let delivered = Event::Delivered {
            position: last(&cluster) + 1,
            delivery: Delivery::Configuration(forced),
            in_primary: true,
        };
        cluster.event(1, delivered);
        cluster.nodes[1].server.happened.clear();
        cluster.reset(1);
        cluster.reconfigure(|_| ());
        cluster.call(1, |ticket| Event::Resume { ticket });
        cluster.call(1, |ticket| Event::Resync { ticket });
        cluster.settle();
        let asks = kinds(&cluster, 1).contains(&"sst_request".to_string());
        assert_eq!(asks, is_below, "{:?}", kinds(&cluster, 1));
    }
}

#[test]
fn a_view_from_before_makes_no_primary_component_of_what_is_left() {
    let mut cluster = held(3);
    cluster.reconfigure(|c| c.members.retain(|m| m.incarnation != incarnation(2)));
    while cluster.deliver(1) {}
    let component = vec![member(1)];
    cluster.event(1, Event::NonPrimary { component });
    cluster.call(1, |ticket| Event::Resume { ticket });
    assert_eq!(cluster.comment(1), "Initialized");
    let first = next_task(&mut cluster);
    assert!(matches!(first, Some(Task::View(view)) if view.primary));
    cluster.step_applier(1, 0);
    while cluster.step_applier(1, 0) {}
    assert!(is_non_primary(next_task(&mut cluster)));
    assert_eq!(cluster.comment(1), "Initialized");
}

#[test]
fn a_node_that_is_held_still_and_alone_leaves_at_once() {
    let mut cluster = held(2);
    cut_off(&mut cluster);
    cluster.event(1, Event::Disconnect);
    cluster.event(1, Event::Left);
    cluster.settle_now();
    assert!(cluster.nodes[1].closed);
}

/// Its log has failed, say. A donor's script takes back its pause only while its server is a donor.
#[test]
fn a_node_that_must_leave_while_it_is_held_still_tells_its_server_afterwards() {
    for disconnects in [false, true] {
        let mut cluster = held(2);
        cluster.event(1, Event::Left);
        cluster.settle_now();
        assert_eq!(next_task(&mut cluster), None);
        match disconnects {
            false => drop(cluster.call(1, |ticket| Event::Resume { ticket })),
            true => cluster.event(1, Event::Disconnect),
        }
        cluster.settle_now();
        assert!(cluster.nodes[1].closed, "disconnects: {disconnects}");
    }
}

/// The view with which its incremental transfer begins is none of the order, and waits to be shown.
#[test]
fn a_joiner_that_is_found_inconsistent_at_once_leaves_in_order() {
    let mut cluster = Cluster::of(1);
    let known = cluster.nodes[0].replicator.last_committed();
    cluster.certify(0, "a", KeyType::Exclusive);
    cluster.settle();
    let local = Gtid {
        uuid: HISTORY,
        ..known
    };
    let node = cluster.start();
    cluster.nodes[node].threads = 0;
    cluster.join(node, local, false);
    cluster.nodes[node].threads = 0;
    cluster.settle();
    let connected = cluster.nodes[node].replicator.take_work();
    let id = connected.expect("it is connected").id;
    assert!(cluster.nodes[node].replicator.last_seqno().is_some());
    cluster.nodes[node]
        .replicator
        .become_inconsistent("this test says so");
    cluster.event(node, Event::WorkDone { work: id, ok: true });
    cluster.nodes[node].threads = 4;
    cluster.event(node, Event::Left);
    cluster.settle();
    assert!(cluster.nodes[node].closed);
}

/// The start of a ballot, say: a reader, or a joiner whose log begins above it, waits for it.
#[test]
fn what_delivers_nothing_is_passed_in_its_turn() {
    let mut cluster = held(2);
    cluster.certify(0, "a", KeyType::Exclusive);
    while cluster.deliver(0) || cluster.deliver(1) {}
    let at = |cluster: &Cluster, node: usize| {
        let position = cluster.nodes[node].replicator.control_position();
        position.expect("in step")
    };
    let (before, last) = (at(&cluster, 1), at(&cluster, 0));
    for node in 0..2 {
        let position = last + 2;
        cluster.event(node, Event::Passed { position });
    }
    assert_eq!((at(&cluster, 0), at(&cluster, 1)), (last + 2, before));
    cluster.call(1, |ticket| Event::Resume { ticket });
    assert_eq!(at(&cluster, 1), last + 2);
}
