//! The way out: carries out the requests of the parts, for payloads, current reads and founding.

use bytes::Bytes;

use crate::dissemination::{Dissemination, DisseminationOutput, Lacking, Place};
use crate::event::Action;
use crate::founding::{Expects, Founding, FoundingOutput, Support, is_blank};
use crate::group::Group;
use crate::ids::{Incarnation, Position, Term, TimeMs};
use crate::known::known;
use crate::log_reader::LogReader;
use crate::message::{BulkPayload, Message};
use crate::reads::ReadOutput;

impl Group {
    // ---- payloads ----

    /// Submits `payload` as this member's submission `number` (1, 2, 3, ... per incarnation). The answer is a delivery
    /// or [`Action::Failed`].
    pub fn submit(&mut self, now: TimeMs, number: u64, payload: Bytes) {
        self.context.advance(now);
        let place = self.place();
        let outputs = (self.dissemination).submit(known!(self), place, number, payload);
        self.disseminate(outputs);
    }

    /// Takes a bulk payload, which the others must hold before it is submitted: this member's number `number`
    /// (ascending). The submission brings its first `head` bytes; `digest` is the CRC-32C of the rest.
    /// [`Action::Spread`] says that it may be submitted. If the majority is lost, the core forgets the payload, sends
    /// [`Action::Spread`], too, and its submission fails.
    pub fn spread(&mut self, now: TimeMs, number: u64, payload: Bytes, head: u32, digest: u32) {
        self.context.advance(now);
        let bulk = BulkPayload {
            number,
            len: u32::try_from(payload.len()).expect("wsrep bounds a write-set at 2 GiB"),
            head,
            digest,
        };
        let place = self.place();
        let outputs = self.dissemination.spread(place, bulk, payload);
        self.disseminate(outputs);
    }

    /// Gives up a bulk payload that is not submitted.
    pub fn recall(&mut self, number: u64) {
        let outputs = self.dissemination.recall(known!(self), number);
        self.disseminate(outputs);
    }

    /// Submits a bulk payload as this member's submission `number` (see [`Group::submit`]). `head`: its final first
    /// bytes.
    pub fn submit_bulk(&mut self, now: TimeMs, number: u64, bulk: u64, head: Bytes) {
        self.context.advance(now);
        let (place, bulk) = (self.place(), (bulk, head));
        let outputs = (self.dissemination).submit_bulk(known!(self), place, number, bulk);
        self.disseminate(outputs);
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
    pub(crate) fn withdraw_own(&mut self) {
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

    /// True if the first order record waits for a bulk payload: this member fetches it, and needs no catch-up.
    pub(crate) fn awaits_large(&self) -> bool {
        Dissemination::awaits_large(self.known(), self.matching.incoming())
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
                    self.promise_term(Term { number, replica });
                }
            }
        }
    }

    fn place(&self) -> Place {
        Place {
            is_primary: self.component.is_primary(),
            is_leader: self.role.is_leader(),
        }
    }

    /// The leader, or the candidate, of the promised term.
    fn voice_of_leader(&self) -> Option<Incarnation> {
        match self.role.is_leader() {
            true => Some(self.me()),
            false => self.voice_of_term(),
        }
    }

    // ---- current reads ----

    /// With every batch: starts and finishes rounds of current reads.
    pub(crate) fn pursue_reads(&mut self) {
        let (is_primary, own_end) = (self.component.is_primary(), self.known_end());
        let outputs = self.reads.pursue(known!(self), is_primary, own_end);
        self.carry_out_reads(outputs);
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
    pub(crate) fn fail_reads(&mut self) {
        let outputs = self.reads.fail();
        self.carry_out_reads(outputs);
    }

    pub(crate) fn log_end_asked(&mut self, from: Incarnation, round: u64) {
        // An amnesiac member may have forgotten entries that it acknowledged in this term. Its answer must not lower
        // the read point, so it gives none.
        let end = self.known_end().filter(|_| !self.vote.is_amnesiac());
        if let Some(end) = end {
            let term = self.vote.promised();
            self.send(from, Message::LogEndReply { round, term, end });
        }
    }

    /// The last position of the local log that agrees with the leader's, if that is known.
    fn known_end(&self) -> Option<Position> {
        (self.matching.is_matched() || self.is_leader()).then(|| self.agreed_end())
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

    // ---- founding ----

    /// True if this node has no history, and may found one with others (`pc.bootstrap_expect`).
    pub fn is_blank(&self) -> bool {
        is_blank(self.known(), self.support())
    }

    /// For a blank node, returns the reason for which it waits, and the addresses where no connected process answers.
    /// None: it is not blank.
    pub fn founding_waits_for(&self) -> Option<(String, &[String])> {
        let text = || self.founding.tell(self.known(), self.support());
        (self.is_blank()).then(|| (text(), self.founding.missing()))
    }

    /// Tells peers the number of nodes that this blank node expects, and its promised term.
    pub(crate) fn tell_expectation(&mut self, to: Vec<Incarnation>) {
        let output = Founding::announce(self.known(), self.support(), to);
        self.carry_out_founding(output);
    }

    pub(crate) fn pursue_founding(&mut self) {
        let output = self.founding.pursue(self.known(), self.support());
        self.carry_out_founding(output);
    }

    pub(crate) fn carry_out_founding(&mut self, output: Option<FoundingOutput>) {
        match output {
            Some(FoundingOutput::Tell(to, Expects { nodes, promised })) => {
                self.send_all(to, Message::Expects { nodes, promised });
            }
            Some(FoundingOutput::Note(text)) => self.out.note(text),
            Some(FoundingOutput::Promise(term)) => self.promise_term(term),
            Some(FoundingOutput::Found { nodes }) => {
                let text = format!(
                    "founding a cluster with the support of all {nodes} nodes that pc.bootstrap_expect names"
                );
                self.out.note(text);
                self.context.config_mut().expect = 0;
                self.out.push(Action::Found);
            }
            None => {}
        }
    }

    pub(crate) fn support(&self) -> Support {
        Support {
            promised: self.vote.promised(),
            is_persisted: self.vote.is_persisted(),
            is_outside: self.component.is_outside() && !self.component.is_going(),
        }
    }
}
