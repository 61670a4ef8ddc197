//! The control state: certification index, member states, error votes, views and overrides. In: the entries of the log,
//! in order. Out: the [`Effect`] of each entry. It depends on the log alone, so it is equal on all nodes at equal
//! positions.

use trireme_certification::{Certification, Outcome, Request, Seqno, Verdict};
use trireme_group::{Configuration, Delivery, Incarnation, Position, SubmissionId, Uuid};
use trireme_mutants::{Mutant, planted};

use crate::effect::Effect;
use crate::forks::{Fork, Forks};
use crate::gtid::Gtid;
use crate::member_state::{MemberState, NodeState};
use crate::member_states::MemberStates;
use crate::message::Message;
use crate::seqno_runs::SeqnoRuns;
use crate::streaming::was_closed;
use crate::views::Views;
use crate::votes::{Ballot, Origin, Votes};
use crate::writeset::WriteSet;

/// The replicated state after one position.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    /// Cluster uuid.
    pub history: Uuid,
    /// Last position processed.
    pub position: Position,
    pub certification: Certification,
    pub members: MemberStates,
    /// The points at which databases may have parted (rules 11, 13).
    pub forks: Forks,
    /// The positions of the last seqnos.
    pub runs: SeqnoRuns,
    /// The last views and their seqnos, oldest first.
    pub views: Views,
    /// The votes on apply errors.
    pub votes: Votes,
}

impl Control {
    /// Returns the state of a component that begins with one member, above `seqno`.
    pub(crate) fn found(history: Uuid, seqno: Seqno, forks: Forks, max_length: u64) -> Self {
        let max_length = i64::try_from(max_length).unwrap_or(i64::MAX).max(1);
        Control {
            history,
            position: 0,
            certification: Certification::new(seqno, max_length),
            members: MemberStates::default(),
            forks,
            runs: SeqnoRuns::default(),
            views: Views::default(),
            votes: Votes::default(),
        }
    }

    /// Returns the last seqno ordered.
    pub(crate) fn seqno(&self) -> Seqno {
        self.certification.position()
    }

    /// Returns the last position as the server sees it.
    pub(crate) fn gtid(&self) -> Gtid {
        Gtid {
            uuid: self.history,
            seqno: self.seqno(),
        }
    }

    /// Processes the next entry.
    pub(crate) fn process(&mut self, position: Position, delivery: Delivery) -> Effect {
        assert!(
            position > self.position,
            "position {position} delivered after {}",
            self.position
        );
        self.position = position;
        let before = self.seqno();
        let effect = self.take_in(delivery);
        if self.seqno() > before {
            self.runs.took(position, self.seqno());
        }
        effect
    }

    fn take_in(&mut self, delivery: Delivery) -> Effect {
        match delivery {
            Delivery::Configuration(configuration) => self.reconfigure(configuration),
            Delivery::Submission { id, payload } => match Message::decode(&payload) {
                Ok(message) => self.submission(id, message),
                // The sender has a newer version: all members of this version ignore the message.
                Err(error) => Effect::Voided {
                    id,
                    reason: error.to_string(),
                },
            },
        }
    }

    /// Returns the override that made this configuration, with the last seqno that it shares with other branches. None:
    /// it is no forced view.
    pub(crate) fn fork_of(&self, configuration: &Configuration) -> Option<Fork> {
        let id = configuration.override_id?;
        let fork = match planted(Mutant::ForkNotedTooHigh) {
            true => self.seqno(),
            false => self.runs.last_upto(configuration.fork_after, self.seqno()),
        };
        Some((id, fork))
    }

    fn reconfigure(&mut self, configuration: Configuration) -> Effect {
        let first = self.views.is_empty();
        if configuration.number == self.members.configuration().number && !first {
            self.members.reweigh(configuration);
            return Effect::Weights;
        }
        let seqno = self.seqno() + 1;
        if let Some((id, fork)) = self.fork_of(&configuration) {
            self.forks.add_override(id, fork);
        }
        self.certification.view(seqno);
        let lost = self.members.reseat(configuration.clone(), first);
        self.views.push(seqno, configuration);
        self.apply_watermark();
        Effect::View { seqno, lost }
    }

    /// Returns the member with whose in-doubt database the cluster goes on, if that was decided just now (rule 13).
    pub(crate) fn choose_database(&mut self) -> Option<Incarnation> {
        let (chosen, seqno) = self.members.choose_database()?;
        if !planted(Mutant::ChoiceNotNoted) {
            self.forks.choose(self.position, chosen, seqno);
        }
        Some(chosen)
    }

