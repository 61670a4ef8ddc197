//! Flow control of a node. It measures how fast this node applies, and derives the requests to the writers elsewhere
//! ([`BackPressure`]). It lets own write-sets go as far as the others' requests permit ([`Leases`]). It proposes to
//! leave out a member that alone holds up the writers ([`LagBudget`], [`BackOff`]; rules 15, 21, `docs/flow-control.md`).
//!
//! In: the length of the apply queue, peers' requests and the control state. Out: [`FlowOutput`]s and permits.

mod back_off;
mod back_pressure;
#[cfg(test)]
mod back_pressure_tests;
mod lag_budget;
mod leases;
mod stopwatch;

use trireme_group::{Incarnation, Member};
use trireme_mutants::{Mutant, planted};

use crate::context::Context;
use crate::control::Control;
use crate::lifecycle::Lifecycle;
use crate::member_state::NodeState;
use crate::peer_message::PeerMessage;
use back_off::BackOff;
use back_pressure::{BackPressure, Demand, Limits, Participation, Signal};
use lag_budget::LagBudget;
use leases::Leases;
pub(crate) use leases::Request;
use stopwatch::Stopwatch;

/// Flow control's requests to the coordinator.
#[derive(Debug, PartialEq)]
pub(crate) enum FlowOutput {
    /// Send a request, or its end, to a peer.
    Send(Incarnation, PeerMessage),
    /// Propose in the order to leave this member out of flow control.
    LeaveOut(Incarnation),
}

/// Counters for the status.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowCounters {
    /// Time that own writers were stopped.
    pub paused_ms: u64,
    /// Time that own writers waited for a pace, without the time that they were stopped.
    pub paced_ms: u64,
    /// Stops that this node requested of the others.
    pub sent: u64,
    /// Stops that others requested.
    pub received: u64,
    /// True while own writers are stopped.
    pub is_stopped: bool,
    /// True while this node stops the others.
    pub is_stopping: bool,
}

/// Time after an own write-set in which the node counts as one with writers. Its clients may all wait for the queue
/// meanwhile.
const WRITES_MS: u64 = 30_000;

#[derive(Debug, Default)]
pub(crate) struct FlowControl {
    back_pressure: BackPressure,
    /// The time of the last own write-set that went, or waited for others.
    wrote_ms: Option<u64>,
    leases: Leases,
    lag_budget: LagBudget,
    back_off: BackOff,
    /// Measures the time that own writers wait for a pace.
    paced: Stopwatch,
}

impl FlowControl {
    /// Starts over for a new connection: requests and blame are forgotten, the counters go on.
    pub(crate) fn start_over(&mut self, now_ms: u64) {
        self.back_off = BackOff::default();
        self.forget(now_ms);
    }

    /// Forgets all requests, because the primary component is lost.
    pub(crate) fn forget(&mut self, now_ms: u64) {
        self.back_pressure.forget(now_ms);
        self.leases.forget(now_ms);
        self.paced.set(false, now_ms);
        self.lag_budget = LagBudget::default();
    }

    /// Counts a write-set of this member that came into the apply queue.
    pub(crate) fn received(&mut self, from: Incarnation) {
        self.back_pressure.received(from);
    }

    /// Counts an applied write-set.
    pub(crate) fn applied(&mut self) {
        self.back_pressure.applied();
    }

    /// Takes in a peer's request that own writers slow down or stop.
    pub(crate) fn requested(&mut self, from: Incarnation, request: Request, now_ms: u64) {
        self.leases.requested(from, request, now_ms);
    }

    /// Takes in a peer's permission that own writers go on.
    pub(crate) fn continued(&mut self, from: Incarnation) {
        self.leases.continued(from);
    }

    /// Checks the queue of write-sets that wait to be applied, and the peers' requests that hold.
    pub(crate) fn watch(
        &mut self,
        context: &Context,
        lifecycle: &Lifecycle,
        queue: usize,
    ) -> Vec<FlowOutput> {
        let outputs = self.watch_queue(context, lifecycle, queue);
        let own_stop = self.back_pressure.is_stopping();
        let control = context.control();
        let counts = |from, request| control.is_some_and(|c| is_heeded(c, from, request));
        self.leases.update(context.now_ms(), own_stop, counts);
        outputs
    }

