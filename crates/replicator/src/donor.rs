//! The donor's side of state transfers: answers to joiners' pulls, and the donation of a state by the server's script.
//! The order chooses the donor. All peer messages come in here.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::Incarnation;
use trireme_mutants::{Mutant, planted};

use crate::action::{Action, Answer, Code, Level, Pull};
use crate::event::Ticket;
use crate::flow_control::Request;
use crate::gtid::Gtid;
use crate::history::History;
use crate::message::Message;
use crate::payload::Payload;
use crate::peer_message::PeerMessage;
use crate::replicator::Replicator;
use crate::submissions::Sent;
use crate::work::{Task, WorkId};

/// The result of sst_sent() and the donate callback when they have no better one (-ECANCELED). In sst_received(): the
/// server ends itself.
pub(crate) const CANCELED: i32 = -125;

impl Replicator {
    /// Takes in a peer message.
    pub(crate) fn peer_message(&mut self, from: Incarnation, bytes: Bytes, history: &dyn History) {
        let message = match PeerMessage::decode(bytes) {
            Ok(message) => message,
            Err(error) => {
                let text = || format!("message of {from} cannot be read: {error}");
                let now_ms = self.context.now_ms();
                return self.out.complain(Level::Warn, from, now_ms, text);
            }
        };
        if message.is_of_members() && !self.is_member(from) {
            // A joiner that this node does not know yet asks another member, or asks again.
            if let PeerMessage::SnapshotRequest { round, .. } = message {
                self.send(from, &PeerMessage::SnapshotRefused { round });
            }
            return;
        }
        match message {
            PeerMessage::SnapshotRequest { round, at_least } => {
                self.serve_snapshot(from, round, at_least)
            }
            PeerMessage::SnapshotChunk(chunk) => self.snapshot_chunk(from, &chunk),
            PeerMessage::SnapshotRefused { round } => self.snapshot_refused(from, round),
            PeerMessage::IstPull { from: seqno } => self.pulled(from, seqno, 0, history),
            PeerMessage::IstPullPart {
                from: seqno,
                offset,
            } => self.pulled(from, seqno, offset, history),
            PeerMessage::IstChunk {
                from: seqno,
                records,
            } => self.ist_chunk(from, seqno, &records),
            PeerMessage::IstPart(part) => self.ist_part(from, &part),
            PeerMessage::FlowStop => {
                (self.flow_control).requested(from, Request::Stop, self.context.now_ms())
            }
            PeerMessage::FlowPace { per_second } => {
                let pace = Request::Pace { per_second };
                self.flow_control
                    .requested(from, pace, self.context.now_ms())
            }
            PeerMessage::FlowContinue => self.flow_control.continued(from),
        }
    }

    fn is_member(&self, peer: Incarnation) -> bool {
        let control = self.context.control();
        control.is_some_and(|control| control.configuration.member(peer).is_some())
    }

    /// Answers a joiner's pull. If the entries cannot be read now, the joiner asks again, or asks another member.
    fn pulled(&mut self, from: Incarnation, seqno: Seqno, offset: u32, history: &dyn History) {
        let (low, first) = (self.executor.low(), history.first_seqno());
        let serves = (self.retention).serves(&self.context, low, first, (from, seqno));
        if serves && history.has(seqno) {
            let options = self.context.options();
            let (part_bytes, chunk_bytes) = (options.ist_part_bytes, options.ist_chunk_bytes);
            self.retention.served(from, seqno, self.context.now_ms());
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
        self.send(to, &nothing);
    }

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
        self.push_task(
            Task::Donate {
                request,
                gtid: bypass.unwrap_or(gtid),
                bypass: bypass.is_some(),
            },
            None,
            Payload::None,
        );
    }

    /// Handles the end of the donate callback.
    pub(crate) fn donated(&mut self, work: WorkId, ok: bool) {
        if !ok {
            self.executor.end_donation(); // even if the connection has ended
        }
        if self.executor.done(work).is_none() {
            return;
        }
        self.executor.unhold();
        if !ok {
            if let Some(joiner) = self.donates_to() {
                // Galera's words, which the suites look for.
                let joiner = self.context.name_of(joiner);
                let text = format!(
                    "State transfer to {joiner} failed: this server could not start to send; its lines above say why."
                );
                self.log(Level::Warn, text);
            }
            self.end_donation(CANCELED);
        }
    }

    /// Carries out sst_sent().
    pub(crate) fn sst_sent(&mut self, ticket: Ticket, gtid: Gtid, rcode: i32) {
        let donates = self.donates_to().is_some();
        let code = if donates { Code::Ok } else { Code::ConnFail };
        self.answer(ticket, Answer::unordered(code));
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
        self.owed_donation();
    }

    /// Reports the end of a donation, as soon as the order takes the report. It goes behind the rollback fragments of
    /// this node: the sent state may lack the fragments that they undo (rule 7).
    pub(crate) fn owed_donation(&mut self) {
        let Some(rcode) = self.submissions.donation_result() else {
            return;
        };
        if self.donates_to().is_none() {
            self.submissions.forget_donation();
        } else if self.lifecycle.takes_part() && self.rollbacks_are_sent() {
            self.submit_once(Sent::Donated, &Message::Donated { rcode });
        }
    }

    /// Returns true if no script of the server sends any more. A server whose script still sends cannot become Synced,
    /// and cannot run a second script (server-contract-callbacks.md#server-states). Only a Synced member is chosen as
    /// donor.
    pub(crate) fn has_sent(&self) -> bool {
        !self.executor.queue().will_donate()
    }

    pub(crate) fn donates_to(&self) -> Option<Incarnation> {
        self.context
            .control()?
            .members
            .get(&self.context.me())?
            .donates_to
    }
}
