//! The coordinator's part as a follower: takes the leader's order records, matches the log, and acknowledges.
//!
//! In: appends, installs. Out: log writes, acknowledgements, requests for catch-up. An entry that this member
//! acknowledged in the term in force is never dropped in that term (rule 1).

use trireme_mutants::{Mutant, planted};

use crate::checkpoint::Checkpoint;
use crate::entry::{Body, Entry};
use crate::event::{Action, Delivery};
use crate::group::Group;
use crate::ids::{Incarnation, Position, SubmissionId, Term};
use crate::matching::Placed;
use crate::message::{Append, Message, WireBody, WireEntry};
use crate::writes;

/// Greatest number of configurations in the log above the commit point: every promise lists all of them.
pub(crate) const PENDING_CONFIGURATIONS_MAX: usize = 256;

impl WireEntry {
    pub(crate) fn submission(&self) -> Option<SubmissionId> {
        match &self.body {
            WireBody::Reference { id, .. } => Some(*id),
            WireBody::Full(Body::Submission { id, .. } | Body::Voided { id }) => Some(*id),
            WireBody::Full(_) => None,
        }
    }
}

impl Group {
    /// The connected leader of the promised term, or its candidate.
    pub(crate) fn voice_of_term(&self) -> Option<Incarnation> {
        self.known().voice(self.vote.promised().replica)
    }

    /// Follows the leader of `term` if no higher term is promised. Returns false if this member must not obey.
    pub(crate) fn accept_term(&mut self, from: Incarnation, term: Term) -> bool {
        let Some(peer) = self.peers.get(from) else {
            return false; // `message` has looked it up
        };
        if peer.replica != term.replica || term.replica == self.my_replica() {
            return false;
        }
        if term < self.vote.promised() && !planted(Mutant::LowerTermFollowed) {
            let promised = self.vote.promised();
            self.send(from, Message::Refuse { promised });
            return false;
        }
        if term > self.vote.promised() {
            self.promise_term(term);
        } else {
            (self.election_timer).silence_broken(self.context.now(), self.context.config());
        }
        if self.role.is_candidate() {
            self.role.follow();
        }
        self.election_timer.obeys(self.context.now());
        true
    }

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

    pub(crate) fn append_received(&mut self, from: Incarnation, append: Append) {
        let follows = self.log.tail().term_at(append.prev_position) == Some(append.prev_term);
        if self.branches().lacks_own_override(from) && !follows {
            return;
        }
        if !self.accept_term(from, append.term) {
            return;
        }
        if let Some(position) = self.matching.contradicted_at(&self.log, &append) {
            return self.refuse_forked(from, position);
        }
        self.matching.follows();
        self.component.majority_mut().heard(self.context.now());
        let expected = self.matching.expected(self.log.tail().end());
        let prev_known = append.prev_position <= self.log.committed().position
            || (self.matching.incoming().iter())
                .any(|e| e.position == append.prev_position && e.term == append.prev_term)
            || self.log.tail().term_at(append.prev_position) == Some(append.prev_term);
        if append.prev_position > expected || !prev_known {
            self.ask_catch_up(from);
            return;
        }
        self.logs_meet();
        let last = self.take_orders(append.prev_position, append.entries);
        self.matching.agree(last);
        self.record_ack(from, append.term, append.ack);
        self.take_payloads();
        self.learn_commit(append.commit);
    }

    /// Puts order records in their places, as many as there is room for; this member requests the others again. Returns
    /// the position of the last one.
    fn take_orders(&mut self, prev: Position, entries: Vec<WireEntry>) -> Position {
        let is_configuration =
            |entry: &WireEntry| matches!(entry.body, WireBody::Full(Body::Configuration(_)));
        let mut pending = match entries.iter().any(is_configuration) {
            true => {
                let logged = self.log.uncommitted().count();
                logged
                    + (self.matching.incoming().iter())
                        .filter(|e| is_configuration(e))
                        .count()
            }
            false => 0,
        };
        let mut last = prev;
        for entry in entries {
            pending += usize::from(is_configuration(&entry));
            if pending > PENDING_CONFIGURATIONS_MAX {
                break;
            }
            let position = entry.position;
            if !self.take_order(entry) {
                break;
            }
            last = position;
        }
        last
    }

