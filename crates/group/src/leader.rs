//! The leader: it gives positions and replicates its log (here), makes views (`leader/views.rs`), and transfers
//! leadership (`leader/handing_over.rs`).
//!
//! In: submissions, summaries, the tick. Out: entries of its term, appends and installs, `TakeLeadership`. It orders
//! only while it hears a majority of every configuration in force (rule 7).

mod handing_over;
mod views;

use trireme_mutants::{Mutant, planted};

use crate::acks::Acks;
use crate::branches::{Branches, branches};
use crate::component::Component;
use crate::configuration::Configuration;
use crate::context::Context;
use crate::dissemination::Dissemination;
use crate::election_timer::ElectionTimer;
use crate::elections::Won;
use crate::entry::{Body, Entry};
use crate::forced_views::ForcedViews;
use crate::ids::{Incarnation, Position, ReplicaId, SubmissionId};
use crate::known::{Known, known};
use crate::leader_state::LeaderState;
use crate::log::Log;
use crate::log_reader::LogReader;
use crate::matching::Matching;
use crate::message::{Message, Summary};
use crate::outbox::Outbox;
use crate::peers::Peers;
use crate::replication::{Leading, ToMembers};
use crate::role::Role;
use crate::transfer::Transfer;
use crate::vote::Vote;
use crate::writes;

/// Borrows [`Leading`] from a group, so that the caller can change the group's role meanwhile.
macro_rules! leading {
    ($group:expr, $own_ack:expr) => {
        Leading {
            known: known!($group),
            term: $group.vote.promised(),
            own_ack: $own_ack,
            submissions: $group.dissemination.submissions(),
        }
    };
}

/// The parts that a leader changes.
pub(crate) struct Leader<'a> {
    pub(crate) context: &'a Context,
    pub(crate) peers: &'a Peers,
    pub(crate) acks: &'a Acks,
    pub(crate) vote: &'a Vote,
    pub(crate) forced_views: &'a ForcedViews,
    pub(crate) log: &'a mut Log,
    pub(crate) matching: &'a mut Matching,
    pub(crate) role: &'a mut Role,
    pub(crate) election_timer: &'a mut ElectionTimer,
    pub(crate) component: &'a mut Component,
    pub(crate) dissemination: &'a mut Dissemination,
    pub(crate) out: &'a mut Outbox,
}

/// Lends a group's parts to [`Leader`].
macro_rules! leader {
    ($group:expr) => {
        $crate::known::lend!(
            leader::Leader,
            $group,
            reads: [context, peers, acks, vote, forced_views],
            changes: [log, matching, role, election_timer, component, dissemination, out]
        )
    };
}
pub(crate) use leader;

