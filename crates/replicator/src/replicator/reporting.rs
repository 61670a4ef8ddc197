//! Reports of a node's state to the outside.

use bytes::Bytes;
use trireme_certification::{KeyType, Seqno};
use trireme_group::{DatabaseProof, Incarnation, Position, Proof, Uuid};

use super::Replicator;
use crate::control::Control;
use crate::control_digest::ControlDigest;
use crate::event::Connect;
use crate::forks::Fork;
use crate::gtid::Gtid;
use crate::history::History;
use crate::last_action::LastAction;
use crate::member_state::{MemberState, NodeState};
use crate::membership::backlog;
use crate::state_transfer::{Place, Progress, SstPhase};
use crate::status::{LocalState, NodeWait, Status};

impl Replicator {
    /// Returns the number of write-sets that have failed because they had seen too little (`cert.max_length`).
    pub fn too_wide_count(&self) -> u64 {
        self.counters.too_wide
    }

    /// Returns the latest time for the next [`crate::Event::Tick`].
    pub fn next_deadline_ms(&self) -> Option<u64> {
        let waits_for_control = || self.context.control().is_none() && !self.intake.is_empty();
        let stage = match self.transfer.place() {
            Place::Closed | Place::Final => return self.log_reader.again_ms(),
            Place::Admission if !waits_for_control() => None,
            Place::Transfer if !self.lifecycle.is_primary() => None,
            Place::Admission | Place::Transfer => self.transfer.deadline_ms(),
            Place::Active => {
                Some((self.retention).report_deadline_ms(&self.context.options().thresholds))
            }
        };
        let again = (self.submissions).again_at_ms(self.context.now_ms());
        // A deadline that has passed waits for another event: an early tick would not help.
        stage
            .into_iter()
            .chain(again)
            .chain(self.flow_control.deadline_ms(&self.context))
            .min()
            .map(|at| at.max(self.context.now_ms() + 10))
            .into_iter()
            .chain((self.flow_control.next_permit_ms()).filter(|_| self.submissions.is_any_held()))
            .chain(
                self.log_reader
                    .again_ms()
                    .or_else(|| self.has_more_to_process().then_some(self.context.now_ms())),
            )
            .min()
    }

    /// Returns the bytes of the payloads that are in memory until they are processed or applied. Payloads that are also
    /// in the log are kept within [`crate::Options::queue_bytes`], except the last one.
    pub fn payload_bytes(&self) -> usize {
        self.log_reader.memory().taken_bytes()
    }

    /// Returns the number of payloads read back since the process began.
    pub fn read_back_count(&self) -> u64 {
        self.log_reader.count()
    }

    /// Returns true if a waiting payload is only in the log: then the log must stay readable.
    pub fn needs_log(&self) -> bool {
        self.executor.queue().missing().is_some()
    }

