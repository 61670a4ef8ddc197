//! The log that a node finds at its start.

use trireme_engine::{Engine, Storage};
use trireme_group::Uuid;
use trireme_log::{Disk, Durability, MemoryDisk};
use trireme_replicator::{Event, Gtid, Options, Replicator};

use crate::common::{self, HISTORY};
use crate::node::Node;

/// The process that finds the damage cannot go on: the next one finds a log that merely ends (seeds 618005, 619960).
#[test]
fn a_damaged_log_is_remembered_if_its_repair_breaks_off() {
    let mut node = Node::new(Durability::Disk, false);
    let segment = |node: &Node| {
        let names = node.disk.list().expect("in memory");
        let newest = names
            .into_iter()
            .rfind(|name| name.starts_with("trireme-0"));
        newest.expect("there is a log")
    };
    let name = segment(&node);
    let length = |node: &Node| {
        let bytes = node.disk.contents(&name).unwrap_or_default();
        let used = bytes.iter().rposition(|byte| *byte != 0);
        used.map_or(0, |last| last + 1)
    };
    let end = length(&node);
    node.commit();
    node.commit();
    let local = node.engine.replicator.last_committed();
    assert!(length(&node) > end + 100);
    // kill -9, and the disk has lost the first of them.
    node.disk.flip_bit(&name, end + 40, 3);
    node.disk.set_fail_syncs(true);
    let start = node.start(2, Durability::Disk, false, None, local);
    let connected = node.engine.connect(node.now_ms, start);
    assert!(connected.is_err_and(|error| error.to_string().contains("cannot cut")));
    assert!(length(&node) <= end + 40, "it is repaired");
    node.disk.set_fail_syncs(false);
    let start = node.start(3, Durability::Disk, false, None, local);
    node.engine.connect(node.now_ms, start).expect("a log");
    let link = node.engine.link().expect("connected");
    assert!(link.storage.resumed().is_some(), "it goes on with its log");
    assert!(link.group.is_amnesiac());
}

/// `gcache.dir` is changed, and after a while changed back: the log there ended cleanly, but is not the one that this
/// replica acknowledged with last.
#[test]
fn a_log_that_was_not_used_last_may_have_forgotten() {
    let mut node = Node::new(Durability::Os, false);
    node.commit();
    let (a, b) = (node.disk.clone(), MemoryDisk::new());
    let mut comes_back_on = |disk: &MemoryDisk, incarnation, bootstrap| {
        node.engine.drop_link();
        node.disk = disk.clone();
        let local = node.engine.replicator.last_committed();
        let start = node.start(incarnation, Durability::Os, false, bootstrap, local);
        node.engine.connect(node.now_ms, start).expect("a log");
        node.settle();
        let link = node.engine.link().expect("connected");
        let told = std::mem::take(&mut node.out.warnings).join("; ");
        let is_told = told.contains("gcache.dir changed");
        (link.group.is_amnesiac(), is_told)
    };
    assert_eq!(comes_back_on(&a, 2, None), (false, false), "the same log");
    let new = Some(Uuid([5; 16]));
    assert_eq!(comes_back_on(&b, 3, new), (false, false), "a founder's");
    assert_eq!(comes_back_on(&b, 4, None), (false, false), "the same log");
    assert_eq!(comes_back_on(&a, 5, None), (true, true), "another");
    let unchanged = comes_back_on(&a, 6, None);
    assert_eq!(unchanged, (true, false), "nobody has made up for it yet");
    assert_eq!(
        comes_back_on(&b, 7, None),
        (true, true),
        "nor is it that one"
    );
}

#[test]
fn a_log_that_the_data_directory_cannot_name_is_not_spoken_of() {
    let mut node = Node::new(Durability::Os, false);
    node.commit();
    node.engine.drop_link();
    node.out.fail_log = true;
    let local = node.engine.replicator.last_committed();
    let start = node.start(2, Durability::Os, false, None, local);
    node.engine.connect(node.now_ms, start).expect("a log");
    node.engine.pump(node.now_ms, &mut node.out);
    node.must_have_left(&["read-only"]);
}

