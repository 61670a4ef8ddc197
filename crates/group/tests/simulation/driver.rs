//! The driver's duties towards a core: batches of events, actions in their order, time, completions.

use trireme_group::{
    Action, Body, ComponentState, Delivery, Event, Fate, Incarnation, LogReader, Message, Position,
    Term, encode,
};

use crate::judge::{self, JOINED};
use crate::process::Answer;
use crate::trace::Trace;
use crate::world::{Happening, World};

impl World {
    pub fn input(&mut self, node: usize, event: Event) -> bool {
        if self.trace.on {
            let line = format!(
                "{} {}",
                self.process(node).name.clone(),
                self.trace.event(&event)
            );
            let routine = match &event {
                Event::Message { message, .. } => Trace::is_routine(message),
                Event::Tick | Event::Appended { .. } => true,
                Event::Read { .. } | Event::PeerDead { .. } => true,
                _ => false,
            };
            self.trace_line(line, !routine);
        }
        let now = self.now;
        let process = self.process(node);
        process.group.handle(now + process.clock_ms, event);
        true
    }

    pub fn schedule_tick(&mut self, node: usize) {
        let now = self.now;
        let process = self.process(node);
        let due = process
            .group
            .next_deadline()
            .saturating_sub(process.clock_ms)
            .max(now + 1);
        if process.tick_at.is_none_or(|at| due < at) {
            process.tick_at = Some(due);
            let process = process.incarnation;
            self.at(due, Some(node), Happening::Tick { process });
        }
    }

    /// Ends a batch and carries out what comes of it; until nothing does.
    pub fn flush(&mut self, node: usize, mut term: Term) {
        loop {
            let mut actions = Vec::new();
            let Some(process) = &mut self.nodes[node].process else {
                return;
            };
            process.group.flush(&process.log, &mut actions);
            for action in actions {
                self.carry_out(node, action, term);
            }
            let process = self.process(node);
            assert!(
                process.entrance.is_none(),
                "{} does not deliver its checkpoint's view",
                process.name
            );
            let upto = process.group.commit();
            self.judge_commits(node, upto, term);
            let committed = self.process(node).committed;
            let joined = self.judge.joined_at(committed);
            let process = self.process(node);
            process.note_snapshot();
            let component_state = process.group.component_state();
            if process.component_state != component_state {
                process.component_state = component_state;
                let line = format!("{} is {component_state:?}", process.name);
                self.coverage.non_primary +=
                    u64::from(component_state == ComponentState::NonPrimary);
                self.note(|_| line);
            }
            let process = self.process(node);
            if process.joined == joined {
                break;
            }
            process.joined = joined.clone();
            term = process.group.term();
            self.input(
                node,
                Event::Joined {
                    position: committed,
                    members: joined.into_iter().collect(),
                },
            );
        }
        self.schedule_tick(node);
    }

