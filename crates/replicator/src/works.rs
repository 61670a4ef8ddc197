//! The queue of callbacks for recv() threads.

use std::collections::{BTreeMap, VecDeque};

use trireme_certification::Seqno;
use trireme_mutants::{Mutant, planted};

use crate::action::Action;
use crate::flags;
use crate::work::{Task, View, Work, WorkId};

/// How many ready works are announced at most; each one that is finished announces more.
const MAX_ANNOUNCED: usize = 64;

/// What is left of a task while it runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Running {
    Apply {
        seqno: Seqno,
        isolation: bool,
    },
    View(View),
    /// Connected, Synced.
    Other,
    SstRequest,
    Donate,
}

struct Queued {
    task: Task,
    /// For everything but Apply: runs when all up to here is released.
    after: Seqno,
    /// For an Apply in isolation: grastate.dat was marked.
    marked: bool,
}

/// Works are handed out strictly in order: a later one before an earlier one could take the last
/// thread and leave the earlier one, for which it waits in commit order, without any.
#[derive(Default)]
pub(crate) struct Works {
    queue: VecDeque<Queued>,
    running: BTreeMap<WorkId, Running>,
    next_id: WorkId,
    announced: usize,
    /// Number of Apply in the queue.
    applies: usize,
    /// The server was asked to send its state, and has not said yet that it has.
    pub(crate) donates: bool,
}

impl Works {
    pub(crate) fn push(&mut self, task: Task, after: Seqno) {
        self.applies += usize::from(matches!(task, Task::Apply(_)));
        self.queue.push_back(Queued {
            task,
            after,
            marked: false,
        });
    }

    /// Number of write-sets that wait.
    pub(crate) fn applies(&self) -> usize {
        self.applies
    }

    /// A new connection begins. Ids go on: an applier stuck in a callback of the last connection may
    /// still report, and must not be taken for one of this.
    pub(crate) fn start_over(&mut self) {
        *self = Works {
            next_id: self.next_id,
            ..Works::default()
        };
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.running.is_empty()
    }

    /// Drops what was not started and `unwanted` says so; returns it.
    pub(crate) fn remove(&mut self, unwanted: impl Fn(&Task) -> bool) -> Vec<Task> {
        let mut removed = Vec::new();
        for queued in std::mem::take(&mut self.queue) {
            if unwanted(&queued.task) {
                removed.push(queued.task)
            } else {
                self.queue.push_back(queued)
            }
        }
        self.applies = self
            .queue
            .iter()
            .filter(|q| matches!(q.task, Task::Apply(_)))
            .count();
        removed
    }

    /// True if the queue's front may run.
    fn is_ready(&self, queued: &Queued, low: Seqno) -> bool {
        match &queued.task {
            Task::Apply(apply) => {
                let alone = apply.flags & flags::ISOLATION != 0;
                let follows = apply.depends_on <= low || planted(Mutant::DependsOnNotHeeded);
                follows
                    && (!alone || queued.marked)
                    && (!self.runs_alone() || planted(Mutant::ViewIsNoBarrier))
            }
            _ => queued.after <= low && self.running.is_empty(),
        }
    }

    fn runs_alone(&self) -> bool {
        self.running
            .values()
            .any(|r| !matches!(r, Running::Apply { .. }))
    }

    pub(crate) fn take(&mut self, low: Seqno) -> Option<Work> {
        let front = self.queue.front()?;
        if !self.is_ready(front, low) {
            return None;
        }
        let task = self.queue.pop_front()?.task;
        self.donates |= matches!(task, Task::Donate { .. });
        self.announced = self.announced.saturating_sub(1);
        let running = match &task {
            Task::Apply(apply) => {
                self.applies -= 1;
                Running::Apply {
                    seqno: apply.gtid.seqno,
                    isolation: apply.flags & flags::ISOLATION != 0,
                }
            }
            Task::View(view) => Running::View(view.clone()),
            Task::SstRequest => Running::SstRequest,
            Task::Donate { .. } => Running::Donate,
            Task::Connected(_) | Task::Synced | Task::Exit { .. } => Running::Other,
        };
        self.next_id += 1;
        self.running.insert(self.next_id, running);
        Some(Work {
            id: self.next_id,
            task,
        })
    }

    /// True if the next is a view at this seqno.
    pub(crate) fn shows_next(&self, seqno: Seqno) -> bool {
        let next = self.queue.front().map(|queued| &queued.task);
        matches!(next, Some(Task::View(view)) if view.primary && view.gtid.seqno == seqno)
    }

    /// True if this seqno is a total-order action that an applier is at.
    pub(crate) fn is_action(&self, seqno: Seqno) -> bool {
        let is_it = |running: &Running| matches!(running, Running::Apply { seqno: at, isolation: true } if *at == seqno);
        self.running.values().any(is_it)
    }

    /// A callback has returned.
    pub(crate) fn done(&mut self, id: WorkId) -> Option<Running> {
        self.running.remove(&id)
    }

    /// Announces what has become ready.
    pub(crate) fn announce(&mut self, low: Seqno, out: &mut Vec<Action>) {
        if let Some(front) = self.queue.front_mut() {
            if let Task::Apply(apply) = &front.task {
                let alone = apply.flags & flags::ISOLATION != 0;
                if alone && !front.marked && apply.depends_on <= low {
                    front.marked = true;
                    out.push(Action::NoteAction {
                        gtid: apply.gtid,
                        ended: false,
                    });
                    out.push(Action::MarkUnsafe);
                }
            }
        }
        let mut ready = 0;
        for queued in self.queue.iter().take(MAX_ANNOUNCED) {
            if !self.is_ready(queued, low) {
                break;
            }
            ready += 1;
            if !matches!(queued.task, Task::Apply(_)) {
                break;
            }
        }
        if ready > self.announced {
            out.push(Action::WakeAppliers {
                n: ready - self.announced,
            });
        }
        self.announced = ready;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_the_last_connection_finishes_nothing_of_this_one() {
        let mut works = Works::default();
        works.push(Task::Synced, 0);
        let stuck = works.take(0).expect("it may run").id;
        works.start_over();
        works.push(Task::Synced, 0);
        let running = works.take(0).expect("nothing else runs").id;
        assert_eq!(works.done(stuck), None);
        assert_eq!(works.done(running), Some(Running::Other));
    }
}