/// What a node must know before it uses a log is refused untouched, with what to do; the operator's word lets it join
/// anew.
#[test]
fn a_log_that_does_not_fit_is_refused() {
    type Spoil = fn(&MemoryDisk);
    let cases: &[(&str, Uuid, Spoil, &[&str])] = &[
        (
            "another cluster's",
            Uuid([4; 16]),
            |_| {},
            &["trireme-0", "09090909", "04040404", "offset 16"],
        ),
        (
            "a newer one",
            HISTORY,
            |disk| disk.flip_bit("trireme-state.log", 8 + 16384, 1),
            &["trireme-state.log", "newer", "offset 16392"],
        ),
        (
            "an unreadable state",
            HISTORY,
            |disk| {
                disk.flip_bit("trireme-state.log", 61, 1);
                disk.flip_bit("trireme-state.log", 16384 + 61, 1);
            },
            &["trireme-state.log", "damaged", "offset 0"],
        ),
        (
            "an unreadable segment",
            HISTORY,
            |disk| disk.set_fail_reads(true),
            &["cannot read", "trireme-0", "offset 0", "check the disk"],
        ),
    ];
    for (what, database, spoil, words) in cases {
        let mut node = Node::new(Durability::Os, false);
        node.commit();
        node.engine.drop_link();
        let history = Gtid {
            uuid: *database,
            seqno: 1,
        };
        spoil(&node.disk);
        let files = |disk: &MemoryDisk| -> Vec<_> {
            let names = disk.list().expect("a list").into_iter();
            names.map(|name| (disk.contents(&name), name)).collect()
        };
        let before = files(&node.disk);
        let start = node.start(2, Durability::Os, false, None, history);
        let error = node
            .engine
            .connect(node.now_ms, start)
            .expect_err(what)
            .to_string();
        for word in *words {
            assert!(error.contains(word), "{what}: no '{word}' in: {error}");
        }
        assert_eq!(files(&node.disk), before, "{what}: something was changed");
        // The remedy: the log is moved away, and grastate.dat with the position.
        for name in node.disk.list().expect("a list") {
            node.disk.remove(&name).expect("removed");
        }
        node.disk.set_fail_reads(false);
        let start = node.start(3, Durability::Os, false, None, Gtid::UNDEFINED);
        assert!(
            node.engine.connect(node.now_ms, start).is_ok(),
            "{what}: it joins anew"
        );
    }
}

/// The operator bootstraps a node whose database is ahead of its log. Until the new log has its first view and log
/// checkpoint, the next process finds the old one.
#[test]
fn a_founder_that_dies_at_once_finds_its_old_log() {
    let order = Some(Uuid([5; 16]));
    for closes in [false, true] {
        let mut node = Node::new(Durability::Os, false);
        node.commit();
        let end = |node: &Node| {
            let link = node.engine.link().expect("connected");
            let resumed = link.storage.resumed().is_some();
            (resumed, link.group.is_amnesiac(), link.group.end())
        };
        let (_, _, old) = end(&node);
        let local = node.engine.replicator.last_committed();
        let ahead = Gtid {
            seqno: local.seqno + 10,
            ..local
        };
        let connect = |node: &mut Node, incarnation, bootstrap, local, closes: bool| {
            if closes {
                node.engine.drop_link();
            }
            node.engine = Engine::new(Replicator::new(Options::default()));
            let start = node.start(incarnation, Durability::Os, false, bootstrap, local);
            node.engine.connect(node.now_ms, start).expect("a log");
        };
        connect(&mut node, 2, order, ahead, closes);
        assert!(!end(&node).0, "it begins anew");
        connect(&mut node, 3, None, local, closes);
        assert_eq!(end(&node), (true, false, old), "{closes}");
        connect(&mut node, 4, order, ahead, closes);
        node.engine.pump(node.now_ms, &mut node.out);
        let (_, _, new) = end(&node);
        connect(&mut node, 5, None, ahead, closes);
        assert_eq!(end(&node), (true, false, new), "{closes}");
        let group = &node.engine.link().expect("connected").group;
        assert_eq!(group.overrides_in_log(), [Uuid([5; 16])]);
        node.out.must_be_well();
    }
}

