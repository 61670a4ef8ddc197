//! The way in and out of the group core. [`Group::handle`] routes each event to its part. [`Group::flush`] ends a
//! batch: it does everything that has become possible, and gives out the actions. An invalid message goes to no part.

use crate::elector::stands_at;
use crate::event::{Action, Event};
use crate::founding::Expects;
use crate::group::Group;
use crate::ids::{Incarnation, SubmissionId, Term, TimeMs};
use crate::known::known;
use crate::log_reader::LogReader;
use crate::message::{Message, Promise, Summary};
use crate::validation::{Validation, outline};

impl Group {
    /// Takes an event. Call [`Group::flush`] after a batch of events.
    pub fn handle(&mut self, now: TimeMs, event: Event) {
        let late_ms = now.saturating_sub(self.context.heartbeat_due_at());
        self.context.advance(now);
        match event {
            Event::Bootstrap {
                history,
                overrides,
                override_id,
            } => self.bootstrap(history, overrides, override_id),
            Event::PeerUp {
                replica,
                incarnation,
            } => self.peer_up(replica, incarnation),
            Event::PeerDown { incarnation } => self.peer_down(incarnation),
            Event::PeerDead { incarnation } => self.peers.refused(incarnation),
            Event::PeerDrained { incarnation } => self.peer_drained(incarnation),
            Event::Message { from, message } => self.message(from, message),
            Event::Appended { position } => self.log.flushed(position),
            Event::StagedUpTo { bulk, until } => {
                let outputs = (self.dissemination).staged_up_to(known!(self), bulk, until);
                self.disseminate(outputs);
            }
            Event::Persisted { promised } => self.persisted(promised),
            Event::Tick => self.tick(late_ms),
            Event::Leave => self.leave(),
            Event::ForcePrimary { override_id } => self.force_primary(override_id),
            Event::SetWeight { weight } => self.set_weight(weight),
            Event::Joined { position, members } => {
                // A member that was removed since `position`, and admitted again, must join again.
                if position >= self.log.configured_at() {
                    self.component.set_joined(members);
                }
            }
            Event::Read { token } => self.reads.ask(token),
            Event::Listed { members, missing } => {
                let support = self.support();
                let output = (self.founding).list(known!(self), support, members, missing);
                self.carry_out_founding(output);
            }
        }
    }

    /// Ends a batch: orders, commits, replicates and acknowledges; then gives out all actions.
    pub fn flush(&mut self, log: &dyn LogReader, out: &mut Vec<Action>) {
        self.read_left(log);
        self.take_payloads();
        self.fetch_logged();
        // Committing a configuration can unlock ordering, and ordering in a group of one commits.
        loop {
            let before = (self.log.tail().end(), self.log.committed().position);
            self.leader().order();
            self.advance_commit();
            if (self.log.tail().end(), self.log.committed().position) == before {
                break;
            }
        }
        self.leader().feed(log);
        self.serve_fetches(log);
        // `Action::Spread` comes behind the parts that this batch sends. So no message shares the payload's buffer when
        // the payload is submitted, and nobody has to copy it.
        self.pursue_own_bulk();
        self.leader().offer_leadership();
        self.acknowledge();
        self.pursue_reads();
        self.trim();
        self.out.drain_into(out);
    }

    /// Returns the latest time for the next [`Event::Tick`].
    pub fn next_deadline(&self) -> TimeMs {
        let mut deadline = self.context.heartbeat_due_at();
        if let Some(at) = self.matching.pulls_at().filter(|_| !self.awaits_large()) {
            deadline = deadline.min(at.max(self.context.now() + 1));
        }
        let stands_at = stands_at(
            self.branches(),
            &self.role,
            &self.vote,
            &self.election_timer,
        );
        if let Some(at) = stands_at.filter(|at| *at > self.context.now()) {
            deadline = deadline.min(at);
        }
        let leader = self.role.leader();
        let feeds_from_log_at = leader.and_then(|l| l.replication.reads_log_at(self.known()));
        let soon = [
            feeds_from_log_at,
            self.dissemination.serves_at(self.context.now()),
        ];
        soon.into_iter().flatten().fold(deadline, TimeMs::min)
    }

    fn persisted(&mut self, promised: Term) {
        for (to, message) in self.vote.persist(promised) {
            self.send(to, message);
        }
        let won = self.elections().count_promises();
        self.lead(won);
        let peers = self.peers.names();
        self.tell_expectation(peers);
        self.pursue_founding();
    }

