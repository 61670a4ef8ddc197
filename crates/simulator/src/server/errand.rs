//! Transactions on request: the clients of directed schedules.

use super::server::Server;
use super::writeset::{Ddl, TABLES};
use crate::seen::ClientTrx;

/// A requested transaction. Rows begin at [`Errand::FIRST_ROW`]; below are the tables themselves.
#[derive(Clone, Debug, Default)]
pub struct Errand {
    /// The rows that it writes, in this order.
    pub writes: Vec<u32>,
    /// The rows that it then locks without writing them.
    pub locks: Vec<u32>,
    /// The rows that it reads first.
    pub reads: Vec<u32>,
    /// It first asks for a current read.
    pub current: bool,
    /// The server may retry it.
    pub autocommit: bool,
    /// Stays idle between its statements.
    pub long: bool,
    /// It sends its rows in fragments.
    pub streams: bool,
    /// It rolls back in the end.
    pub rolls_back: bool,
    /// Instead of all that: DDL on this table.
    pub ddl: Option<u32>,
    /// The effect of the DDL.
    pub effect: Ddl,
}

impl Errand {
    /// The first row.
    pub const FIRST_ROW: u32 = TABLES;
}

impl Server {
    /// Requests a transaction: the next free client begins it as soon as the server is ready.
    pub fn errand(&mut self, errand: Errand) -> ClientTrx {
        self.last_client_trx += 1;
        self.errands.push_back((self.last_client_trx, errand));
        self.wake_clients();
        self.last_client_trx
    }

    /// Gives the next requested transaction to the client. False: there is none.
    pub(super) fn take_errand(&mut self, c: usize) -> bool {
        let Some((trx, errand)) = self.errands.pop_front() else {
            return false;
        };
        let client = &mut self.clients[c];
        client.writes.writer = trx;
        if let Some(table) = errand.ddl {
            client.table = table;
            client.ddl = errand.effect;
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