    fn carry_out(&mut self, node: usize, action: Action, term: Term) {
        if self.trace.on {
            let line = format!(
                "{}   {}",
                self.process(node).name.clone(),
                self.trace.action(&action)
            );
            let routine = match &action {
                Action::Send { message, .. } => Trace::is_routine(message),
                Action::Append { entry } => entry.submission().is_some(),
                Action::Deliver { delivery, .. } => matches!(delivery, Delivery::Submission { .. }),
                Action::ReadPoint { .. } | Action::ReadFailed { .. } | Action::Failed { .. } => {
                    true
                }
                _ => false,
            };
            self.trace_line(line, !routine);
        }
        let disk_ms = self.random.within(0..=self.plan.disk_ms);
        let now = self.now;
        let process = self.nodes[node]
            .process
            .as_mut()
            .expect("actions come from a process");
        let me = process.incarnation;
        match action {
            Action::Send { to, message } => self.send(node, &to, &message),
            Action::Append { entry } => {
                let position = entry.position;
                let configuration = matches!(entry.body, Body::Configuration(_));
                let write = process.log.append(entry);
                if configuration && process.group.is_leader() {
                    let uncommitted = process.log.above(process.group.commit());
                    judge::one_change_at_a_time(&process.name, uncommitted);
                }
                if self.plan.append_is_durable {
                    process.durable = position;
                } else {
                    let at = process.disk(now, disk_ms);
                    let process = me;
                    self.at(
                        at,
                        Some(node),
                        Happening::Appended {
                            process,
                            position,
                            write,
                        },
                    );
                }
            }
            Action::Truncate { after } => {
                assert!(
                    after >= process.committed,
                    "rule 1: {} truncates what it has delivered",
                    process.name
                );
                process.log.truncate(after);
                process.durable = process.durable.min(after);
                self.coverage.truncations += 1;
            }
            Action::Reset { checkpoint } => {
                if let Some(upto) = process.deliveries.last().map(|(position, _)| *position) {
                    self.judge_commits(node, upto, term);
                }
                let process = self.nodes[node].process.as_mut().expect("as above");
                self.judge
                    .reset(&process.name, process.committed, &checkpoint);
                process.log.reset(&checkpoint);
                process.snapshot = checkpoint.clone();
                process.committed = checkpoint.position;
                process.durable = checkpoint.position;
                let seat = checkpoint.configuration.member(me);
                process.voter = seat.is_some_and(|m| m.voter);
                process.entrance = seat.map(|_| checkpoint.configuration.clone());
                self.coverage.resets += 1;
                self.at(now, Some(node), Happening::SayJoined { process: me });
            }
            Action::Persist(state) => {
                let at = process.disk(now, disk_ms);
                self.at(at, Some(node), Happening::Persisted { process: me, state });
            }
            Action::Deliver { position, delivery } => match process.entrance.take() {
                Some(view) => {
                    let expected = (process.committed, Delivery::Configuration(view));
                    assert_eq!(
                        (position, delivery),
                        expected,
                        "the view of {}'s checkpoint",
                        process.name
                    );
                }
                None => process.deliveries.push((position, delivery)),
            },
            Action::Passed { position } => {
                let last = process.deliveries.last().map_or(0, |(last, _)| *last);
                assert!(position > last, "{} has delivered {last}", process.name);
            }
            Action::DeliverFromLog { first, last } => {
                assert_eq!(process.entrance, None, "the log has begun anew");
                for position in first..=last {
                    let entry = process.log.read(position).ok().flatten();
                    let Some(Body::Submission { id, payload }) = entry.map(|entry| entry.body)
                    else {
                        panic!("{} delivers {position}, which it has not", process.name);
                    };
                    let delivery = Delivery::Submission { id, payload };
                    process.deliveries.push((position, delivery));
                }
            }
            Action::NonPrimary { component } => {
                let sorted = component
                    .windows(2)
                    .all(|pair| pair[0].incarnation < pair[1].incarnation);
                let me = component.iter().any(|m| m.incarnation == me);
                assert!(
                    sorted && me,
                    "rule 20: {} lists a component without itself or unsorted",
                    process.name
                );
            }
            Action::Failed { id, fate } => {
                assert_eq!(
                    id.incarnation, me,
                    "{} answers for another member",
                    process.name
                );
                self.judge.failed(&process.name, id, fate);
                let answer = match fate {
                    Fate::Withdrawn => Answer::Withdrawn,
                    Fate::Unknown => Answer::Unknown,
                };
                let before = process.submissions.insert(id.number, answer);
                assert_eq!(
                    before,
                    Some(Answer::Waiting),
                    "{}: {id} is answered twice",
                    process.name
                );
                process.saying_joined = false;
                self.coverage.withdrawn += u64::from(fate == Fate::Withdrawn);
                self.coverage.unknown += u64::from(fate == Fate::Unknown);
                self.at(now + 300, Some(node), Happening::SayJoined { process: me });
            }
            Action::ReadPoint { token, position } => {
                let must_see = process
                    .reads
                    .remove(&token)
                    .expect("rule 17: a read is answered twice");
                self.judge
                    .reads_are_current(&process.name, must_see, position);
                self.coverage.reads += 1;
            }
            Action::ReadFailed { token } => {
                process
                    .reads
                    .remove(&token)
                    .expect("rule 17: a read is answered twice");
            }
            Action::Left => {
                self.coverage.leaves += 1;
                let delay = self.random.within(0..=5);
                self.at(now + delay, Some(node), Happening::Exit { process: me });
            }
            Action::Refused { reason } => panic!("{} is refused: {reason}", process.name),
            // Nothing large is submitted here, and nobody expects others.
            Action::Spread { .. }
            | Action::Stage { .. }
            | Action::Unstage { .. }
            | Action::Staged { .. }
            | Action::KeepStaged { .. }
            | Action::Found
            | Action::Reform { .. }
            | Action::Note { .. }
            | Action::Alarm { .. } => {}
        }
    }

