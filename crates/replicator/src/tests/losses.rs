//! What the server of a node without a majority is told (guarantees.md, section 5): it refuses clients until the node is
//! primary again, and no longer.

use trireme_certification::KeyType;
use trireme_group::Uuid;

use super::clients::kinds;
use super::driver::{Cluster, member};
use super::server::Happened;
use crate::{Event, LocalState};

/// The node loses the majority.
fn lose(cluster: &mut Cluster, node: usize) {
    cluster.nodes[node].primary = false;
    let component = vec![member(node)];
    cluster.event(node, Event::NonPrimary { component });
    cluster.settle();
}

/// The node gets the next entry, by which the group is not primary again.
fn hear_of_the_past(cluster: &mut Cluster, node: usize) {
    let entry = cluster.next_entry(node).expect("there is one");
    cluster.hand(node, entry, false);
    cluster.settle();
}

/// True if the server refuses clients: the last view was a non-primary one, and it was not told that it is synced since.
fn refuses(cluster: &Cluster, node: usize) -> bool {
    let mut happened = cluster.nodes[node].server.happened.iter();
    let last = happened.rfind(|h| matches!(h, Happened::View(..) | Happened::Synced));
    last.is_some_and(|h| matches!(h, Happened::View(view, _) if !view.primary))
}

/// A view was pending when the node lost the majority, and is committed without making it primary again; so is the word
/// by which the group takes the node for synced.
#[test]
fn the_past_makes_no_server_ready() {
    let mut cluster = Cluster::of(3);
    lose(&mut cluster, 2);
    assert!(refuses(&cluster, 2));
    cluster.reconfigure(|c| c.members[0].incoming = "elsewhere".into());
    cluster.settle();
    hear_of_the_past(&mut cluster, 2);
    assert_eq!(cluster.status(2).local_state, LocalState::Initialized);
    assert!(
        kinds(&cluster, 2)
            .last()
            .is_some_and(|last| last != "synced")
    );
    cluster.nodes[2].primary = true;
    cluster.reconfigure(|c| c.members[0].incoming = "back".into());
    cluster.settle();
    assert_eq!(cluster.status(2).local_state, LocalState::Synced);
    assert!(!refuses(&cluster, 2));
    cluster.assert_settled();
}

/// A log that is replaced in place is nothing to the server, which serves on. The majority is lost before the node is in
/// step with the group again.
#[test]
fn a_server_hears_of_a_loss_although_its_node_is_out_of_step() {
    let mut cluster = Cluster::of(3);
    cluster.reset(2);
    assert!(!refuses(&cluster, 2));
    lose(&mut cluster, 2);
    assert!(refuses(&cluster, 2), "{:?}", kinds(&cluster, 2));
    cluster.nodes[2].primary = true;
    cluster.reconfigure(|c| c.members[0].incoming = "elsewhere".into());
    cluster.settle();
    assert!(!refuses(&cluster, 2), "{:?}", kinds(&cluster, 2));
    assert_eq!(cluster.status(2).local_state, LocalState::Synced);
    cluster.assert_settled();
}

/// An override has forked the history below the database of a running server, whose administrator vouches for it
/// (`wsrep_sst_method=skip`): the view in which it is primary again counts as brought.
#[test]
fn a_server_hears_of_a_return_that_its_snapshot_covers() {
    let mut cluster = Cluster::of(3);
    cluster.nodes[2].server.sst_request = Some(b"trivial\0".to_vec());
    lose(&mut cluster, 2);
    assert!(refuses(&cluster, 2), "{:?}", kinds(&cluster, 2));
    cluster.believes = false;
    cluster.reconfigure(|c| {
        c.override_id = Some(Uuid([3; 16]));
        c.fork_after = 1;
    });
    cluster.settle();
    cluster.reset(2);
    cluster.nodes[2].primary = true;
    cluster.reconfigure(|c| c.override_id = None);
    cluster.certify(0, "a", KeyType::Exclusive);
    while cluster.deliver(0) | cluster.deliver(1) {}
    cluster.settle();
    let told = (kinds(&cluster, 2), cluster.nodes[2].fatal.clone());
    assert_eq!(cluster.comment(2), "Synced", "{told:?}");
    let mut happened = cluster.nodes[2].server.happened.iter();
    let last = happened.rfind(|h| matches!(h, Happened::View(..)));
    let is_primary = |h: &Happened| matches!(h, Happened::View(view, _) if view.primary);
    assert!(last.is_some_and(is_primary), "{told:?}");
}
