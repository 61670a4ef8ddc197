//! The proof of log and database, for a cluster that may be amnesiac (rules 4, 5).

use trireme_certification::Seqno;
use trireme_group::{DatabaseProof, Proof};

use crate::event::Connect;
use crate::last_action::LastAction;
use crate::replicator::Replicator;
use crate::state_transfer::Place;

impl Replicator {
    /// Returns the proof that log and database give now (rule 5).
    pub fn proof(&self) -> Proof {
        let local = self.database.local();
        let Some(control) = self.context.control() else {
            // With an unknown log, the part that this database shares with others is unknown.
            let database = match local.is_known() && !self.context.is_arbitrator() {
                true => DatabaseProof::Unclear,
                false => DatabaseProof::Nothing,
            };
            return Proof { known: 0, database };
        };
        let known = control.seqno().max(0) as u64;
        let up_to = |seqno: Seqno| DatabaseProof::UpTo {
            seqno: seqno.max(0) as u64,
        };
        let follows = self.executor.history() == control.history;
        let database = match self.transfer.place() {
            _ if self.context.is_arbitrator() || self.lifecycle.has_diverged() => {
                DatabaseProof::Nothing
            }
            Place::Active => up_to(self.executor.top()),
            Place::Transfer if self.transfer.awaits_snapshot() => DatabaseProof::Nothing,
            Place::Transfer if follows => up_to(self.executor.top()),
            _ if !local.is_known() || local.uuid != control.history => DatabaseProof::Nothing,
            _ => self.database.proof(control),
        };
        Proof { known, database }
    }

    /// Returns the arguments of the last connect(), for another one: the server was shown nothing since.
    pub fn connect_again(&self) -> Connect {
        Connect {
            incarnation: self.context.me(),
            me: self.context.my_member().clone(),
            local: self.database.local(),
            last_action: LastAction::NONE,
            bootstrap: None,
            server_running: self.lifecycle.is_server_running(),
            control: None,
            overrides: Vec::new(),
        }
    }
}
