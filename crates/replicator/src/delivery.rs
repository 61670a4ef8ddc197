//! The way of a delivered entry. The control state processes it, and gives it a seqno and a verdict. Then the waiting
//! client gets its answer, or the write-set goes to the appliers. Entries wait in the intake while the node is paused
//! or has no control state.

use trireme_certification::{Outcome, Seqno, Verdict};
use trireme_group::{Delivery, Position, SubmissionId};
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, Level, LogAction, Note};
use crate::effect::{Effect, Lost};
use crate::executor::Ordered;
use crate::history::History;
use crate::intake::Entry;
use crate::log_reader::is_a_slice;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::payload::Payload;
use crate::replicator::Replicator;
use crate::state_transfer::{Place, received_ist};
use crate::submissions::Sent;
use crate::work::{Apply, Task};
use crate::writeset::WriteSet;

impl Replicator {
    /// Takes in a delivered entry; [`Self::process_intake`] processes it in its turn.
    pub(crate) fn delivered(&mut self, position: Position, delivery: Delivery) {
        self.intake.note_delivered(position);
        if self.takes_nothing_in() {
            return;
        }
        // A peer's control state may be ahead of the entries that the group has delivered here.
        let is_known = (self.context.control()).is_some_and(|c| position <= c.position);
        match delivery {
            Delivery::Configuration(configuration) if is_known => {
                match configuration.index_of(self.context.me()) {
                    Some(_) => self.lifecycle.enter_primary(),
                    None => self.lifecycle.lose_primary(),
                }
            }
            _ if is_known => {}
            delivery => (self.intake).push(position, delivery, self.log_reader.memory()),
        }
    }

    /// Processes the delivered entries, as long as nothing forbids it. Of entries that must be read back, only a part.
    pub(crate) fn process_intake(&mut self, history: &dyn History) {
        let mut read_bytes = 0;
        while self.context.control().is_some() {
            if self.intake.next_is_missing() {
                if is_a_slice(self.context.options(), read_bytes) {
                    break; // see `next_deadline_ms`
                }
                let Some(bytes) = self.fetch_intake(history) else {
                    break;
                };
                read_bytes += bytes;
            }
            if self.deliveries_stand_still() && !self.next_passes_a_pause() {
                break;
            }
            match self.intake.pop() {
                Some((position, Entry::Delivered(delivery))) => self.process(position, delivery),
                Some((_, Entry::NonPrimary(component))) => self.show_non_primary(component),
                None => return self.keep_up(),
            }
        }
    }

    /// Notes that all deliveries are processed, and with them the later positions that deliver nothing. A reader may
    /// wait for such a position, or a joiner whose log begins above it. In a cluster without writers no other event may
    /// come (simulator, seed 15101331).
    fn keep_up(&mut self) {
        if self.takes_nothing_in() {
            return;
        }
        if let Some(control) = self.context.control_mut() {
            control.position = control.position.max(self.intake.delivered_to());
        }
    }

    /// Returns true if this node takes no deliveries any more: its control state stays as it is.
    pub(crate) fn takes_nothing_in(&self) -> bool {
        self.transfer.is_over() || self.lifecycle.is_excluded()
    }

    /// Returns true if the next entry may pass a pause. A paused node still processes desyncs, votes and other reports
    /// of members, as long as no write-set or view came before. These entries touch no database, and a second RSU waits
    /// for its desync (server-contract.md#desync).
    fn next_passes_a_pause(&self) -> bool {
        match self.intake.front() {
            Some(Entry::Delivered(Delivery::Submission { id, payload })) => {
                let may_donate = self.context.my_node_state() == Some(NodeState::Synced);
                Message::needs_no_server(payload, id.incarnation == self.context.me(), may_donate)
            }
            _ => false,
        }
    }

