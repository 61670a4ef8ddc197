//! A node alone on a disk that fails: what its client is told, what is left, and how it comes back.

mod common;

use common::{HISTORY, Out};
use trireme_engine::{Engine, Start};
use trireme_group::Uuid;
use trireme_log::{Disk, Durability, MemoryDisk};
use trireme_replicator::{Code, Event, Gtid, Options, Replicator, Ticket};

/// The node, its server's appliers and its only client.
struct Node {
    disk: MemoryDisk,
    engine: Engine,
    out: Out,
    now_ms: u64,
    trx: u64,
}

impl Node {
    fn new(durability: Durability, flushes_apart: bool) -> Node {
        let mut node = Node {
            disk: MemoryDisk::new(),
            engine: Engine::new(Replicator::new(Options::default())),
            out: Out::default(),
            now_ms: 1_000,
            trx: 0,
        };
        let start = node.start(1, durability, flushes_apart, Some(HISTORY), Gtid::UNDEFINED);
        node.engine
            .connect(node.now_ms, start)
            .expect("a log in memory");
        for _ in 0..5 {
            node.settle();
            node.flush_ends();
        }
        node
    }

    fn start(
        &self,
        incarnation: u8,
        durability: Durability,
        flushes_apart: bool,
        bootstrap: Option<Uuid>,
        local: Gtid,
    ) -> Start {
        Start {
            last_log: self.out.log,
            flushes_apart,
            bootstrap,
            server_running: incarnation > 1,
            ..common::start(&self.disk, incarnation, durability, local)
        }
    }

    fn settle(&mut self) {
        common::settle(&mut self.engine, &mut self.now_ms, &mut self.out);
    }

    fn flush_ends(&mut self) {
        for job in std::mem::take(&mut self.out.flushes) {
            self.engine.flushed(self.now_ms, job.run());
            self.engine.pump(self.now_ms, &mut self.out);
        }
    }

    /// A client commits; its ticket.
    fn certify(&mut self) -> Ticket {
        self.trx += 1;
        let trx = self.trx;
        let certify = common::certify(trx, &[7; 300]);
        self.engine.node(self.now_ms, certify);
        self.engine.pump(self.now_ms, &mut self.out);
        trx
    }

    fn answer(&self, ticket: Ticket) -> Option<Code> {
        let found = self.out.answers.iter().find(|(known, _)| *known == ticket);
        found.map(|(_, answer)| answer.code)
    }

    /// The transaction's commit goes on to its end.
    fn commits(&mut self) {
        let owner = trireme_replicator::Owner::Trx(self.trx);
        let ticket = 1_000_000 + self.trx;
        let (now, trx) = (self.now_ms, self.trx);
        self.engine
            .node(now, Event::CommitOrderEnter { ticket, owner });
        let leave = Event::CommitOrderLeave {
            ticket: ticket + 500_000,
            owner,
            error: None,
        };
        self.engine.node(now, leave);
        let ticket = ticket + 700_000;
        self.engine.node(now, Event::Release { ticket, trx });
        self.engine.pump(now, &mut self.out);
    }

    fn commit(&mut self) {
        let ticket = self.certify();
        assert_eq!(self.answer(ticket), Some(Code::Ok));
        self.commits();
    }

    /// One failure was told, with these words, and the node is out of its cluster for good.
    fn must_have_left(&mut self, words: &[&str]) {
        let [failure] = &self.out.failures[..] else {
            panic!("one error says it all: {:?}", self.out.failures);
        };
        for word in words {
            assert!(failure.contains(word), "no '{word}' in: {failure}");
        }
        assert!(self.engine.link().is_none());
        let later = self.certify();
        assert!(matches!(
            self.answer(later),
            Some(Code::ConnFail | Code::NodeFail)
        ));
        self.settle();
        assert!(self.out.closed, "the server has its final view");
        assert_eq!(self.out.fatal, None);
        assert_eq!(self.out.failures.len(), 1);
    }

    /// The same process connects again, with a log that holds what was committed.
    fn comes_back(&mut self, durability: Durability, seqno: i64) {
        let local = self.engine.replicator.last_committed();
        assert_eq!(local.seqno, seqno);
        let start = self.start(2, durability, false, None, local);
        self.engine
            .connect(self.now_ms, start)
            .expect("the log is whole");
        self.settle();
        let link = self.engine.link().expect("connected");
        assert!(!link.group.is_amnesiac(), "nothing was forgotten");
        // The view in which it is primary again, and nothing that was not acknowledged.
        assert_eq!(self.engine.replicator.last_committed().seqno, seqno + 1);
        self.commit();
    }
}

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

