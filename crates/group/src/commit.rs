//! Acknowledgements, the commit point, and the delivery of what is committed.

use trireme_mutants::{Mutant, planted};

use crate::configuration::Configuration;
use crate::entry::{Body, Entry};
use crate::event::{Action, Delivery};
use crate::group::{Group, Role};
use crate::ids::{Ballot, Incarnation, Position};
use crate::message::Standing;
use crate::peer::PeerAck;

impl Group {
    pub(crate) fn ack(&mut self, from: Incarnation, ballot: Ballot, position: Position) {
        self.record_ack(from, ballot, position);
        if let Role::Sequencer(office) = &mut self.role {
            if ballot == self.promised {
                office.acknowledged(from, position);
            }
        }
    }

    /// Acknowledgements count for their own ballot only (rule 1) and for the latest incarnation of
    /// their replica (rule 14).
    pub(crate) fn record_ack(&mut self, from: Incarnation, ballot: Ballot, position: Position) {
        let Some(peer) = self.peers.get(&from).filter(|peer| peer.up) else {
            return;
        };
        let replica = peer.replica;
        if self.has_twin(replica, from) {
            return;
        }
        let known = self.acks.entry(replica).or_insert(PeerAck {
            incarnation: from,
            ballot,
            position,
        });
        if known.incarnation != from || ballot > known.ballot {
            *known = PeerAck {
                incarnation: from,
                ballot,
                position,
            };
        } else if ballot == known.ballot {
            known.position = known.position.max(position);
        }
    }

    /// Up to here this member is known to hold what is committed: by its own word, in the ballot in force here. 0: nothing
    /// was heard.
    pub fn held_by(&self, member: Incarnation) -> Position {
        let own_word = |ack: &&PeerAck| ack.incarnation == member && ack.ballot == self.promised;
        let ack = self.acks.values().find(own_word);
        ack.map_or(0, |ack| ack.position.min(self.committed.position))
    }

    /// Highest position acknowledged, in the promised ballot, by more than half of the votes.
    fn quorum_position(&self, configuration: &Configuration) -> Position {
        let mut acks: Vec<(Position, u64)> = configuration
            .members
            .iter()
            .map(|member| {
                let position = if member.replica == self.my_replica() {
                    self.own_ack()
                } else {
                    self.acks
                        .get(&member.replica)
                        .filter(|ack| {
                            ack.ballot == self.promised || planted(Mutant::OldBallotAcksCount)
                        })
                        .map_or(0, |a| a.position)
                };
                (position, u64::from(member.weight))
            })
            .collect();
        acks.sort_unstable_by(|a, b| b.cmp(a));
        let mut weight = 0;
        for (position, votes) in acks {
            weight += votes;
            if configuration.is_majority(weight) {
                return position;
            }
        }
        0 // not reached: every configuration has a vote in it (`propose_changes`)
    }

    /// Commits what the acknowledgements allow.
    pub(crate) fn advance_commit(&mut self) {
        if !self.matched && !matches!(self.role, Role::Sequencer(_)) {
            return;
        }
        while let Some(position) = self.committable() {
            self.commit_to(position);
        }
        if let Role::Sequencer(office) = &self.role {
            // Its log is the group's now, whatever it once forgot.
            self.amnesiac &= self.committed.position < office.start();
        }
    }

    /// Highest position that may be committed now. From an uncommitted configuration on, entries
    /// need its majority and that of all before it (rule 3); an override needs its own only (rule 11).
    fn committable(&self) -> Option<Position> {
        let committed = self.committed.position;
        let mut later: Vec<_> = self.tail.configurations(committed).collect();
        if planted(Mutant::OutdatedViewElects) {
            later.clear();
        }
        let mut acked = self.quorum_position(&self.committed.configuration);
        let mut best = None;
        for index in 0..=later.len() {
            let mut from = committed + 1;
            if let Some((at, configuration)) = index.checked_sub(1).map(|previous| later[previous])
            {
                let quorum = self.quorum_position(configuration);
                let alone = planted(Mutant::TwoPendingViews);
                acked = if configuration.override_id.is_some() || alone {
                    quorum
                } else {
                    acked.min(quorum)
                };
                from = at;
            }
            let until = later
                .get(index)
                .map_or(self.tail.end(), |(next, _)| next - 1);
            let candidate = acked.min(until);
            // Entries of older ballots are committed only through one of this ballot (rule 1).
            let own = self.tail.ballot_at(candidate) == Some(self.promised);
            if candidate >= from && (own || planted(Mutant::OldEntriesCommitByCount)) {
                best = Some(candidate);
            }
        }
        best
    }