    fn process(&mut self, position: Position, delivery: Delivery) {
        let Some(control) = self.context.control_mut() else {
            return; // `process_intake` has seen it
        };
        let effect = control.process(position, delivery);
        let decided = control.decide_votes();
        match effect {
            Effect::WriteSet {
                id,
                write_set,
                seqno,
                outcome,
            } => {
                self.write_set_ordered(position, id, write_set, seqno, outcome);
            }
            Effect::View { seqno, lost } => {
                self.out.forget_joined();
                self.view_ordered(position, seqno, lost);
            }
            Effect::Weights => {
                self.out.forget_joined();
                self.note_primary();
            }
            Effect::Voided { id, reason } => self.voided(id, &reason),
            Effect::StateRequest {
                id,
                donor,
                request,
                preference,
                bypass,
            } => {
                self.state_requested(id, donor, (request, bypass), &preference);
            }
            Effect::Donated { id, joiner, rcode } => self.donor_done(id, joiner, rcode),
            Effect::Member {
                id,
                message,
                refused,
            } => self.member_changed(id, &message, refused),
            Effect::LeftOut { id, member } => {
                self.own(id);
                self.left_out(id, member);
            }
            Effect::CaughtUp { id, refused } => {
                self.own(id);
                if !refused {
                    self.back_in_step(id.incarnation);
                }
            }
            Effect::InDoubt { id } => drop(self.own(id)),
            Effect::Applied { id } => {
                self.own(id);
                self.pin_log();
            }
            Effect::Vote {
                id,
                seqno,
                ballot,
                text,
            } => {
                self.own(id);
                self.vote_cast(id, seqno, ballot, &text);
            }
        }
        for (seqno, winner) in decided {
            self.vote_decided(seqno, winner);
        }
    }

    /// Returns the kind of an own submission, if somebody waits for it.
    fn own(&mut self, id: SubmissionId) -> Option<Sent> {
        if id.incarnation != self.context.me() {
            return None;
        }
        for sent in self.submissions.take_overtaken(id.number) {
            self.give_up(sent, false);
        }
        self.submissions.take(id.number)
    }

    fn write_set_ordered(
        &mut self,
        position: Position,
        id: SubmissionId,
        write_set: WriteSet,
        seqno: Seqno,
        outcome: Outcome,
    ) {
        let failed = outcome.verdict != Verdict::Pass;
        self.record(position, seqno, outcome.depends_on, failed);
        self.retention.certified();
        self.counters
            .certified(seqno, write_set.last_seen, &outcome);
        match self.own(id).filter(|_| !self.is_covered(seqno)) {
            Some(Sent::Trx(trx)) => {
                let ordered = Ordered {
                    seqno,
                    depends_on: outcome.depends_on,
                    write_set,
                };
                let (ticket, answer) =
                    (self.executor).own_ordered(&self.context, trx, ordered, outcome.verdict);
                return self.answer(ticket, answer);
            }
            Some(Sent::Toi(conn)) => {
                return (self.executor).action_ordered(conn, seqno, outcome.depends_on, failed);
            }
            // A rollback fragment goes to the appliers on its origin, too.
            None | Some(Sent::Rollback(_)) => {}
            // No correct member submits a write-set under the number of something else.
            Some(other) => self.give_up(other, false),
        }
        let forgotten = id.incarnation == self.context.me() && planted(Mutant::AbandonedNotApplied);
        // A write-set of another member, or one that its client has given up (rule 7): applied like another member's.
        self.counters.received += 1;
        self.counters.received_bytes += write_set.data.len() as u64;
        self.flow_control.received(id.incarnation);
        let apply = Apply::of(
            &write_set,
            id.incarnation,
            self.ordered_gtid(seqno),
            outcome.depends_on,
            failed || forgotten || self.is_abandoned_fragment(id, &write_set),
        );
        self.push_apply(apply, position, write_set.len_bytes());
    }

    fn view_ordered(&mut self, position: Position, seqno: Seqno, lost: Vec<Lost>) {
        self.record(position, seqno, seqno - 1, false);
        self.note_primary();
        self.counters.received += 1;
        self.counters.received_bytes += 8;
        let configuration = self.context.configuration();
        let is_within = configuration.index_of(self.context.me()).is_some();
        // Of two members, the one that stays is safe to bootstrap, not the leaver.
        let is_alone = configuration.members.len() == 1 && is_within;
        self.lifecycle.set_safe_to_bootstrap(is_alone);
        if self.lifecycle.is_leaving() && !is_within && self.lifecycle.is_connected() {
            // The view by which this node leaves belongs to the others: this node's database ends before it (MTR:
            // mysql-wsrep#31).
            self.lifecycle.exclude();
            self.intake.clear();
            return self.donors_lost(&lost);
        }
        if self.transfer.place() == Place::Admission {
            self.database.note_view(self.context.control());
            if configuration.index_of(self.context.me()).is_none() {
                return; // catching up from the own log
            }
            if !self.lifecycle.is_founding() {
                return self.begin_transfer(None);
            }
            self.begin_founded(seqno);
        }
        let replaced = self.transfer.awaits_snapshot();
        match configuration.override_id {
            Some(_) if replaced => self.overridden_in_transfer(),
            Some(_) => self.note_overrides(),
            None => {}
        }
        if self.transfer.place() == Place::Active {
            self.tell_missed();
        }
        let view = self.primary_view(seqno, &configuration);
        self.push_task(Task::View(view), Some(seqno), Payload::None);
        self.tell_synced();
        self.donors_lost(&lost);
    }

