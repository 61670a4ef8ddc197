//! A joiner's way into step with the group: the control state from a member, then the database by an IST
//! (`joiner/incremental.rs`) or an SST (`joiner/sst.rs`). It carries out the steps of
//! [`crate::state_transfer::StateTransfer`].

mod in_doubt;
mod incremental;
mod sst;

use trireme_group::{Configuration, Incarnation, Position};

use crate::action::{Action, HostAction, Level};
use crate::action_queue::ActionQueue;
use crate::callers::Callers;
use crate::context::Context;
use crate::control::Control;
use crate::counters::Counters;
use crate::database::{Database, Fitness};
use crate::executor::Executor;
use crate::intake::Intake;
use crate::lifecycle::Lifecycle;
use crate::log_reader::LogReader;
use crate::peer_message::{PeerMessage, SnapshotChunk};
use crate::state_transfer::{Ist, Place, StateTransfer};
use crate::submissions::Submissions;
use crate::voting::Voting;
use crate::work::{Task, View};

pub(crate) use incremental::Step;

/// The parts that a state transfer changes.
pub(crate) struct Joiner<'a> {
    pub(crate) callers: &'a Callers,
    pub(crate) context: &'a mut Context,
    pub(crate) out: &'a mut ActionQueue,
    pub(crate) counters: &'a mut Counters,
    pub(crate) lifecycle: &'a mut Lifecycle,
    pub(crate) transfer: &'a mut StateTransfer,
    pub(crate) database: &'a mut Database,
    pub(crate) intake: &'a mut Intake,
    pub(crate) log_reader: &'a mut LogReader,
    pub(crate) executor: &'a mut Executor,
    pub(crate) submissions: &'a mut Submissions,
    pub(crate) voting: &'a mut Voting,
}

/// The kind of a transfer that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Ist,
    /// The server is still to be asked.
    Sst,
}

/// Returns the reason for the process's end, in Galera's words: users, and MariaDB's suites, look for them at the start
/// of the line.
pub(crate) fn never_received(why: &str) -> String {
    format!("Will never receive state. Need to abort. {why}")
}

