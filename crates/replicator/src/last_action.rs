//! A node's note on the last total-order action that began on its database.

use trireme_certification::Seqno;
use trireme_mutants::{Mutant, planted};

use crate::gtid::Gtid;

/// The last total-order action that began to execute on a database (rule 13). To execute an action and to set the
/// database's position are two steps: the database may hold the action although its position is lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastAction {
    /// Its position; [`Gtid::UNDEFINED`]: the database's position covers all actions.
    pub gtid: Gtid,
    /// True if it has ended.
    pub ended: bool,
    /// True if the machine has not restarted since: an ended action has survived the process.
    pub same_boot: bool,
}

impl LastAction {
    /// The database's position covers all actions.
    pub const NONE: LastAction = LastAction {
        gtid: Gtid::UNDEFINED,
        ended: true,
        same_boot: true,
    };

    /// Returns the seqno up to which every action has been executed, whatever the database's position; 0: unknown.
    /// Actions execute one at a time: all before the last one have ended.
    pub fn executed_to(&self) -> Seqno {
        let ended = self.ended || planted(Mutant::BegunCountsAsEnded);
        match (self.same_boot, ended) {
            (true, true) => self.gtid.seqno,
            (true, false) => self.gtid.seqno - 1,
            (false, _) => 0,
        }
    }

    /// Returns true if the database at `local` may hold an action, or a part of one, above its position.
    pub fn leaves_in_doubt(&self, local: Gtid) -> bool {
        let is_its = local.is_known() && self.gtid.is_known() && local.uuid == self.gtid.uuid;
        let may_be_lost = !self.same_boot && local.precedes(self.gtid);
        is_its && (!self.ended || may_be_lost) && !planted(Mutant::ExecutedActionForgotten)
    }
}
