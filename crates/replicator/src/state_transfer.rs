//! The way of this node's database to its place in the order: by the missing entries (IST), or by a donor's SST. Rules
//! 6 and 19.
//!
//! It owns the stage of the connection, the callbacks that wait until a transfer has ended, and the catch-up progress.
//! In: answers of the server, of peers and of the order. Out: messages to send, and the next steps ([`Resumed`],
//! [`Received`]). A transfer by the server's scripts outlasts a log that begins anew: the server can be asked only
//! once.

mod control_pull;
mod donor_wait;
mod ist;
mod partial;
mod patience;
mod probe;
mod progress;
mod sources;
mod sst;

use std::collections::VecDeque;

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Incarnation, Position};

use crate::control::Control;
use crate::executor::Executor;
use crate::payload::Payload;
use crate::peer_message::SnapshotChunk;
use crate::work::Task;
use control_pull::ControlPull;
use donor_wait::DonorWait;
use progress::CatchUp;

pub(crate) use ist::{Answered, DeadEnd, Ist, Next, PartTaken, received_ist};
pub use progress::Progress;
pub(crate) use sst::resuming::Resumed;
pub(crate) use sst::{Done, Prepared, Received, SstPhase};

/// The stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Not connected.
    Closed,
    /// Waits for a configuration with this node in it, and for the control state at it.
    Admission,
    /// In step with the group, but without the matching database.
    Transfer,
    /// Applies what is delivered.
    Active,
    /// Out of the group; the last callbacks are running.
    Final,
}

#[derive(Debug)]
enum Stage {
    Closed,
    Admission(ControlPull),
    Transfer(Transfer),
    Active,
    Final,
}

/// A callback that waits until the transfer has ended.
pub(crate) type Later = (Task, Option<Seqno>, Payload);

/// A running state transfer.
#[derive(Debug)]
struct Transfer {
    /// The last seqno that was ordered before this node was in step: no delivery brings it.
    upto: Seqno,
    phase: Phase,
    /// Callbacks that came meanwhile, and wait.
    later: VecDeque<Later>,
    /// True if one of them is without its payload, and so are all after it.
    spilled: bool,
    /// True after the warning that no node has a database to give.
    told_nobody_has: bool,
    donor_wait: DonorWait,
}

#[derive(Debug)]
enum Phase {
    Ist(Ist),
    /// An SST, from sst_request to sst_received.
    Sst(SstPhase),
}

/// The progress of the script before an IST, in one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Script {
    #[default]
    NotRun,
    /// From sst_request to sst_received. `own_log`: the IST that follows may read the own log. `request`: what the server
    /// has told its donor, and another one if that leaves.
    Runs {
        own_log: bool,
        request: Option<Bytes>,
    },
    Over,
}

#[derive(Debug)]
pub(crate) struct StateTransfer {
    stage: Stage,
    /// The phase of an SST during which the group's log began anew.
    interrupted: Option<SstPhase>,
    /// The script before an IST.
    script: Script,
    /// The catch-up of the database; None: the database is in step, or has no position yet.
    catch_up: Option<CatchUp>,
    /// As a joiner, this node has joined when everything up to this seqno is applied.
    joined_at: Seqno,
}

impl StateTransfer {
    /// Returns the state of a node that is not connected.
    pub(crate) fn closed() -> StateTransfer {
        StateTransfer {
            stage: Stage::Closed,
            interrupted: None,
            script: Script::NotRun,
            catch_up: None,
            joined_at: -1,
        }
    }

    /// Starts over for a new connection.
    pub(crate) fn start_over(&mut self) {
        *self = StateTransfer {
            stage: Stage::Admission(ControlPull::default()),
            ..StateTransfer::closed()
        };
    }

    pub(crate) fn place(&self) -> Place {
        match self.stage {
            Stage::Closed => Place::Closed,
            Stage::Admission(_) => Place::Admission,
            Stage::Transfer(_) => Place::Transfer,
            Stage::Active => Place::Active,
            Stage::Final => Place::Final,
        }
    }

    /// Returns true if what the group delivers goes into the database, now or in its turn: as far as is known, no SST will
    /// replace it.
    pub(crate) fn feeds_database(&self) -> bool {
        match self.place() {
            Place::Active => true,
            Place::Transfer => !self.awaits_snapshot(),
            Place::Closed | Place::Admission | Place::Final => false,
        }
    }

