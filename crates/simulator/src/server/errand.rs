//! Transactions that somebody asks for, one by one: clients of directed schedules.

use super::server::Server;
use super::writeset::TABLES;
use crate::seen::ClientTrx;

/// A transaction. Rows begin at [`Errand::FIRST_ROW`]; below are the tables themselves.
#[derive(Clone, Debug, Default)]
pub struct Errand {
    /// Writes these rows, in this order.
    pub writes: Vec<u32>,
    /// Then locks these rows, without writing them.
    pub locks: Vec<u32>,
    /// Reads these first.
    pub reads: Vec<u32>,
    /// Asks for a current read before that.
    pub current: bool,
    /// The server may retry it.
    pub autocommit: bool,
    /// Stays idle between its statements.
    pub long: bool,
    /// Its rows are sent in fragments.
    pub streams: bool,
    /// Its client rolls it back in the end.
    pub rolls_back: bool,
    /// Instead: DDL on this table.
    pub ddl: Option<u32>,
    /// Which fails, on all nodes alike.
    pub fails: bool,
}

impl Errand {
    /// The first row.
    pub const FIRST_ROW: u32 = TABLES;
}

impl Server {
    /// Asks for a transaction: the next client who is free begins it, as soon as the server is ready.
    pub fn errand(&mut self, errand: Errand) -> ClientTrx {
        self.last_client_trx += 1;
        self.errands.push_back((self.last_client_trx, errand));
        self.wake_clients();
        self.last_client_trx
    }

    /// The client's next transaction is the next one asked for. False: there is none.
    pub(super) fn take_errand(&mut self, c: usize) -> bool {
        let Some((trx, errand)) = self.errands.pop_front() else {
            return false;
        };
        let client = &mut self.clients[c];
        client.writes.writer = trx;
        if let Some(table) = errand.ddl {
            client.table = table;
            client.fails = errand.fails;
            client.script.push((table, true));
        }
        let writes = errand.writes.iter().map(|key| (*key, true));
        client.script.extend(writes);
        let locks = errand.locks.iter().map(|key| (*key, false));
        client.script.extend(locks);
        client.reads = errand.reads;
        client.current = errand.current;
        client.autocommit = errand.autocommit;
        client.long = errand.long;
        client.streams = errand.streams;
        client.rolls_back = errand.rolls_back;
        client.is_ddl = errand.ddl.is_some();
        true
    }
}