/// What waits for the disk shares a flush, and nothing is acknowledged before.
#[test]
fn one_flush_serves_all_that_wait() {
    let mut node = Node::new(Durability::Disk, true);
    let first = node.certify();
    let rest: Vec<_> = (0..5).map(|_| node.certify()).collect();
    assert_eq!(node.out.flushes.len(), 1, "one at a time");
    assert_eq!(node.answer(first), None, "not before the flush");
    node.flush_ends();
    assert_eq!(node.answer(first), Some(Code::Ok));
    assert_eq!(node.out.flushes.len(), 1, "one for all that came meanwhile");
    assert!(rest.iter().all(|ticket| node.answer(*ticket).is_none()));
    node.flush_ends();
    assert!(
        rest.iter()
            .all(|ticket| node.answer(*ticket) == Some(Code::Ok))
    );
    assert!(node.out.flushes.is_empty());
}

/// What comes before a flush has begun shares it.
#[test]
fn a_flush_put_off_serves_what_came_meanwhile() {
    let mut node = Node::new(Durability::Disk, true);
    let tickets: Vec<_> = (0..3).map(|_| node.certify()).collect();
    let job = node.out.flushes.pop().expect("the first one's");
    let renewed = node.engine.renew_flush(job).expect("needed still");
    let again = node.engine.renew_flush(renewed).expect("needed still");
    node.out.flushes.push(again);
    node.flush_ends();
    assert!(
        tickets
            .iter()
            .all(|ticket| node.answer(*ticket) == Some(Code::Ok))
    );
    assert!(node.out.flushes.is_empty());
    // Nobody waits for a flush of a log that was given up.
    node.certify();
    let job = node.out.flushes.pop().expect("its own");
    node.engine.drop_link();
    assert!(node.engine.renew_flush(job).is_none());
}

/// Where acknowledgements wait for no flush, what is written is flushed beside them from time to time.
#[test]
fn a_view_change_does_not_find_everything_unflushed() {
    let unflushed = |node: &Node| {
        let link = node.engine.link().expect("connected");
        link.storage.unflushed_bytes()
    };
    for (durability, flushes_apart) in [(Durability::Os, true), (Durability::Memory, false)] {
        let mut node = Node::new(durability, flushes_apart);
        let mut flushes = 0;
        for _ in 0..12_000 {
            node.commit();
            flushes += node.out.flushes.len();
            assert!(node.out.flushes.iter().all(|job| !job.is_awaited()));
            assert!(unflushed(&node) <= (4 << 20) + 1_000);
            node.flush_ends();
        }
        assert_eq!(flushes > 0, flushes_apart);
    }
    // One at a time; if it fails, the node may have lost what it acknowledged.
    let mut node = Node::new(Durability::Os, true);
    while unflushed(&node) < 5 << 20 {
        node.commit();
    }
    assert_eq!(node.out.flushes.len(), 1);
    node.disk.set_fail_syncs(true);
    node.flush_ends();
    node.must_have_left(&["cannot flush", "trireme-0"]);
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
            let ballot = trireme_group::Ballot {
                number: 100,
                replica: trireme_group::ReplicaId(Uuid([2; 16])),
            };
            let from = trireme_group::Incarnation(Uuid([2; 16]));
            let up = trireme_group::Event::PeerUp {
                replica: ballot.replica,
                incarnation: from,
            };
            node.engine.group(node.now_ms, up);
            node.settle();
            let message = trireme_group::Message::Prepare {
                ballot,
                forced: None,
            };
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

/// A disk that does not answer is told, as long as it does not, and when it does again.
#[test]
fn a_flush_that_does_not_end_is_told() {
    let mut node = Node::new(Durability::Disk, true);
    node.out.warnings.clear();
    node.certify();
    let told = |node: &Node, word: &str| {
        let warnings = node.out.warnings.iter();
        warnings.filter(|text| text.contains(word)).count()
    };
    let began = node.now_ms;
    while node.now_ms < began + 5_000 {
        assert_eq!(told(&node, "does not answer"), 0);
        node.settle();
    }
    node.settle();
    assert_eq!(told(&node, "does not answer"), 1, "{:?}", node.out.warnings);
    assert!(node.engine.link().is_some(), "it stays");
    while node.now_ms < began + 20_000 {
        node.settle();
    }
    assert_eq!(told(&node, "does not answer"), 2, "seldom");
    node.flush_ends();
    node.settle();
    assert_eq!(told(&node, "answers again"), 1);
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
