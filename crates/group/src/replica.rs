//! This process as a replica of the log. Here: takes the leader's order records, matches the log, appends,
//! acknowledges. `replica/install.rs`: takes log checkpoints. `replica/commit.rs`: commits; a leader commits there,
//! too.
//!
//! In: appends, installs, acknowledgements. Out: log writes, acknowledgements, deliveries, requests for catch-up. A
//! committed entry, and one that this member acknowledged in the term in force, is never dropped (rule 1).

mod commit;
mod install;

use trireme_mutants::{Mutant, planted};

use crate::acks::Acks;
use crate::branches::{Branches, branches};
use crate::component::Component;
use crate::context::Context;
use crate::dissemination::Dissemination;
use crate::election_timer::ElectionTimer;
use crate::elections::{Elections, elections};
use crate::entry::{Body, Entry};
use crate::forced_views::ForcedViews;
use crate::ids::{Incarnation, Position, ReplicaId, SubmissionId, Term};
use crate::known::{Known, known};
use crate::leader::{Leader, leader};
use crate::limits::PENDING_CONFIGURATIONS_MAX;
use crate::log::Log;
use crate::matching::{Matching, Placed};
use crate::membership::{Membership, membership};
use crate::message::{Append, Message, WireBody, WireEntry};
use crate::outbox::Outbox;
use crate::peers::Peers;
use crate::reads::Reads;
use crate::role::Role;
use crate::vote::Vote;
use crate::writes;

/// The parts that a replica of the log changes.
pub(crate) struct Replica<'a> {
    pub(crate) context: &'a Context,
    pub(crate) acks: &'a mut Acks,
    pub(crate) peers: &'a mut Peers,
    pub(crate) vote: &'a mut Vote,
    pub(crate) log: &'a mut Log,
    pub(crate) matching: &'a mut Matching,
    pub(crate) role: &'a mut Role,
    pub(crate) election_timer: &'a mut ElectionTimer,
    pub(crate) component: &'a mut Component,
    pub(crate) forced_views: &'a mut ForcedViews,
    pub(crate) dissemination: &'a mut Dissemination,
    pub(crate) reads: &'a mut Reads,
    pub(crate) out: &'a mut Outbox,
}

/// Lends a group's parts to [`Replica`].
macro_rules! replica {
    ($group:expr) => {
        $crate::known::lend!(
            replica::Replica,
            $group,
            reads: [context],
            changes: [
                acks, peers, vote, log, matching, role, election_timer, component, forced_views,
                dissemination, reads, out
            ]
        )
    };
}
pub(crate) use replica;

impl WireEntry {
    pub(crate) fn submission(&self) -> Option<SubmissionId> {
        match &self.body {
            WireBody::Reference { id, .. } => Some(*id),
            WireBody::Full(Body::Submission { id, .. } | Body::Voided { id }) => Some(*id),
            WireBody::Full(_) => None,
        }
    }
}

impl Replica<'_> {
    // ---- what it knows ----

    fn known(&self) -> Known<'_> {
        known!(self)
    }

    fn branches(&self) -> Branches<'_> {
        branches!(self)
    }

    fn my_replica(&self) -> ReplicaId {
        self.context.my_replica()
    }

    /// The position that this member acknowledges in the promised term.
    fn own_ack(&self) -> Position {
        (self.branches()).own_ack(self.vote, self.matching, self.role.is_leader())
    }

    // ---- what it lends and sends ----

    fn elections(&mut self) -> Elections<'_> {
        elections!(self)
    }

    fn leader(&mut self) -> Leader<'_> {
        leader!(self)
    }

    fn membership(&mut self) -> Membership<'_> {
        membership!(self)
    }

    fn send(&mut self, to: Incarnation, message: Message) {
        self.out.send(self.peers, vec![to], message);
    }

    // ---- following ----

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
            self.elections().promise_term(term);
        } else {
            (self.election_timer).silence_broken(self.context.now(), self.context.config());
        }
        if self.role.is_candidate() {
            self.role.follow();
        }
        self.election_timer.obeys(self.context.now());
        true
    }

    pub(crate) fn append_received(&mut self, from: Incarnation, append: Append) {
        let follows = self.log.tail().term_at(append.prev_position) == Some(append.prev_term);
        if self.branches().lacks_own_override(from) && !follows {
            return;
        }
        if !self.accept_term(from, append.term) {
            return;
        }
        if let Some(position) = self.matching.contradicted_at(self.log, &append) {
            return self.refuse_forked(from, position);
        }
        self.matching.follows();
        self.component.majority_mut().heard(self.context.now());
        let expected = self.matching.expected(self.log.tail().end());
        let prev_known = append.prev_position <= self.log.committed().position
            || (self.matching).has_record(append.prev_position, append.prev_term)
            || self.log.tail().term_at(append.prev_position) == Some(append.prev_term);
        if append.prev_position > expected || !prev_known {
            self.membership().ask_catch_up(from);
            return;
        }
        let last = self.take_orders(append.prev_position, append.entries);
        self.matching.agree(last);
        // Own submissions that the append has dropped from this log are sent again.
        self.logs_meet();
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
            self.membership().resend_own(0);
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
            writes::truncate(self.matching, self.log, after, self.component, self.out);
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
                self.membership().disseminate(outputs);
            }
            writes::append(self.context, self.log, entry, self.out);
        }
        let grew = self.log.tail().end() > before;
        self.matching.note_hole(grew, self.context.now());
    }

    // ---- acknowledgements ----

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
        let Some(leader) = self
            .known()
            .voice(self.vote.promised().replica)
            .filter(|_| self.matching.is_matched())
        else {
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
        self.out.send(self.peers, to, message);
    }

    /// The members other than the leader that need this member's acknowledgement to know the commit point. In a group
    /// of three, each member and the leader are a majority by themselves. So the third member's acknowledgement changes
    /// nothing there (heartbeats carry it anyway).
    fn acks_matter_to(&self, leader: Incarnation) -> Vec<Incarnation> {
        let me = self.context.me();
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