impl Joiner<'_> {
    // --- the control state

    /// Pulls the control state: waits for a configuration with this node in it, then asks its members, one after the
    /// other, for a usable control state at or above it. Deliveries queue up meanwhile.
    pub(crate) fn pull_control_state(&mut self) {
        if self.context.control().is_some() {
            return;
        }
        // The log may never reach a state of the branch that an override, delivered since, has cut off.
        let kept = self.transfer.kept_control_state();
        if kept.is_some_and(|control| !self.is_usable(control)) {
            self.transfer.drop_control_state();
        }
        let Some((at_least, configuration)) = self.admitting_configuration() else {
            return;
        };
        let (me, now_ms) = (self.context.me(), self.context.now_ms());
        // Voters first: they have joined. Then the near ones; an arbitrator has the control state as well, but may be far
        // away.
        let mut peers: Vec<_> = configuration
            .members
            .iter()
            .filter(|m| m.incarnation != me)
            .collect();
        let segment = self.context.my_member().segment;
        peers.sort_by_key(|m| (!m.voter, m.arbitrator, m.segment != segment, m.incarnation));
        let peers: Vec<Incarnation> = peers.into_iter().map(|m| m.incarnation).collect();
        if let Some((peer, round)) = self.transfer.ask_control_state(now_ms, &peers) {
            let request = PeerMessage::SnapshotRequest { round, at_least };
            self.out.send(peer, &request);
        }
    }

    /// Returns the position at which this node was admitted, and the last known configuration with this node.
    fn admitting_configuration(&self) -> Option<(Position, &Configuration)> {
        let mut with_me = (self.intake.configurations())
            .filter(|(_, configuration)| configuration.index_of(self.context.me()).is_some());
        let (position, first) = with_me.next()?;
        Some((
            position,
            with_me.next_back().map_or(first, |(_, last)| last),
        ))
    }

    /// Takes in a refusal: asks the next member soon.
    pub(crate) fn control_state_refused(&mut self, from: Incarnation, round: u64) {
        let now_ms = self.context.now_ms();
        self.transfer.control_state_refused(from, round, now_ms);
    }

    /// Takes in a part of the control state.
    pub(crate) fn control_state_part(&mut self, from: Incarnation, chunk: &SnapshotChunk) {
        let now_ms = self.context.now_ms();
        let Some(bytes) = self.transfer.control_state_part(from, chunk, now_ms) else {
            return;
        };
        match Control::decode(bytes) {
            Ok(control) if self.is_usable(&control) => {
                return self.transfer.keep_control_state(from, control);
            }
            Ok(_) => {}
            Err(error) => self.out.log(
                Level::Warn,
                format!("control state of {from} cannot be used: {error}"),
            ),
        }
        self.control_state_refused(from, chunk.round);
    }

    /// Goes on with the usable control state that has come, when the own log reaches it. A state ahead of the log would
    /// vouch for entries that this replica lacks (rule 5). Returns its sender: this node is in step with the group.
    pub(crate) fn use_control_state(&mut self) -> Option<Incarnation> {
        let delivered_to = self.intake.delivered_to();
        let (from, control) = self.transfer.reached_control_state(delivered_to)?;
        let position = control.position;
        self.database.borrows(position);
        self.out.log(
            Level::Debug,
            format!("control state at position {position} came from {from}"),
        );
        self.context.set_control(Some(control));
        self.intake.drop_up_to(position);
        Some(from)
    }

    fn is_usable(&self, control: &Control) -> bool {
        let admitted = self.admitting_configuration();
        let at_least = admitted.map_or(0, |(position, _)| position);
        control.position >= at_least
            && control.members.state_of(self.context.me()).is_some()
            && (self.database).is_of_its_branch(control, self.intake.configurations())
    }

    // --- the beginning of the transfer

    /// Decides how the database follows, when the node is in step with the group. The `sender` of the control state is
    /// asked first for missing entries. Returns the transfer that has begun; None: there is nothing to transfer, or an
    /// SST continues.
    pub(crate) fn begin(&mut self, sender: Option<Incarnation>) -> Option<Begun> {
        if self.context.is_arbitrator() {
            self.begin_arbitration(sender.is_some());
            return None;
        }
        if self.transfer.is_interrupted() {
            self.resume_snapshot();
            return None;
        }
        let control = self.context.control()?;
        let (history, upto) = (control.history, control.seqno());
        let is_resumed = self.lifecycle.is_connected();
        let fitness = self.database.fitness(control);
        let (local, usable) = (self.database.local(), fitness.is_usable);
        let was_not_chosen = usable && self.database.doubt_if_not_chosen(control);
        let sources = self.ist_sources(sender);
        self.enter_primary();
        self.tell_unfit(&fitness, was_not_chosen);
        self.voting.forget_dummies();
        if usable {
            if !is_resumed {
                self.executor.begin_at(history, local.seqno);
            }
            let now_ms = self.context.now_ms();
            // Entries that were read back from the local log are on this branch.
            let own_log = fitness.fork.is_none() || sender.is_none();
            let begun = is_resumed && self.lifecycle.is_server_running();
            let entries = (local.seqno + 1, upto);
            let ist = Ist::of_database(entries, sources, own_log, begun, now_ms);
            self.transfer.begin_ist(upto, ist);
            self.transfer.follow_from(local.seqno, now_ms);
            self.note_forks();
        } else {
            self.transfer.begin_sst(upto);
        }
        self.show_connected();
        Some(match usable {
            true => Begun::Ist,
            false => Begun::Sst,
        })
    }

    /// Tells the operator why the database cannot follow the control state by itself.
    fn tell_unfit(&mut self, fitness: &Fitness, was_not_chosen: bool) {
        let local = self.database.local();
        if let Some(fork) = fitness.fork.filter(|_| fitness.is_forked) {
            let text = format!(
                "Gap in state sequence. Need state transfer. The database, at {local}, and the cluster have gone on \
                 without each other after seqno {fork}: what it holds above that is dropped"
            );
            self.out.log(Level::Warn, text);
        }
        if was_not_chosen {
            let text = format!(
                "when no node had a database beyond doubt about DDL, the cluster went on with another one than this, \
                 at {local}, and may have executed the DDL twice: this one needs a full state transfer, unless no \
                 member has a state to send"
            );
            self.out.log(Level::Warn, text);
        }
        if fitness.is_here && !fitness.is_usable {
            let text = format!(
                "the database at {local} is more views behind than the cluster remembers: it needs a full state \
                 transfer"
            );
            self.out.log(Level::Info, text);
        }
    }

    /// Begins without a database, when the node is in step with the group. `anew`: the log has nothing of the entries
    /// before.
    fn begin_arbitration(&mut self, anew: bool) {
        let Some(control) = self.context.control() else {
            return;
        };
        let (history, seqno) = (control.history, control.seqno());
        if anew {
            let text = format!(
                "this arbitrator's log begins at seqno {}: it gets its vote {} s after all nodes that serve have applied what \
                 comes before, when they have flushed it",
                seqno + 1,
                self.context.options().thresholds.unflushed_ms / 1_000
            );
            self.out.log(Level::Info, text);
        }
        self.executor.begin_at(history, seqno);
        self.transfer.arbitrate(seqno);
        self.enter_primary();
    }

    /// Begins with the first view of a component that this node founds: its database is the state.
    pub(crate) fn begin_founded(&mut self, seqno: i64) {
        self.transfer.activate();
        self.lifecycle.server_runs(); // the first view starts it, before any entry is applied
        let history = (self.context.history()).unwrap_or(self.executor.history());
        self.executor.begin_at(history, seqno - 1);
        self.note_forks();
        self.out.push(Action::Host(HostAction::Admitted));
        self.show_connected();
    }

    /// Notes that the database follows the control state, unless it is in doubt.
    pub(crate) fn note_forks(&mut self) {
        if let Some(forks) = self.database.follows(self.context.control()) {
            self.out.note_forks(forks);
        }
    }

    fn enter_primary(&mut self) {
        self.lifecycle.enter_primary();
        self.out.push(Action::Host(HostAction::Admitted));
    }

    /// Makes the connected() callback, once per connection.
    fn show_connected(&mut self) {
        let view = self.context.control().and_then(|c| c.views.last().cloned());
        let Some((seqno, configuration)) = view else {
            return;
        };
        if self.lifecycle.show_connected() {
            let view = self.primary_view(seqno, &configuration);
            self.executor.push_at_once(Task::Connected(view));
        }
    }

    /// Shows the server that the node is primary again, if it knows of a loss only: the view of the return may be one that
    /// a snapshot has brought, and takes no place in the order here.
    pub(crate) fn show_return(&mut self) {
        let is_back = self.lifecycle.takes_part() && self.transfer.place() == Place::Active;
        if is_back && self.executor.queue().is_told_of_loss() {
            // At the database's position, which the server notes with the view.
            let view = self.primary_view(self.executor.top(), &self.context.configuration());
            self.executor.push_last(Task::View(view));
        }
    }

    fn primary_view(&self, seqno: i64, configuration: &Configuration) -> View {
        let gtid = self.executor.ordered_gtid(self.context, seqno);
        View::primary(gtid, configuration, self.context.me())
    }

    /// Reports the catch-up progress.
    pub(crate) fn tell_progress(&mut self) {
        let Some(end) = self.context.seqno() else {
            return;
        };
        let (now_ms, low) = (self.context.now_ms(), self.executor.low());
        if let Some(text) = self.transfer.progress_line(now_ms, low, end) {
            self.out.log(Level::Info, text);
        }
    }
}
