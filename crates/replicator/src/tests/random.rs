//! Any interleaving whatever: nobody is left waiting, all nodes end alike.

use proptest::prelude::*;
use trireme_certification::KeyType;

use super::driver::{Cluster, HISTORY};
use super::server::{Happened, Session, Toi};
use crate::{Code, Event, Gtid};

/// One random step: what, and two numbers to choose with.
type Step = (u8, u8, u8);

struct Run {
    cluster: Cluster,
    reads: Vec<(usize, u64)>,
    paused: Vec<(usize, u64)>,
    desyncs: Vec<(usize, u64)>,
    next_conn: u64,
    joined: bool,
}

impl Run {
    fn new(nodes: usize, threads: usize, queue_bytes: usize) -> Self {
        let mut cluster = Cluster::of(nodes);
        cluster.bound_queues(queue_bytes);
        for node in &mut cluster.nodes {
            node.threads = threads;
        }
        Run {
            cluster,
            reads: Vec::new(),
            paused: Vec::new(),
            desyncs: Vec::new(),
            next_conn: 1000,
            joined: false,
        }
    }

    fn step(&mut self, (what, a, b): Step) {
        let cluster = &mut self.cluster;
        let node = usize::from(a) % cluster.nodes.len();
        let choice = usize::from(b);
        let trxs: Vec<u64> = cluster.nodes[node]
            .server
            .sessions
            .keys()
            .copied()
            .collect();
        let trx = trxs.get(choice % trxs.len().max(1)).copied();
        match what {
            0..=3 => {
                let kind = [
                    KeyType::Shared,
                    KeyType::Reference,
                    KeyType::Update,
                    KeyType::Exclusive,
                ][choice % 4];
                cluster.certify(node, ["a", "b", "c", "d", "e"][choice / 4 % 5], kind);
            }
            4..=8 => drop(cluster.deliver(node)),
            9..=12 => {
                if let Some(trx) = trx {
                    cluster.step_session(node, trx);
                }
            }
            13..=15 => drop(cluster.take_work(node)),
            16..=20 => {
                let appliers = cluster.nodes[node].server.appliers.len().max(1);
                cluster.step_applier(node, choice % appliers);
            }
            21..=22 => {
                if let Some(trx) = trx {
                    let bf_seqno = if choice % 2 == 0 {
                        -1
                    } else {
                        cluster.nodes[node].replicator.last_seqno().unwrap_or(0)
                    };
                    cluster.abort(node, trx, bf_seqno);
                }
            }
            23 => {
                self.next_conn += 1;
                cluster.toi(node, self.next_conn);
            }
            24..=25 => {
                for conn in cluster.nodes[node]
                    .server
                    .tois
                    .keys()
                    .copied()
                    .collect::<Vec<_>>()
                {
                    cluster.step_toi(node, conn);
                }
            }
            26 => {
                let incoming = format!("port {choice}");
                cluster.reconfigure(|c| c.members[0].incoming = incoming);
            }
            27 => {
                let ticket = cluster.nodes[node].server.ticket();
                cluster.event(node, Event::Pause { ticket });
                self.paused.push((node, ticket));
            }
            28 => {
                if let Some((node, _)) = self.paused.pop() {
                    cluster.call(node, |ticket| Event::Resume { ticket });
                }
            }
            29 => {
                // Time passes for who waits for an applier or a client: no peer is given up.
                for node in 0..cluster.nodes.len() {
                    while cluster.receive(node) {}
                }
                cluster.pass(u64::from(b) * 8);
            }
            30 => drop(cluster.receive(node)),
            31 => {
                let ticket = cluster.nodes[node].server.ticket();
                cluster.event(node, Event::SyncWait { ticket, upto: None });
                self.reads.push((node, ticket));
            }
            32 => self.join(),
            _ => {
                let ticket = cluster.nodes[node].server.ticket();
                cluster.event(node, Event::Desync { ticket });
                self.desyncs.push((node, ticket));
                self.resync();
            }
        }
    }

    /// Who was desynced and has heard of it resyncs.
    fn resync(&mut self) {
        for (node, ticket) in std::mem::take(&mut self.desyncs) {
            match self.cluster.nodes[node].server.take(ticket) {
                None => self.desyncs.push((node, ticket)),
                Some(answer) if answer.code == Code::Ok => {
                    self.cluster.call(node, |ticket| Event::Resync { ticket });
                }
                Some(_) => {}
            }
        }
    }

