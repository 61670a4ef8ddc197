//! A node alone on a disk in memory.

use trireme_engine::{Engine, Start};
use trireme_group::Uuid;
use trireme_log::{Durability, MemoryDisk};
use trireme_replicator::{Code, Event, Gtid, Options, Replicator, Ticket};

use crate::common::{self, HISTORY, Out};

/// The node, its server's appliers and its only client.
pub(crate) struct Node {
    pub(crate) disk: MemoryDisk,
    pub(crate) engine: Engine,
    pub(crate) out: Out,
    pub(crate) now_ms: u64,
    pub(crate) trx: u64,
}

impl Node {
    pub(crate) fn new(durability: Durability, flushes_apart: bool) -> Node {
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

    pub(crate) fn start(
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

    pub(crate) fn settle(&mut self) {
        common::settle(&mut self.engine, &mut self.now_ms, &mut self.out);
    }

    pub(crate) fn flush_ends(&mut self) {
        for job in std::mem::take(&mut self.out.flushes) {
            self.engine.flushed(self.now_ms, job.run());
            self.engine.pump(self.now_ms, &mut self.out);
        }
    }

    /// A client commits; its ticket.
    pub(crate) fn certify(&mut self) -> Ticket {
        self.trx += 1;
        let trx = self.trx;
        let certify = common::certify(trx, &[7; 300]);
        self.engine.node(self.now_ms, certify);
        self.engine.pump(self.now_ms, &mut self.out);
        trx
    }

    pub(crate) fn answer(&self, ticket: Ticket) -> Option<Code> {
        let found = self.out.answers.iter().find(|(known, _)| *known == ticket);
        found.map(|(_, answer)| answer.code)
    }

    /// The transaction's commit goes on to its end.
    pub(crate) fn commits(&mut self) {
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

    pub(crate) fn commit(&mut self) {
        let ticket = self.certify();
        assert_eq!(self.answer(ticket), Some(Code::Ok));
        self.commits();
    }

    /// One failure was told, with these words, and the node is out of its cluster for good.
    pub(crate) fn must_have_left(&mut self, words: &[&str]) {
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
    pub(crate) fn comes_back(&mut self, durability: Durability, seqno: i64) {
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