/// The node leaves within DDL, which ends later: the next process must not doubt the database.
#[test]
fn a_closed_log_still_takes_notes() {
    let mut node = Node::new(Durability::Os, false);
    let begun = Event::ToiStart {
        ticket: 1,
        conn: 1,
        draft: common::ddl(b"ALTER TABLE t FORCE"),
    };
    node.engine.node(node.now_ms, begun);
    node.settle();
    let interrupted = |node: &Node| Storage::interrupted_action(&node.disk).expect("a state");
    assert!(interrupted(&node).is_known());
    node.engine.drop_link();
    let ended = Event::ToiEnd {
        ticket: 2,
        conn: 1,
        error: None,
    };
    node.engine.node(node.now_ms, ended);
    node.settle();
    assert!(!interrupted(&node).is_known());
}

/// The notes on the database lie beside the log. If they are gone, a snapshot must replace the database, unless the
/// operator bootstraps the node: it may be on another branch than the others.
#[test]
fn a_database_whose_notes_are_lost_has_no_position() {
    let wipe: fn(&MemoryDisk) = |disk| {
        for name in disk.list().expect("a list") {
            disk.remove(&name).expect("removed");
        }
    };
    let state_only: fn(&MemoryDisk) = |disk| disk.remove("trireme-state.log").expect("removed");
    let fresh = Some(Uuid([5; 16]));
    let cases = [
        (Some(wipe), None, true, false),
        (Some(state_only), None, true, false),
        (None, None, true, true),
        // The operator declares the database to be right.
        (Some(wipe), fresh, true, true),
        // A data directory that never had a log: a backup was restored into it.
        (Some(wipe), None, false, true),
    ];
    for (lose, bootstrap, had_log, counts) in cases {
        let mut node = Node::new(Durability::Os, false);
        node.commit();
        let local = node.engine.replicator.last_committed();
        node.engine.drop_link();
        if let Some(lose) = lose {
            lose(&node.disk);
        }
        let mut start = node.start(2, Durability::Os, false, bootstrap, local);
        start.server_running = false;
        if !had_log {
            start.last_log = Uuid::NIL;
        }
        assert_eq!(start.last_log.is_nil(), !had_log);
        node.engine = Engine::new(Replicator::new(Options::default()));
        node.engine.connect(node.now_ms, start).expect("connects");
        let expected = if counts { local } else { Gtid::UNDEFINED };
        assert_eq!(node.engine.replicator.local(), expected);
        node.out.warnings.clear();
        node.engine.pump(node.now_ms, &mut node.out);
        let told = node
            .out
            .warnings
            .iter()
            .any(|line| line.contains("no notes on this node's database"));
        assert_eq!(told, had_log && lose.is_some());
    }
}

/// Each process that takes the log up gives it another id, so that an old copy of its files is not taken for the log. A
/// process that dies in between leaves no doubt.
#[test]
fn an_old_copy_of_the_log_is_not_the_log() {
    let is_amnesiac = |node: &Node| {
        let link = node.engine.link().expect("connected");
        link.group.is_amnesiac()
    };
    let restart = |node: &mut Node, incarnation| {
        node.engine = Engine::new(Replicator::new(Options::default()));
        let local = Gtid {
            uuid: HISTORY,
            seqno: 2,
        };
        let mut start = node.start(incarnation, Durability::Disk, false, None, local);
        start.server_running = false;
        node.engine.connect(node.now_ms, start).expect("a log");
    };
    let mut node = Node::new(Durability::Disk, false);
    node.commit();
    assert_eq!(node.engine.replicator.last_committed().seqno, 2);
    node.engine.drop_link();
    let copy = node.disk.copy();
    let mut ids = vec![node.out.log];
    for incarnation in 2..6 {
        restart(&mut node, incarnation);
        assert!(!is_amnesiac(&node));
        // Each second process dies before the votes name the log's new id: the next must not take the log for another.
        if incarnation % 2 == 1 {
            node.settle();
            assert!(!ids.contains(&node.out.log));
            ids.push(node.out.log);
            node.engine.drop_link();
        }
    }
    let log = std::mem::replace(&mut node.disk, copy);
    for put_back in [None, Some(log)] {
        if let Some(log) = put_back {
            node.disk = log;
        }
        restart(&mut node, 9);
        assert!(is_amnesiac(&node));
        node.settle();
        node.engine.drop_link();
    }
}
