//! Calls that wait for the whole node: reads that must see what was acknowledged before, and pauses.

use trireme_mutants::{Mutant, planted};

use super::Clients;
use crate::action::{Action, Answer, Code, GroupAction};
use crate::event::Ticket;
use crate::gtid::Gtid;
use crate::state_transfer::Place;

impl Clients<'_> {
    /// Carries out sync_wait().
    pub(crate) fn sync_wait(&mut self, ticket: Ticket, upto: Option<Gtid>) {
        match upto {
            Some(upto) if upto.uuid != self.executor.history() || upto.uuid.is_nil() => {
                self.answer_read(ticket, Code::TrxMissing);
            }
            Some(upto) => self.callers.wait_for(ticket, upto.seqno),
            // The group's order may be on another branch than the entries that this database still applies.
            None if !self.lifecycle.takes_part() || self.transfer.is_with_scripts() => {
                self.answer_read(ticket, Code::TrxFail);
            }
            None => {
                self.counters.causal_reads += 1;
                let behind = self.submissions.last_rollback();
                if self.callers.ask_read(ticket, behind) {
                    self.ask_read_point(ticket);
                }
            }
        }
    }

    /// Requests the read points for reads that waited for own submissions.
    pub(crate) fn ask_reads(&mut self) {
        let submissions = &self.submissions;
        let due = (self.callers).take_due_reads(|number| submissions.has(number));
        due.into_iter()
            .for_each(|ticket| self.ask_read_point(ticket));
    }

    fn ask_read_point(&mut self, ticket: Ticket) {
        let read = GroupAction::Read { token: ticket };
        self.out.push(Action::Group(read));
    }

    /// Takes in that the group cannot answer a read.
    pub(crate) fn read_failed(&mut self, ticket: Ticket) {
        if self.callers.read_failed(ticket) {
            self.answer_read(ticket, Code::TrxFail);
        }
    }

    /// Answers the reads with a point that is released here.
    pub(crate) fn grant_reads(&mut self) {
        if let Some(control) = self.context.control() {
            let (retention, last) = (self.retention, control.seqno());
            self.callers
                .processed(control.position, |at| retention.seqno_at(at, last));
        }
        while let Some(ticket) = self.callers.next_done_read(self.executor.low()) {
            self.answer_read(ticket, Code::Ok);
        }
    }

    fn answer_read(&mut self, ticket: Ticket, code: Code) {
        self.out
            .answer_read(ticket, code, self.executor.last_committed());
    }

    /// Takes in that the caller no longer waits.
    pub(crate) fn cancel_ticket(&mut self, ticket: Ticket) {
        self.callers.cancel(ticket);
        self.submissions.abandon_desync(ticket);
    }

    /// Carries out pause(): the node certifies nothing more, and answers when everything certified is released.
    pub(crate) fn pause(&mut self, ticket: Ticket) {
        if self.lifecycle.has_diverged() && !planted(Mutant::InconsistentDonates) {
            // A donor's script pauses before it copies: no other node may get this diverged data.
            return self.refuse(ticket, Code::ConnFail);
        }
        self.callers.begin_pause(ticket);
    }

    pub(crate) fn grant_pause(&mut self) {
        // A donor's script ends its pause only while its server is a donor (server-contract.md#pause). So the pause is
        // granted before the view that ends this state, whatever entries are behind.
        let is_last_chance =
            self.executor.ends_donor_next() && !planted(Mutant::PauseAfterDonorsLoss);
        let place = self.transfer.place();
        let at_rest = match place {
            _ if is_last_chance => true,
            Place::Active => {
                let stands = (self.callers).stops_deliveries(place, self.executor, self.voting);
                self.executor.is_drained() && stands && !self.executor.queue().is_in_view()
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
            let gtid = self.executor.last_committed();
            self.out.answer(ticket, Answer::at(Code::Ok, gtid, -1));
        }
    }

    /// Carries out resume().
    pub(crate) fn resume(&mut self, ticket: Ticket) {
        self.callers.end_pause();
        self.out.answer(ticket, Answer::unordered(Code::Ok));
    }
}