    /// This log and that of the promised term's leader agree up to some position.
    fn logs_meet(&mut self) {
        if self.matching.meet() {
            self.resend_own(0);
        }
    }

    /// The leader contradicts this log: its message is invalid, or there are two histories under one name. This node
    /// appends nothing, and becomes non-primary if the leader goes on so.
    fn refuse_forked(&mut self, from: Incarnation, position: Position) {
        if !self.matching.fork(self.context.now()) {
            return;
        }
        let text = format!(
            "ERROR: the leader {from} has another entry at position {position} than this node has committed, or holds from it: the \
             two nodes' histories are not the same, and this one does not follow. If the cluster is right, stop this node \
             and move grastate.dat and the trireme-*.log files away to join by a state snapshot"
        );
        self.out.note(text);
    }

    /// Puts an order record in its place, and drops entries that conflict with it. Returns false if there is no room
    /// for it.
    fn take_order(&mut self, entry: WireEntry) -> bool {
        if entry.position <= self.log.committed().position {
            return true;
        }
        if let Some(known) = self.log.tail().term_at(entry.position) {
            if known == entry.term {
                return true;
            }
            let after = entry.position - 1;
            let (log, component) = (&mut self.log, &mut self.component);
            writes::truncate(&self.matching, log, after, component, &mut self.out);
            self.matching.drop_incoming();
        }
        let first = self.log.tail().end() + 1;
        let thresholds = &self.context.config().thresholds;
        let Placed::Behind(entry) = self.matching.place(entry, first, thresholds) else {
            return true;
        };
        if !self.matching.has_room(&entry, thresholds) {
            self.take_payloads(); // complete records make room
        }
        let has_room = (self.matching).has_room(&entry, &self.context.config().thresholds);
        if has_room {
            self.matching.put_behind(entry);
        }
        has_room
    }

