//! Current reads (rule 17): a majority is asked for its log ends; the greatest of them is a
//! position beyond which no acknowledged commit lies. One round trip, no lease. Readers are told of it when it is committed
//! here: until then it may lie in a suffix that the next ballot's sequencer does not have.

use std::collections::{BTreeMap, BTreeSet};

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::event::Action;
use crate::group::{Group, Role};
use crate::ids::{Ballot, Incarnation, Position, ReplicaId, TimeMs};
use crate::message::{Message, Standing};

pub(crate) const RETRY_MS: TimeMs = 200;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Round {
    id: u64,
    tokens: Vec<u64>,
    ends: BTreeMap<ReplicaId, Position>,
    pub asked_at: TimeMs,
}

/// Readers that wait for a read point.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Reads {
    last_round: u64,
    waiting: Vec<u64>,
    pub round: Option<Round>,
    /// Answered in this ballot, by positions that are not committed here.
    uncommitted: Vec<(Position, Vec<u64>)>,
}

impl Reads {
    pub fn ask(&mut self, token: u64) {
        self.waiting.push(token);
    }

    /// Answers of another ballot say nothing: ask again.
    pub fn restart(&mut self) {
        if let Some(round) = self.round.take() {
            self.waiting.extend(round.tokens);
        }
        for (_, tokens) in std::mem::take(&mut self.uncommitted) {
            self.waiting.extend(tokens);
        }
    }
}

impl Group {
    /// One round at a time; readers who come meanwhile share the next.
    pub(crate) fn start_reads(&mut self) {
        self.finish_reads();
        self.tell_read_points();
        let overdue = |round: &&mut Round| self.context.now() >= round.asked_at + RETRY_MS;
        if let Some(round) = self.reads.round.as_mut().filter(overdue) {
            // The same round: an answer may be under way for longer than this.
            round.asked_at = self.context.now();
            self.ask_log_ends();
        }
        if self.reads.waiting.is_empty() || self.reads.round.is_some() {
            return;
        }
        if self.standing != Standing::Primary {
            self.fail_reads();
            return;
        }
        self.reads.last_round += 1;
        let id = self.reads.last_round;
        let tokens = std::mem::take(&mut self.reads.waiting);
        self.reads.round = Some(Round {
            id,
            tokens,
            ends: BTreeMap::new(),
            asked_at: self.context.now(),
        });
        self.finish_reads();
        self.ask_log_ends();
    }

    /// Asks whoever can count and has not answered.
    fn ask_log_ends(&mut self) {
        let Some(round) = &self.reads.round else {
            return;
        };
        let (id, me) = (round.id, self.my_replica());
        // The process that speaks for the replica: a member that was started again has acknowledged under its new name
        // before a view seats that.
        let voters = self
            .log
            .latest()
            .members
            .iter()
            .chain(&self.log.committed().configuration.members)
            .filter(|m| m.weight > 0 && m.replica != me)
            .filter(|m| !round.ends.contains_key(&m.replica))
            .filter_map(|m| self.known().voice(m.replica));
        let voters: BTreeSet<Incarnation> = voters.collect();
        self.send_all(voters.into_iter().collect(), Message::LogEnd { round: id });
    }

    pub(crate) fn log_end_asked(&mut self, from: Incarnation, round: u64) {
        let knows_end = self.matched || matches!(self.role, Role::Sequencer(_));
        // Who may have forgotten what it acknowledged in this ballot must not lower the read point.
        if knows_end && !self.amnesiac {
            let message = Message::LogEndReply {
                round,
                ballot: self.promised,
                end: self.agreed_end(),
            };
            self.send(from, message);
        }
    }

    pub(crate) fn log_end_reply(
        &mut self,
        from: Incarnation,
        round: u64,
        ballot: Ballot,
        end: Position,
    ) {
        let Some(replica) = self.peers.replica_of(from) else {
            return; // `message` has looked it up
        };
        if ballot != self.promised {
            return;
        }
        if let Some(current) = self
            .reads
            .round
            .as_mut()
            .filter(|current| current.id == round)
        {
            current.ends.insert(replica, end);
            self.finish_reads();
        }
    }

    fn finish_reads(&mut self) {
        let Some(round) = &self.reads.round else {
            return;
        };
        if !self.matched && !matches!(self.role, Role::Sequencer(_)) {
            return;
        }
        let own_end = self.agreed_end();
        let position = round.ends.values().copied().fold(own_end, Position::max);
        if position > own_end {
            // A configuration may lie in what is missing here; it is coming, and has to be waited
            // for anyway.
            return;
        }
        let answered = |configuration: &Configuration| {
            let has =
                |m: &Member| m.replica == self.my_replica() || round.ends.contains_key(&m.replica);
            configuration.is_majority(configuration.weight_of(has))
        };
        if self.log.in_every_configuration(answered) || planted(Mutant::ReadPointFromOwnLog) {
            let round = self.reads.round.take();
            let tokens = round.map(|round| round.tokens).unwrap_or_default();
            self.reads.uncommitted.push((position, tokens));
            self.tell_read_points();
        }
    }

    fn tell_read_points(&mut self) {
        let committed = match planted(Mutant::ReadPointNotCommitted) {
            true => Position::MAX,
            false => self.log.committed().position,
        };
        for (position, tokens) in std::mem::take(&mut self.reads.uncommitted) {
            if position > committed {
                self.reads.uncommitted.push((position, tokens));
                continue;
            }
            let points = tokens.into_iter();
            let points = points.map(|token| Action::ReadPoint { token, position });
            self.out.extend(points);
        }
    }

    /// Nobody who could answer.
    pub(crate) fn fail_reads(&mut self) {
        self.reads.restart();
        for token in std::mem::take(&mut self.reads.waiting) {
            self.out.push(Action::ReadFailed { token });
        }
    }
}