    fn submission(&mut self, id: SubmissionId, message: Message) -> Effect {
        let from = id.incarnation;
        let anybody = planted(Mutant::EvictedDelivered).then_some(NodeState::Synced);
        let voided = |reason: &'static str| Effect::Voided {
            id,
            reason: reason.into(),
        };
        let Some(state) = self.members.state_of(from).or(anybody) else {
            return voided("the origin is not a member");
        };
        let may_write = state != NodeState::Joiner || planted(Mutant::JoinerWrites);
        match message {
            Message::WriteSet(_) if !may_write => voided("the origin has not joined"),
            Message::WriteSet(write_set) => self.write_set(id, write_set),
            Message::StateRequest {
                request,
                local,
                preference,
                bypass,
            } => Effect::StateRequest {
                id,
                donor: (self.members).state_requested(from, state, &preference, bypass),
                request,
                preference,
                bypass: bypass.then_some(local),
            },
            Message::Donated { rcode } => Effect::Donated {
                id,
                joiner: self.members.has_donated(from, rcode),
                rcode,
            },
            Message::Applied(cut) => {
                if let Some(member_state) = self.members.get_mut(from) {
                    member_state.applied = member_state.applied.max(cut);
                }
                self.apply_watermark();
                Effect::Applied { id }
            }
            Message::Vote {
                seqno,
                ballot,
                policy,
                text,
            } => {
                let may_vote = state != NodeState::Joiner && !self.members.abstains(from);
                // A ballot on a seqno that was not ordered yet is ignored, and so is one of a member without a
                // database.
                if may_vote && seqno <= self.seqno() {
                    self.votes.cast(seqno, from, ballot, policy);
                }
                Effect::Vote {
                    id,
                    seqno,
                    ballot,
                    text,
                }
            }
            Message::LeaveOut(member) => Effect::LeftOut {
                id,
                member: self.members.leave_out(member).then_some(member),
            },
            Message::InDoubt(seqno) => {
                self.members.doubts(from, seqno);
                Effect::InDoubt { id }
            }
            Message::CaughtUp => Effect::CaughtUp {
                id,
                refused: !self.members.caught_up(from),
            },
            Message::Joined | Message::Synced | Message::Desync | Message::Resync => {
                let refused = !self.members.transition(from, state, &message);
                Effect::Member {
                    id,
                    message,
                    refused,
                }
            }
        }
    }

    fn write_set(&mut self, id: SubmissionId, write_set: WriteSet) -> Effect {
        let seqno = self.seqno() + 1;
        let is_closed =
            write_set.is_fragment() && was_closed(&self.views, id.incarnation, write_set.last_seen);
        let last_view = self.views.last().map(|(seqno, _)| *seqno);
        let outcome = match last_view.filter(|_| is_closed) {
            Some(with) => {
                self.certification.skip(seqno);
                Outcome {
                    verdict: Verdict::Conflict { with },
                    depends_on: seqno - 1,
                }
            }
            None => {
                let mut outcome = self.certification.certify(&Request {
                    seqno,
                    last_seen: write_set.last_seen,
                    origin: id.incarnation.0.0,
                    epoch: write_set.epoch,
                    isolation: write_set.is_isolation(),
                    pa_unsafe: write_set.flags & crate::flags::PA_UNSAFE != 0,
                    rollback: write_set.flags & crate::flags::ROLLBACK != 0,
                    keys: write_set.keys(),
                });
                outcome.depends_on = outcome.depends_on.max(write_set.applied_after(seqno));
                outcome
            }
        };
        Effect::WriteSet {
            id,
            write_set,
            seqno,
            outcome,
        }
    }

    /// Decides the votes that can be decided now. Call it after every entry.
    pub(crate) fn decide_votes(&mut self) -> Vec<(Seqno, Ballot)> {
        if self.votes.open().next().is_none() {
            return Vec::new();
        }
        // The vote does not wait for a member that is desynced or joins.
        let waited_for = |m: &&MemberState| m.counts && m.state != NodeState::Donor;
        let states = self.members.states();
        let voters = states
            .iter()
            .filter(|(_, m)| waited_for(m))
            .map(|(id, m)| (*id, m.applied))
            .collect();
        let certification = &self.certification;
        // Below the floor the origins are no longer known.
        let origin = |seqno| {
            let origin = Incarnation(Uuid(certification.origin(seqno)?));
            if certification.writer(seqno).is_some() {
                return Some(Origin::HasCommitted(origin));
            }
            let member = states.get(&origin).filter(|member| member.counts)?;
            Some(Origin::Executes(origin, member.applied))
        };
        self.votes.decide(&voters, origin, certification.floor())
    }

    /// Moves the group's applied watermark to the least of those that count.
    fn apply_watermark(&mut self) {
        let states = self.members.states();
        let cut = states
            .values()
            .filter(|m| m.counts)
            .map(|m| m.applied)
            .min();
        if let Some(cut) = cut {
            self.certification.cut(cut);
        }
    }
}
