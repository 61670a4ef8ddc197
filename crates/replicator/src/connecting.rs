//! The start of a connection, from connect() to the first view.

use trireme_group::Uuid;
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, HostAction, Level, Note};
use crate::control::Control;
use crate::database::Database;
use crate::event::Connect;
use crate::gtid::Gtid;
use crate::replicator::Replicator;
use crate::voting::Voting;

impl Replicator {
    /// Carries out connect(): forgets the whole connection before, except the applied position.
    pub(crate) fn connect(&mut self, connect: Connect) {
        if self.lifecycle.has_diverged() && !planted(Mutant::InconsistencyForgotten) {
            // A diverged database does not count until an SST replaces it. That holds for this connection and, if the
            // server refuses an SST, for the next one.
            self.executor.forget_history();
        }
        let applied = Some(self.last_committed()).filter(|gtid| *gtid != Gtid::UNDEFINED);
        let (mut database, line) = Database::of(&connect, applied);
        database.keep_view(self.context.control());
        self.database = database;
        if let Some((level, text)) = line {
            self.log(level, text);
        }
        self.context.connect(connect.incarnation, connect.me);
        let is_founding = connect.bootstrap.is_some();
        (self.lifecycle).connect(is_founding, connect.server_running);
        self.counters.connect(self.context.now_ms());
        self.intake.start_over();
        self.retention.start_over();
        self.executor.start_over();
        self.submissions.start_over();
        self.voting = Voting::default();
        self.callers.start_over();
        self.out.forget_joined();
        self.flow_control.start_over(self.context.now_ms());
        let control = match (connect.bootstrap, connect.control) {
            (Some(history), _) => {
                let local = self.database.local();
                let goes_on = local.uuid == history;
                let seqno = if goes_on { local.seqno.max(0) } else { 0 };
                let mut forks = self.database.overrides().to_vec();
                // This includes an override at its own position: the database was bootstrapped there before.
                forks.retain(|(_, fork)| goes_on && *fork <= seqno);
                let max_length = self.context.options().cert_max_length;
                Some(Control::found(history, seqno, forks, max_length))
            }
            (None, Some(bytes)) => match Control::decode(bytes) {
                Ok(control) => Some(control),
                Err(error) => {
                    self.log(
                        Level::Warn,
                        format!("recovered control state cannot be used: {error}"),
                    );
                    None
                }
            },
            (None, None) => None,
        };
        self.context.set_control(control);
        self.database.note_view(self.context.control());
        self.transfer.start_over();
    }

    /// Makes the node the first of this history; its database is the state.
    pub(crate) fn found(&mut self, history: Uuid) {
        let max_length = self.context.options().cert_max_length;
        self.lifecycle.found();
        let control = Control::found(history, 0, Vec::new(), max_length);
        self.context.set_control(Some(control));
        // From here on the database counts, even if the process ends.
        let gtid = Gtid {
            uuid: history,
            seqno: 0,
        };
        self.out.push(Action::Host(HostAction::SaveState {
            gtid,
            safe_to_bootstrap: true,
        }));
    }

    /// Forgets the note of an action: the database has diverged, or is replaced.
    pub(crate) fn forget_action(&mut self) {
        self.database.forget_action();
        self.out.push(Action::Note(Note::Action {
            gtid: Gtid::UNDEFINED,
            ended: true,
        }));
    }

    /// Begins with the first view of a component that this node founds: its database is the state.
    pub(crate) fn begin_founded(&mut self, seqno: i64) {
        self.transfer.activate();
        self.lifecycle.server_runs(); // the first view starts it, before any entry is applied
        let history = (self.context.history()).unwrap_or(self.executor.history());
        self.executor.begin_at(history, seqno - 1);
        self.note_overrides();
        self.out.push(Action::Host(HostAction::Admitted));
        self.show_connected();
    }
}