    /// A node that kept its log got the entries that it has missed with the order itself. This is reported as an IST,
    /// which the operator expects after an absence (galera.galera_ist_progress).
    fn tell_missed(&mut self) {
        let me = self.context.me();
        let missed = (self.context.control()).and_then(|c| c.views.missed_by(me));
        if let Some(count) = missed {
            let text = received_ist(count, count);
            self.log(Level::Info, text);
        }
    }

    /// Returns true while the local log is read back: its entries are older than this process's membership.
    fn is_catching_up(&self) -> bool {
        self.transfer.place() == Place::Admission
            && self
                .context
                .configuration()
                .index_of(self.context.me())
                .is_none()
    }

    /// Notes that the node is in the primary component by the last entry, unless it has left that component since.
    fn note_primary(&mut self) {
        let left = self.intake.ends_primary() && !planted(Mutant::OldViewIsPrimary);
        if !self.is_catching_up() && !left {
            self.lifecycle.enter_primary();
        }
    }

    /// Handles a submission without effect.
    fn voided(&mut self, id: SubmissionId, reason: &str) {
        self.log(Level::Debug, format!("submission {id} is void: {reason}"));
        if let Some(sent) = self.own(id) {
            self.give_up(sent, false);
        }
    }

    /// Notes that the database's history is the group's from here on.
    pub(crate) fn note_overrides(&mut self) {
        if let Some(control) = self.context.control() {
            let overrides = control.forks.clone();
            self.out.push(Action::Note(Note::Overrides { overrides }));
        }
    }

    fn member_changed(&mut self, id: SubmissionId, message: &Message, refused: bool) {
        if id.incarnation != self.context.me() {
            return;
        }
        let sent = self.own(id);
        if let Some(Sent::Desync { ticket, as_donor }) = sent {
            // FLUSH TABLES WITH READ LOCK desyncs only a server that is Synced, and takes nothing back if it ends as a
            // donor's (server-contract.md#desync). So the desync is not granted to a node that was chosen as donor in
            // between. `settle_desyncs` takes back the desync that the order has counted.
            let crossed = !as_donor && self.donates_to().is_some();
            let granted = !refused && !crossed;
            if granted {
                self.submissions.grant_desync();
            }
            let code = if granted { Code::Ok } else { Code::TrxFail };
            self.answer(ticket, Answer::unordered(code));
        }
        if refused {
            return;
        }
        match message {
            Message::Synced => self.tell_synced(),
            Message::Desync | Message::Resync => self.lifecycle.forget_synced(),
            _ => {}
        }
    }

    /// Tells the server that it is synced, once after each return to that state.
    pub(crate) fn tell_synced(&mut self) {
        let synced = self.context.my_node_state() == Some(NodeState::Synced);
        if synced && self.lifecycle.show_synced() {
            self.push_task(Task::Synced, None, Payload::None);
        }
    }

    /// Returns true if an SST has brought this seqno already.
    pub(crate) fn is_covered(&self, seqno: Seqno) -> bool {
        self.transfer.place() == Place::Active && seqno <= self.executor.top()
    }

    fn record(&mut self, position: Position, seqno: Seqno, depends_on: Seqno, failed: bool) {
        self.retention.took(position, seqno);
        (self.executor).note_ordered(seqno, self.context.now_ms());
        let is_dropped =
            planted(Mutant::AppliedDependenceDropped) && depends_on <= self.executor.low();
        let depends_on = if is_dropped { 0 } else { depends_on };
        self.out.push(Action::Log(LogAction::RecordOutcome {
            position,
            seqno,
            depends_on,
            failed,
        }));
    }
}