    /// Appends the order records whose payloads are here; stops at the first hole.
    pub(crate) fn take_payloads(&mut self) {
        let before = self.log.tail().end();
        while let Some(front) = self.matching.incoming().front() {
            let body = match &front.body {
                WireBody::Full(body) => body.clone(),
                WireBody::Reference { id, len, digest } => {
                    let me = self.context.me();
                    match self.dissemination.payload(me, *id, (*len, *digest)) {
                        Some(payload) => Body::Submission {
                            id: *id,
                            payload: payload.clone(),
                        },
                        None => break,
                    }
                }
            };
            let entry = Entry {
                position: front.position,
                term: front.term,
                body,
            };
            self.matching.take_first();
            if let Some(id) = entry.submission() {
                let outputs = self.dissemination.ordered(id);
                self.disseminate(outputs);
            }
            writes::append(&self.context, &mut self.log, entry, &mut self.out);
        }
        let grew = self.log.tail().end() > before;
        self.matching.note_hole(grew, self.context.now());
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

    /// The leader of the promised term, if it has said that it leads.
    pub(crate) fn leader_in_term(&self) -> Option<Incarnation> {
        self.known().leader_of(self.vote.promised())
    }

    /// The commit point by the leader's last heartbeat. It is beyond [`Self::commit`] on a member whose log lags
    /// behind. None: no leader was heard recently.
    pub fn known_commit(&self) -> Option<Position> {
        let commit = self.log.committed().position;
        if self.is_leader() {
            return Some(commit);
        }
        let peer = self.peers.get(self.leader_in_term()?)?;
        let is_heard =
            self.context.now() <= peer.heard_at + self.context.config().leader_timeout_ms;
        let status = peer.status.as_ref().filter(|_| is_heard)?;
        Some(status.commit.max(commit))
    }

    /// The leader sends a log checkpoint: this process is new, or was away for longer than any log reaches back.
    pub(crate) fn install(
        &mut self,
        from: Incarnation,
        term: Term,
        checkpoint: Checkpoint,
        intact_at: Position,
    ) {
        // A log on another branch than the forced view gives way, whatever its length (rule 11).
        let own = self.branches().binding_overrides();
        let is_continued = checkpoint.overrides.starts_with(own);
        let forked = is_continued && checkpoint.overrides != self.log.committed().overrides;
        let history = self.log.committed().history;
        if !history.is_nil() && checkpoint.history != history
            || !is_continued
            || !self.accept_term(from, term)
            || (checkpoint.position <= self.log.committed().position && !forked)
                && !planted(Mutant::InstallGoesBack)
        {
            return;
        }
        // An entry acknowledged in this term is kept as long as the term lasts (rule 1).
        if !planted(Mutant::InstallDropsAcknowledged) && !planted(Mutant::InstallGoesBack) {
            if self.log.tail().term_at(checkpoint.position) == Some(checkpoint.term) {
                return self.keep_log(checkpoint.position, intact_at);
            }
            if checkpoint.position <= self.agreed_end() && !forked {
                return self.refuse_forked(from, checkpoint.position);
            }
        }
        self.out.count(|c| c.installs += 1);
        self.forced_views.log_replaced();
        // The new log may lack entries that this replica acknowledged with the old log (rule 4).
        self.vote.begin_log_anew(intact_at);
        self.component.majority_mut().heard(self.context.now());
        self.component.left_at_most_in(match forked {
            true => 0, // numbers of the branch that was left mean nothing here
            false => checkpoint.configuration.number,
        });
        self.log.begin_at(&checkpoint);
        self.component.set_joined(Vec::new());
        self.matching.begin_at(checkpoint.position);
        let configuration = checkpoint.configuration.clone();
        let position = checkpoint.position;
        let covered = checkpoint
            .last_number(self.my_replica(), self.me())
            .unwrap_or(0);
        self.fail_covered(covered);
        self.out.push(Action::Reset { checkpoint });
        if configuration.member(self.me()).is_some() {
            // This process was admitted below the checkpoint: the checkpoint's view is its first one.
            self.out.push(Action::Deliver {
                position,
                delivery: Delivery::Configuration(configuration.clone()),
            });
            self.admitted(&configuration);
        }
    }

    /// The leader has sent a log checkpoint that lies within this log: it was asked twice, or before a catch-up. The
    /// entries above the checkpoint stay, because this member may have acknowledged them. The leader's next entries
    /// follow the checkpoint.
    fn keep_log(&mut self, position: Position, intact_at: Position) {
        self.component.majority_mut().heard(self.context.now());
        self.logs_meet();
        self.vote.will_be_intact_at(intact_at);
        self.matching.keep_from(position);
    }

    /// The position that this member acknowledges in the promised term.
    pub(crate) fn own_ack(&self) -> Position {
        (self.matching).own_ack(&self.vote, &self.log, self.is_leader())
    }

    /// The last position of the local log that agrees with the log of the promised term's leader.
    pub(crate) fn agreed_end(&self) -> Position {
        (self.matching).end_agreed_with_leader(&self.log, self.is_leader())
    }

    /// Sends the acknowledgement of this batch to the members that need it.
    pub(crate) fn acknowledge(&mut self) {
        let mut position = self.own_ack();
        if planted(Mutant::PayloadNotAwaited) {
            position = position.max(self.matching.expected(0));
        }
        if self.matching.is_matched() {
            self.vote.acknowledged(position);
        }
        if self.role.is_leader() {
            return self.leader().tell_own_ack();
        }
        let Some(leader) = self.voice_of_term().filter(|_| self.matching.is_matched()) else {
            return;
        };
        if !self.matching.acknowledges(self.vote.promised(), position) {
            return;
        }
        let mut to = vec![leader];
        to.extend(self.acks_matter_to(leader));
        let message = Message::Ack {
            term: self.vote.promised(),
            position,
            commit: self.log.committed().position,
        };
        self.send_all(to, message);
    }

    /// The members other than the leader that need this member's acknowledgement to know the commit point. In a group
    /// of three, each member and the leader are a majority by themselves. So the third member's acknowledgement changes
    /// nothing there (heartbeats carry it anyway).
    fn acks_matter_to(&self, leader: Incarnation) -> Vec<Incarnation> {
        let me = self.me();
        let latest = self.log.latest();
        let pending = self.log.uncommitted().next().is_some();
        let of_leader = latest.member(leader).map_or(0, |m| u64::from(m.weight));
        if latest.member(me).is_none_or(|m| m.weight == 0) && !pending {
            return Vec::new();
        }
        let others = latest
            .members
            .iter()
            .filter(|m| m.incarnation != me && m.incarnation != leader);
        others
            .filter(|m| pending || !latest.is_majority(of_leader + u64::from(m.weight)))
            .map(|m| m.incarnation)
            .collect()
    }
}
