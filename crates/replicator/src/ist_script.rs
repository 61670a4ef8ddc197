//! The script before an IST. A server learns its GTID domain (`wsrep_gtid_mode`) from the script of a state transfer, and from
//! nothing else: for such a server the script runs even if all that is missing comes from logs. The joiner's server starts its
//! script, a donor's passes on where the joiner's database stands (bypass), and then the entries are handed over.

use trireme_certification::Seqno;

use crate::action::Level;
use crate::gtid::Gtid;
use crate::ist::Ist;
use crate::joiner::TransferPhase;
use crate::replicator::{Replicator, Stage};
use crate::work::Task;

/// How far the script before an IST is, in one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Script {
    #[default]
    NotRun,
    /// From sst_request to sst_received.
    Runs {
        /// [`Ist::own_log`] of the IST that follows.
        own_log: bool,
    },
    Over,
}

impl Replicator {
    /// What the server awaits is no snapshot, only the script.
    pub(crate) fn awaits_script(&self) -> bool {
        matches!(self.script, Script::Runs { .. })
    }

    /// A snapshot is to take the place of the database: from sst_request to sst_received.
    pub(crate) fn awaits_snapshot(&self) -> bool {
        let scripts = matches!(&self.stage, Stage::Transfer(t) if t.is_with_scripts());
        scripts && !self.awaits_script()
    }

    /// True if the script has to run before the first entry is handed over. The server does without if nobody could run the
    /// donor's: all were down, and come back with their logs.
    pub(crate) fn owes_script(&self) -> bool {
        let is_wanted = self.context.options().script_before_ist && self.script == Script::NotRun;
        is_wanted && !self.lifecycle.is_server_running() && self.has_donor()
    }

    /// A member may be chosen to run the donor's script, now or later.
    pub(crate) fn has_donor(&self) -> bool {
        (self.context.control()).is_some_and(|control| control.has_donor_for(self.context.me()))
    }

    pub(crate) fn request_script(&mut self) {
        let Stage::Transfer(transfer) = &mut self.stage else {
            return;
        };
        let TransferPhase::Ist(ist) = &transfer.phase else {
            return;
        };
        self.script = Script::Runs {
            own_log: ist.own_log,
        };
        transfer.phase = TransferPhase::Requesting;
        let text = "wsrep_gtid_mode is ON: the script of the state transfer runs before the IST, for the GTID domain";
        self.log(Level::Info, text);
        self.executor.push_last(Task::SstRequest);
    }

    /// The log begins anew: it may hold what is on another branch than the control state to come.
    pub(crate) fn distrust_log_after_script(&mut self) {
        if let Script::Runs { own_log } = &mut self.script {
            *own_log = false;
        }
    }

    /// The server has the script's word, and its storage engine is up.
    pub(crate) fn script_has_told(&mut self, gtid: Gtid) {
        let at = self.executor.top();
        if gtid.seqno != at {
            let seqno = gtid.seqno;
            let text = format!(
                "the server's storage engine stands at seqno {seqno}, the IST goes on from {at}"
            );
            self.log(Level::Warn, text);
        }
        self.lifecycle.server_runs();
        self.begin_ist_after_script(at);
    }

    /// The server has no use for a script (wsrep_sst_method=skip).
    pub(crate) fn script_is_not_wanted(&mut self) {
        self.begin_ist_after_script(self.executor.top());
    }

    fn begin_ist_after_script(&mut self, at: Seqno) {
        let script = std::mem::replace(&mut self.script, Script::Over);
        let mut ist = Ist::new(at + 1, self.ist_sources(None), self.context.now_ms());
        ist.own_log = matches!(script, Script::Runs { own_log: true });
        ist.begun = false;
        if let Stage::Transfer(transfer) = &mut self.stage {
            transfer.phase = TransferPhase::Ist(ist);
        }
    }
}
