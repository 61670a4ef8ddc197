//! The way of a delivered entry. The control state processes it, and gives it a seqno and a verdict. Then the waiting
//! client gets its answer, or the write-set goes to the appliers. Entries wait in the intake while the node is paused
//! or has no control state.

use bytes::Bytes;
use trireme_certification::{Outcome, Seqno, Verdict};
use trireme_group::{Delivery, Incarnation, Position, SubmissionId};
use trireme_mutants::{Mutant, planted};

use super::Replicator;
use crate::action::{Action, Level, LogAction};
use crate::effect::{Effect, Lost};
use crate::executor::Ordered;
use crate::gtid::Gtid;
use crate::history::History;
use crate::intake::Entry;
use crate::log_reader::is_a_slice;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::payload::Payload;
use crate::state_transfer::{Place, received_ist};
use crate::streaming::is_abandoned_fragment;
use crate::submissions::Sent;
use crate::work::{Apply, Task, View};
use crate::writeset::WriteSet;

impl Replicator {
    /// Takes in a delivered entry; [`Self::process_intake`] processes it in its turn.
    pub(super) fn delivered(&mut self, position: Position, delivery: Delivery) {
        self.intake.note_delivered(position);
        if self.takes_nothing_in() {
            return;
        }
        // In a log that an older version wrote, the control state of a checkpoint may be ahead of the checkpoint.
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

    /// Processes the delivered entries, as long as nothing forbids it, and a slice of them at most
    /// ([`Self::has_more_to_process`]).
    pub(super) fn process_intake(&mut self, history: &dyn History) {
        let mut taken_bytes = 0;
        while self.context.control().is_some() {
            if self.intake.is_empty() {
                return self.keep_up();
            }
            if is_a_slice(self.context.options(), taken_bytes)
                || self.intake.next_is_missing() && !self.read_back_entries(history)
                || self.pauses_next()
            {
                break;
            }
            let Some((position, entry)) = self.intake.pop() else {
                break; // it was read back
            };
            taken_bytes += entry.cost_bytes();
            match entry {
                Entry::Delivered(delivery) => self.process(position, delivery),
                Entry::NonPrimary(component) => self.show_non_primary(component),
            }
        }
    }

    /// Returns true if the next event can process entries, which were more than a slice. A paused node must read the
    /// next one back to see whether it may pass.
    pub(super) fn has_more_to_process(&self) -> bool {
        self.context.control().is_some()
            && !self.intake.is_empty()
            && (self.intake.next_is_missing() || !self.pauses_next())
    }

    /// Returns true if the node is paused, and the next entry has to wait for the end of that.
    fn pauses_next(&self) -> bool {
        self.deliveries_are_stopped() && !self.next_passes_a_pause()
    }

    fn read_back_entries(&mut self, history: &dyn History) -> bool {
        (self.log_reader).read_entries(&self.context, &mut self.intake, history, &mut self.out)
    }

    fn deliveries_are_stopped(&self) -> bool {
        let place = self.transfer.place();
        (self.callers).stops_deliveries(place, &self.executor, &self.voting)
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
    pub(super) fn takes_nothing_in(&self) -> bool {
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
        let chosen = control.choose_database();
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
            Effect::Donated { id, joiner, rcode } => self.donation_over(id, joiner, rcode),
            Effect::Member {
                id,
                message,
                refused,
            } => {
                let own = self.own(id);
                (self.membership()).member_changed(id, own, &message, refused);
            }
            Effect::LeftOut { id, member } => {
                self.own(id);
                self.membership().left_out(id, member);
            }
            Effect::CaughtUp { id, refused } => {
                self.own(id);
                if !refused {
                    self.membership().back_in_step(id.incarnation);
                }
            }
            Effect::InDoubt { id } => drop(self.own(id)),
            Effect::Applied { id } => {
                self.own(id);
                self.membership().pin_log();
            }
            Effect::Vote {
                id,
                seqno,
                ballot,
                text,
            } => {
                self.own(id);
                self.outcomes().vote_cast(id, seqno, ballot, &text);
            }
        }
        for (seqno, winner) in decided {
            self.outcomes().vote_decided(seqno, winner);
        }
        if let Some(chosen) = chosen {
            self.database_chosen(chosen);
        }
    }

    /// Handles that the cluster goes on with the in-doubt database of this member (rule 13).
    fn database_chosen(&mut self, chosen: Incarnation) {
        if self.joiner().follows_choice(chosen) {
            return;
        }
        let name = self.context.name_of(chosen);
        self.outcomes().become_inconsistent(&format!(
            "without this node, the cluster went on with the database of {name}, which may have executed DDL a second \
             time. This node's database needs a full snapshot: restart the node"
        ));
    }

    /// Returns the kind of an own submission, if somebody waits for it.
    fn own(&mut self, id: SubmissionId) -> Option<Sent> {
        if id.incarnation != self.context.me() {
            return None;
        }
        for (sent, may_be_elsewhere) in self.submissions.take_overtaken(id.number) {
            match may_be_elsewhere && !planted(Mutant::OvertakenBehindForkFails) {
                true => self.outcomes().give_up_here(sent),
                false => self.outcomes().give_up(sent, false),
            }
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
                return self.out.answer(ticket, answer);
            }
            Some(Sent::Toi(conn)) => {
                return (self.executor).action_ordered(conn, seqno, outcome.depends_on, failed);
            }
            // A rollback fragment goes to the appliers on its origin, too.
            None | Some(Sent::Rollback(_)) => {}
            // No correct member submits a write-set under the number of something else.
            Some(other) => self.outcomes().give_up(other, false),
        }
        let forgotten = id.incarnation == self.context.me() && planted(Mutant::AbandonedNotApplied);
        // A write-set of another member, or one that its client has given up (rule 7): applied like another member's.
        self.counters.received(write_set.len_bytes());
        self.flow_control.received(id.incarnation);
        let is_abandoned = is_abandoned_fragment(&self.context, id, &write_set);
        if is_abandoned {
            self.voting
                .passed_as_dummy(seqno, !failed && write_set.commits_stream());
        }
        let apply = Apply::of(
            &write_set,
            id.incarnation,
            self.executor.ordered_gtid(&self.context, seqno),
            outcome.depends_on,
            failed || forgotten || is_abandoned,
        );
        self.queue_apply(apply, position, write_set.len_bytes());
    }

