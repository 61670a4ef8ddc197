//! A model of the node under its lock: it answers calls at once, later, or in commit order; its
//! works are announced and handed out as the replicator does it; it closes as the replicator does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::handover::UnderLock;
use crate::waiting::{Ticket, Waiting};

pub type WorkId = u64;
/// A place in the commit order.
pub type Place = u64;

pub enum Event {
    /// Answered at once.
    Ask { ticket: Ticket },
    /// Answered by [`Model::answer_oldest`], or refused when the node closes.
    AskNetwork { ticket: Ticket },
    /// A read: answered when so many works are done, or (refused) when the node closes.
    AskDone { ticket: Ticket, works: usize },
    /// Answered when all places before have left.
    CommitOrderEnter { ticket: Ticket, place: Place },
    /// Answered at once.
    CommitOrderLeave { ticket: Ticket, place: Place },
    /// A work is done.
    Done { work: WorkId },
}

/// Which call it answers, and whether the node was open.
#[derive(Debug, PartialEq)]
pub struct Answer {
    pub ticket: Ticket,
    pub ok: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// Others may run at the same time. Goes through commit order.
    Apply(Place),
    /// Runs alone.
    View,
    /// Runs alone; the node is closed when it is done.
    FinalView,
    /// Every applier gets one; the first of them another code.
    Exit { first: bool },
}

#[derive(Debug)]
pub struct Work {
    pub id: WorkId,
    pub task: Task,
}

enum Action {
    Answer(Answer),
    WakeAppliers(usize),
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Open,
    /// The final view is among the works.
    Closing,
    Closed,
}

pub struct Model {
    pub waiting: Waiting<Answer>,
    stage: Stage,
    exited: bool,
    /// To be carried out by pump().
    actions: Vec<Action>,
    appliers_due: usize,
    /// Calls that the network answers.
    asked: VecDeque<Ticket>,
    /// Calls that wait for works to be done.
    reads: Vec<(Ticket, usize)>,
    next_place: Place,
    /// Who waits for which place.
    order: BTreeMap<Place, Ticket>,
    queue: VecDeque<Task>,
    running: BTreeMap<WorkId, Task>,
    announced: usize,
    last_work: WorkId,
    /// What was done, in this order.
    pub done: Vec<Task>,
    /// Tickets that were given up.
    pub cancelled: BTreeSet<Ticket>,
    /// Tickets that were answered.
    pub answered: BTreeSet<Ticket>,
}

impl Model {
    pub fn new() -> Model {
        Model {
            waiting: Waiting::default(),
            stage: Stage::Open,
            exited: false,
            actions: Vec::new(),
            appliers_due: 0,
            asked: VecDeque::new(),
            reads: Vec::new(),
            next_place: 1,
            order: BTreeMap::new(),
            queue: VecDeque::new(),
            running: BTreeMap::new(),
            announced: 0,
            last_work: 0,
            done: Vec::new(),
            cancelled: BTreeSet::new(),
            answered: BTreeSet::new(),
        }
    }

    /// The network brings an answer; false if nobody has asked.
    pub fn answer_oldest(&mut self) -> bool {
        let oldest = self.asked.pop_front();
        if let Some(ticket) = oldest {
            self.answer(ticket, true);
        }
        oldest.is_some()
    }

    /// The network brings works.
    pub fn deliver(&mut self, tasks: &[Task]) {
        self.queue.extend(tasks);
        self.announce();
    }

    /// The node has left: what is queued is still done, then the final view.
    pub fn close(&mut self) {
        self.stage = Stage::Closing;
        for ticket in std::mem::take(&mut self.asked) {
            self.answer(ticket, false);
        }
        for (ticket, _) in std::mem::take(&mut self.reads) {
            self.answer(ticket, false);
        }
        self.queue.push_back(Task::FinalView);
        self.announce();
    }

    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// Nothing is left to do, and nobody is left waiting.
    pub fn assert_at_rest(&self) {
        assert!(self.waiting.is_idle(), "an answer or a caller is left over");
        assert!(self.actions.is_empty() && self.appliers_due == 0);
        assert!(self.asked.is_empty() && self.reads.is_empty() && self.order.is_empty());
        assert!(self.queue.is_empty() && self.running.is_empty());
        assert!(self.answered.is_disjoint(&self.cancelled));
    }