    /// Takes a promise. It may be late: then its summary says where that log ends.
    fn promise(&mut self, from: Incarnation, promise: Promise) {
        if self.role.is_candidate() {
            let won = self.elections().promise(from, promise);
            return self.lead(won);
        }
        let Some(replica) = self.peers.replica_of(from) else {
            return; // `message` has looked it up
        };
        if self.role.is_leader() && promise.term == self.vote.promised() {
            self.leader().was_alive(replica);
            self.leader().start_feeding(from, &promise.summary);
        }
    }

    /// Takes a member's summary: starts its catch-up from the last position on which both logs agree.
    fn summary(&mut self, from: Incarnation, term: Term, summary: &Summary) {
        if term != self.vote.promised() {
            if term > self.vote.promised() {
                let won = self.elections().refused(from, term);
                self.lead(won);
            }
            return;
        }
        self.leader().start_feeding(from, summary);
    }

    fn message(&mut self, from: Incarnation, message: Message) {
        if !self.accepts(from, &message) {
            return self.complain(from, &message);
        }
        if self.known().is_foreign(from) {
            return self.foreign_message(from, message);
        }
        if !self.peers.heard(from, self.context.now()) {
            return;
        }
        if message.claims_leadership() && self.branches().is_of_older_branch(from) {
            return self.tell_older_branch(from, &message);
        }
        if message.claims_leadership() && self.branches().outvotes_peer(from) {
            return;
        }
        if self.is_a_duplicates(from, &message) {
            return;
        }
        match message {
            Message::Status(status) => self.status(from, status),
            Message::Submit { number, payload } => {
                let id = SubmissionId::of(from, number);
                self.dissemination.take(known!(self), id, payload);
            }
            Message::Append(append) => self.append_received(from, append),
            Message::Ack { term, position, .. } => self.ack(from, term, position),
            Message::Summary { term, summary } => self.summary(from, term, &summary),
            Message::Install {
                term,
                checkpoint,
                intact_at,
            } => self.install(from, term, checkpoint, intact_at),
            Message::PreVote { term } => self.elections().pre_vote(from, term),
            Message::PreVoteReply { term, granted } => {
                let won = self.elections().pre_vote_reply(from, term, granted);
                self.lead(won);
            }
            Message::Prepare { term, forced } => self.elections().prepare(from, term, forced),
            Message::Promise(promise) => self.promise(from, promise),
            Message::Refuse { promised } => {
                let won = self.elections().refused(from, promised);
                self.lead(won);
            }
            Message::TakeLeadership { number, forced } => {
                let won = self.elections().take_leadership(from, number, forced);
                self.lead(won);
            }
            Message::Join(join) => self.leader().join_requested(from, join),
            Message::JoinRefused { reason } => self.join_refused(from, reason),
            Message::Leave => self.leader().leave_requested(from),
            Message::Weight { weight } => self.leader().weight_requested(from, weight),
            Message::Expects { nodes, promised } => {
                self.vote.saw(promised.number);
                self.peers.expects(from, Expects { nodes, promised });
                self.pursue_founding();
            }
            Message::LogEnd { round } => self.log_end_asked(from, round),
            Message::LogEndReply { round, term, end } => self.log_end_reply(from, round, term, end),
            Message::Offer { oldest, bulk } => {
                let outputs = (self.dissemination).offered(known!(self), from, oldest, bulk);
                self.disseminate(outputs);
            }
            Message::Fetch {
                source,
                offset,
                len,
            } => (self.dissemination).ask(known!(self), from, source, (offset, len)),
            Message::Part {
                source,
                offset,
                bytes,
            } => {
                let part = (offset, bytes);
                let outputs = self.dissemination.part(known!(self), from, source, part);
                self.disseminate(outputs);
            }
            Message::Held { bulk } => self.dissemination.held(from, bulk),
            Message::SubmitBulk { number, bulk, head } => {
                let id = SubmissionId::of(from, number);
                let outputs = (self.dissemination).take_bulk(known!(self), id, bulk, head);
                self.disseminate(outputs);
            }
        }
    }

    /// Returns false for a message that no correct member sends.
    pub(crate) fn accepts(&self, from: Incarnation, message: &Message) -> bool {
        let validation = Validation {
            known: self.known(),
            vote: &self.vote,
            matching: &self.matching,
        };
        validation.accepts(from, message)
    }

    /// Logs that a peer has sent a message that no correct member sends; not too often per peer.
    fn complain(&mut self, of: Incarnation, message: &Message) {
        if self.peers.get(of).is_none() {
            return; // the peer is not connected
        }
        let text = || {
            let what = outline(message);
            format!("ignored a message of {of} that no correct member sends: {what}")
        };
        self.out.complain(of, self.context.now(), text);
    }
}