    fn watch_queue(
        &mut self,
        context: &Context,
        lifecycle: &Lifecycle,
        queue: usize,
    ) -> Vec<FlowOutput> {
        let writes = (self.wrote_ms).is_some_and(|at_ms| context.now_ms() < at_ms + WRITES_MS);
        let part = match context.control().filter(|_| lifecycle.takes_part()) {
            Some(control) => match participation(control, context.me()) {
                Participation::InStep if self.relapses(context, control) => {
                    Participation::Relapsing
                }
                Participation::LeftOut { .. } => Participation::LeftOut { writes },
                part => part,
            },
            None => Participation::Exempt,
        };
        let signal = self
            .back_pressure
            .watch(context.now_ms(), queue, part, limits(context));
        let Some(signal) = signal else {
            return Vec::new();
        };
        if signal == Signal::Demand(Demand::StepOut) {
            return vec![FlowOutput::LeaveOut(context.me())];
        }
        let members = context
            .control()
            .map_or(&[][..], |c| &c.members.configuration().members);
        let others = members.iter().filter(|m| m.incarnation != context.me());
        let to = |member: &Member| {
            let message = match signal {
                Signal::Demand(Demand::Stop) => PeerMessage::FlowStop,
                Signal::Demand(Demand::Pace(all)) => PeerMessage::FlowPace {
                    per_second: (self.back_pressure).share(member.incarnation, members.len(), all),
                },
                Signal::Continue | Signal::Demand(Demand::StepOut) => PeerMessage::FlowContinue,
            };
            FlowOutput::Send(member.incarnation, message)
        };
        others.map(to).collect()
    }

    /// Returns true if the group has left this node out recently, and may do so again.
    fn relapses(&self, context: &Context, control: &Control) -> bool {
        context.options().fc_desync_after_ms > 0
            && self.back_off.is_remembered(context.now_ms())
            && control.members.may_leave_out(context.me())
    }

    /// Returns true if an own write-set may go now; it counts as gone.
    pub(crate) fn admit(&mut self, now_ms: u64) -> bool {
        self.wrote_ms = Some(now_ms);
        self.leases.admit()
    }

    /// Returns true if no own write-set may go.
    pub(crate) fn is_stopped(&self) -> bool {
        self.leases.is_stopped()
    }

    /// Charges the member that alone holds up own writers, if any of them waits. Returns a member to leave out. Call it
    /// after [`Self::watch`], when all permitted write-sets have gone.
    pub(crate) fn charge(
        &mut self,
        context: &Context,
        lifecycle: &Lifecycle,
        writers_wait: bool,
    ) -> Option<FlowOutput> {
        let is_paced = writers_wait && self.leases.is_paced();
        self.paced.set(is_paced, context.now_ms());
        let own_stop = self.back_pressure.is_stopping();
        // A member that is left out already cannot be blamed, and hides nobody else.
        let blamed = |member| {
            let control = context.control();
            control.is_some_and(|c| participation(c, member) == Participation::InStep)
        };
        let holder = (self.leases.sole_holder(own_stop, blamed)).filter(|_| writers_wait);
        let limit_ms = context.options().fc_desync_after_ms;
        let member = self.lag_budget.watch(context.now_ms(), holder, limit_ms)?;
        let control = context.control().filter(|_| lifecycle.is_primary())?;
        control
            .members
            .may_leave_out(member)
            .then_some(FlowOutput::LeaveOut(member))
    }

    /// Notes that the order has left this node out.
    pub(crate) fn was_left_out(&mut self, now_ms: u64) {
        self.back_off.begin(now_ms);
    }

    /// Notes that the order has taken this node back.
    pub(crate) fn is_back(&mut self, now_ms: u64) {
        self.back_off.end(now_ms);
    }

