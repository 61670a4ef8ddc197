//! A connection from connect() to the first view.

use trireme_group::Uuid;
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Level};
use crate::control::Control;
use crate::doubt::Doubt;
use crate::event::Connect;
use crate::gtid::Gtid;
use crate::joiner::SnapshotPull;
use crate::order::Order;
use crate::replicator::{Replicator, Stage};
use crate::voting::Voting;

impl Replicator {
    /// connect(): everything of the connection before is forgotten but what was applied.
    pub(crate) fn connect(&mut self, connect: Connect) {
        if self.inconsistent && !planted(Mutant::InconsistencyForgotten) {
            // The database does not count until a snapshot takes its place: neither for this connection nor,
            // if the server refuses one, for the next.
            self.applied_history = Uuid::NIL;
        }
        let applied = self.last_committed();
        self.doubt = Doubt::default();
        self.local = if connect.server_running && applied != Gtid::UNDEFINED {
            applied
        } else {
            self.place(&connect)
        };
        self.context.connect(connect.incarnation, connect.me);
        self.server_running = connect.server_running;
        self.overrides = connect.overrides;
        self.overrides_below_log = None;
        self.founding = connect.bootstrap.is_some();
        (self.connected, self.primary, self.leaving) = (false, false, false);
        (self.excluded, self.disconnects) = (false, false);
        (self.inconsistent, self.exited) = (false, false);
        self.intake.start_over();
        self.retention.start_over();
        self.works.start_over();
        self.submissions.start_over();
        self.transactions.clear();
        self.isolations.clear();
        self.voting = Voting::default();
        self.unsent.start_over();
        self.reads.start_over();
        self.pauses.start_over();
        self.announcements.start_over();
        self.joined_at = -1;
        self.flow_control.start_over(self.context.now_ms());
        (self.desyncs_granted, self.donation_result) = (0, None);
        (self.interrupted, self.course) = (None, None);
        self.script = crate::ist_script::Script::NotRun;
        self.home = None;
        self.keep_home();
        let control = match (connect.bootstrap, connect.control) {
            (Some(history), _) => {
                let goes_on = self.local.uuid == history;
                let seqno = if goes_on { self.local.seqno.max(0) } else { 0 };
                let mut forks = self.overrides.clone();
                // One at its position, too: it was bootstrapped there before.
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
        self.note_home();
        self.stage = Stage::Admission(SnapshotPull::default());
    }

    /// The node is to be the first of this history, whose state its database is.
    pub(crate) fn found(&mut self, history: Uuid) {
        let max_length = self.context.options().cert_max_length;
        self.founding = true;
        let control = Control::found(history, 0, Vec::new(), max_length);
        self.context.set_control(Some(control));
        // From here on the database counts, whenever the process ends.
        let gtid = Gtid {
            uuid: history,
            seqno: 0,
        };
        self.out.push(Action::SaveState {
            gtid,
            safe_to_bootstrap: true,
        });
    }

    /// Where the database stands. One that was to execute a total-order action above its position may
    /// hold that action: executing it and setting the position are two steps, and the second may be lost
    /// (rule 13). Nothing may be applied to it until the order has seen that nobody has a better one.
    fn place(&mut self, connect: &Connect) -> Gtid {
        let (local, last) = (connect.local, connect.last_action);
        let action = last.gtid;
        self.doubt = Doubt::of(local, last);
        let may_hold = local.is_known() && local.precedes(action);
        if connect.bootstrap.is_some() {
            self.doubt = Doubt::default();
            if !may_hold || planted(Mutant::ExecutedActionForgotten) {
                return local;
            }
            let text = format!(
                "the total-order action (DDL) at {action} has been executed on this database, whose position is {local}: \
                 it now counts as being at {action}. What was committed in between is missing unless it was flushed \
                 with the action, and the other nodes take a full snapshot of it"
            );
            self.log(Level::Warn, text);
            return action;
        }
        if last.leaves_in_doubt(local) {
            let text = format!(
                "the total-order action (DDL) at {action} may have been executed on this database, whose position is {local}: \
                 it needs a full state transfer, unless the databases of all members are in doubt"
            );
            self.log(Level::Info, text);
        }
        local
    }

    /// Nothing is to be concluded from an action that was noted: the database has diverged, or is replaced.
    pub(crate) fn forget_action(&mut self) {
        self.doubt = Doubt::default();
        self.out.push(Action::NoteAction {
            gtid: Gtid::UNDEFINED,
            ended: true,
        });
    }

    /// The first view of a component that this node founds: its database is the state.
    pub(crate) fn begin_founded(&mut self, seqno: i64) {
        self.stage = Stage::Active;
        self.server_running = true; // before anything is applied: the first view sees to it
        self.order = Order::new(seqno - 1);
        self.applied_history = self.context.history().unwrap_or(self.applied_history);
        self.note_overrides();
        self.out.push(Action::Admitted);
        self.show_connected();
    }
}
