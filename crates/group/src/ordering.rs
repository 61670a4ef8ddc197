//! The coordinator's work as leader: it gives positions, replicates its log, and transfers leadership.
//!
//! In: submissions, summaries, the tick. Out: entries of its term, appends and installs, `TakeLeadership`. It orders
//! only while it hears a majority of every configuration in force (rule 7).

use trireme_mutants::{Mutant, planted};

use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::group::Group;
use crate::ids::{Incarnation, ReplicaId, SubmissionId, Term, TimeMs};
use crate::known::known;
use crate::leader_state::LeaderState;
use crate::log_reader::LogReader;
use crate::message::{Message, Summary};
use crate::replication::{Leading, ToMembers};
use crate::transfer::{Outlooks, Transfer, TransferOutput};

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

impl Group {
    // ---- positions ----

    /// Becomes leader of the promised term. `withdrawn`: for an entry that a void must replace, the last submission
    /// that the void covers.
    pub(crate) fn begin_to_lead(&mut self, withdrawn: &dyn Fn(&Entry) -> Option<SubmissionId>) {
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
        let mut numbers = self.log.committed().numbers.clone();
        // A withdrawn submission and all entries after it are appended again in this term (rule 7).
        let first_void = self
            .log
            .tail()
            .above(self.log.committed().position)
            .find(|e| withdrawn(e).is_some())
            .map(|e| e.position);
        let again = first_void.map_or(Vec::new(), |at| self.truncate(at - 1));
        for entry in self.log.tail().above(self.log.committed().position) {
            if !planted(Mutant::DuplicateOrdered) {
                numbers.apply(entry);
            }
        }
        let start = self.log.tail().end() + 1;
        let state = LeaderState::new(self.context.now(), start, numbers, rest_until);
        self.role.lead(state);
        self.put(Body::TermStart);
        for entry in again {
            let last = withdrawn(&entry);
            let is_covered = (entry.submission()).is_some_and(|id| self.is_counted(id));
            match (entry.body, last) {
                (Body::TermStart, _) => {}
                _ if is_covered => {}
                (Body::Submission { .. }, Some(id)) => {
                    self.out.count(|c| c.voided += 1);
                    self.put(Body::Voided { id });
                }
                (body, _) => self.put(body),
            }
        }
        self.resend_own(0);
        if planted(Mutant::TakeoverMakesView) {
            self.request_reform();
        }
        self.announce();
    }

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
        self.append(entry);
    }

    /// True while this leader hears a majority, so that it can commit an entry that it orders now (rule 7). False
    /// during a transfer of leadership.
    pub(crate) fn may_order(&self) -> bool {
        let Some(leader) = self.role.leader() else {
            return false;
        };
        let heard_ms = self.context.config().leader_timeout_ms;
        !leader.is_closing()
            && !self.branches().is_overridden()
            && self
                .log
                .in_every_configuration(|c| self.known().hears_majority(heard_ms, c))
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
            for (replica, incarnation) in origins {
                self.order_submissions_of(replica, incarnation);
            }
        }
        if let Some(leader) = self.role.leader_mut() {
            leader.replication.ordered_from(fresh);
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

    /// Sends a heartbeat to all peers at once.
    pub(crate) fn announce(&mut self) {
        let status = Message::Status(self.own_status());
        let peers: Vec<_> = self.peers.names();
        self.send_all(peers.clone(), status);
        self.tell_expectation(peers);
    }

    /// Asks a successor to take leadership. `why`: the reason, for the log.
    pub(crate) fn hand_over_to(&mut self, successor: Incarnation, why: &str) {
        let number = self.vote.promised().number + 1;
        let member = self.log.latest().member(successor);
        let name = member.map_or("", |member| member.name.as_str());
        self.out.note(format!(
            "handing leadership over to {successor} ({name}): {why}"
        ));
        self.send(
            successor,
            Message::TakeLeadership {
                number,
                forced: None,
            },
        );
    }

    // ---- replication ----

    /// Takes a member's summary: starts its catch-up from the last position on which both logs agree.
    pub(crate) fn summary(&mut self, from: Incarnation, term: Term, summary: &Summary) {
        if term != self.vote.promised() {
            if term > self.vote.promised() {
                self.refused(from, term);
            }
            return;
        }
        self.start_feeding(from, summary);
    }

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
        let seated = self.log.has_seat(replica);
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

    /// The time for the next slice of the log on disk, if a member lacks entries that are no longer in memory.
    pub(crate) fn feeds_from_log_at(&self) -> Option<TimeMs> {
        let leader = self.role.leader()?;
        leader.replication.reads_log_at(self.known())
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
            self.send_all(to, message);
        }
    }

    // ---- transfer of leadership ----

    /// With every heartbeat: decides whether another member would lead better.
    pub(crate) fn reconsider_leadership(&mut self) {
        let Some(start) = self.role.leader().map(|leader| leader.start()) else {
            return;
        };
        if !self.context.config().measures {
            return;
        }
        let is_settled = self.log.committed().position >= start && self.may_order();
        let own_links = self.known().own_outlook(self.component.is_going()).links;
        let term = self.vote.promised();
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let outlooks = Outlooks {
            known: known!(self),
            component: &self.component,
            term,
            replication: &leader.replication,
            own_links: &own_links,
            is_settled,
        };
        match leader.transfer.reconsider(outlooks) {
            Some(TransferOutput::Close) => leader.close(true),
            Some(TransferOutput::Keep) => {
                leader.close(false);
                self.out.count(|c| c.leaderships_kept += 1);
                let text = "leadership stays here: its successor did not take it in time";
                self.out.note(text);
            }
            None => {}
        }
    }

    /// With every batch, behind the last append: asks the successor to take leadership once it was sent the whole log.
    pub(crate) fn offer_leadership(&mut self) {
        let (now, end) = (self.context.now(), self.log.tail().end());
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let has_whole_log = |member| leader.replication.has_sent_all(member, end);
        if let Some((to, why)) = leader.transfer.offer(now, has_whole_log) {
            self.hand_over_to(to, &why);
        }
    }

    /// Another term is promised: if this leader was transferring leadership to another replica, counts a successful
    /// transfer.
    pub(crate) fn relieved(&mut self, term: Term) {
        if let Some(leader) = self.role.leader() {
            let elsewhere = term.replica != self.my_replica();
            let is_handed = leader.is_closing() && elsewhere;
            (self.out).count(|c| c.leaderships_handed += u64::from(is_handed));
        }
    }
}