    /// The sequencer says what is committed; true for this log as far as it matches.
    pub(crate) fn learn_commit(&mut self, commit: Position) {
        let commit = match planted(Mutant::UncommittedDelivered) {
            true => self.own_ack(),
            false => commit.min(self.own_ack()),
        };
        if self.matched && commit > self.committed.position {
            self.commit_to(commit);
        }
    }

    pub(crate) fn commit_to(&mut self, position: Position) {
        let mut delivers = true;
        while self.committed.position < position {
            let next = self.committed.position + 1;
            let entry = self.tail.head(next).cloned();
            let entry = entry.expect("entries above the commit point are never trimmed");
            delivers = self.deliver(entry);
        }
        if !delivers {
            self.out.push(Action::Passed { position });
        }
    }

    /// False if it delivers nothing.
    fn deliver(&mut self, entry: Entry) -> bool {
        // Entries above an uncommitted configuration wait for it, so the committed one is the one
        // in force at this position.
        let in_force = &self.committed.configuration;
        let position = entry.position;
        let delivery = match &entry.body {
            Body::Submission { id, payload }
                if in_force.member(id.incarnation).is_some()
                    || planted(Mutant::EvictedDelivered) =>
            {
                Some(Delivery::Submission {
                    id: *id,
                    payload: payload.clone(),
                })
            }
            Body::Configuration(configuration) => {
                Some(Delivery::Configuration(configuration.clone()))
            }
            _ => None,
        };
        if let Some(id) = entry.submission() {
            self.submissions.ordered(id);
            self.forget_parcels_upto(id);
            if id.incarnation == self.me() {
                if let Some(parcel) = self.submissions.parcel_of(id.number) {
                    self.note_ordered(parcel, position, id);
                }
                self.submissions.delivered(id.number);
            }
        }
        let before = match entry.body {
            Body::Configuration(_) => Some(self.committed.configuration.clone()),
            _ => None,
        };
        self.committed.apply(&entry);
        let delivers = delivery.is_some();
        match delivery {
            Some(Delivery::Submission { .. }) if position <= self.tail.left() => {
                self.deliver_from_log(position);
            }
            Some(delivery) => self.out.push(Action::Deliver { position, delivery }),
            None => {}
        }
        if let (Some(before), Body::Configuration(configuration)) = (before, entry.body) {
            self.configured(&before, &configuration);
        }
        delivers
    }

    fn deliver_from_log(&mut self, position: Position) {
        match self.out.last_mut() {
            Some(Action::DeliverFromLog { last, .. }) if *last + 1 == position => *last = position,
            _ => self.out.push(Action::DeliverFromLog {
                first: position,
                last: position,
            }),
        }
    }

    /// A configuration is committed.
    fn configured(&mut self, before: &Configuration, now: &Configuration) {
        let me = self.me();
        self.configured_at = self.committed.position;
        self.note_fork(before, now);
        self.joined.retain(|joined| now.member(*joined).is_some());
        let latest = self.latest().clone();
        let is_member = |origin| now.member(origin).is_some() || latest.member(origin).is_some();
        self.submissions.retain_origins(is_member);
        let members = now.members.iter().chain(&latest.members);
        self.forget_parcels_beside(members.map(|m| m.incarnation).collect());
        if now.member(me).is_some() {
            if before.member(me).is_none() {
                // After a long absence the numbers begin anew ([`crate::Numbers`]).
                let number = self.committed.last_number(self.my_replica(), me);
                self.fail_covered(number.unwrap_or(0));
            }
            self.admitted(now);
        }
        if let Role::Sequencer(office) = &mut self.role {
            office.configured(now);
            // As the primary that it is by now: who has this view, too, would leave it again.
            self.announce();
        }
        let left: Vec<Incarnation> = before
            .members
            .iter()
            .map(|m| m.incarnation)
            .filter(|m| now.member(*m).is_none())
            .collect();
        for incarnation in left {
            self.peers
                .retain(|known, peer| *known != incarnation || peer.up);
        }
        if now.member(me).is_none() && (before.member(me).is_some() || self.loses_seat(before, now))
        {
            self.excluded();
        }
    }

    /// This member is in a committed configuration: primary, unless it is one from before it
    /// declared itself non-primary, or it has left without the cluster's word.
    pub(crate) fn admitted(&mut self, configuration: &Configuration) {
        // Entries above this view under the process's earlier names are void (rule 9).
        self.withdrawn_before.clear();
        let stays = !self.gone && self.standing != Standing::Primary;
        if configuration.number > self.left_number && stays {
            self.standing = Standing::Primary;
            self.resumed = false;
            self.is_copy = false;
            self.primary_heard_at = self.context.now();
            self.resend_own(0);
        }
    }
}
