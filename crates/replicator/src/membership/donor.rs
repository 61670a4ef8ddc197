//! The donor's side of state transfers: answers to joiners' pulls of entries and of the control state, and the donation
//! of a state by the server's script. The order chooses the donor.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Incarnation, Position};
use trireme_mutants::{Mutant, planted};

use super::Membership;
use crate::action::{Action, Answer, Code, Level, Pull};
use crate::control_parts::ControlParts;
use crate::event::Ticket;
use crate::executor::Running;
use crate::gtid::Gtid;
use crate::history::History;
use crate::message::Message;
use crate::payload::Payload;
use crate::peer_message::PeerMessage;
use crate::state_transfer::Place;
use crate::submissions::Sent;
use crate::work::{Task, WorkId};

/// The result of sst_sent() and the donate callback when they have no better one (-ECANCELED). In sst_received(): the
/// server ends itself.
pub(crate) const CANCELED: i32 = -125;

impl Membership<'_> {
    // --- pulls

    /// Answers a joiner's pull. If the entries cannot be read now, the joiner asks again, or asks another member.
    pub(crate) fn pulled(
        &mut self,
        from: Incarnation,
        seqno: Seqno,
        offset: u32,
        history: &dyn History,
    ) {
        // An arbitrator may be the only member left with the entries.
        let first = match self.context.is_arbitrator() {
            true => history.first_seqno_kept(),
            false => history.first_seqno(),
        };
        let serves = (self.retention).serves(self.context, first, (from, seqno));
        if let Some(position) = history.position_of(seqno).filter(|_| serves) {
            let options = self.context.options();
            let (part_bytes, chunk_bytes) = (options.ist_part_bytes, options.ist_chunk_bytes);
            if self.retention.served(from, seqno, position) {
                self.pin_log();
            }
            self.out.push(Action::Serve(Pull {
                to: from,
                seqno,
                offset,
                part_bytes,
                chunk_bytes,
            }));
        } else if first.is_some() {
            self.unserved(from, seqno);
        } else {
            self.refuse_pull(from, seqno);
        }
    }

    /// Answers a pull of entries that the log does not have.
    pub(crate) fn unserved(&mut self, to: Incarnation, seqno: Seqno) {
        // galera_gcache_recover_full_gcache looks for these words.
        let text = || format!("IST first seqno {seqno} not found from cache, falling back to SST");
        let now_ms = self.context.now_ms();
        (self.out).complain(Level::Info, to, now_ms, text);
        self.refuse_pull(to, seqno);
    }

    fn refuse_pull(&mut self, to: Incarnation, seqno: Seqno) {
        let nothing = PeerMessage::IstChunk {
            from: seqno,
            records: Vec::new(),
        };
        self.out.send(to, &nothing);
    }

    /// Sends the own control state, if it is recent enough.
    pub(crate) fn serve_control_state(&mut self, to: Incarnation, round: u64, at_least: Position) {
        let ready = self.context.control().filter(|c| c.position >= at_least);
        let Some(control) = ready.filter(|_| self.transfer.place() != Place::Admission) else {
            return self.refuse_control_state(to, round);
        };
        let part_bytes = self.context.options().thresholds.chunk_bytes;
        let parts = ControlParts::new(round, control.encode(), part_bytes);
        self.out.push(Action::SendControlState { to, parts });
    }

    /// Makes a joiner ask another member, or ask again.
    pub(crate) fn refuse_control_state(&mut self, to: Incarnation, round: u64) {
        self.out.send(to, &PeerMessage::SnapshotRefused { round });
    }

    // --- donations

    /// Begins a donation, because the order chose this node. Its server is asked to send the state with everything up
    /// to here applied, and nothing above commits until the callback has returned. With `bypass` the server only passes
    /// this position on.
    pub(crate) fn begin_donation(&mut self, request: Bytes, bypass: Option<Gtid>) {
        if self.lifecycle.is_leaving() {
            return; // a server that disconnects cannot become a donor: the joiner will hear that this node is gone
        }
        self.lifecycle.forget_synced();
        self.lifecycle.begin_donation(bypass.is_some());
        let Some(gtid) = self.context.control().map(|c| c.gtid()) else {
            return; // not reached: a node that the order chose has its state
        };
        if bypass.is_none() && !planted(Mutant::DonorStateMoves) {
            self.executor.hold_above(gtid.seqno);
        }
        let task = Task::Donate {
            request,
            gtid: bypass.unwrap_or(gtid),
            bypass: bypass.is_some(),
        };
        (self.transfer).queue((task, None, Payload::None), self.executor);
    }

    /// Handles the end of the donate callback.
    pub(crate) fn donated(&mut self, work: WorkId, ok: bool) {
        if !ok {
            self.executor.end_donation(); // even if the connection has ended
        }
        match self.executor.done(work) {
            None => return,
            Some(Running::Donate { holds: true }) => self.executor.unhold(),
            // Nothing was held for it; another donation may hold by now.
            Some(_) => {}
        }
        if !ok {
            if let Some(joiner) = self.donates_to() {
                // Galera's words, which the suites look for.
                let joiner = self.context.name_of(joiner);
                let text = format!(
                    "State transfer to {joiner} failed: this server could not start to send; its lines above say why."
                );
                self.out.log(Level::Warn, text);
            }
            self.end_donation(CANCELED);
        }
    }

    /// Carries out sst_sent().
    pub(crate) fn sst_sent(&mut self, ticket: Ticket, gtid: Gtid, rcode: i32) {
        let donates = self.donates_to().is_some();
        let code = if donates { Code::Ok } else { Code::ConnFail };
        self.out.answer(ticket, Answer::unordered(code));
        self.executor.end_donation();
        if donates {
            let wrong = gtid.uuid != self.executor.history() || gtid.seqno < 0;
            self.end_donation(if rcode == 0 && wrong {
                CANCELED
            } else {
                rcode.min(0)
            });
        }
    }

    /// Reviews a donation when the node is in step with the group again: the order may count on a donation that the
    /// server was never asked for.
    pub(crate) fn review_donation(&mut self) {
        if self.donates_to().is_some()
            && !self.executor.queue().donates()
            && self.submissions.donation_result().is_none()
        {
            self.end_donation(CANCELED);
        }
    }

    fn end_donation(&mut self, rcode: i32) {
        self.submissions.donation_ended(rcode);
        self.report_donation();
    }

    /// Reports the end of a donation, as soon as the order takes the report. It goes behind the rollback fragments of
    /// this node: the sent state may lack the fragments that they undo (rule 7).
    pub(super) fn report_donation(&mut self) {
        let Some(rcode) = self.submissions.donation_result() else {
            return;
        };
        if self.donates_to().is_none() {
            self.submissions.forget_donation();
        } else if self.lifecycle.takes_part() && self.rollbacks_are_sent() {
            self.submit_once(Sent::Donated, &Message::Donated { rcode });
        }
    }

    fn rollbacks_are_sent(&mut self) -> bool {
        let may_write = || (self.lifecycle).may_write(self.context, self.transfer);
        let (now_ms, low) = (self.context.now_ms(), self.executor.low());
        (self.submissions).rollbacks_are_sent(now_ms, may_write, low, self.out)
    }

    /// Returns true if no script of the server sends any more. A server whose script still sends cannot become Synced,
    /// and cannot run a second script (server-contract-callbacks.md#server-states). Only a Synced member is chosen as
    /// donor.
    pub(super) fn has_sent(&self) -> bool {
        !self.executor.queue().will_donate()
    }

    pub(super) fn donates_to(&self) -> Option<Incarnation> {
        self.context.my_state()?.donates_to
    }
}
