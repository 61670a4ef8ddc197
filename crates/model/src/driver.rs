//! Drives one core as the engine does: hands in an input, then carries out all actions in order.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use trireme_group::{
    Action, Body, Delivery, Event, Fate, Incarnation, Message, Position, Term, Uuid,
};

use crate::breach;
use crate::fingerprint::Known;
use crate::process::{Fact, Input, Log, NOW_MS, Outcome, Process};

/// Payload of a client's submission.
const WRITE: &[u8] = b"w";
/// Payload of the message by which a member says that it has JOINED.
const JOINED: &[u8] = b"joined";

/// The effects of one input, as they are collected.
struct Run {
    process: Process,
    sent: Vec<(Incarnation, Vec<Message>)>,
    facts: Vec<Fact>,
    /// Submissions delivered in this batch.
    delivered: BTreeSet<Position>,
    say_joined: bool,
    joined_before: BTreeSet<Incarnation>,
}

impl Process {
    /// Hands in `input` and returns the outcome. A panic of the core is a breach.
    pub fn handle(&self, input: &Input) -> Outcome {
        let mut run = Run {
            process: self.clone(),
            sent: Vec::new(),
            facts: Vec::new(),
            delivered: BTreeSet::new(),
            say_joined: false,
            joined_before: self.joined.clone(),
        };
        let before = self.group.is_leader().then(|| self.group.term());
        let outcome = catch_unwind(AssertUnwindSafe(|| run.input(input)));
        if let Err(panic) = outcome {
            let formatted = panic.downcast_ref::<String>().cloned();
            let literal = || panic.downcast_ref::<&str>().map(|text| text.to_string());
            let text = formatted.or_else(literal).unwrap_or_default();
            run.facts.push(breach::ASSERTION.fact(text));
        }
        let group = &mut run.process.group;
        if group.is_leader() && before != Some(group.term()) {
            let log = run.process.log.clone();
            run.facts.push(Fact::TookLeadership(group.term(), log));
        }
        if group.rebase(NOW_MS).truncations > 0 {
            run.facts.push(Fact::Truncated);
        }
        let together = |(peer, messages)| (peer, Arc::new(Known::new(messages)));
        Outcome {
            process: Arc::new(Known::new(run.process)),
            sent: run.sent.into_iter().map(together).collect(),
            facts: run.facts,
        }
    }
}

impl Run {
    fn input(&mut self, input: &Input) {
        let process = &mut self.process;
        let event = match input {
            Input::Bootstrap => Event::Bootstrap {
                history: Uuid([0xee; 16]),
                overrides: Vec::new(),
                override_id: None,
            },
            Input::Up(replica, incarnation) => Event::PeerUp {
                replica: *replica,
                incarnation: *incarnation,
            },
            Input::Down(incarnation) => Event::PeerDown {
                incarnation: *incarnation,
            },
            Input::Dead(incarnation) => Event::PeerDead {
                incarnation: *incarnation,
            },
            Input::BulkPayload(from, bulk) => {
                for message in &bulk.value {
                    let (from, message) = (*from, message.clone());
                    let event = Event::Message { from, message };
                    process.group.handle(NOW_MS, event);
                }
                return self.flush();
            }
            Input::Persisted => {
                let Some(promised) = process.writing.take() else {
                    return;
                };
                process.persisted = promised;
                Event::Persisted { promised }
            }
            Input::Wait(ms) => {
                process.group.handle(NOW_MS + ms, Event::Tick);
                return self.flush();
            }
            Input::Submit => {
                self.submit(WRITE);
                return self.flush();
            }
        };
        process.group.handle(NOW_MS, event);
        self.flush();
    }

    fn submit(&mut self, payload: &'static [u8]) {
        let process = &mut self.process;
        process.last_number += 1;
        let payload = Bytes::from_static(payload);
        process.group.submit(0, process.last_number, payload);
    }

    /// Ends the batch and carries out the core's actions, until the core has no more.
    fn flush(&mut self) {
        loop {
            let term = self.process.group.term();
            let mut actions = Vec::new();
            self.process.group.flush(&self.process.log, &mut actions);
            for action in actions {
                self.carry_out(action, term);
            }
            self.report_commits(self.process.group.commit(), term);
            let process = &mut self.process;
            let mut again = false;
            if process.joined != self.joined_before {
                self.joined_before = process.joined.clone();
                let members = process.joined.iter().copied().collect();
                let position = process.group.commit();
                process.group.handle(0, Event::Joined { position, members });
                again = true;
            }
            if std::mem::take(&mut self.say_joined) && !process.saying_joined {
                process.saying_joined = true;
                self.submit(JOINED);
                again = true;
            }
            let process = &mut self.process;
            if let Some(promised) = process.writing.filter(|_| !process.slow_disk) {
                (process.persisted, process.writing) = (promised, None);
                process.group.handle(0, Event::Persisted { promised });
                again = true;
            }
            if !again {
                return;
            }
        }
    }

