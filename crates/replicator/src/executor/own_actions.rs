//! This node's own total-order actions: from to_execute_start() to to_execute_end().

use trireme_certification::Seqno;
use trireme_mutants::{Mutant, planted};

use super::Executor;
use super::isolation::{Isolation, first_waiting};
use crate::action::{Answer, Code};
use crate::event::{ConnId, Ticket};

/// An action that begins, or whose caller hears that it has failed certification.
#[derive(Debug, PartialEq)]
pub(crate) struct ActionGranted {
    pub ticket: Ticket,
    pub answer: Answer,
    /// True if the server executes it.
    pub is_executed: bool,
}

/// Result of [`Executor::end_action`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActionEnded {
    pub seqno: Seqno,
    /// True if the server has executed it.
    pub is_executed: bool,
}

impl Executor {
    /// Begins an action by to_execute_start(). `waits`: it is not sent yet. Returns false if the connection is within
    /// another action.
    pub(crate) fn begin_action(&mut self, conn: ConnId, ticket: Ticket, waits: bool) -> bool {
        if self.isolations.contains_key(&conn) {
            return false;
        }
        let isolation = match waits {
            true => Isolation::Held { ticket },
            false => Isolation::Replicating { ticket },
        };
        self.isolations.insert(conn, isolation);
        true
    }

    /// Notes that the action is sent now. Returns false if it does not wait (any more).
    pub(crate) fn send_action(&mut self, conn: ConnId) -> bool {
        let Some(Isolation::Held { ticket }) = self.isolations.get(&conn).copied() else {
            return false;
        };
        self.isolations
            .insert(conn, Isolation::Replicating { ticket });
        true
    }

    /// Gives the action its place in the order; it waits until everything before is released.
    pub(crate) fn action_ordered(
        &mut self,
        conn: ConnId,
        seqno: Seqno,
        depends_on: Seqno,
        failed: bool,
    ) {
        self.order.add(seqno);
        self.counters.local_cert_failures += u64::from(failed);
        if failed {
            self.conflicts.failed_certification();
        }
        let Some(Isolation::Replicating { ticket }) = self.isolations.get(&conn).copied() else {
            panic!("an action in flight is in the table");
        };
        let waiting = Isolation::Waiting {
            ticket,
            seqno,
            depends_on,
            code: if failed { Code::TrxFail } else { Code::Ok },
        };
        self.isolations.insert(conn, waiting);
    }

    /// Grants the first action, if everything before it is released: it has commit order to itself.
    pub(crate) fn next_action(&mut self) -> Option<ActionGranted> {
        let turn = first_waiting(&self.isolations)?;
        let alone = self.order.low() == turn.seqno - 1 || planted(Mutant::ToiNotAlone);
        if !alone || !self.order.try_enter(turn.seqno) {
            return None;
        }
        let (seqno, code) = (turn.seqno, turn.code);
        self.isolations
            .insert(turn.conn, Isolation::Holding { seqno, code });
        Some(ActionGranted {
            ticket: turn.ticket,
            answer: Answer::at(code, self.gtid_of(seqno), turn.depends_on),
            is_executed: code == Code::Ok,
        })
    }

    /// Returns the action of this connection that holds commit order.
    pub(crate) fn action_of(&self, conn: ConnId) -> Option<Seqno> {
        match self.isolations.get(&conn) {
            Some(Isolation::Holding { seqno, .. }) => Some(*seqno),
            _ => None,
        }
    }

    /// Ends the action of this connection, if it holds commit order.
    pub(crate) fn end_action(&mut self, conn: ConnId) -> Option<ActionEnded> {
        let Some(Isolation::Holding { seqno, code }) = self.isolations.get(&conn).copied() else {
            return None;
        };
        self.isolations.remove(&conn);
        self.order.leave(seqno);
        self.release_seqno(seqno);
        Some(ActionEnded {
            seqno,
            is_executed: code == Code::Ok,
        })
    }

    /// Forgets an action that failed. Returns the caller that waits.
    pub(crate) fn give_up_action(&mut self, conn: ConnId) -> Option<Ticket> {
        match self.isolations.remove(&conn) {
            Some(Isolation::Held { ticket } | Isolation::Replicating { ticket }) => Some(ticket),
            _ => None,
        }
    }
}