    /// Returns counters and states. Cheap. `history` is the node's own log, as for [`Replicator::handle`].
    pub fn status(&self, history: &dyn History) -> Status {
        let (state, comment) = self.shown_state();
        let counters = &self.counters;
        let executor = self.executor.counters();
        let control = self.context.control();
        let elapsed_ms = counters.elapsed_ms(self.context.now_ms()).max(1);
        let flow = self.flow_control.counters(self.context.now_ms());
        let held_up_ms = flow.paused_ms + flow.paced_ms;
        let members = control
            .map(|c| c.members.configuration().members.as_slice())
            .unwrap_or_default();
        let incoming: Vec<&str> = members.iter().map(|m| m.incoming.as_str()).collect();
        Status {
            local_state_uuid: control.map_or(self.executor.history(), |c| c.history),
            protocol_application: control
                .map_or(-1, |c| i64::from(c.members.configuration().app_protocol())),
            last_committed: self.last_committed().seqno,
            replicated: counters.replicated,
            replicated_bytes: counters.replicated_bytes,
            repl_keys: counters.repl_keys,
            repl_keys_bytes: counters.repl_keys_bytes,
            repl_data_bytes: counters.repl_data_bytes,
            repl_other_bytes: counters.repl_other_bytes,
            received: counters.received,
            received_bytes: counters.received_bytes,
            local_commits: executor.local_commits,
            local_cert_failures: executor.local_cert_failures,
            local_replays: executor.local_replays,
            local_send_queue: counters.send_queue.length(self.submissions.waiting()),
            local_recv_queue: executor
                .recv_queue
                .length(backlog(&self.executor, &self.intake)),
            local_cached_downto: history.first_seqno().unwrap_or(-1),
            flow_control_paused_ns: held_up_ms * 1_000_000,
            flow_control_paused: (held_up_ms as f64 / elapsed_ms as f64).min(1.0),
            flow_control_sent: flow.sent,
            flow_control_recv: flow.received,
            flow_control_active: flow.is_stopped,
            flow_control_requested: flow.is_stopping,
            cert_deps_distance: counters.deps_distance.get(),
            apply_oooe: executor.out_of_order_entered.get(),
            apply_oool: executor.out_of_order_left.get(),
            apply_window: executor.window.get(),
            apply_waits: executor.apply_waits,
            // Commit order is strict.
            commit_oooe: 0.0,
            commit_oool: 0.0,
            commit_window: 1.0,
            local_state: state,
            local_state_comment: comment,
            cert_index_size: control.map_or(0, |c| c.certification.len() as u64),
            causal_reads: counters.causal_reads,
            cert_interval: counters.cert_interval.get(),
            open_transactions: self.executor.open_transactions() as u64,
            incoming_addresses: incoming.join(","),
            cluster_weight: control.map_or(0, |c| c.members.configuration().total_weight()),
            desync_count: self
                .context
                .my_state()
                .map_or(0, |member_state| u64::from(member_state.desyncs)),
            progress: self.progress(),
            left_out: control
                .map(|c| c.members.left_out().map(|m| m.name.clone()).collect())
                .unwrap_or_default(),
            paced_ns: flow.paced_ms * 1_000_000,
            lag_seqnos: self.lag_seqnos(),
            lag_ms: self.lag_ms(),
            conflicts: self.executor.conflicts(),
        }
    }

    /// Returns the number of entries that this node knows to be ordered, and has not committed.
    fn lag_seqnos(&self) -> u64 {
        let Some(top) = self
            .context
            .seqno()
            .filter(|_| !self.executor.history().is_nil())
        else {
            return 0;
        };
        let certified = u64::try_from(top - self.executor.low()).unwrap_or(0);
        let to_come = match self.intake.to_come() {
            many if many > u64::MAX / 2 => 0, // not known
            few => few,
        };
        certified + self.intake.len() as u64 + to_come
    }

    fn lag_ms(&self) -> u64 {
        let top = self.context.seqno().unwrap_or(-1);
        (self.executor).lag_ms(self.context.now_ms(), top)
    }

    /// Returns the catch-up progress; None: the database follows the order, or waits for an SST.
    pub fn progress(&self) -> Option<Progress> {
        let end = self.context.seqno()?;
        let (now_ms, low) = (self.context.now_ms(), self.executor.low());
        self.transfer.progress(now_ms, low, end)
    }

    /// Returns true if the node is Synced: up to date, and neither a donor nor desynced.
    pub fn is_synced(&self) -> bool {
        self.local_state().0 == LocalState::Synced
    }

    /// Returns true while the server holds the node still (FLUSH TABLES WITH READ LOCK, say) and entries wait for that.
    pub fn is_held_still(&self) -> bool {
        self.callers.is_any_pause() && !self.intake.is_empty()
    }

    /// Returns true if the node is leaving, or has left: it takes no new place.
    pub fn is_leaving(&self) -> bool {
        self.lifecycle.is_leaving()
    }

    /// Logs a change of the state.
    pub(super) fn tell_state(&mut self) {
        let (state, _) = self.local_state();
        self.out
            .tell_state(state, self.context.seqno().unwrap_or(-1));
    }