    fn answer(&mut self, ticket: Ticket, ok: bool) {
        assert!(!self.cancelled.contains(&ticket));
        assert!(self.answered.insert(ticket));
        self.actions.push(Action::Answer(Answer { ticket, ok }));
    }

    fn grant_reads(&mut self) {
        let done = self.done.len();
        let waits = |(_, works): &(Ticket, usize)| *works > done;
        let reads = std::mem::take(&mut self.reads);
        let (waiting, granted): (Vec<_>, Vec<_>) = reads.into_iter().partition(waits);
        self.reads = waiting;
        for (ticket, _) in granted {
            self.answer(ticket, true);
        }
    }

    fn grant_order(&mut self) {
        if let Some(ticket) = self.order.remove(&self.next_place) {
            self.answer(ticket, true);
        }
    }

    fn is_ready(&self, task: Task) -> bool {
        match task {
            Task::Apply(_) => self.running.values().all(|r| matches!(r, Task::Apply(_))),
            _ => self.running.is_empty(),
        }
    }

    /// As the replicator's `ApplyQueue::announce`: only what was not announced yet.
    fn announce(&mut self) {
        let mut ready = 0;
        for &task in &self.queue {
            if !self.is_ready(task) {
                break;
            }
            ready += 1;
            if !matches!(task, Task::Apply(_)) {
                break;
            }
        }
        if ready > self.announced {
            self.actions
                .push(Action::WakeAppliers(ready - self.announced));
        }
        self.announced = ready;
    }
}

impl UnderLock for Model {
    type Event = Event;
    type Answer = Answer;
    type Work = Work;

    fn handle(&mut self, event: Event) {
        match event {
            Event::Ask { ticket } => self.answer(ticket, true),
            Event::AskNetwork { ticket } if self.stage == Stage::Open => {
                self.asked.push_back(ticket);
            }
            Event::AskDone { ticket, works } if self.stage == Stage::Open => {
                self.reads.push((ticket, works));
                self.grant_reads();
            }
            Event::AskNetwork { ticket } | Event::AskDone { ticket, .. } => {
                self.answer(ticket, false);
            }
            Event::CommitOrderEnter { ticket, place } => {
                assert!(self.order.insert(place, ticket).is_none());
                self.grant_order();
            }
            Event::CommitOrderLeave { ticket, place } => {
                assert_eq!(place, self.next_place, "left out of turn");
                self.next_place += 1;
                self.answer(ticket, true);
                self.grant_order();
            }
            Event::Done { work } => {
                let task = self.running.remove(&work).expect("done once");
                self.done.push(task);
                self.grant_reads();
                if task == Task::FinalView {
                    self.stage = Stage::Closed;
                    self.actions.push(Action::WakeAppliers(usize::MAX));
                }
            }
        }
        self.announce();
    }

    fn pump(&mut self) {
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Answer(answer) => self.waiting.answer(answer.ticket, answer),
                Action::WakeAppliers(n) => self.appliers_due = self.appliers_due.saturating_add(n),
            }
        }
    }

    fn take_work(&mut self) -> Option<Work> {
        if self.is_closed() {
            let first = !std::mem::replace(&mut self.exited, true);
            let task = Task::Exit { first };
            return Some(Work { id: 0, task });
        }
        let task = *self.queue.front()?;
        if !self.is_ready(task) {
            return None;
        }
        self.queue.pop_front();
        self.announced = self.announced.saturating_sub(1);
        self.last_work += 1;
        let id = self.last_work;
        self.running.insert(id, task);
        Some(Work { id, task })
    }

    fn take_appliers_due(&mut self) -> usize {
        std::mem::take(&mut self.appliers_due)
    }

    fn cancel(&mut self, ticket: Ticket) {
        assert!(!self.answered.contains(&ticket));
        assert!(self.cancelled.insert(ticket));
        self.asked.retain(|t| *t != ticket);
        self.reads.retain(|(t, _)| *t != ticket);
    }

    fn waiting(&mut self) -> &mut Waiting<Answer> {
        &mut self.waiting
    }
}
