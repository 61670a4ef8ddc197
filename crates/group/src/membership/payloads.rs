//! Submissions, bulk payloads and current reads of this member: carries out the requests of [`Dissemination`] and of
//! [`crate::reads::Reads`].

use super::Membership;
use crate::dissemination::{Dissemination, DisseminationOutput, Lacking, Place};
use crate::event::Action;
use crate::ids::{Incarnation, Position, Term, TimeMs};
use crate::known::known;
use crate::log_reader::LogReader;
use crate::message::Message;
use crate::reads::ReadOutput;

impl Membership<'_> {
    // ---- payloads ----

    pub(crate) fn place(&self) -> Place {
        Place {
            is_primary: self.component.is_primary(),
            is_leader: self.role.is_leader(),
        }
    }

    /// Sends the leader the own submissions that it may not have.
    pub(crate) fn resend_own(&mut self, older_than_ms: TimeMs) {
        let leader = self.voice_of_leader();
        let outputs = (self.dissemination).resend(known!(self), leader, older_than_ms);
        self.disseminate(outputs);
    }

    /// Own submissions up to `number` lie below a log checkpoint: fails those whose clients wait.
    pub(crate) fn fail_covered(&mut self, number: u64) {
        let leader = self.voice_of_leader();
        let outputs = self.dissemination.cover(known!(self), leader, number);
        self.disseminate(outputs);
    }

    /// The majority is lost: answers every waiting client, as far as the fate of its submission is known (rule 7).
    pub(super) fn withdraw_own(&mut self) {
        let incoming = self.matching.incoming();
        let outputs = self.dissemination.withdraw(known!(self), incoming);
        self.disseminate(outputs);
    }

    /// Reports the bulk payloads that may be submitted, and offers the next.
    pub(crate) fn pursue_own_bulk(&mut self) {
        let (role, promised) = (&self.role, self.vote.promised());
        let known = known!(self);
        let leader = || match role.is_leader() {
            true => Some(known.me()),
            false => known.leader_of(promised),
        };
        let outputs = self.dissemination.pursue(known, leader);
        self.disseminate(outputs);
    }

    /// With every heartbeat: asks again for the parts of bulk payloads that have not come.
    pub(crate) fn go_on_fetching(&mut self) {
        let leader = self.leader_in_term();
        let outputs = self.dissemination.go_on(known!(self), leader);
        self.disseminate(outputs);
    }

    /// Fetches the payloads that the first order records lack from the leader's log.
    pub(crate) fn fetch_logged(&mut self) {
        let lacking = Lacking {
            incoming: self.matching.incoming(),
            hole_since: self.matching.hole_since(),
            promised: self.vote.promised(),
        };
        let outputs = self.dissemination.fetch_logged(known!(self), lacking);
        self.disseminate(outputs);
    }

    pub(crate) fn serve_fetches(&mut self, log: &dyn LogReader) {
        let outputs = self.dissemination.serve(known!(self), log);
        self.disseminate(outputs);
    }

    pub(crate) fn disseminate(&mut self, outputs: Vec<DisseminationOutput>) {
        for output in outputs {
            match output {
                DisseminationOutput::Send(to, message) => self.send_all(to, message),
                DisseminationOutput::Act(action) => self.out.push(action),
                DisseminationOutput::Fetched => self.out.count(|c| c.bulk_payloads += 1),
                DisseminationOutput::FetchedFromLog => self.out.count(|c| c.logged += 1),
                DisseminationOutput::AskAnew(of) => {
                    self.matching.drop_incoming();
                    self.ask_catch_up(of);
                }
                DisseminationOutput::PromiseAnew => {
                    let number = self.vote.next_number();
                    let replica = self.my_replica();
                    self.elections().promise_term(Term { number, replica });
                }
            }
        }
    }

    /// The leader, or the candidate, of the promised term.
    fn voice_of_leader(&self) -> Option<Incarnation> {
        match self.role.is_leader() {
            true => Some(self.me()),
            false => self.voice_of_term(),
        }
    }

    // ---- catch-up ----

    /// Requests a catch-up from the leader, from the last position on which the two logs agree.
    pub(crate) fn ask_catch_up(&mut self, leader: Incarnation) {
        if !self.matching.may_ask(self.context.now()) {
            return;
        }
        self.out.count(|c| c.summaries_sent += 1);
        let message = Message::Summary {
            term: self.vote.promised(),
            summary: self.log.summary(),
        };
        self.send(leader, message);
    }

    /// Called by the tick: requests a catch-up from the leader for a payload that does not come (rule 8).
    pub(crate) fn pull_holes(&mut self) {
        let hole = self.matching.has_hole(self.context.now()) && !self.awaits_large();
        if hole || !self.matching.is_matched() {
            if let Some(leader) = self.leader_in_term() {
                self.ask_catch_up(leader);
            }
        }
    }

    /// True if the first order record waits for a bulk payload: this member fetches it, and needs no catch-up.
    pub(crate) fn awaits_large(&self) -> bool {
        Dissemination::awaits_large(self.known(), self.matching.incoming())
    }

    // ---- current reads ----

    /// With every batch: starts and finishes rounds of current reads.
    pub(crate) fn pursue_reads(&mut self) {
        let (is_primary, own_end) = (self.component.is_primary(), self.known_end());
        let outputs = self.reads.pursue(known!(self), is_primary, own_end);
        self.carry_out_reads(outputs);
    }

    pub(crate) fn log_end_asked(&mut self, from: Incarnation, round: u64) {
        // An amnesiac member may have forgotten entries that it acknowledged in this term, and a copy has never seen those
        // of its original. Their answers must not lower the read point, so they give none.
        let may_lack = self.vote.is_amnesiac() || self.branches().may_be_a_copy();
        let end = self.known_end().filter(|_| !may_lack);
        if let Some(end) = end {
            let term = self.vote.promised();
            self.send(from, Message::LogEndReply { round, term, end });
        }
    }

    pub(crate) fn log_end_reply(
        &mut self,
        from: Incarnation,
        round: u64,
        term: Term,
        end: Position,
    ) {
        let Some(replica) = self.peers.replica_of(from) else {
            return; // `message` has looked it up
        };
        if term == self.vote.promised() {
            let own_end = self.known_end();
            let outputs = (self.reads).end_told(known!(self), (replica, end), round, own_end);
            self.carry_out_reads(outputs);
        }
    }

    /// Fails all readers: no majority can answer.
    pub(super) fn fail_reads(&mut self) {
        let outputs = self.reads.fail();
        self.carry_out_reads(outputs);
    }

    /// The last position of the local log that agrees with the leader's, if that is known.
    fn known_end(&self) -> Option<Position> {
        (self.matching.is_matched() || self.role.is_leader())
            .then(|| (self.matching).end_agreed_with_leader(self.log, self.role.is_leader()))
    }

    fn carry_out_reads(&mut self, outputs: Vec<ReadOutput>) {
        for output in outputs {
            match output {
                ReadOutput::Ask { round, of } => self.send_all(of, Message::LogEnd { round }),
                ReadOutput::Point { token, position } => {
                    self.out.push(Action::ReadPoint { token, position })
                }
                ReadOutput::Failed { token } => self.out.push(Action::ReadFailed { token }),
            }
        }
    }
}
