//! A node's note on the last total-order action that began on its database.

use trireme_certification::Seqno;
use trireme_mutants::{Mutant, planted};

use crate::gtid::Gtid;

/// The last total-order action that began to execute on a database (rule 13). An action and the
/// database's position are two steps: the database may hold the action though its position is lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastAction {
    /// Its position; [`Gtid::UNDEFINED`]: there is none of which the position does not tell.
    pub gtid: Gtid,
    /// It has ended.
    pub ended: bool,
    /// The machine was not started anew since: what had ended has survived the process.
    pub same_boot: bool,
}

impl LastAction {
    /// The position tells all.
    pub const NONE: LastAction = LastAction {
        gtid: Gtid::UNDEFINED,
        ended: true,
        same_boot: true,
    };

    /// Every action up to here has been executed, whatever the database's position; 0: that is not known.
    /// Actions execute one at a time: all before the last one have ended.
    pub fn executed_to(&self) -> Seqno {
        let ended = self.ended || planted(Mutant::BegunCountsAsEnded);
        match (self.same_boot, ended) {
            (true, true) => self.gtid.seqno,
            (true, false) => self.gtid.seqno - 1,
            (false, _) => 0,
        }
    }

    /// True if the database at `local` may hold something, or a part of something, that its position does
    /// not tell.
    pub fn leaves_in_doubt(&self, local: Gtid) -> bool {
        let is_its = local.is_known() && self.gtid.is_known() && local.uuid == self.gtid.uuid;
        let may_be_lost = !self.same_boot && local.precedes(self.gtid);
        is_its && (!self.ended || may_be_lost) && !planted(Mutant::ExecutedActionForgotten)
    }
}