    /// A node that died with the database that node 0 has now comes back, once.
    fn join(&mut self) {
        if std::mem::replace(&mut self.joined, true) {
            return;
        }
        let cluster = &mut self.cluster;
        let joiner = cluster.start();
        let (database, commits) = (
            cluster.nodes[0].server.database.clone(),
            cluster.nodes[0].server.commits.clone(),
        );
        let seqno = *commits.last().expect("there was a view");
        (
            cluster.nodes[joiner].server.database,
            cluster.nodes[joiner].server.commits,
        ) = (database, commits);
        cluster.join(
            joiner,
            Gtid {
                uuid: HISTORY,
                seqno,
            },
            false,
        );
    }

    fn finish(mut self) {
        for (node, _) in std::mem::take(&mut self.paused) {
            self.cluster.call(node, |ticket| Event::Resume { ticket });
        }
        for node in &mut self.cluster.nodes {
            node.threads = node.threads.max(1);
        }
        self.cluster.settle();
        self.resync();
        assert!(self.desyncs.is_empty(), "a desync hangs");
        self.cluster.settle();
        self.cluster.assert_settled();
        for (node, ticket) in self.reads {
            assert!(
                self.cluster.nodes[node].server.take(ticket).is_some(),
                "a read hangs"
            );
        }
        for node in 0..self.cluster.nodes.len() {
            assert_eq!(self.cluster.comment(node), "Synced", "node {node}");
            let views: Vec<_> = (self.cluster.nodes[node].server.happened.iter())
                .filter_map(|h| {
                    if let Happened::View(v, _) = h {
                        Some(v.gtid.seqno)
                    } else {
                        None
                    }
                })
                .collect();
            assert!(
                views.windows(2).all(|w| w[0] < w[1]),
                "views out of order: {views:?}"
            );
        }
    }

    /// Node 1 disconnects instead.
    fn disconnect(mut self) {
        self.cluster.event(1, Event::Disconnect);
        for (node, _) in std::mem::take(&mut self.paused) {
            if node != 1 {
                self.cluster.call(node, |ticket| Event::Resume { ticket });
            }
        }
        self.cluster.settle();
        let node = &self.cluster.nodes[1];
        assert!(node.closed);
        assert!(matches!(
            node.server.happened.last(),
            Some(Happened::Exit(Code::Ok | Code::ConnFail))
        ));
        assert!(
            node.server
                .sessions
                .values()
                .all(|(s, _)| matches!(s, Session::Done(_))),
            "{:?}",
            node.server.sessions
        );
        assert!(
            node.server
                .tois
                .values()
                .all(|(t, _)| matches!(t, Toi::Done(_))),
            "{:?}",
            node.server.tois
        );
        // What it applied is a prefix of what the others have.
        let last = node.replicator.last_committed().seqno;
        let prefix: Vec<_> = self.cluster.nodes[0]
            .server
            .database
            .range(..=last)
            .collect();
        assert_eq!(node.server.database.iter().collect::<Vec<_>>(), prefix);
        self.cluster.assert_settled();
    }
}

/// What waits to be applied is all in memory, or a part of it, or nearly nothing.
fn queue_bytes() -> impl Strategy<Value = usize> {
    prop_oneof![Just(64 << 20), Just(300), Just(0)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nobody_waits_for_ever_and_all_end_alike(
        nodes in 1..4usize,
        threads in 1..4usize,
        queue_bytes in queue_bytes(),
        steps in proptest::collection::vec((0..34u8, any::<u8>(), any::<u8>()), 0..300),
    ) {
        let mut run = Run::new(nodes, threads, queue_bytes);
        for step in steps {
            run.step(step);
        }
        run.finish();
    }

    #[test]
    fn a_disconnect_at_any_moment_leaves_nobody_waiting(
        threads in 1..4usize,
        queue_bytes in queue_bytes(),
        steps in proptest::collection::vec((0..32u8, any::<u8>(), any::<u8>()), 0..200),
    ) {
        let mut run = Run::new(2, threads, queue_bytes);
        for step in steps {
            run.step(step);
        }
        run.disconnect();
    }
}
