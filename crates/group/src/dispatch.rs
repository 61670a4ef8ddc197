//! The way in and out of the group core. [`Group::handle`] routes each event to its part. [`Group::flush`] ends a
//! batch: it does everything that has become possible, and gives out the actions. An invalid message goes to no part.

use bytes::Bytes;

use crate::dissemination::{Dissemination, RESEND_AFTER_MS};
use crate::elector::stands_at;
use crate::event::{Action, Event};
use crate::founding::{Expects, FoundingOutput};
use crate::group::Group;
use crate::ids::{Incarnation, SubmissionId, Term, TimeMs};
use crate::known::known;
use crate::log_reader::LogReader;
use crate::message::{BulkPayload, Message, Promise, Summary};
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
            } => self.membership().bootstrap(history, overrides, override_id),
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
                self.membership().disseminate(outputs);
            }
            Event::Persisted { promised } => self.persisted(promised),
            Event::Tick => self.tick(late_ms),
            Event::Leave => self.membership().leave(),
            Event::ForcePrimary { override_id } => self.membership().force_primary(override_id),
            Event::SetWeight { weight } => {
                self.context.config_mut().me.full_weight = weight;
                self.membership().weight_changed(weight);
            }
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

    /// Submits `payload` as this member's submission `number` (1, 2, 3, ... per incarnation). The answer is a delivery
    /// or [`Action::Failed`].
    pub fn submit(&mut self, now: TimeMs, number: u64, payload: Bytes) {
        self.context.advance(now);
        let place = self.membership().place();
        let outputs = (self.dissemination).submit(known!(self), place, number, payload);
        self.membership().disseminate(outputs);
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
        let place = self.membership().place();
        let outputs = self.dissemination.spread(place, bulk, payload);
        self.membership().disseminate(outputs);
    }

    /// Gives up a bulk payload that is not submitted.
    pub fn recall(&mut self, number: u64) {
        let outputs = self.dissemination.recall(known!(self), number);
        self.membership().disseminate(outputs);
    }

    /// Submits a bulk payload as this member's submission `number` (see [`Group::submit`]). `head`: its final first
    /// bytes.
    pub fn submit_bulk(&mut self, now: TimeMs, number: u64, bulk: u64, head: Bytes) {
        self.context.advance(now);
        let (place, bulk) = (self.membership().place(), (bulk, head));
        let outputs = (self.dissemination).submit_bulk(known!(self), place, number, bulk);
        self.membership().disseminate(outputs);
    }

    /// Ends a batch: orders, commits, replicates and acknowledges; then gives out all actions.
    pub fn flush(&mut self, log: &dyn LogReader, out: &mut Vec<Action>) {
        self.replica().read_left(log);
        self.replica().take_payloads();
        self.membership().fetch_logged();
        // Committing a configuration can unlock ordering, and ordering in a group of one commits.
        loop {
            let before = (self.log.tail().end(), self.log.committed().position);
            self.leader().order();
            self.replica().advance_commit();
            if (self.log.tail().end(), self.log.committed().position) == before {
                break;
            }
        }
        self.leader().feed(log);
        self.membership().serve_fetches(log);
        // `Action::Spread` comes behind the parts that this batch sends. So no message shares the payload's buffer when
        // the payload is submitted, and nobody has to copy it.
        self.membership().pursue_own_bulk();
        self.leader().offer_leadership();
        self.replica().acknowledge();
        // Before the next submission, which may rest on commits of that term and that branch: a leader of a lower term,
        // or of another branch, that still hears this member must not order it.
        let overrides = &self.log.committed().overrides;
        if self.vote.is_untold() || self.forced_views.are_untold(overrides) {
            self.membership().announce();
        }
        self.membership().pursue_reads();
        self.replica().trim();
        if self.branches().keeps_silent() {
            self.out.drop_messages();
        }
        self.out.drain_into(out);
    }

    /// Returns the latest time for the next [`Event::Tick`].
    pub fn next_deadline(&self) -> TimeMs {
        let mut deadline = self.context.heartbeat_due_at();
        let awaits_large = Dissemination::awaits_large(self.known(), self.matching.incoming());
        // Without a leader there is nobody to ask.
        let leader = self.known().leader_of(self.vote.promised());
        let asks = leader.is_some() && !awaits_large;
        if let Some(at) = self.matching.pulls_at().filter(|_| asks) {
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

    fn tick(&mut self, late_ms: TimeMs) {
        if late_ms > 2 * self.context.config().heartbeat_ms {
            self.overslept(late_ms);
        }
        if self.context.beats() {
            self.leader().reconsider_leadership();
            self.election_timer.forget_silence();
            let mut membership = self.membership();
            membership.announce();
            membership.resend_own(RESEND_AFTER_MS);
            membership.go_on_fetching();
            membership.refresh_component();
            membership.ask_to_join();
            membership.pursue_weight();
            membership.tell_who_is_missing();
            let support = self.support();
            let reminder = self.founding.remind(known!(self), support);
            self.carry_out_founding(reminder);
            self.pursue_founding();
        }
        self.membership().pull_holes();
        self.elections().watch_evidence();
        self.membership().watch_majority();
        let won = self.elections().watch_leader();
        let mut membership = self.membership();
        membership.lead(won);
        membership.go_on_leaving();
    }

    fn pursue_founding(&mut self) {
        let output = self.founding.pursue(self.known(), self.support());
        self.carry_out_founding(output);
    }

    fn carry_out_founding(&mut self, output: Option<FoundingOutput>) {
        match output {
            Some(FoundingOutput::Note(text)) => self.out.note(text),
            Some(FoundingOutput::Promise(term)) => self.elections().promise_term(term),
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

    fn persisted(&mut self, promised: Term) {
        for (to, message) in self.vote.persist(promised) {
            self.send(to, message);
        }
        let won = self.elections().count_promises();
        self.membership().lead(won);
        let peers = self.peers.names();
        self.membership().tell_expectation(peers);
        self.pursue_founding();
    }

    /// Takes a promise. It may be late: then its summary says where that log ends.
    fn promise(&mut self, from: Incarnation, promise: Promise) {
        if self.role.is_candidate() {
            let won = self.elections().promise(from, promise);
            return self.membership().lead(won);
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
                self.membership().lead(won);
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
        if !self.peers.heard(from, self.context.now())
            || message.claims_leadership() && self.ignores_claim(from, &message)
            || message.brings_payload() && !self.branches().has_same_overrides(from)
            || self.is_a_duplicates(from, &message)
        {
            return;
        }
        match message {
            Message::Status(status) => self.status(from, status),
            Message::Submit { number, payload } => {
                let id = SubmissionId::of(from, number);
                self.dissemination.take(known!(self), id, payload);
            }
            Message::Append(append) => self.replica().append_received(from, append),
            Message::Ack {
                term,
                position,
                commit,
            } => self.replica().ack(from, term, position, commit),
            Message::Summary { term, summary } => self.summary(from, term, &summary),
            Message::Install {
                term,
                checkpoint,
                intact_at,
            } => self.replica().install(from, term, checkpoint, intact_at),
            Message::PreVote { term } => self.elections().pre_vote(from, term),
            Message::PreVoteReply { term, granted } => {
                let won = self.elections().pre_vote_reply(from, term, granted);
                self.membership().lead(won);
            }
            Message::Prepare { term, forced } => self.elections().prepare(from, term, forced),
            Message::Promise(promise) => self.promise(from, promise),
            Message::Refuse { promised } => {
                let won = self.elections().refused(from, promised);
                self.membership().lead(won);
            }
            Message::TakeLeadership { number, forced } => {
                let won = self.elections().take_leadership(from, number, forced);
                self.membership().lead(won);
            }
            Message::Join(join) => self.leader().join_requested(from, join),
            Message::JoinRefused { reason } => self.membership().join_refused(from, reason),
            Message::Leave => self.leader().leave_requested(from),
            Message::Weight { weight } => self.leader().weight_requested(from, weight),
            Message::Expects { nodes, promised } => {
                self.vote.saw(promised.number);
                self.peers.expects(from, Expects { nodes, promised });
                self.pursue_founding();
            }
            Message::LogEnd { round } => self.membership().log_end_asked(from, round),
            Message::LogEndReply { round, term, end } => {
                self.membership().log_end_reply(from, round, term, end)
            }
            Message::Offer { oldest, bulk } => {
                let outputs = (self.dissemination).offered(known!(self), from, oldest, bulk);
                self.membership().disseminate(outputs);
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
                self.membership().disseminate(outputs);
            }
            Message::Held { bulk } => {
                let outputs = self.dissemination.held(from, bulk);
                self.membership().disseminate(outputs);
            }
            Message::SubmitBulk { number, bulk, head } => {
                let id = SubmissionId::of(from, number);
                let outputs = (self.dissemination).take_bulk(known!(self), id, bulk, head);
                self.membership().disseminate(outputs);
            }
        }
    }

    /// Returns true if a peer that claims leadership is of a branch that this one overrules. A peer of an older branch
    /// is told so.
    fn ignores_claim(&mut self, from: Incarnation, message: &Message) -> bool {
        if self.branches().is_of_older_branch(from) {
            self.membership().tell_older_branch(from, message);
            return true;
        }
        self.branches().outvotes_peer(from)
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
            format!("ignored an invalid message of {of}, which no correct member sends: {what}")
        };
        self.out.complain(of, self.context.now(), text);
    }
}
