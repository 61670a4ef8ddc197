//! Calls of client threads that concern the whole node: reads, pause, desync, flow control.

use trireme_certification::Seqno;

use crate::action::{Action, Answer, Code};
use crate::control::NodeState;
use crate::direct::Direct;
use crate::event::Ticket;
use crate::flow::Tell;
use crate::gtid::Gtid;
use crate::isolation::Isolation;
use crate::message::Message;
use crate::replicator::{Replicator, Stage};
use crate::submissions::Sent;
use crate::transactions::Phase;

impl Replicator {
    /// sync_wait()
    pub(crate) fn sync_wait(&mut self, ticket: Ticket, upto: Option<Gtid>) {
        match upto {
            Some(upto) if upto.uuid != self.applied_history || upto.uuid.is_nil() => {
                self.answer_sync_wait(ticket, Code::TrxMissing);
            }
            Some(upto) => self.causal.wait(ticket, upto.seqno),
            None if !self.primary || self.leaving => self.answer_sync_wait(ticket, Code::TrxFail),
            None => {
                self.counters.causal_reads += 1;
                self.causal.ask(ticket);
                self.out.push(Action::Read { token: ticket });
            }
        }
    }

    /// Answers the reads whose point is released here.
    pub(crate) fn grant_reads(&mut self) {
        if let Some(control) = &self.control {
            // Positions that are not remembered any more are below the low-water mark.
            let positions = &self.positions;
            self.causal.processed(control.position, |at| {
                let count = positions.partition_point(|(position, _)| *position <= at);
                let last = count.checked_sub(1).and_then(|last| positions.get(last));
                last.map_or(Seqno::MIN, |(_, seqno)| *seqno)
            });
        }
        while let Some(ticket) = self.causal.next_done(self.order.low()) {
            self.answer_sync_wait(ticket, Code::Ok);
        }
    }

    pub(crate) fn answer_sync_wait(&mut self, ticket: Ticket, code: Code) {
        let gtid = self.last_committed();
        self.answer(ticket, Answer::at(code, gtid, -1));
    }

    pub(crate) fn cancel_ticket(&mut self, ticket: Ticket) {
        self.causal.cancel(ticket);
        self.submissions.abandon_desync(ticket);
        if self.pausing.remove(&ticket) {
            self.pauses = self.pauses.saturating_sub(1);
        }
    }

    /// pause(): nothing more is certified; answered when all that was is released.
    pub(crate) fn pause(&mut self, ticket: Ticket) {
        self.pauses += 1;
        self.pausing.insert(ticket);
    }

    /// True while deliveries must wait. A brute-force victim that waits for its place in the order
    /// holds locks that an applier needs: then they go on until it has it, else a pause would
    /// never come to rest.
    pub(crate) fn deliveries_stand_still(&self) -> bool {
        self.pauses > 0 && (self.pausing.is_empty() || !self.transactions.victim_awaits_order())
    }

    pub(crate) fn grant_pause(&mut self) {
        let at_rest = match self.stage {
            Stage::Active => self.order.is_drained() && self.deliveries_stand_still(),
            Stage::Closed | Stage::Final => true,
            Stage::Admission(_) | Stage::Transfer(_) => false,
        };
        if !at_rest {
            return;
        }
        for ticket in std::mem::take(&mut self.pausing) {
            let gtid = self.last_committed();
            if gtid != Gtid::UNDEFINED {
                self.out.push(Action::SaveState {
                    gtid,
                    safe_to_bootstrap: self.safe_to_bootstrap,
                });
            }
            self.answer(ticket, Answer::at(Code::Ok, gtid, -1));
        }
    }

    /// resume()
    pub(crate) fn resume(&mut self, ticket: Ticket) {
        self.pauses = self.pauses.saturating_sub(1);
        if self.pauses == 0 && matches!(self.stage, Stage::Active) {
            let gtid = self.gtid_of(-1);
            self.out.push(Action::SaveState {
                gtid,
                safe_to_bootstrap: self.safe_to_bootstrap,
            });
        }
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// desync()
    pub(crate) fn desync(&mut self, ticket: Ticket) {
        let possible = self.primary
            && !self.leaving
            && self.my_state().is_some_and(|s| s != NodeState::Joiner);
        if possible {
            self.submit(Sent::Desync(ticket), &Message::Desync);
        } else {
            self.answer(ticket, Answer::unordered(Code::TrxFail));
        }
    }

    /// resync(): what cannot be ordered now is when it can.
    pub(crate) fn resync(&mut self, ticket: Ticket) {
        self.owed_resyncs += 1;
        self.answer(ticket, Answer::unordered(Code::Ok));
    }

    /// Asks the others to wait when the apply queue is too long, and sends what waited here when
    /// nobody asks any more.
    pub(crate) fn watch_flow(&mut self) {
        let queue = self.works.applies() + self.backlog.len();
        let members = self
            .control
            .as_ref()
            .map_or(0, |c| c.configuration.members.len());
        let may_ask = self.my_state() == Some(NodeState::Synced) && self.primary && !self.leaving;
        if let Some(tell) = self
            .flow
            .watch(self.now_ms, queue, may_ask, members, &self.options)
        {
            let message = match tell {
                Tell::Stop => Direct::FlowStop,
                Tell::Continue => Direct::FlowContinue,
            };
            for member in self.configuration().members {
                if member.incarnation != self.me {
                    self.send(member.incarnation, &message);
                }
            }
        }
        let control = &self.control;
        let counts =
            |from| control.as_ref().and_then(|c| c.state_of(from)) == Some(NodeState::Synced);
        if self.flow.is_active(self.now_ms, counts) {
            return;
        }
        for held in std::mem::take(&mut self.held) {
            if !self.may_write() {
                self.give_up(held.sent, false);
                continue;
            }
            match held.sent {
                Sent::Trx(id) => {
                    let Some(trx) = self.transactions.get_mut(id) else {
                        continue;
                    };
                    let Phase::Held { ticket } = trx.phase else {
                        continue;
                    };
                    trx.phase = Phase::Replicating {
                        ticket,
                        aborted: false,
                    };
                }
                Sent::Toi(conn) => {
                    let Some(Isolation::Held { ticket }) = self.isolations.get(&conn).copied()
                    else {
                        continue;
                    };
                    self.isolations
                        .insert(conn, Isolation::Replicating { ticket });
                }
                _ => continue,
            }
            self.replicate(held.sent, held.draft);
        }
    }
}
