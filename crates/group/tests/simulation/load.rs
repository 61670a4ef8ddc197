//! What members and their clients submit and read.

use bytes::Bytes;
use trireme_group::{ComponentState, Event, SubmissionId};

use crate::judge::JOINED;
use crate::process::Answer;
use crate::world::{Happening, World};

impl World {
    /// Submits, as the next number.
    pub fn submit(&mut self, node: usize, payload: Bytes) -> u64 {
        let now = self.now;
        let process = self.process(node);
        process.last_number += 1;
        let number = process.last_number;
        let incarnation = process.incarnation;
        process.submissions.insert(number, Answer::Waiting);
        self.judge.submitted(SubmissionId {
            incarnation,
            number,
        });
        let process = self.process(node);
        process
            .group
            .submit(now + process.clock_ms, number, payload);
        if self.trace.on {
            let line = format!("{} submits {number}", self.process(node).name);
            self.trace_line(line, false);
        }
        number
    }

    pub fn read(&mut self, node: usize) {
        let must_see = self.judge.last_acknowledged();
        let process = self.process(node);
        process.last_token += 1;
        let token = process.last_token;
        process.reads.insert(token, must_see);
        self.input(node, Event::Read { token });
    }

    pub fn say_joined(&mut self, node: usize) -> bool {
        let process = self.process(node);
        let me = process.incarnation;
        let learner = process
            .group
            .configuration()
            .member(me)
            .is_some_and(|m| !m.voter);
        if process.leaving || process.saying_joined || !learner || process.joined.contains(&me) {
            return false;
        }
        if process.group.component_state() != ComponentState::Primary {
            let at = self.now + 300;
            self.at(at, Some(node), Happening::SayJoined { process: me });
            return false;
        }
        process.saying_joined = true;
        self.submit(node, Bytes::from_static(JOINED));
        true
    }

    /// Clients do their work, and come again.
    pub fn think(&mut self, node: usize) -> bool {
        if !self.busy {
            return false;
        }
        let plan = self.plan.nodes[node].clone();
        let again = self.now + 1 + self.random.within(0..=2 * plan.think_ms);
        let process = self.process(node);
        let me = process.incarnation;
        let (primary, waiting) = (
            process.group.component_state() == ComponentState::Primary,
            process.waiting(),
        );
        self.at(again, Some(node), Happening::Think { process: me });
        if waiting >= 30 || !(primary || self.random.percent(5)) {
            return false;
        }
        for _ in 0..self.random.within(1..=plan.burst) {
            let length = match plan.large_payloads && self.random.percent(20) {
                true => self.random.within(1_000..=5_000),
                false => self.random.within(8..=40),
            };
            let mut payload = self.random.next().to_le_bytes().to_vec();
            payload.resize(length as usize, 0x2e);
            self.submit(node, payload.into());
        }
        if self.random.percent(20) {
            self.read(node);
        }
        true
    }
}
