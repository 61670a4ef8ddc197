//! Where callers wait for their answers.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{Arc, Condvar, Mutex};

/// Names one call; never used twice.
pub type Ticket = u64;

/// One waiting caller's place.
pub struct Slot<A> {
    answer: Mutex<Option<A>>,
    filled: Condvar,
}

impl<A> Slot<A> {
    fn new() -> Slot<A> {
        Slot {
            answer: Mutex::new(None),
            filled: Condvar::new(),
        }
    }

    /// Wakes the caller with its answer.
    pub(crate) fn fill(&self, answer: A) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.filled.notify_one();
    }

    /// Waits as long as it takes.
    pub fn wait(&self) -> A {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match answer.take() {
                Some(answer) => return answer,
                None => {
                    answer = self
                        .filled
                        .wait(answer)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    /// Waits for at most this long.
    pub fn wait_for(&self, timeout: Duration) -> Option<A> {
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut answer, _) = self
            .filled
            .wait_timeout_while(answer, timeout, |answer| answer.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        answer.take()
    }
}

/// Tickets and who waits for them. Kept under the lock; the waking is done after it.
pub struct Waiting<A> {
    last_ticket: Ticket,
    slots: HashMap<Ticket, Arc<Slot<A>>>,
    /// Answers that came before their caller began to wait: at most those of one call.
    early: Vec<(Ticket, A)>,
    due: Vec<(Arc<Slot<A>>, A)>,
}

impl<A> Default for Waiting<A> {
    fn default() -> Waiting<A> {
        Waiting {
            last_ticket: 0,
            slots: HashMap::new(),
            early: Vec::new(),
            due: Vec::new(),
        }
    }
}

impl<A> Waiting<A> {
    /// A ticket never used before.
    pub fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// The node answers.
    pub fn answer(&mut self, ticket: Ticket, answer: A) {
        match self.slots.remove(&ticket) {
            Some(slot) => self.due.push((slot, answer)),
            None => self.early.push((ticket, answer)),
        }
    }

    /// The answer, if it is there already, else a place to wait for it.
    pub fn claim(&mut self, ticket: Ticket) -> Result<A, Arc<Slot<A>>> {
        if let Some(index) = self.early.iter().position(|(known, _)| *known == ticket) {
            return Ok(self.early.swap_remove(index).1);
        }
        let slot = Arc::new(Slot::new());
        self.slots.insert(ticket, slot.clone());
        Err(slot)
    }

    /// Nobody waits for this ticket any more. True if its answer had not been given.
    pub fn forget(&mut self, ticket: Ticket) -> bool {
        self.slots.remove(&ticket).is_some()
    }

    /// Takes what is to be woken once the lock is released.
    pub(crate) fn take_due(&mut self) -> Vec<(Arc<Slot<A>>, A)> {
        std::mem::take(&mut self.due)
    }

    /// True if nobody waits and no answer lies about.
    pub fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.early.is_empty() && self.due.is_empty()
    }
}
