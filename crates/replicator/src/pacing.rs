//! Flow control of a node: what it asks of the writers, what its own writers heed, and who is left out.

use trireme_group::{Incarnation, Position, SubmissionId};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Level};
use crate::asking::{Limits, Part, Tell, Wish};
use crate::control::Control;
use crate::direct::Direct;
use crate::flow::Ask;
use crate::isolation::Isolation;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::replicator::{Held, Replicator};
use crate::submissions::Sent;
use crate::transactions::Phase;

/// What is committed is not known: any number of entries may be on their way.
const UNKNOWN: Position = Position::MAX;

impl Replicator {
    /// Sees to flow control, and sends what waited for it.
    pub(crate) fn watch_flow(&mut self) {
        self.ask_writers();
        let own_stop = self.asking.is_stopping();
        let control = self.control.as_ref();
        let counts = |from, ask| control.is_some_and(|control| is_heeded(control, from, ask));
        self.flow.update(self.now_ms, own_stop, counts);
        self.send_held();
        self.lose_patience(own_stop);
    }

    /// Length of the apply queue.
    pub(crate) fn queue(&self) -> usize {
        self.works.applies() + self.backlog.len()
    }

    /// `gcs.fc_limit` as it applies to this cluster: by the square root of its size, unless only one
    /// member writes.
    pub(crate) fn limits(&self) -> Limits {
        let control = self.control.as_ref();
        let members = control.map_or(0, |c| c.configuration.data_members().count());
        let scale = match self.options.fc_single_primary {
            true => 1.0,
            false => (members.max(1) as f64).sqrt(),
        };
        Limits {
            pace: self.options.fc_limit as f64 * scale,
            factor: self.options.fc_factor.clamp(0.0, 1.0),
        }
    }

    fn ask_writers(&mut self) {
        let part = match &self.control {
            Some(control) if self.primary && !self.leaving => match part_of(control, self.me) {
                Part::InStep if self.relapses(control) => Part::Relapsing,
                part => part,
            },
            _ => Part::LeftOut,
        };
        let (queue, limits) = (self.queue(), self.limits());
        let Some(tell) = self.asking.watch(self.now_ms, queue, part, limits) else {
            return;
        };
        let me = self.me;
        if tell == Tell::Ask(Wish::StepOut) {
            return self.submit_once(Sent::LeaveOut(me), &Message::LeaveOut(me));
        }
        let members = self.configuration().members;
        for member in members.iter().filter(|m| m.incarnation != me) {
            let message = match tell {
                Tell::Ask(Wish::Stop) => Direct::FlowStop,
                Tell::Ask(Wish::Pace(all)) => Direct::FlowPace {
                    per_second: self.asking.share(member.incarnation, members.len(), all),
                },
                Tell::Continue | Tell::Ask(Wish::StepOut) => Direct::FlowContinue,
            };
            self.send(member.incarnation, &message);
        }
    }

    /// The group has left this node out of late, and may do so again.
    fn relapses(&self, control: &Control) -> bool {
        let may = self.options.fc_desync_after_ms > 0 && control.may_leave_out(self.me);
        may && self.absence.is_remembered(self.now_ms)
    }

    /// Sends what waited here, as far as nobody asks to wait any more.
    fn send_held(&mut self) {
        while !self.held.is_empty() && !self.flow.is_stopped() {
            if self.may_write() && !(self.rollbacks_are_sent() && self.flow.admit()) {
                return;
            }
            match self.held.pop_front() {
                Some(held) if self.may_write() => self.let_go(held),
                Some(held) => {
                    if let Some(parcel) = held.draft.parcel() {
                        self.out.push(Action::Recall { parcel });
                    }
                    self.give_up(held.sent, false)
                }
                None => {}
            }
        }
    }

    pub(crate) fn let_go(&mut self, held: Held) {
        match held.sent {
            Sent::Trx(id) => {
                // Whoever forgets a held transaction takes it from the list as well (`abort`).
                let Some(trx) = self.transactions.get_mut(id) else {
                    return;
                };
                let Phase::Held { ticket } = trx.phase else {
                    return;
                };
                trx.phase = Phase::Replicating {
                    ticket,
                    aborted: false,
                };
            }
            Sent::Toi(conn) => {
                let Some(Isolation::Held { ticket }) = self.isolations.get(&conn).copied() else {
                    return;
                };
                self.isolations
                    .insert(conn, Isolation::Replicating { ticket });
            }
            _ => return, // nothing else is held
        }
        self.replicate(held.sent, held.draft);
    }

    /// True if a write-set that comes now may go at once; others that wait go first.
    pub(crate) fn may_go(&mut self) -> bool {
        self.held.is_empty() && self.flow.admit()
    }

