//! The places where callers wait for their answers.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{Arc, Condvar, Mutex};

/// The id of one call, never used twice.
pub type Ticket = u64;

/// The place of one waiting caller.
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

    /// Puts the answer in, and wakes the caller.
    pub(crate) fn fill(&self, answer: A) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.filled.notify_one();
    }

    /// Waits for the answer without a limit.
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

    /// Waits for the answer for at most `timeout`.
    pub fn wait_for(&self, timeout: Duration) -> Option<A> {
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut answer, _) = self
            .filled
            .wait_timeout_while(answer, timeout, |answer| answer.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        answer.take()
    }
}

/// The tickets and their waiting callers. This is kept under the lock; the callers are woken after its release.
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
    /// Makes a ticket that was never used before.
    pub fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// Takes the node's answer to a ticket.
    pub fn answer(&mut self, ticket: Ticket, answer: A) {
        match self.slots.remove(&ticket) {
            Some(slot) => self.due.push((slot, answer)),
            None => self.early.push((ticket, answer)),
        }
    }

    /// Returns the answer, if it is there already; otherwise a place to wait for it.
    pub fn claim(&mut self, ticket: Ticket) -> Result<A, Arc<Slot<A>>> {
        if let Some(index) = self.early.iter().position(|(known, _)| *known == ticket) {
            return Ok(self.early.swap_remove(index).1);
        }
        let slot = Arc::new(Slot::new());
        self.slots.insert(ticket, slot.clone());
        Err(slot)
    }

    /// Forgets a ticket for which no caller waits any more. Returns true if the node had not answered it.
    pub fn forget(&mut self, ticket: Ticket) -> bool {
        self.slots.remove(&ticket).is_some()
    }

    /// Takes the callers to wake after the release of the lock, with their answers.
    pub(crate) fn take_due(&mut self) -> Vec<(Arc<Slot<A>>, A)> {
        std::mem::take(&mut self.due)
    }

    /// True if no caller waits, and no answer is undelivered.
    pub fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.early.is_empty() && self.due.is_empty()
    }
}
