//! The leader gives positions.

use trireme_mutants::{Mutant, planted};

use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::group::Group;
use crate::ids::{Incarnation, ReplicaId, SubmissionId};
use crate::leader_state::LeaderState;
use crate::message::Message;
use crate::transfer::Transfer;

impl Group {
    /// Takes the office of the promised ballot, whose promises are in. `withdrawn` gives the last number that a
    /// void in this entry's place covers.
    pub(crate) fn open_office(&mut self, withdrawn: &dyn Fn(&Entry) -> Option<SubmissionId>) {
        assert_eq!(
            self.vote.promised().replica,
            self.my_replica(),
            "an office belongs to its ballot's replica"
        );
        self.out.count(|c| c.offices_taken += 1);
        let offered = self.election_timer.was_offered(self.context.now());
        let rest_until = Transfer::rest_until(self.known(), offered);
        self.election_timer.leads();
        self.matching.leads();
        let mut numbers = self.log.committed().numbers.clone();
        // A withdrawn submission and all after it are re-appended under this ballot (rule 7).
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
        self.put(Body::BallotStart);
        for entry in again {
            let last = withdrawn(&entry);
            let is_covered = (entry.submission()).is_some_and(|id| self.is_counted(id));
            match (entry.body, last) {
                (Body::BallotStart, _) => {}
                _ if is_covered => {}
                (Body::Submission { .. }, Some(id)) => {
                    self.out.count(|c| c.voided += 1);
                    self.put(Body::Void { id });
                }
                (body, _) => self.put(body),
            }
        }
        self.resend_own(0);
        if planted(Mutant::TakeoverMakesView) {
            self.wish_reform();
        }
        self.announce();
    }

    /// True if this office has ordered or voided that number.
    fn is_counted(&self, id: SubmissionId) -> bool {
        let Some(leader) = self.role.leader() else {
            return false; // its caller holds the office
        };
        leader.has_counted(id)
    }

    /// Appends an entry of the own ballot.
    fn put(&mut self, body: Body) {
        let entry = Entry {
            position: self.log.tail().end() + 1,
            ballot: self.vote.promised(),
            body,
        };
        if let Some(leader) = self.role.leader_mut() {
            leader.count(&entry);
        }
        self.append(entry);
    }

    /// True while this sequencer hears a majority: what it orders now it can also commit (rule 7).
    pub(crate) fn may_order(&self) -> bool {
        let Some(leader) = self.role.leader() else {
            return false;
        };
        let heard_ms = self.context.config().office_timeout_ms;
        !leader.is_closing()
            && !self.branches().is_overridden()
            && self
                .log
                .in_every_configuration(|c| self.known().hears_majority(heard_ms, c))
    }

    /// Gives positions to what has come in, and proposes membership changes.
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
                return; // its caller holds the office
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
                None => Body::Void { id },
            });
        }
    }

    /// Appends a configuration of the own ballot.
    pub(crate) fn put_configuration(&mut self, mut configuration: Configuration) {
        configuration.sort();
        let members: Vec<Incarnation> = configuration
            .members
            .iter()
            .map(|m| m.incarnation)
            .collect();
        self.put(Body::Configuration(configuration));
        for member in members {
            // New members have told already where their logs end.
            let Some(leader) = self.role.leader_mut() else {
                return; // its callers hold the office
            };
            if let Some(summary) = leader.replication.take_kept(member) {
                self.start_feeding(member, &summary);
            }
        }
    }

    /// Tells everybody at once who holds the office.
    pub(crate) fn announce(&mut self) {
        let status = Message::Status(self.own_status());
        let peers: Vec<_> = self.peers.names();
        self.send_all(peers.clone(), status);
        self.tell_expectation(peers);
    }

    /// Asks a successor to take over, once its log is complete; why, for the log.
    pub(crate) fn hand_over_to(&mut self, successor: Incarnation, why: &str) {
        let number = self.vote.promised().number + 1;
        let member = self.log.latest().member(successor);
        let name = member.map_or("", |member| member.name.as_str());
        self.out.note(format!(
            "handing the sequencer's office over to {successor} ({name}): {why}"
        ));
        self.send(
            successor,
            Message::TakeOffice {
                number,
                forced: None,
            },
        );
    }
}
