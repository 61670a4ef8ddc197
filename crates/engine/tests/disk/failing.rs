//! A disk that fails: what the client is told, and what the node remembers of it.

use std::path::PathBuf;

use trireme_engine::Storage;
use trireme_group::Uuid;
use trireme_log::{Durability, Log, LogConfig};
use trireme_replicator::Code;

use crate::node::Node;

#[test]
fn on_a_full_disk_nothing_is_acknowledged_and_the_node_leaves() {
    for durability in [Durability::Os, Durability::Disk, Durability::Memory] {
        let mut node = Node::new(durability, false);
        node.commit();
        node.commit();
        node.disk.set_room(Some(50));
        // With `disk` some more fit into what the file has grown ahead.
        let (committed, ticket) = loop {
            let committed = node.engine.replicator.last_committed().seqno;
            let ticket = node.certify();
            match node.answer(ticket) {
                Some(Code::Ok) => node.commits(),
                _ => break (committed, ticket),
            }
        };
        assert_eq!(
            node.answer(ticket),
            Some(Code::NodeFail),
            "{durability:?}: unknown"
        );
        let words = [
            "trireme-0",
            "offset",
            "free space",
            "leaves the cluster",
            "restart",
        ];
        node.must_have_left(&words);
        node.disk.set_room(None);
        if durability != Durability::Memory {
            node.comes_back(durability, committed);
        }
    }
}

#[test]
fn a_failed_flush_is_no_acknowledgement() {
    for apart in [false, true] {
        let mut node = Node::new(Durability::Disk, apart);
        let first = node.certify();
        node.flush_ends();
        assert_eq!(node.answer(first), Some(Code::Ok));
        node.commits();
        let committed = node.engine.replicator.last_committed().seqno;
        node.disk.set_fail_syncs(true);
        let ticket = node.certify();
        node.flush_ends();
        assert_eq!(node.answer(ticket), Some(Code::NodeFail), "unknown");
        node.must_have_left(&["cannot flush", "trireme-0", "check the disk"]);
        node.disk.set_fail_syncs(false);
        node.comes_back(Durability::Disk, committed);
    }
}

/// In `os` mode acknowledgements rely on pages that a failed flush may have given up.
#[test]
fn after_a_failed_flush_a_member_counts_as_one_that_may_have_forgotten() {
    let in_force = |node: &mut Node| {
        let override_id = Uuid([5; 16]);
        // A configuration is flushed in every mode.
        let weight = trireme_group::Event::SetWeight { weight: 2 };
        node.engine.group(node.now_ms, weight);
        let force = trireme_group::Event::ForcePrimary { override_id };
        node.engine.group(node.now_ms, force);
        node.settle();
        node.must_have_left(&["cannot flush", "trireme-0"]);
    };
    let at_the_end = |node: &mut Node| node.engine.drop_link();
    let cases: [fn(&mut Node); 2] = [in_force, at_the_end];
    for fails in cases {
        let mut node = Node::new(Durability::Os, false);
        node.commit();
        node.disk.set_fail_syncs(true);
        fails(&mut node);
        node.disk.set_fail_syncs(false);
        let local = node.engine.replicator.last_committed();
        let start = node.start(2, Durability::Os, false, None, local);
        node.engine.connect(node.now_ms, start).expect("a log");
        let link = node.engine.link().expect("connected");
        assert!(link.group.is_amnesiac());
    }
}

/// In `os` mode acknowledgements rely on pages that a failing device has dropped: whatever it is that fails to be written tells
/// so, and a reconnect does not make up for it.
#[test]
fn after_a_failed_device_a_member_counts_as_one_that_may_have_forgotten() {
    type Case = (fn(&mut Node), &'static str);
    let write: Case = (
        |node| {
            node.disk.fail_device();
            node.certify();
        },
        "trireme-0",
    );
    let promise: Case = (
        |node| {
            node.out.fail_promise = true;
            let term = trireme_group::Term {
                number: 100,
                replica: trireme_group::ReplicaId(Uuid([2; 16])),
            };
            let from = trireme_group::Incarnation(Uuid([2; 16]));
            let up = trireme_group::Event::PeerUp {
                replica: term.replica,
                incarnation: from,
            };
            node.engine.group(node.now_ms, up);
            node.settle();
            let message = trireme_group::Message::Prepare { term, forced: None };
            let event = trireme_group::Event::Message { from, message };
            node.engine.group(node.now_ms, event);
            node.settle();
        },
        "read-only",
    );
    let note: Case = (
        |node| {
            node.disk.fail_device();
            node.engine.drop_link();
        },
        "",
    );
    for (fails, word) in [write, promise, note] {
        let mut node = Node::new(Durability::Os, false);
        node.commit();
        fails(&mut node);
        if !word.is_empty() {
            node.must_have_left(&[word]);
        }
        node.out.fail_promise = false;
        node.disk.remount(|| true);
        for incarnation in 2..4 {
            let local = node.engine.replicator.last_committed();
            let start = node.start(incarnation, Durability::Os, false, None, local);
            node.engine.connect(node.now_ms, start).expect("a log");
            let link = node.engine.link().expect("connected");
            assert!(link.group.is_amnesiac(), "{word}, {incarnation}");
            node.engine.drop_link();
        }
    }
}

/// A flush fails, and the cache goes on showing the entries. The next process writes them again before it acknowledges
/// anything.
#[test]
fn a_log_that_is_taken_up_is_on_the_disk() {
    for durability in [Durability::Os, Durability::Memory] {
        let mut node = Node::new(durability, false);
        node.commit();
        node.disk.set_shows_lost(true);
        node.disk.set_fail_syncs(true);
        node.engine.drop_link();
        node.disk.set_fail_syncs(false);
        let local = node.engine.replicator.last_committed();
        let start = node.start(2, durability, false, None, local);
        node.engine.connect(node.now_ms, start).expect("a log");
        let end = node.engine.link().expect("connected").group.end();
        node.disk.lose_power(|| false);
        let disk = Box::new(node.disk.clone());
        let history = Storage::history_on(disk.as_ref()).unwrap().unwrap();
        let config = LogConfig::new(PathBuf::new(), 1 << 20, history.0, durability);
        let (_, found) = Log::open_on(disk, config).unwrap();
        assert_eq!(found.last_position, Some(end), "{durability:?}");
    }
}

/// A full disk has dropped nothing that it had taken: a flush shows it.
#[test]
fn for_want_of_room_nothing_is_forgotten_unless_the_flush_fails() {
    for flush_fails in [false, true] {
        let mut node = Node::new(Durability::Os, false);
        node.commit();
        node.disk.set_room(Some(50));
        node.disk.set_fail_syncs(flush_fails);
        while node.engine.link().is_some() {
            node.certify();
        }
        node.disk.set_room(None);
        node.disk.set_fail_syncs(false);
        let local = node.engine.replicator.last_committed();
        let start = node.start(2, Durability::Os, false, None, local);
        node.engine.connect(node.now_ms, start).expect("a log");
        let link = node.engine.link().expect("connected");
        assert_eq!(link.group.is_amnesiac(), flush_fails);
    }
}
