//! What the clients and the server of a node ask of it, and what a test asks of the whole.

use std::collections::BTreeSet;

use trireme_certification::{KeySetBuilder, KeyType};
use trireme_group::SubmissionId;

use super::driver::{Cluster, Node, draft};
use super::server::{Happened, Session, Toi};
use crate::peer_message::PeerMessage;
use crate::{Action, Answer, Code, Event, GroupAction, Gtid, Seqno, TrxId, WriteSetDraft, flags};

impl Cluster {
    // --- what clients do

    pub fn certify(&mut self, node: usize, key: &str, kind: KeyType) -> TrxId {
        let server = &mut self.nodes[node].server;
        server.next_trx += 1;
        let (trx, ticket) = (server.next_trx, server.ticket());
        let data = format!("{node}/{trx}/{key}").into_bytes();
        server
            .sessions
            .insert(trx, (Session::Certifying(ticket), data.clone()));
        let draft = draft(trx, key, kind, &data);
        self.event(
            node,
            Event::Certify {
                ticket,
                trx,
                conn: trx,
                draft,
            },
        );
        trx
    }

    pub fn toi(&mut self, node: usize, conn: u64) {
        let server = &mut self.nodes[node].server;
        let ticket = server.ticket();
        let data = format!("{node}/toi{conn}").into_bytes();
        server
            .tois
            .insert(conn, (Toi::Starting(ticket), data.clone()));
        let mut keys = KeySetBuilder::new();
        keys.append(&[b"db", b"t"], KeyType::Exclusive);
        let draft = WriteSetDraft::new(
            flags::TRX_START | flags::TRX_END,
            u64::MAX,
            conn,
            &keys,
            &[&data],
        );
        self.event(
            node,
            Event::ToiStart {
                ticket,
                conn,
                draft,
            },
        );
    }

    pub fn abort(&mut self, node: usize, victim: TrxId, bf_seqno: Seqno) -> Code {
        let abort = |ticket| Event::Abort {
            ticket,
            bf_seqno,
            victim,
            executing: false,
        };
        let code = self.call(node, abort).expect("at once").code;
        if let (Code::Ok, -1, Some((session, _))) = (
            code,
            bf_seqno,
            self.nodes[node].server.sessions.get_mut(&victim),
        ) {
            // The server sees the mark before it asks for commit order, or else (any other
            // bf_seqno) the answer there tells it.
            if let Session::Certified(seqno) = *session {
                *session = Session::RolledBack(seqno);
            }
        }
        code
    }

    /// A call; its answer, if it came at once.
    pub fn call(&mut self, node: usize, event: impl FnOnce(u64) -> Event) -> Option<Answer> {
        let ticket = self.nodes[node].server.ticket();
        self.event(node, event(ticket));
        self.nodes[node].server.take(ticket)
    }

    /// The donor's script copies its database to the joiner.
    pub fn snapshot_from(&mut self, donor: usize, joiner: usize) {
        let gtid = self.nodes[donor].replicator.last_committed();
        let (database, commits) = (
            self.nodes[donor].server.database.clone(),
            self.nodes[donor].server.commits.clone(),
        );
        let server = &mut self.nodes[joiner].server;
        (server.database, server.commits) = (database, commits);
        self.snapshot_ends(donor, joiner, gtid);
    }

    /// The donor's script has copied its database of this position to the joiner.
    pub fn snapshot_ends(&mut self, donor: usize, joiner: usize, gtid: Gtid) {
        self.call(donor, |ticket| Event::SstSent {
            ticket,
            gtid,
            rcode: 0,
        });
        self.call(joiner, |ticket| Event::SstReceived {
            ticket,
            gtid,
            rcode: 0,
        });
    }

    // --- what must hold

    pub fn outcome(&self, node: usize, trx: TrxId) -> Code {
        match self.nodes[node].server.sessions[&trx].0 {
            Session::Done(code) => code,
            ref other => panic!("transaction {trx} of node {node} hangs: {other:?}"),
        }
    }

