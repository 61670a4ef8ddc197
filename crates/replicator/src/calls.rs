//! Calls of client threads about the whole node: reads, pause, desync.

use crate::action::{Action, Answer, Code, GroupAction};
use crate::event::Ticket;
use crate::gtid::Gtid;
use crate::member_state::NodeState;
use crate::message::Message;
use crate::replicator::Replicator;
use crate::state_transfer::Place;
use crate::submissions::Sent;
use trireme_mutants::{Mutant, planted};

impl Replicator {
    /// Carries out sync_wait().
    pub(crate) fn sync_wait(&mut self, ticket: Ticket, upto: Option<Gtid>) {
        match upto {
            Some(upto) if upto.uuid != self.executor.history() || upto.uuid.is_nil() => {
                self.answer_sync_wait(ticket, Code::TrxMissing);
            }
            Some(upto) => self.callers.wait_for(ticket, upto.seqno),
            // The group's order may be on another branch than the entries that this database still applies.
            None if !self.lifecycle.takes_part() || self.transfer.is_with_scripts() => {
                self.answer_sync_wait(ticket, Code::TrxFail);
            }
            None => {
                self.counters.causal_reads += 1;
                if self
                    .callers
                    .ask_read(ticket, self.submissions.last_rollback())
                {
                    self.out
                        .push(Action::Group(GroupAction::Read { token: ticket }));
                }
            }
        }
    }

    /// Answers the reads with a point that is released here.
    pub(crate) fn grant_reads(&mut self) {
        if let Some(control) = self.context.control() {
            let (retention, last) = (&self.retention, control.seqno());
            self.callers
                .processed(control.position, |at| retention.seqno_at(at, last));
        }
        while let Some(ticket) = self.callers.next_done_read(self.executor.low()) {
            self.answer_sync_wait(ticket, Code::Ok);
        }
    }

    pub(crate) fn answer_sync_wait(&mut self, ticket: Ticket, code: Code) {
        let gtid = self.last_committed();
        self.answer(ticket, Answer::at(code, gtid, -1));
    }

    pub(crate) fn cancel_ticket(&mut self, ticket: Ticket) {
        self.callers.cancel(ticket);
        self.submissions.abandon_desync(ticket);
    }

    /// Carries out pause(): the node certifies nothing more, and answers when everything certified is released.
    pub(crate) fn pause(&mut self, ticket: Ticket) {
        if self.lifecycle.has_diverged() && !planted(Mutant::InconsistentDonates) {
            // A donor's script pauses before it copies: no other node may get this diverged data.
            return self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
        self.callers.begin_pause(ticket);
    }

    /// Returns true while deliveries must wait. Until a pause is granted, deliveries go on in two cases that need them.
    /// A brute-force victim that waits for its place in the order holds locks that an applier needs. A caller that
    /// waits for a vote holds commit order. While the local log is read back, deliveries never wait, because none of
    /// them is applied.
    pub(crate) fn deliveries_stand_still(&self) -> bool {
        if self.transfer.place() == Place::Admission {
            return false;
        }
        let needed = || self.executor.victim_awaits_order() || self.voting.is_disputing();
        self.callers.is_any_pause() && !(self.callers.is_pause_awaited() && needed())
    }

    /// Returns true while a granted pause holds the server still: it gets no callback. The exception is the last
    /// callbacks, if the server itself waits for them: a donor's script ends its pause only before them (simulator,
    /// seed 11019939).
    pub(crate) fn is_held_still(&self) -> bool {
        let may_wait = match self.transfer.place() {
            Place::Final => {
                !self.lifecycle.is_awaited() && !planted(Mutant::NonPrimaryOvertakesPause)
            }
            Place::Closed => false,
            Place::Admission | Place::Transfer | Place::Active => true,
        };
        may_wait && self.callers.is_pause_granted()
    }

    pub(crate) fn grant_pause(&mut self) {
        // A donor's script ends its pause only while its server is a donor (server-contract.md#pause). So the pause is
        // granted before the view that ends this state, whatever entries are behind.
        let is_last_chance =
            self.executor.ends_donor_next() && !planted(Mutant::PauseAfterDonorsLoss);
        let at_rest = match self.transfer.place() {
            _ if is_last_chance => true,
            Place::Active => {
                let drained = self.executor.is_drained() && self.deliveries_stand_still();
                drained && !self.executor.queue().is_in_view()
            }
            // Write-sets that were certified before the node left are still being applied.
            Place::Final => self.executor.is_drained(),
            Place::Closed => true,
            Place::Admission | Place::Transfer => false,
        };
        if !at_rest {
            return;
        }
        for ticket in self.callers.grant_pauses() {
            // Not saved in grastate.dat: a crash may leave the database behind this position.
            let gtid = self.last_committed();
            self.answer(ticket, Answer::at(Code::Ok, gtid, -1));
        }
    }

    /// Carries out resume().
    pub(crate) fn resume(&mut self, ticket: Ticket) {
        self.callers.end_pause();
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// Carries out desync().
    pub(crate) fn desync(&mut self, ticket: Ticket) {
        // Also refused for a server that still takes itself for Synced: it would not take the desync back (see
        // `forget_desyncs`).
        let possible = self.lifecycle.takes_part()
            && !self.executor.queue().shows_non_primary()
            && self
                .context
                .my_node_state()
                .is_some_and(|s| s != NodeState::Joiner);
        if possible {
            let as_donor = self.executor.queue().is_known_donor();
            self.submit(Sent::Desync { ticket, as_donor }, &Message::Desync);
        } else {
            self.answer(ticket, Answer::unordered(Code::TrxFail));
        }
    }

    /// Carries out resync(). If it cannot be ordered now, it is ordered later ([`Self::settle_desyncs`]).
    pub(crate) fn resync(&mut self, ticket: Ticket) {
        self.submissions.take_back_desync();
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// Brings this node's desyncs in the order to the number that its callers were told. They differ when a desync that
    /// was given up is ordered after all, or a repeated resync is.
    pub(crate) fn settle_desyncs(&mut self) {
        let counted = (self.context.my_state())
            .filter(|member| member.state != NodeState::Joiner)
            .map(|member| member.desyncs);
        match counted.and_then(|counted| self.submissions.missing_desync(counted)) {
            Some(Sent::Resync) if planted(Mutant::DesyncNeverLifted) => {}
            Some(Sent::Resync) => self.submit(Sent::Resync, &Message::Resync),
            Some(sent) => self.submit(sent, &Message::Desync),
            None => {}
        }
    }
}