    /// Returns true if the node is not connected, or out of the group.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Closed | Stage::Final)
    }

    /// Notes that the database is in step.
    pub(crate) fn activate(&mut self) {
        self.stage = Stage::Active;
    }

    /// Notes that there is no database: the node has joined at this seqno.
    pub(crate) fn arbitrate(&mut self, seqno: Seqno) {
        (self.stage, self.joined_at) = (Stage::Active, seqno);
    }

    /// Notes that the node is out of the group.
    pub(crate) fn end(&mut self) {
        self.stage = Stage::Final;
    }

    /// Handles that the group's log begins anew: the control state is requested again, and the log may hold entries of
    /// another branch.
    pub(crate) fn log_begins_anew(&mut self) {
        self.catch_up = None;
        if let Script::Runs { own_log, .. } = &mut self.script {
            *own_log = false;
        }
        let before = std::mem::replace(&mut self.stage, Stage::Admission(ControlPull::default()));
        if let Stage::Transfer(transfer) = before {
            self.interrupted = match transfer.phase {
                Phase::Sst(phase) => Some(phase),
                Phase::Ist(_) => None,
            };
        }
    }

    /// Returns the seqno up to which everything must be applied before this joiner has joined.
    pub(crate) fn joined_at(&self) -> Seqno {
        self.joined_at
    }

    /// Notes that entries up to this seqno may complete the state that was sent to this joiner.
    pub(crate) fn state_is_whole(&mut self, seqno: Seqno) {
        self.joined_at = self.joined_at.max(seqno);
    }

    /// Returns the time of the next step that needs no event.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        match &self.stage {
            Stage::Admission(pull) => pull.deadline_ms(),
            Stage::Transfer(transfer) => {
                let phase_ms = match &transfer.phase {
                    Phase::Ist(ist) => ist.deadline_ms(),
                    Phase::Sst(phase) => phase.deadline_ms(),
                };
                transfer.donor_wait.deadline_ms().or(phase_ms)
            }
            _ => None,
        }
    }

    /// Takes in whether this joiner is about to take a state, while a member that could give it is not connected. Returns
    /// the longest time of the wait if that begins.
    pub(crate) fn review_donors(
        &mut self,
        is_missing: bool,
        now_ms: u64,
        suspect_ms: u64,
    ) -> Option<u64> {
        match &mut self.stage {
            Stage::Transfer(transfer) => {
                (transfer.donor_wait).review(is_missing, now_ms, suspect_ms)
            }
            _ => None,
        }
    }

    /// Returns true while this joiner waits for a connection to a member that could give it a state.
    pub(crate) fn awaits_donors(&self) -> bool {
        let is_waiting = |transfer: &Transfer| transfer.donor_wait.deadline_ms().is_some();
        self.transfer().is_some_and(is_waiting)
    }

    // --- the control state

    /// Asks one of these members for the control state, if that is due. Returns its name and the number of the attempt.
    pub(crate) fn ask_control_state(
        &mut self,
        now_ms: u64,
        peers: &[Incarnation],
    ) -> Option<(Incarnation, u64)> {
        self.pull_mut()?.ask(now_ms, peers)
    }

    /// Notes that a member has no usable control state: the next one is asked soon.
    pub(crate) fn control_state_refused(&mut self, from: Incarnation, round: u64, now_ms: u64) {
        if let Some(pull) = self.pull_mut() {
            pull.refused(from, round, now_ms);
        }
    }

    /// Takes in a part; returns the whole with the last one.
    pub(crate) fn control_state_part(
        &mut self,
        from: Incarnation,
        chunk: &SnapshotChunk,
        now_ms: u64,
    ) -> Option<Bytes> {
        self.pull_mut()?.take(from, chunk, now_ms)
    }

    /// Keeps a control state that has come from a member.
    pub(crate) fn keep_control_state(&mut self, from: Incarnation, control: Control) {
        if let Some(pull) = self.pull_mut() {
            pull.keep(from, control);
        }
    }

    /// Returns the control state that has come, and waits for the log.
    pub(crate) fn kept_control_state(&self) -> Option<&Control> {
        match &self.stage {
            Stage::Admission(pull) => pull.kept(),
            _ => None,
        }
    }

    /// Drops the control state that has come: the next member is asked.
    pub(crate) fn drop_control_state(&mut self) {
        if let Some(pull) = self.pull_mut() {
            pull.drop_kept();
        }
    }

    /// Takes out the control state that has come, if the log up to this position reaches it, with its sender.
    pub(crate) fn reached_control_state(
        &mut self,
        position: Position,
    ) -> Option<(Incarnation, Control)> {
        self.pull_mut()?.take_reached(position)
    }

    fn pull_mut(&mut self) -> Option<&mut ControlPull> {
        match &mut self.stage {
            Stage::Admission(pull) => Some(pull),
            _ => None,
        }
    }

    /// Returns the pull of the control state.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn pull(&self) -> Option<&ControlPull> {
        match &self.stage {
            Stage::Admission(pull) => Some(pull),
            _ => None,
        }
    }

    // --- callbacks that wait

    /// Gives the server its next callback: at once, or when the state transfer has ended. A callback with a seqno takes
    /// its place in the order.
    pub(crate) fn queue(&mut self, later: Later, executor: &mut Executor) {
        match &mut self.stage {
            Stage::Closed | Stage::Admission(_) | Stage::Final => {}
            Stage::Transfer(transfer) => {
                transfer.spilled |= later.2.is_in_log();
                transfer.later.push_back(later);
            }
            Stage::Active => {
                let (task, seqno, payload) = later;
                executor.enqueue(task, seqno, payload);
            }
        }
    }

    /// Returns true if one of the waiting callbacks is without its payload, and so are all after it: they are read back
    /// in order.
    pub(crate) fn has_spilled(&self) -> bool {
        self.transfer().is_some_and(|transfer| transfer.spilled)
    }

    /// Ends the transfer, when the database has caught up with the order, which is at `top`. Returns the callbacks that
    /// follow.
    pub(crate) fn finish(&mut self, top: Seqno) -> Vec<Later> {
        let Stage::Transfer(transfer) = std::mem::replace(&mut self.stage, Stage::Active) else {
            return Vec::new();
        };
        self.joined_at = self.joined_at.max(top);
        // If an SST has brought a primary view, the server has never been without a primary view.
        let is_brought = |(task, seqno, _): &Later| {
            matches!(task, Task::View(view) if view.primary) && seqno.is_some_and(|at| at <= top)
        };
        let last_brought = transfer.later.iter().rposition(is_brought);
        let is_past = |at: usize| last_brought.is_some_and(|last| at < last);
        let later = transfer.later.into_iter().enumerate();
        later
            .filter(|(at, (task, ..))| !(is_past(*at) && matches!(task, Task::View(_))))
            .map(|(_, later)| later)
            .collect()
    }

    // --- the transfer

    /// Begins an IST of a node that is in step with the group; `upto`: the group's last seqno.
    pub(crate) fn begin_ist(&mut self, upto: Seqno, ist: Ist) {
        self.begin(upto, Phase::Ist(ist));
    }

    /// Begins an SST of a node that is in step with the group; `upto`: the group's last seqno.
    pub(crate) fn begin_sst(&mut self, upto: Seqno) {
        self.begin(upto, Phase::Sst(SstPhase::Requesting));
    }

    fn begin(&mut self, upto: Seqno, phase: Phase) {
        self.stage = Stage::Transfer(Transfer {
            upto,
            phase,
            later: VecDeque::new(),
            spilled: false,
            told_nobody_has: false,
            donor_wait: DonorWait::default(),
        });
    }

    /// Returns the last seqno that no delivery brings; None: no transfer is running.
    pub(crate) fn upto(&self) -> Option<Seqno> {
        self.transfer().map(|transfer| transfer.upto)
    }

    /// Continues with these missing entries: the database is there, by the SST or the script.
    pub(crate) fn go_on_with(&mut self, ist: Ist) {
        if let Stage::Transfer(transfer) = &mut self.stage {
            transfer.phase = Phase::Ist(ist);
        }
    }

    fn transfer(&self) -> Option<&Transfer> {
        match &self.stage {
            Stage::Transfer(transfer) => Some(transfer),
            _ => None,
        }
    }

    /// Returns the running IST.
    pub(crate) fn ist(&self) -> Option<&Ist> {
        match &self.transfer()?.phase {
            Phase::Ist(ist) => Some(ist),
            Phase::Sst(_) => None,
        }
    }

    /// As [`Self::ist`], for answers.
    pub(crate) fn ist_mut(&mut self) -> Option<&mut Ist> {
        match &mut self.stage {
            Stage::Transfer(Transfer {
                phase: Phase::Ist(ist),
                ..
            }) => Some(ist),
            _ => None,
        }
    }

    // --- the script before an IST

    /// Returns true if the server awaits no SST, only the script.
    pub(crate) fn awaits_script(&self) -> bool {
        matches!(self.script, Script::Runs { .. })
    }

    /// Returns true if no script has run in this connection.
    pub(crate) fn has_run_no_script(&self) -> bool {
        self.script == Script::NotRun
    }

    pub(crate) fn script_is_over(&self) -> bool {
        self.script == Script::Over
    }

    /// Makes the script run before the missing entries are handed over. Returns false if none are pulled.
    pub(crate) fn run_script(&mut self) -> bool {
        let Some(own_log) = self.ist().map(Ist::may_read_own_log) else {
            return false;
        };
        let request = None;
        self.script = Script::Runs { own_log, request };
        self.request();
        true
    }

    /// Asks for another donor, since the one that sends has left. The script copies nothing, so that a second donor may
    /// begin again. Returns false if the server awaits an SST.
    pub(crate) fn ask_another_donor(&mut self, now_ms: u64) -> bool {
        let Script::Runs {
            request: Some(request),
            ..
        } = &self.script
        else {
            return false;
        };
        let request = request.clone();
        self.ask_donor(request, now_ms);
        true
    }

    /// Ends the script. Returns true if the IST that follows may read the local log.
    pub(crate) fn end_script(&mut self) -> bool {
        let script = std::mem::replace(&mut self.script, Script::Over);
        matches!(script, Script::Runs { own_log: true, .. })
    }
}

#[cfg(test)]
mod tests;