    pub fn comment(&self, node: usize) -> &'static str {
        self.status(node).local_state_comment
    }

    /// Nobody waits, everything is applied, all databases are equal.
    pub fn assert_settled(&self) {
        let live: Vec<&Node> = self
            .nodes
            .iter()
            .filter(|n| !n.left && n.fatal.is_none() && !n.arbitrator)
            .collect();
        for node in &live {
            let index = node.incarnation;
            assert!(
                node.server.appliers.is_empty(),
                "{index}: appliers hang: {:?}",
                node.server.appliers
            );
            for (trx, (session, _)) in &node.server.sessions {
                assert!(
                    matches!(session, Session::Done(_)),
                    "{index}: transaction {trx} hangs: {session:?}"
                );
            }
            for (conn, (toi, _)) in &node.server.tois {
                assert!(
                    matches!(toi, Toi::Done(_)),
                    "{index}: action {conn} hangs: {toi:?}"
                );
            }
            let last = node.replicator.last_seqno().expect("in step");
            assert_eq!(
                node.replicator.last_committed().seqno,
                last,
                "{index}: low-water mark stands"
            );
            assert_eq!(
                node.server.database, live[0].server.database,
                "{index}: databases differ"
            );
            let commits: BTreeSet<Seqno> = node.server.commits.iter().copied().collect();
            assert_eq!(
                commits.len() as Seqno,
                last,
                "{index}: not every seqno came to the database"
            );
        }
    }

    /// The id of the last submission of a node.
    pub fn last_submission(&self, node: usize) -> SubmissionId {
        let number = self.nodes[node]
            .actions
            .iter()
            .rev()
            .find_map(|action| match action {
                Action::Group(GroupAction::Submit { number, .. }) => Some(*number),
                _ => None,
            });
        SubmissionId {
            incarnation: self.nodes[node].incarnation,
            number: number.expect("has submitted"),
        }
    }
}

/// What the server of a node was called back for.
pub fn kinds(cluster: &Cluster, node: usize) -> Vec<String> {
    let happened = cluster.nodes[node].server.happened.iter();
    happened
        .map(|h| match h {
            Happened::Connected(v) => format!("connected {}", v.gtid.seqno),
            Happened::View(v, low) => format!("view {} at {low}", v.gtid.seqno),
            Happened::Synced => "synced".into(),
            Happened::SstRequest => "sst_request".into(),
            Happened::Donate(gtid) => format!("donate {}", gtid.seqno),
            Happened::PassOn(gtid) => format!("pass {} on", gtid.seqno),
            Happened::Exit(code) => format!("exit {code:?}"),
        })
        .collect()
}

/// The database of node 0 as of now, at a node that is down.
pub fn copy(cluster: &mut Cluster, to: usize) -> Gtid {
    let (database, commits) = (
        cluster.nodes[0].server.database.clone(),
        cluster.nodes[0].server.commits.clone(),
    );
    (
        cluster.nodes[to].server.database,
        cluster.nodes[to].server.commits,
    ) = (database, commits);
    cluster.nodes[0].replicator.last_committed()
}

/// A new process with the database of node 0 as it is now.
pub fn copy_new(cluster: &mut Cluster) -> (usize, Gtid) {
    let joiner = cluster.start();
    (joiner, copy(cluster, joiner))
}

/// From where a node is being asked for entries.
pub fn pulls(cluster: &Cluster, node: usize) -> Vec<Seqno> {
    let asked =
        cluster.nodes[node].inbox.iter().filter_map(|(_, bytes)| {
            match PeerMessage::decode(bytes.clone()) {
                Ok(PeerMessage::IstPull { from }) => Some(from),
                _ => None,
            }
        });
    asked.collect()
}

/// Lets a third node join two members. Its first pull is on its way to this donor.
pub fn join_and_pull(cluster: &mut Cluster, joiner: usize, behind: Gtid, donor: usize) {
    cluster.join(joiner, behind, false);
    for node in 0..3 {
        while cluster.deliver(node) {}
    }
    cluster.receive(donor);
    cluster.receive(joiner);
    assert_eq!(pulls(cluster, donor), [behind.seqno + 1]);
}