    /// Returns the state for status variables, on which load balancers act. A donor that only passes a joiner's position
    /// on is in step: it copies nothing.
    fn shown_state(&self) -> (LocalState, &'static str) {
        let state = self.local_state();
        let is_only_left_out = self.context.options().left_out_shows_synced
            && (self.context.my_state()).is_some_and(MemberState::is_only_left_out);
        let only_passes_on = self.lifecycle.passes_position_on()
            && (self.context.my_state()).is_some_and(MemberState::is_only_donor);
        match state.0 == LocalState::Donor && (is_only_left_out || only_passes_on) {
            true => (LocalState::Synced, "Synced"),
            false => state,
        }
    }

    fn local_state(&self) -> (LocalState, &'static str) {
        if self.lifecycle.has_diverged() {
            return (LocalState::Inconsistent, "Inconsistent");
        }
        let initialized = (LocalState::Initialized, "Initialized");
        if !self.lifecycle.is_primary() {
            return initialized;
        }
        match (self.transfer.place(), self.context.my_node_state()) {
            (Place::Closed | Place::Final | Place::Admission, _) | (_, None) => initialized,
            (Place::Transfer, _) => match self.transfer.sst() {
                None
                | Some(SstPhase::Receiving { .. } | SstPhase::Early { donor: Some(_), .. }) => {
                    (LocalState::Joiner, "Joining: receiving State Transfer")
                }
                Some(SstPhase::Retry { .. }) => {
                    (LocalState::Joiner, "Joining: State Transfer request failed")
                }
                Some(SstPhase::GivenUp) => (LocalState::Joiner, "Joining: State Transfer failed"),
                Some(
                    SstPhase::Requesting
                    | SstPhase::Prepared { .. }
                    | SstPhase::Submitted { .. }
                    | SstPhase::Early { .. }
                    | SstPhase::Brought { .. },
                ) => (LocalState::Joiner, "Joining"),
            },
            (Place::Active, Some(NodeState::Joiner)) => (LocalState::Joiner, "Joining"),
            (Place::Active, Some(NodeState::Donor)) => (LocalState::Donor, "Donor/Desynced"),
            (Place::Active, Some(NodeState::Joined)) => (LocalState::Joined, "Joined"),
            (Place::Active, Some(NodeState::Synced)) => (LocalState::Synced, "Synced"),
        }
    }

    /// Resets the counters (FLUSH STATUS).
    pub fn reset_counters(&mut self) {
        self.counters.reset(self.context.now_ms());
        self.executor.reset_counters();
        self.flow_control.reset_counters(self.context.now_ms());
    }

    /// Returns the control state after all deliveries, for the log; see [`crate::Connect::control`]. None if it is
    /// unknown, or some deliveries were not processed.
    pub fn control_snapshot(&self) -> Option<Bytes> {
        // Entries behind the view by which the node leaves are not even queued.
        let in_step = self.intake.is_empty() && !self.takes_nothing_in();
        // The control state of a node that has diverged may be another branch's (rule 11).
        let is_kept = in_step && !self.lifecycle.has_diverged();
        let control = self.context.control().filter(|_| is_kept);
        control.map(Control::encode)
    }

    /// Returns digests that are equal on all nodes at equal positions. None: the node is not in step with any other. A
    /// node that has left keeps the state of that moment without using it: its log may be on another branch by now.
    pub fn control_digest(&self) -> Option<ControlDigest> {
        self.control_in_use().map(Control::digest)
    }

    /// Returns only the cheap digest, with the position.
    pub fn control_brief(&self) -> Option<(Position, u64)> {
        let control = self.control_in_use()?;
        Some((control.position, control.brief_digest()))
    }

    /// Returns the last position whose entry went into the control state, under the same conditions.
    pub fn control_position(&self) -> Option<Position> {
        self.control_in_use().map(|control| control.position)
    }

    fn control_in_use(&self) -> Option<&Control> {
        let has_left = self.transfer.is_over();
        self.context.control().filter(|_| !has_left)
    }

