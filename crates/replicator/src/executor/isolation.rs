//! The table of this node's own total-order-isolation actions, from to_execute_start() to to_execute_end().

use std::collections::BTreeMap;

use trireme_certification::Seqno;

use crate::action::Code;
use crate::event::{ConnId, Ticket};

/// The progress of an action. It cannot be aborted (server-contract.md#to_execute_start).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Not sent yet: it waits for flow control.
    Held { ticket: Ticket },
    /// Sent.
    Replicating { ticket: Ticket },
    /// Ordered; it waits until everything before is released. `code` is the certification's verdict.
    Waiting {
        ticket: Ticket,
        seqno: Seqno,
        depends_on: Seqno,
        code: Code,
    },
    /// It has commit order to itself.
    Holding { seqno: Seqno, code: Code },
}

/// The actions by connection: at most one each.
pub(crate) type Isolations = BTreeMap<ConnId, Isolation>;

/// An [`Isolation::Waiting`] with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub conn: ConnId,
    pub ticket: Ticket,
    pub seqno: Seqno,
    pub depends_on: Seqno,
    pub code: Code,
}

/// Returns the first action in the order that waits for its turn.
pub(crate) fn first_waiting(isolations: &Isolations) -> Option<Turn> {
    let waiting = |(conn, isolation): (&ConnId, &Isolation)| match *isolation {
        Isolation::Waiting {
            ticket,
            seqno,
            depends_on,
            code,
        } => Some(Turn {
            conn: *conn,
            ticket,
            seqno,
            depends_on,
            code,
        }),
        _ => None,
    };
    let turns = isolations.iter().filter_map(waiting);
    turns.min_by_key(|turn| turn.seqno)
}
