//! Brute-force aborts: an applier, a replay or DDL needs a lock that a client's transaction holds.
//!
//! If its state allows it, the holder is aborted at once. The aborter then waits until the holder has released the
//! lock.

use trireme_replicator::{Answer, Code, Event, Seqno, Ticket};

use super::ctx::{BLOCKED, Ctx, GO_ON, Stride, ThreadId};
use super::server::Server;
use super::thread::Waits;

/// The seqno in abort_certification() for an aborter without a seqno of its own: a total-order action, KILL
/// (server-contract.md#abort_certification).
pub(super) const NO_SEQNO: Seqno = -1;
/// Replaces the aborter's seqno if a view closes streaming transactions.
pub(super) const CLOSED_BY_VIEW: Seqno = -2;

impl Server {
    /// Locks a row for a brute-force thread; goes on when the thread has the lock.
    ///
    /// # Panics
    /// If another brute-force thread holds the lock: dependencies must keep such threads apart.
    pub(super) fn seize_row(
        &mut self,
        who: ThreadId,
        key: u32,
        seqno: Seqno,
        ctx: &mut Ctx,
    ) -> Stride {
        let Err(holder) = self.locks.row(key, who, true) else {
            return GO_ON;
        };
        assert!(
            !self.is_brute_force(holder),
            "BF-BF conflict over row {key}: seqno {seqno} meets {}",
            self.describe(holder)
        );
        self.abort(holder, seqno, ctx);
        self.threads[who].waits = Some(Waits::Row(key));
        BLOCKED
    }

    /// Locks a table for DDL; goes on when the DDL has the lock.
    pub(super) fn seize_table(&mut self, who: ThreadId, table: u32, ctx: &mut Ctx) -> Stride {
        if self.locks.take_table(table, who) {
            return GO_ON;
        }
        for holder in self.locks.sharing(table).to_vec() {
            assert!(
                !self.is_brute_force(holder),
                "BF-BF conflict over table {table}: an action meets {}",
                self.describe(holder)
            );
            self.abort(holder, NO_SEQNO, ctx);
        }
        self.threads[who].waits = Some(Waits::Table(table));
        BLOCKED
    }

    fn is_brute_force(&self, who: ThreadId) -> bool {
        match self.client_of(who) {
            Some(client) => self.clients[client].replaying,
            None => true,
        }
    }

    /// Asks the provider whether a client's transaction may be aborted, unless the transaction is already ending, or
    /// past the point where an abort is possible.
    pub(super) fn abort(&mut self, victim: ThreadId, bf_seqno: Seqno, ctx: &mut Ctx) {
        self.abort_at(victim, bf_seqno, bf_seqno, ctx);
    }

    /// As `abort`, but the server remembers another number than it tells the provider.
    pub(super) fn abort_at(
        &mut self,
        victim: ThreadId,
        bf_seqno: Seqno,
        remembered: Seqno,
        ctx: &mut Ctx,
    ) {
        let Some(client) = self.client_of(victim) else {
            return;
        };
        let client = &self.clients[client];
        if client.must_abort || !client.may_be_aborted() {
            return;
        }
        let (id, executing) = (client.id, client.is_executing());
        let ticket = self.tell(ctx, |ticket| Event::Abort {
            ticket,
            bf_seqno,
            victim: id,
            executing,
        });
        self.aborts.push((ticket, victim, id, remembered));
    }

    /// Handles the answer to an abort. The victim has not moved meanwhile: in a real server the aborter holds the
    /// victim's mutex.
    pub(super) fn abort_answered(&mut self, ticket: Ticket, answer: &Answer) {
        if self.rollback_answered(ticket, answer) {
            return;
        }
        let Some(at) = self.aborts.iter().position(|(asked, ..)| *asked == ticket) else {
            return;
        };
        let (_, victim, id, bf_seqno) = self.aborts.swap_remove(at);
        let (Code::Ok, Some(client)) = (answer.code, self.client_of(victim)) else {
            return;
        };
        let seqno = answer.gtid.seqno;
        let client = &mut self.clients[client];
        // A fragment that does not commit protects no other transaction.
        assert!(
            bf_seqno <= 0 || seqno <= 0 || seqno > bf_seqno || client.is_in_fragment(),
            "{seqno} is aborted for {bf_seqno}, which was ordered later (server-contract.md#abort_certification)"
        );
        assert!(
            client.id == id,
            "the victim has gone while it was being aborted"
        );
        client.must_abort = true;
        client.total_order = bf_seqno == CLOSED_BY_VIEW;
        if client.is_interruptible() {
            self.wake(victim);
        }
    }
}