    /// Returns at most `most` keys of the write-set with this seqno: none if it failed, or is no longer known.
    pub fn keys_of(&self, seqno: Seqno, most: usize) -> Vec<(u64, KeyType)> {
        let control = self.context.control().into_iter();
        let keys = control.flat_map(|control| control.certification.keys_of(seqno));
        keys.take(most).collect()
    }

    /// Returns the last seqno that this node has certified.
    pub fn last_seqno(&self) -> Option<Seqno> {
        self.context.seqno()
    }

    /// Returns true if the group's deliveries go into the database, now or in their turn: as far as is known, no SST
    /// will replace it.
    pub fn database_follows(&self) -> bool {
        self.transfer.feeds_database()
    }

    /// Returns the operator's overrides so far, each with the last seqno before it.
    pub fn forced_views(&self) -> impl Iterator<Item = Fork> {
        let control = self.context.control().into_iter();
        control.flat_map(|c| c.forks.overrides())
    }

    /// Returns the members that the group has left out of flow control.
    pub fn left_out_members(&self) -> Vec<Incarnation> {
        let control = self.context.control().into_iter();
        control
            .flat_map(|c| c.members.left_out().map(|m| m.incarnation))
            .collect()
    }

    fn member_name(&self, incarnation: Incarnation) -> Option<String> {
        let configuration = self.context.control()?.members.configuration();
        configuration.member(incarnation).map(|m| m.name.clone())
    }

    /// Returns the next thing that this node, a member of the group, waits for before it is in step.
    pub fn waits_for(&self) -> Option<NodeWait> {
        let donor = || (self.transfer.receives_from()).and_then(|donor| self.member_name(donor));
        match self.transfer.place() {
            Place::Closed | Place::Final => None,
            Place::Admission => Some(NodeWait::Admission),
            Place::Transfer if self.transfer.awaits_script() => {
                Some(NodeWait::Script { donor: donor() })
            }
            Place::Transfer => Some(match self.transfer.sst() {
                None => NodeWait::IncrementalTransfer,
                Some(
                    SstPhase::Receiving { .. }
                    | SstPhase::Early { donor: Some(_), .. }
                    | SstPhase::Brought { .. },
                ) => NodeWait::StateTransfer { donor: donor() },
                Some(
                    SstPhase::Requesting
                    | SstPhase::Retry { .. }
                    | SstPhase::Submitted { .. }
                    | SstPhase::Early { .. }
                    | SstPhase::Prepared { .. }
                    | SstPhase::GivenUp,
                ) => NodeWait::Donor,
            }),
            Place::Active if self.executor.low() < self.transfer.joined_at() => {
                Some(NodeWait::IncrementalTransfer)
            }
            Place::Active => match self.context.my_node_state() {
                Some(NodeState::Joiner | NodeState::Joined) => Some(NodeWait::CatchUp),
                _ => None,
            },
        }
    }

    /// Returns the ids of the operator's overrides so far.
    pub fn overrides(&self) -> Vec<Uuid> {
        self.forced_views().map(|(id, _)| id).collect()
    }

    // --- for another connection, and for a cluster that may be amnesiac (rules 4, 5)

    /// Returns the database's position when this connection began; seqno -1: unknown.
    pub fn local(&self) -> Gtid {
        self.database.local()
    }

    /// last_committed_id(): nil and -1 before the first view.
    pub fn last_committed(&self) -> Gtid {
        self.executor.last_committed()
    }

    /// Returns the proof that log and database give now (rule 5). `history` is the node's own log, as for
    /// [`Replicator::handle`].
    pub fn proof(&self, history: &dyn History) -> Proof {
        let local = self.database.local();
        let Some(control) = self.context.control() else {
            // With an unknown log, the part that this database shares with others is unknown.
            let database = match local.is_known() && !self.context.is_arbitrator() {
                true => DatabaseProof::Unclear,
                false => DatabaseProof::Nothing,
            };
            return Proof { known: 0, database };
        };
        // After a restart the control state lags until the log has been read back. Both are on one branch: a log that
        // is truncated or begun anew loses its outcomes.
        let recorded = history.last_seqno().unwrap_or(0);
        let known = control.seqno().max(recorded).max(0) as u64;
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