    /// Returns true if this node was left out, and may ask to come back when it has caught up.
    pub(crate) fn may_come_back(&self, context: &Context) -> bool {
        is_left_out(context) && self.back_off.is_over(context.now_ms())
    }

    /// Returns the time when flow control has something to do.
    pub(crate) fn deadline_ms(&self, context: &Context) -> Option<u64> {
        let is_absent = is_left_out(context) && !self.back_off.is_over(context.now_ms());
        let back = is_absent.then_some(self.back_off.until_ms());
        let deadlines = [
            self.back_pressure.deadline_ms(),
            self.leases.deadline_ms(),
            self.lag_budget.deadline_ms(),
            back,
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Returns the time when the next own write-set may go, if only a pace holds it back.
    pub(crate) fn next_permit_ms(&self) -> Option<u64> {
        self.leases.next_token_ms()
    }

    pub(crate) fn counters(&self, now_ms: u64) -> FlowCounters {
        FlowCounters {
            paused_ms: self.leases.total_paused_ms(now_ms),
            paced_ms: self.paced.total_ms(now_ms),
            sent: self.back_pressure.sent(),
            received: self.leases.received(),
            is_stopped: self.leases.is_stopped(),
            is_stopping: self.back_pressure.is_stopping(),
        }
    }

    /// Resets the counters (FLUSH STATUS).
    pub(crate) fn reset_counters(&mut self, now_ms: u64) {
        self.leases.reset_counters(now_ms);
        self.back_pressure.reset_counters();
        self.paced.reset(now_ms);
    }
}

/// Returns true if so few entries are left to apply that the node may count as synced. The limit is not below the one
/// at which the node lets the others go on: under a steady load it would never get there.
pub(crate) fn has_caught_up(context: &Context, left: u64) -> bool {
    let limits = limits(context);
    left as f64 <= (limits.pace * limits.factor).max(1.0)
}

/// Returns `gcs.fc_limit` for this cluster: scaled by the square root of its size, unless only one member writes.
fn limits(context: &Context) -> Limits {
    let (control, options) = (context.control(), context.options());
    let members = control.map_or(0, |c| c.members.configuration().data_members().count());
    let scale = match options.fc_single_primary {
        true => 1.0,
        false => (members.max(1) as f64).sqrt(),
    };
    Limits {
        pace: options.fc_limit as f64 * scale,
        factor: options.fc_factor.clamp(0.0, 1.0),
    }
}

fn is_left_out(context: &Context) -> bool {
    context.my_state().is_some_and(|state| state.left_out)
}

/// Returns a member's part in flow control, as far as the control state tells: whether it relapses, or writes, only the
/// member knows. Donors, joiners and desynced members hold up nobody. A member that catches up, Joined or left out, paces
/// the writers if fewer than two members are Synced: then it is the one that bounds the backlog, and under a steady load
/// it might never catch up. One that is left out may also pace them for its own clients.
fn participation(control: &Control, member: Incarnation) -> Participation {
    let state = control.members.get(member);
    let Some(state) = state.filter(|_| !control.members.is_arbitrator(member)) else {
        return Participation::Exempt; // an arbitrator applies nothing
    };
    let catches_up = state.state == NodeState::Joined || (state.left_out && state.desyncs == 0);
    let may_pace = state.is_only_left_out() && !planted(Mutant::LeftOutWriterForgotten);
    match state.state {
        NodeState::Synced => Participation::InStep,
        _ if planted(Mutant::LeftOutStops) && state.left_out => Participation::InStep,
        _ if catches_up && control.members.in_step() < 2 => Participation::CatchingUp,
        _ if may_pace => Participation::LeftOut { writes: true },
        _ => Participation::Exempt,
    }
}

fn is_heeded(control: &Control, from: Incarnation, request: Request) -> bool {
    match participation(control, from) {
        Participation::InStep | Participation::Relapsing => true,
        Participation::LeftOut { .. } | Participation::CatchingUp => request != Request::Stop,
        Participation::Exempt => false,
    }
}
