//! Current reads (rule 17): a majority is asked for its log ends; the greatest of them is a
//! position beyond which no acknowledged commit lies. One round trip, no lease.

use std::collections::BTreeMap;

use crate::event::Action;
use crate::group::{Group, Role};
use crate::ids::{Ballot, Incarnation, Position, ReplicaId, TimeMs};
use crate::message::{Message, Standing};

const RETRY_MS: TimeMs = 200;

#[derive(Debug)]
struct Round {
    id: u64,
    tokens: Vec<u64>,
    ends: BTreeMap<ReplicaId, Position>,
    asked_at: TimeMs,
}

/// Readers that wait for a read point.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    last_round: u64,
    waiting: Vec<u64>,
    round: Option<Round>,
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
    }
}

impl Group {
    /// One round at a time; readers who come meanwhile share the next.
    pub(crate) fn start_reads(&mut self) {
        if self
            .reads
            .round
            .as_ref()
            .is_some_and(|round| self.now >= round.asked_at + RETRY_MS)
        {
            self.reads.restart();
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
            asked_at: self.now,
        });
        let me = self.me();
        let voters = self
            .committed
            .configuration
            .members
            .iter()
            .filter(|m| m.weight > 0 && m.incarnation != me);
        let voters = voters.map(|m| m.incarnation).collect();
        self.finish_reads();
        if self.reads.round.is_some() {
            self.send_all(voters, Message::LogEnd { round: id });
        }
    }

    pub(crate) fn log_end_asked(&mut self, from: Incarnation, round: u64) {
        if self.matched || matches!(self.role, Role::Sequencer(_)) {
            let message = Message::LogEndReply {
                round,
                ballot: self.promised,
                end: self.tail.end(),
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
        let Some(replica) = self.peers.get(&from).map(|peer| peer.replica) else {
            return;
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
        if !self.matched && !matches!(self.role, Role::Sequencer(_)) {
            return;
        }
        let configuration = &self.committed.configuration;
        let Some(round) = &self.reads.round else {
            return;
        };
        let mut weight = configuration
            .replica(self.my_replica())
            .map_or(0, |m| u64::from(m.weight));
        let mut position = self.tail.end();
        for (replica, end) in &round.ends {
            weight += configuration
                .replica(*replica)
                .map_or(0, |m| u64::from(m.weight));
            position = position.max(*end);
        }
        if configuration.is_majority(weight) {
            let round = self.reads.round.take();
            for token in round.into_iter().flat_map(|round| round.tokens) {
                self.out.push(Action::ReadPoint { token, position });
            }
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
