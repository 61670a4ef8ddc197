//! The acts of the clients in a directed schedule: single requests, and series of writes.
//!
//! In: the node and the rows or the table. Out: the transactions, by which the schedule asks what became of them. A
//! request does not wait for its answer. The node must run.

use super::{Missed, Stage};
use crate::directed::row;
use crate::seen::{ClientTrx, NodeId};
use crate::server::{Ddl, Errand};

impl Stage<'_> {
    /// Lets a client of the node write these rows in one transaction.
    pub fn write(&mut self, node: NodeId, rows: &[u32]) -> ClientTrx {
        self.errand(
            node,
            Errand {
                writes: rows.to_vec(),
                ..Errand::default()
            },
        )
    }

    /// Lets clients of the node write the rows with these numbers, each in its own transaction. All are requested now,
    /// in this order.
    pub fn write_many(
        &mut self,
        node: NodeId,
        numbers: impl IntoIterator<Item = u32>,
    ) -> Vec<ClientTrx> {
        let numbers = numbers.into_iter();
        numbers.map(|n| self.write(node, &[row(n)])).collect()
    }

    /// As [`Stage::write_many`], until each client has its answer, whether its transaction has committed or not.
    pub fn write_many_until_told(
        &mut self,
        node: NodeId,
        numbers: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<ClientTrx>, Missed> {
        self.write_many_until(node, numbers, "told all", |s, trx| s.told(trx).is_some())
    }

    /// As [`Stage::write_many`], until all transactions are acknowledged.
    pub fn commit_many(
        &mut self,
        node: NodeId,
        numbers: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<ClientTrx>, Missed> {
        self.write_many_until(node, numbers, "committed all", |s, trx| s.acknowledged(trx))
    }

    fn write_many_until(
        &mut self,
        node: NodeId,
        numbers: impl IntoIterator<Item = u32>,
        what: &str,
        holds: impl Fn(&Stage, ClientTrx) -> bool,
    ) -> Result<Vec<ClientTrx>, Missed> {
        let all = self.write_many(node, numbers);
        self.until(&format!("n{} has {what}", node + 1), |s| {
            all.iter().all(|trx| holds(s, *trx))
        })?;
        Ok(all)
    }

    /// Lets all logs purge the entries that they need not keep. Reports of applied seqnos do that, but a log keeps
    /// entries for ten seconds that its database may not have flushed. So clients of these nodes write now and then, in
    /// turn, for longer than that.
    pub fn purge_logs(&mut self, nodes: &[NodeId]) {
        for (n, node) in (0..6).zip(nodes.iter().cycle()) {
            self.pass_ms(2_500);
            self.write(*node, &[row(n)]);
        }
    }

    /// Lets a client of the node make a current read of a row.
    pub fn read(&mut self, node: NodeId, row: u32) -> ClientTrx {
        self.errand(
            node,
            Errand {
                reads: vec![row],
                current: true,
                ..Errand::default()
            },
        )
    }

    /// Lets a client of the node execute DDL on a table.
    pub fn ddl(&mut self, node: NodeId, table: u32) -> ClientTrx {
        self.errand(
            node,
            Errand {
                ddl: Some(table),
                ..Errand::default()
            },
        )
    }

    /// The same with DDL that fails on each node.
    pub fn failing_ddl(&mut self, node: NodeId, table: u32) -> ClientTrx {
        self.errand(
            node,
            Errand {
                ddl: Some(table),
                effect: Ddl::Fails,
                ..Errand::default()
            },
        )
    }

    /// Gives an errand to a client of the node.
    ///
    /// # Panics
    /// If the node does not run.
    pub fn errand(&mut self, node: NodeId, errand: Errand) -> ClientTrx {
        self.world.tell(|| {
            let text: String = format!("{errand:?}").chars().take(200).collect();
            format!("ORDER n{}: {text}", node + 1)
        });
        let rows = errand.writes.len() + usize::from(errand.ddl.is_some());
        let process = self.world.machines[node].process.as_mut();
        let process = process.expect("clients are asked on nodes that run");
        let trx = process.server.errand(errand);
        self.world.settle(node);
        self.rows.insert(trx, rows);
        trx
    }
}
