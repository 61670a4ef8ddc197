//! Calls of client threads that concern the whole node: reads, pause, desync.

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
    /// sync_wait()
    pub(crate) fn sync_wait(&mut self, ticket: Ticket, upto: Option<Gtid>) {
        match upto {
            Some(upto) if upto.uuid != self.executor.history() || upto.uuid.is_nil() => {
                self.answer_sync_wait(ticket, Code::TrxMissing);
            }
            Some(upto) => self.reads.wait(ticket, upto.seqno),
            // The order that counts may be of another branch than what this database still applies.
            None if !self.lifecycle.takes_part() || self.transfer.is_with_scripts() => {
                self.answer_sync_wait(ticket, Code::TrxFail);
            }
            None => {
                self.counters.causal_reads += 1;
                if self.reads.ask(ticket, self.submissions.last_rollback()) {
                    self.out
                        .push(Action::Group(GroupAction::Read { token: ticket }));
                }
            }
        }
    }

    /// Answers the reads whose point is released here.
    pub(crate) fn grant_reads(&mut self) {
        if let Some(control) = self.context.control() {
            let (retention, last) = (&self.retention, control.seqno());
            self.reads
                .processed(control.position, |at| retention.seqno_at(at, last));
        }
        while let Some(ticket) = self.reads.next_done(self.executor.low()) {
            self.answer_sync_wait(ticket, Code::Ok);
        }
    }

    pub(crate) fn answer_sync_wait(&mut self, ticket: Ticket, code: Code) {
        let gtid = self.last_committed();
        self.answer(ticket, Answer::at(code, gtid, -1));
    }

    pub(crate) fn cancel_ticket(&mut self, ticket: Ticket) {
        self.reads.cancel(ticket);
        self.submissions.abandon_desync(ticket);
        self.pauses.cancel(ticket);
    }

    /// pause(): nothing more is certified; answered when all that was is released.
    pub(crate) fn pause(&mut self, ticket: Ticket) {
        if self.lifecycle.has_diverged() && !planted(Mutant::InconsistentDonates) {
            // A donor's script pauses before it copies: nobody is to be given these data.
            return self.answer(ticket, Answer::unordered(Code::ConnFail));
        }
        self.pauses.begin(ticket);
    }

    /// True while deliveries must wait. They go on until a pause has come to rest, as long as that
    /// needs them: a brute-force victim that waits for its place in the order holds locks that an
    /// applier needs, and who waits for a vote holds commit order. Nothing is applied of what is
    /// delivered while the own log is read back.
    pub(crate) fn deliveries_stand_still(&self) -> bool {
        if self.transfer.place() == Place::Admission {
            return false;
        }
        let needed = || self.executor.victim_awaits_order() || self.voting.is_disputing();
        self.pauses.is_any() && !(self.pauses.is_awaited() && needed())
    }

    /// True while a pause that was granted holds the server still: it gets no callback, but for the last ones
    /// if it waits for them itself. A donor's script takes back its pause only before them (simulator, seed 11019939).
    pub(crate) fn is_held_still(&self) -> bool {
        let may_wait = match self.transfer.place() {
            Place::Final => {
                !self.lifecycle.is_awaited() && !planted(Mutant::NonPrimaryOvertakesPause)
            }
            Place::Closed => false,
            Place::Admission | Place::Transfer | Place::Active => true,
        };
        may_wait && self.pauses.is_granted()
    }

    pub(crate) fn grant_pause(&mut self) {
        // A donor's script takes back a pause only as long as its server is a donor (server-contract.md#pause): it
        // gets it before the view that ends that, whatever is behind.
        let is_last_chance =
            self.executor.ends_donor_next() && !planted(Mutant::PauseAfterDonorsLoss);
        let at_rest = match self.transfer.place() {
            _ if is_last_chance => true,
            Place::Active => {
                let drained = self.executor.is_drained() && self.deliveries_stand_still();
                drained && !self.executor.queue().is_in_view()
            }
            // Write-sets that were certified before it left are still being applied.
            Place::Final => self.executor.is_drained(),
            Place::Closed => true,
            Place::Admission | Place::Transfer => false,
        };
        if !at_rest {
            return;
        }
        for ticket in self.pauses.grant() {
            // Not for grastate.dat: a crash may leave the database behind this position.
            let gtid = self.last_committed();
            self.answer(ticket, Answer::at(Code::Ok, gtid, -1));
        }
    }

    /// resume()
    pub(crate) fn resume(&mut self, ticket: Ticket) {
        self.pauses.end();
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// desync()
    pub(crate) fn desync(&mut self, ticket: Ticket) {
        // Nor for a server that takes itself for Synced still: it would not take the desync back (see `forget_desyncs`).
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

    /// resync(): what cannot be ordered now is when it can ([`Self::settle_desyncs`]).
    pub(crate) fn resync(&mut self, ticket: Ticket) {
        self.desyncs_granted = self.desyncs_granted.saturating_sub(1);
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// Makes what the order knows of this node's desyncs what its callers were told. A desync that
    /// was given up may be ordered after all, and so may a resync that was said again.
    pub(crate) fn settle_desyncs(&mut self) {
        let seat = self
            .context
            .control()
            .and_then(|c| c.members.get(&self.context.me()));
        let Some(seat) = seat.filter(|seat| seat.state != NodeState::Joiner) else {
            return;
        };
        // Asked at every event: nearly always there is nothing to do.
        if seat.desyncs == self.desyncs_granted || self.submissions.changes_desyncs() {
            return;
        }
        if seat.desyncs > self.desyncs_granted {
            if planted(Mutant::DesyncNeverLifted) {
                return;
            }
            self.submit(Sent::Resync, &Message::Resync);
        } else {
            self.submit(Sent::UnheardDesync, &Message::Desync);
        }
    }
}