    fn carry_out(&mut self, action: Action, term: Term) {
        let process = &mut self.process;
        match action {
            Action::Send { to, message } => self.send(&to, message),
            Action::Append { entry } => {
                let expected = process.log.end() + 1;
                if entry.position != expected {
                    let text = format!("appends {} at {expected}", entry.position);
                    self.facts.push(breach::ASSERTION.fact(text));
                }
                let process = &mut self.process;
                process.log.append(entry);
                let commit = process.group.commit();
                let uncommitted =
                    (commit + 1..=process.log.end()).filter_map(|p| process.log.get(p));
                let changes = uncommitted
                    .filter(|e| matches!(e.value.body, Body::Configuration(_)))
                    .count();
                if changes > 1 && process.group.is_leader() {
                    let text = format!("{changes} uncommitted configurations in a leader's log");
                    self.facts.push(breach::ONE_CHANGE.fact(text));
                }
            }
            Action::Truncate { after } => {
                process.log.truncate(after);
            }
            Action::Reset { checkpoint } => {
                if let Some(upto) = self.delivered.last().copied() {
                    self.report_commits(upto, term);
                }
                let process = &mut self.process;
                process.log = Log::starting_at(checkpoint.position);
                process.committed = checkpoint.position;
                let voters = checkpoint.configuration.members.iter().filter(|m| m.voter);
                process.joined = voters.map(|m| m.incarnation).collect();
                // An install makes the core forget which members have joined; it must hear of them again.
                self.joined_before.clear();
                self.facts.push(Fact::Reset(checkpoint));
            }
            Action::Persist { promised } => process.writing = Some(promised),
            Action::Deliver { position, delivery } => self.deliver(position, delivery),
            Action::DeliverFromLog { .. } => {
                let text = "delivers what was left in a log, and nothing was".to_owned();
                self.facts.push(breach::ASSERTION.fact(text));
            }
            Action::Failed { id, fate } => {
                process.saying_joined = false;
                if fate == Fate::Withdrawn {
                    self.facts.push(Fact::Withdrawn(id));
                }
            }
            Action::Refused { reason } => self.facts.push(breach::ASSERTION.fact(reason)),
            Action::NonPrimary { .. }
            | Action::Passed { .. }
            | Action::Spread { .. }
            | Action::Stage { .. }
            | Action::Unstage { .. }
            | Action::Staged { .. }
            | Action::KeepStaged { .. }
            | Action::ReadPoint { .. }
            | Action::ReadFailed { .. }
            | Action::Left
            | Action::Found
            | Action::Note { .. }
            | Action::Alarm { .. }
            // The core asks for this only on evidence from databases; the model has none.
            | Action::Reform { .. } => {}
        }
    }

    fn deliver(&mut self, position: Position, delivery: Delivery) {
        let process = &mut self.process;
        match delivery {
            Delivery::Submission { id, payload } => {
                let entry = process.log.get(position).map(|entry| &entry.value.body);
                if entry
                    != Some(&Body::Submission {
                        id,
                        payload: payload.clone(),
                    })
                {
                    let text = format!("delivers {id} at {position}, where its log has {entry:?}");
                    self.facts.push(breach::HISTORIES.fact(text));
                }
                self.delivered.insert(position);
                if payload == JOINED {
                    self.process.joined.insert(id.incarnation);
                }
            }
            Delivery::Configuration(configuration) => {
                let me = process.incarnation;
                self.say_joined = configuration.member(me).is_some_and(|m| !m.voter);
                process
                    .joined
                    .retain(|m| configuration.member(*m).is_some());
                let voters = configuration.members.iter().filter(|m| m.voter);
                process.joined.extend(voters.map(|m| m.incarnation));
            }
        }
    }

    fn send(&mut self, to: &[Incarnation], message: Message) {
        if let Some(promised) = breach::rests_on(&message) {
            let persisted = self.process.persisted;
            if promised > persisted {
                let text = format!("acts on its promise of {promised}, on disk is {persisted}");
                self.facts.push(breach::DISK.fact(text));
            }
        }
        for peer in to {
            let known = self.sent.iter_mut().find(|(other, _)| other == peer);
            match known.filter(|_| self.process.batched) {
                Some((_, messages)) => messages.push(message.clone()),
                None => self.sent.push((*peer, vec![message.clone()])),
            }
        }
    }

    fn report_commits(&mut self, upto: Position, term: Term) {
        let process = &mut self.process;
        while process.committed < upto {
            process.committed += 1;
            let Some(entry) = process.log.get(process.committed) else {
                let text = format!("commits {}, which is not in its log", process.committed);
                self.facts.push(breach::HISTORIES.fact(text));
                return;
            };
            self.facts.push(Fact::Committed {
                entry: entry.clone(),
                term,
                delivered: self.delivered.contains(&process.committed),
            });
        }
    }
}