    fn send(&mut self, node: usize, to: &[Incarnation], message: &Message) {
        let process = self.nodes[node]
            .process
            .as_ref()
            .expect("actions come from a process");
        match message {
            Message::Ack { term, position, .. } if *position > 0 => {
                judge::promises_are_persisted(&process.name, *term, process.persisted);
                judge::acknowledgements_are_durable(&process.name, *position, process.durable);
            }
            Message::Append(append) => {
                judge::acknowledgements_are_durable(&process.name, append.ack, process.durable);
            }
            Message::Status(status) if status.ack > 0 => {
                judge::acknowledgements_are_durable(&process.name, status.ack, process.durable);
            }
            Message::Promise(promise) => {
                judge::promises_are_persisted(&process.name, promise.term, process.persisted);
            }
            Message::Prepare { term, .. } => {
                judge::promises_are_persisted(&process.name, *term, process.persisted);
            }
            _ => {}
        }
        let bytes = encode(message);
        for peer in to {
            let target = self
                .nodes
                .iter()
                .position(|n| n.last_incarnation == Some(*peer));
            let Some(target) = target else { continue };
            if let Some((at, bulk)) =
                self.network
                    .send(self.now, node, target, *peer, bytes.clone())
            {
                self.at(at, Some(target), Happening::Arrival { from: node, bulk });
            }
        }
    }

    /// Holds everything that the process has committed since the last time against the truth.
    fn judge_commits(&mut self, node: usize, upto: Position, term: Term) {
        let process = self.nodes[node]
            .process
            .as_mut()
            .expect("actions come from a process");
        let me = process.incarnation;
        let mut deliveries = std::mem::take(&mut process.deliveries)
            .into_iter()
            .peekable();
        let mut say_joined = false;
        while process.committed < upto {
            let position = process.committed + 1;
            let delivery = deliveries
                .next_if(|(at, _)| *at == position)
                .map(|(_, delivery)| delivery);
            let entry = process
                .log
                .get(position)
                .expect("rule 1: what is committed is in the log");
            self.judge
                .committed(&process.name, term, entry, delivery.as_ref());
            process.committed = position;
            match delivery {
                Some(Delivery::Configuration(configuration)) => {
                    let seat = configuration.member(me);
                    process.voter = seat.is_some_and(|m| m.voter);
                    process.intact |= process.voter;
                    say_joined |= seat.is_some_and(|m| !m.voter);
                    self.coverage.views += 1;
                }
                Some(Delivery::Submission { id, payload }) if id.incarnation == me => {
                    process.saying_joined &= payload != JOINED;
                    match process.submissions.remove(&id.number) {
                        Some(Answer::Waiting) => {
                            self.judge.acknowledged(id, position);
                            self.coverage.acknowledged += 1;
                            self.acknowledged.push((self.now, node));
                        }
                        Some(Answer::Unknown) => self.coverage.late_commits += 1,
                        other => panic!(
                            "rule 7: {} delivers its own {id}, which was {other:?}",
                            process.name
                        ),
                    }
                }
                _ => {}
            }
        }
        let left = deliveries.next();
        assert!(
            left.is_none(),
            "rule 1: {} delivers {left:?} beyond its commit point {upto}",
            process.name
        );
        if say_joined {
            let at = self.now + self.random.within(0..=self.plan.joining_ms);
            self.at(at, Some(node), Happening::SayJoined { process: me });
        }
    }
}