impl Leader<'_> {
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

    fn send(&mut self, to: Incarnation, message: Message) {
        self.out.send(self.peers, vec![to], message);
    }

    /// See [`LeaderState::may_order`].
    pub(crate) fn may_order(&self) -> bool {
        let leader = self.role.leader();
        leader.is_some_and(|leader| leader.may_order(self.branches()))
    }

    fn own_ack(&self) -> Position {
        (self.matching).own_ack(self.vote, self.log, self.role.is_leader())
    }

    // ---- the beginning ----

    /// Becomes leader of the promised term. `won`: the election; None: there was none, since no other member has a
    /// vote.
    pub(crate) fn begin(&mut self, won: Option<&Won>) {
        // A payload that came before its withdrawal is not ordered any more; only its number is.
        for id in won.iter().flat_map(|won| &won.withdrawn) {
            self.dissemination.void(*id);
        }
        let withdrawn = |entry: &Entry| won.and_then(|won| won.voided(entry));
        assert_eq!(
            self.vote.promised().replica,
            self.my_replica(),
            "leadership belongs to its term's replica"
        );
        self.out.count(|c| c.leaderships_taken += 1);
        let offered = self.election_timer.was_offered(self.context.now());
        let rest_until = Transfer::rest_until(self.known(), offered);
        self.election_timer.leads();
        self.matching.leads();
        if let Some(end) = won.and_then(|won| won.end_of(self.my_replica())) {
            writes::truncate(self.matching, self.log, end, self.component, self.out);
        }
        let mut numbers = self.log.committed().numbers.clone();
        // A withdrawn submission and all entries after it are appended again in this term (rule 7).
        let first_void = self
            .log
            .tail()
            .above(self.log.committed().position)
            .find(|e| withdrawn(e).is_some())
            .map(|e| e.position);
        let again = first_void.map_or(Vec::new(), |at| {
            writes::truncate(self.matching, self.log, at - 1, self.component, self.out)
        });
        for entry in self.log.tail().above(self.log.committed().position) {
            if !planted(Mutant::DuplicateOrdered) {
                numbers.apply(entry);
            }
        }
        let start = self.log.tail().end() + 1;
        let state = LeaderState::new(self.context.now(), start, numbers, rest_until);
        self.role.lead(state);
        // A forced view is the first entry of its term, and so no log has an entry of such a term without the view: others
        // would not recognise a term that needed no majority (simulator, seed 252025174923 of `queues`).
        let forced = won.and_then(|won| Some((won, won.forced?)));
        let comes_first = !planted(Mutant::TermStartsBeforeOverride);
        if let Some((won, override_id)) = forced.filter(|_| comes_first) {
            self.put_override(won, override_id);
        }
        self.put(Body::TermStart);
        for entry in again {
            let last = withdrawn(&entry);
            let is_covered = (entry.submission()).is_some_and(|id| self.is_counted(id));
            match (entry.body, last) {
                (Body::TermStart, _) => {}
                // A pending view is void: it would follow the forced one.
                (Body::Configuration(_), _) if forced.is_some() => {}
                _ if is_covered => {}
                (Body::Submission { .. }, Some(id)) => {
                    self.out.count(|c| c.voided += 1);
                    self.put(Body::Voided { id });
                }
                (body, _) => self.put(body),
            }
        }
        // Below every other view of this term: the next leader may not need the promises of those that have withdrawn. The
        // members of a forced view drop all payloads that wait when they commit it.
        for id in won.iter().flat_map(|won| &won.withdrawn) {
            self.order_void_of(id.incarnation);
        }
        if let Some((won, override_id)) = forced.filter(|_| !comes_first) {
            self.put_override(won, override_id);
        }
    }

    /// Takes in the promises by which it was elected: those members are there, and say where their logs end.
    pub(crate) fn take_over(&mut self, won: &Won) {
        self.election_timer.elected();
        if let Some(leader) = self.role.leader_mut() {
            leader.took_over_from(won.missed);
        }
        for (replica, ..) in won.promises.all() {
            self.was_alive(replica);
        }
        if won.forced.is_none() && self.component.is_non_primary() {
            self.request_reform();
        }
        for (_, giver, promise) in won.promises.all() {
            if giver != self.context.me() {
                self.start_feeding(giver, &promise.summary);
            }
        }
    }

    /// The replica answers an election. If it is the leader that this member replaced, the replacement was needless.
    pub(crate) fn was_alive(&mut self, replica: ReplicaId) {
        let now = self.context.now();
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let recent_ms = self.context.config().leader_timeout_ms;
        if leader.was_needless(replica, now, recent_ms) {
            self.out.count(|c| c.leaderships_needless += 1);
        }
    }

    // ---- positions ----

    /// True if this leader's log has ordered or voided that number.
    fn is_counted(&self, id: SubmissionId) -> bool {
        let Some(leader) = self.role.leader() else {
            return false; // its caller holds leadership
        };
        leader.has_counted(id)
    }

    /// Appends an entry of this leader's term.
    fn put(&mut self, body: Body) {
        let entry = Entry {
            position: self.log.tail().end() + 1,
            term: self.vote.promised(),
            body,
        };
        if let Some(leader) = self.role.leader_mut() {
            leader.count(&entry);
        }
        writes::append(self.context, self.log, entry, self.out);
    }

    /// Gives positions to the submissions that are here, and proposes membership changes.
    pub(crate) fn order(&mut self) {
        if !self.may_order() {
            return;
        }
        let fresh = self.log.tail().end() + 1;
        self.propose_changes();
        if self.component.is_primary() {
            let mut origins: Vec<_> = self
                .log
                .latest()
                .members
                .iter()
                .map(|m| (m.replica, m.incarnation))
                .collect();
            if planted(Mutant::EvictedDelivered) {
                let known = self.peers.all();
                origins.extend(known.map(|(incarnation, peer)| (peer.replica, incarnation)));
            }
            // A member that has promised a higher term may have seen commits that this log lacks: the certification of
            // its write-sets would rest on them (simulator, seed 25979 of `mistakes`).
            let (peers, promised) = (self.peers, self.vote.promised());
            let is_ahead = |of| peers.promised_by(of) > promised;
            origins.retain(|(_, of)| !is_ahead(*of) || planted(Mutant::AheadOrdered));
            for (replica, incarnation) in origins {
                self.order_submissions_of(replica, incarnation);
            }
        }
        if let Some(leader) = self.role.leader_mut() {
            leader.replication.ordered_from(fresh);
        }
    }

    /// Orders the void of a member that has withdrawn submissions, unless the log covers them.
    fn order_void_of(&mut self, incarnation: Incarnation) {
        let Some(member) = self.log.latest().member(incarnation) else {
            return;
        };
        let leader = self.role.leader();
        let Some(last) = leader.and_then(|l| l.last_number(member.replica, incarnation)) else {
            return;
        };
        if let Some(number) = self.dissemination.take_void(incarnation, last) {
            let id = SubmissionId::of(incarnation, number);
            self.put(Body::Voided { id });
        }
    }

    fn order_submissions_of(&mut self, replica: ReplicaId, incarnation: Incarnation) {
        loop {
            let Some(leader) = self.role.leader() else {
                return; // its caller holds leadership
            };
            let Some(last) = leader.last_number(replica, incarnation) else {
                return;
            };
            let Some((number, payload)) = self.dissemination.take_next(incarnation, last) else {
                return;
            };
            let id = SubmissionId {
                incarnation,
                number,
            };
            if let Some(leader) = self.role.leader_mut() {
                if self.context.config().measures {
                    leader.transfer.came_from(incarnation);
                }
            }
            self.put(match payload {
                Some(payload) => Body::Submission { id, payload },
                None => Body::Voided { id },
            });
        }
    }

    /// Appends a configuration in this leader's term.
    pub(crate) fn put_configuration(&mut self, mut configuration: Configuration) {
        configuration.sort();
        let members: Vec<Incarnation> = configuration
            .members
            .iter()
            .map(|m| m.incarnation)
            .collect();
        self.put(Body::Configuration(configuration));
        for member in members {
            // New members have already sent their summaries.
            let Some(leader) = self.role.leader_mut() else {
                return; // its callers hold leadership
            };
            if let Some(summary) = leader.replication.take_kept(member) {
                self.start_feeding(member, &summary);
            }
        }
    }

    // ---- replication ----

    pub(crate) fn start_feeding(&mut self, member: Incarnation, summary: &Summary) {
        let Some(replica) = self.peers.replica_of(member) else {
            return; // the sender of a summary has been looked up
        };
        let forked = !self.branches().is_of_own_branch(member, summary);
        // 0: no entry is certainly in both logs, so the member gets a checkpoint.
        let next = if summary.end == 0 || forked {
            0
        } else {
            self.log.tail().matching(summary) + 1
        };
        if self.known().has_duplicate(replica, member) {
            return;
        }
        // The restarted process of a member may have to acknowledge for its replica before a view admits it (rule 14).
        let elects = self.log.is_electorate(self.vote.promised(), replica);
        let seated = self.log.has_seat(replica) && elects;
        let acked = (self.acks).of_process(replica, member, self.vote.promised());
        let own_ack = self.own_ack();
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        if !seated {
            return leader.replication.keep(member, summary);
        }
        let leading = leading!(self, own_ack);
        let confirmed = (leader.replication).start(leading, (member, replica), next, acked);
        self.send_to_members(confirmed);
    }

    /// Sends every member the entries that it lacks, within its window.
    pub(crate) fn feed(&mut self, log: &dyn LogReader) {
        let own_ack = self.own_ack();
        if let Some(leader) = self.role.leader_mut() {
            let sent = leader.replication.pursue(leading!(self, own_ack), log);
            self.send_to_members(sent);
        }
    }

    /// Tells members up to which position the leader itself holds the log.
    pub(crate) fn tell_own_ack(&mut self) {
        let own_ack = self.own_ack();
        if let Some(leader) = self.role.leader_mut() {
            let told = leader.replication.tell_own_ack(leading!(self, own_ack));
            self.send_to_members([told]);
        }
    }

    fn send_to_members(&mut self, messages: impl IntoIterator<Item = ToMembers>) {
        for (to, message) in messages {
            self.out.send(self.peers, to, message);
        }
    }
}