    /// Queues a write-set that must be applied, and is in the log at this position. It waits with its payload, which
    /// takes `bytes` bytes, or without.
    fn queue_apply(&mut self, mut apply: Apply, position: Position, bytes: usize) {
        let none_before = match self.transfer.place() {
            Place::Closed | Place::Admission | Place::Final => return,
            Place::Transfer => !self.transfer.has_spilled(),
            Place::Active => self.executor.queue().missing().is_none(),
        };
        let fits = self.log_reader.has_room(self.context.options());
        let payload = match (apply.data.is_empty(), none_before && fits) {
            (true, _) => Payload::None,
            (false, true) => Payload::here(self.log_reader.memory(), bytes),
            (false, false) => {
                apply.data = Bytes::new();
                Payload::InLog { position, bytes }
            }
        };
        let seqno = apply.gtid.seqno;
        self.queue(Task::Apply(Box::new(apply)), seqno, payload);
    }

    fn queue(&mut self, task: Task, seqno: Seqno, payload: Payload) {
        (self.transfer).queue((task, Some(seqno), payload), &mut self.executor);
    }

    fn view_ordered(&mut self, position: Position, seqno: Seqno, lost: Vec<Lost>) {
        self.record(position, seqno, seqno - 1, false);
        self.note_primary();
        self.counters.received(8);
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
            return self.joiner().donors_lost(&lost);
        }
        if self.transfer.place() == Place::Admission {
            self.database.note_view(self.context.control());
            if configuration.index_of(self.context.me()).is_none() {
                return; // catching up from the own log
            }
            if !self.lifecycle.is_founding() {
                return self.begin_transfer(None);
            }
            self.joiner().begin_founded(seqno);
        }
        if configuration.override_id.is_some() {
            self.submissions.history_forks();
        }
        let replaced = self.transfer.awaits_snapshot();
        let is_doubtful = self.database.is_doubtful_above(configuration.fork_after);
        match configuration.override_id {
            // An SST would not replace the control state.
            Some(_) if replaced && is_doubtful => {
                self.joiner().forked_in_transfer();
            }
            Some(_) if replaced => self.joiner().overridden_in_transfer(),
            Some(_) if is_doubtful => self.outcomes().become_inconsistent(
                "an override has dropped entries that the state transfer to this node may have brought. This node's \
                 database needs a full snapshot: restart the node",
            ),
            Some(_) => self.joiner().note_forks(),
            None => {}
        }
        if self.transfer.place() == Place::Active {
            self.tell_missed();
        }
        let gtid = self.executor.ordered_gtid(&self.context, seqno);
        let view = View::primary(gtid, &configuration, self.context.me());
        self.queue(Task::View(view), seqno, Payload::None);
        self.membership().tell_synced();
        self.joiner().sources_follow_view();
        self.joiner().donors_lost(&lost);
    }

    /// A node that kept its log got the entries that it has missed with the order itself. This is reported as an IST,
    /// which the operator expects after an absence (galera.galera_ist_progress).
    fn tell_missed(&mut self) {
        let me = self.context.me();
        let missed = (self.context.control()).and_then(|c| c.views.missed_by(me));
        if let Some(count) = missed {
            let text = received_ist(count, count);
            self.out.log(Level::Info, text);
        }
    }

    /// Notes that the node is in the primary component by the last entry, a configuration that lists it.
    fn note_primary(&mut self) {
        let me = self.context.me();
        if self.context.configuration().index_of(me).is_some() {
            self.lifecycle.enter_primary();
        }
    }

    /// Handles a submission without effect.
    fn voided(&mut self, id: SubmissionId, reason: &str) {
        (self.out).log(Level::Debug, format!("submission {id} is void: {reason}"));
        if let Some(sent) = self.own(id) {
            self.outcomes().give_up(sent, false);
        }
    }

    // --- state transfers of any member

    /// Handles an ordered request of any joiner: all nodes choose the same donor, or none.
    fn state_requested(
        &mut self,
        id: SubmissionId,
        donor: Option<Incarnation>,
        (request, bypass): (Bytes, Option<Gtid>),
        preference: &str,
    ) {
        let joiner = self.context.name_of(id.incarnation);
        let wanted = if preference.is_empty() {
            "*any*"
        } else {
            preference
        };
        let text = format!("Member {joiner} requested state transfer from '{wanted}'");
        match (donor, self.context.donor_of(id.incarnation)) {
            (Some(donor), _) => {
                let donor = self.context.name_of(donor);
                let text = format!("{text}. Selected {donor}(SYNCED) as donor.");
                self.out.log(Level::Info, text);
            }
            (None, Some(earlier)) => {
                let earlier = self.context.name_of(earlier);
                let text = format!("{text} once more. Its donor is {earlier} already.");
                self.out.log(Level::Info, text);
            }
            (None, None) => {
                let why = "it is impossible to select State Transfer donor: Resource temporarily unavailable";
                self.out.log(Level::Warn, format!("{text}, but {why}"));
            }
        }
        if donor == Some(self.context.me()) {
            self.membership().begin_donation(request, bypass);
        }
        if id.incarnation == self.context.me() {
            self.joiner().donor_chosen(id, donor);
        }
    }

    /// Handles a donor's report that it has finished.
    fn donation_over(&mut self, id: SubmissionId, joiner: Option<Incarnation>, rcode: i32) {
        if id.incarnation == self.context.me() {
            self.submissions.take(id.number);
            self.lifecycle.forget_synced();
        }
        if joiner == Some(self.context.me()) {
            self.joiner().donor_done(id.incarnation, rcode);
        }
    }

    // --- small questions

    /// Returns true if an SST has brought this seqno already.
    fn is_covered(&self, seqno: Seqno) -> bool {
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