    /// Proposes to leave out a member for which own writers have waited too long.
    fn lose_patience(&mut self, own_stop: bool) {
        let waits = !self.held.is_empty();
        let holder = self.flow.sole_holder(own_stop).filter(|_| waits);
        let limit_ms = self.options.fc_desync_after_ms;
        let Some(member) = self.patience.watch(self.now_ms, holder, limit_ms) else {
            return;
        };
        let may = |c: &Control| c.may_leave_out(member);
        if self.primary && self.control.as_ref().is_some_and(may) {
            self.submit_once(Sent::LeaveOut(member), &Message::LeaveOut(member));
        }
    }

    /// The order has decided on a proposal to leave out a member.
    pub(crate) fn left_out(&mut self, id: SubmissionId, member: Option<Incarnation>) {
        let Some(member) = member else { return };
        let why = match id.incarnation == member {
            false => format!("writers at {} waited for it", self.name_of(id.incarnation)),
            true => "as before".to_owned(),
        };
        let text = if member == self.me {
            self.absence.begin(self.now_ms);
            format!(
                "this node does not keep pace, {why}: the group has set it to desynced, out of flow control, until it has \
                 caught up. {} write-sets wait to be applied here; look for a lock, a slow disk or processor, or raise \
                 wsrep_slave_threads",
                self.queue()
            )
        } else {
            format!(
                "member {} does not keep pace, {why}: the group has set it to desynced, out of flow control, until it has \
                 caught up",
                self.name_of(member),
            )
        };
        self.log(Level::Info, text);
    }

    /// A member that was left out takes part in flow control again.
    pub(crate) fn back_in_step(&mut self, from: Incarnation) {
        if from == self.me {
            self.absence.end(self.now_ms);
            self.tell_synced();
        }
        let text = format!(
            "member {} has caught up and takes part in flow control again",
            self.name_of(from)
        );
        self.log(Level::Info, text);
    }

    /// So little is left to be applied, here and on its way here, that the node may count as synced. Not less than where it
    /// lets the others go on: under a steady load it would never get there.
    pub(crate) fn has_caught_up(&self) -> bool {
        let limits = self.limits();
        let to_come = self.committed_to.saturating_sub(self.delivered_to);
        let left = to_come.saturating_add(self.queue() as u64);
        left as f64 <= (limits.pace * limits.factor).max(1.0)
    }

    /// The group knows that everything up to here is committed: more than it has delivered here, if this node's log lacks some
    /// of it, or if that is still read from the log. None: it does not know. True if it knows again, so that this is to be
    /// looked at.
    pub fn note_commit(&mut self, position: Option<Position>) -> bool {
        let before = std::mem::replace(&mut self.committed_to, position.unwrap_or(UNKNOWN));
        before == UNKNOWN && position.is_some()
    }

    /// The group has left this node out, and it has caught up.
    pub(crate) fn may_come_back(&self) -> bool {
        self.is_left_out() && self.absence.is_over(self.now_ms) && self.has_caught_up()
    }

    fn is_left_out(&self) -> bool {
        self.my_seat().is_some_and(|seat| seat.left_out)
    }

    /// When flow control has something to do.
    pub(crate) fn flow_deadline_ms(&self) -> Option<u64> {
        let absent = self.is_left_out() && !self.absence.is_over(self.now_ms);
        let back = absent.then_some(self.absence.until_ms());
        [
            self.asking.deadline_ms(),
            self.flow.deadline_ms(),
            self.patience.deadline_ms(),
            back,
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

/// Donors, joiners and desynced members hold up nobody. Who catches up does only where fewer than two
/// members keep pace: there it is the one that bounds the backlog, and under a steady load it might never
/// get there.
fn part_of(control: &Control, member: Incarnation) -> Part {
    let seat = control.members.get(&member);
    let Some(seat) = seat.filter(|_| !control.is_arbitrator(member)) else {
        return Part::LeftOut; // an arbitrator applies nothing
    };
    let catches_up = seat.state == NodeState::Joined || (seat.left_out && seat.desyncs == 0);
    match seat.state {
        NodeState::Synced => Part::InStep,
        _ if planted(Mutant::LeftOutStops) && seat.left_out => Part::InStep,
        _ if catches_up && control.in_step() < 2 => Part::CatchingUp,
        _ => Part::LeftOut,
    }
}

fn is_heeded(control: &Control, from: Incarnation, ask: Ask) -> bool {
    match part_of(control, from) {
        Part::InStep | Part::Relapsing => true,
        Part::CatchingUp => ask != Ask::Stop,
        Part::LeftOut => false,
    }
}
