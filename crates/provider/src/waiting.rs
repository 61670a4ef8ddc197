//! Where threads of the server wait for the node's answers.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use trireme_replicator::{Answer, Ticket};

/// One waiting thread's place.
#[derive(Default)]
pub struct Slot {
    answer: Mutex<Option<Answer>>,
    filled: Condvar,
}

impl Slot {
    fn fill(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.filled.notify_one();
    }

    /// Waits as long as it takes.
    pub fn wait(&self) -> Answer {
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
    pub fn wait_for(&self, timeout: Duration) -> Option<Answer> {
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut answer, _) = self
            .filled
            .wait_timeout_while(answer, timeout, |answer| answer.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        answer.take()
    }
}

/// Tickets and who waits for them. Kept under the core's lock; the waking is done after it.
#[derive(Default)]
pub struct Waiting {
    last_ticket: Ticket,
    slots: HashMap<Ticket, Arc<Slot>>,
    /// Answers that came before their caller began to wait: at most those of one call.
    early: Vec<(Ticket, Answer)>,
    due: Vec<(Arc<Slot>, Answer)>,
}

impl Waiting {
    /// A ticket never used before.
    pub fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// The node answers.
    pub fn answer(&mut self, ticket: Ticket, answer: Answer) {
        match self.slots.remove(&ticket) {
            Some(slot) => self.due.push((slot, answer)),
            None => self.early.push((ticket, answer)),
        }
    }

    /// The answer, if it is there already, else a place to wait for it.
    pub fn claim(&mut self, ticket: Ticket) -> Result<Answer, Arc<Slot>> {
        if let Some(index) = self.early.iter().position(|(known, _)| *known == ticket) {
            return Ok(self.early.swap_remove(index).1);
        }
        let slot = Arc::new(Slot::default());
        self.slots.insert(ticket, slot.clone());
        Err(slot)
    }

    /// Nobody waits for this ticket any more. True if its answer had not been given.
    pub fn forget(&mut self, ticket: Ticket) -> bool {
        self.slots.remove(&ticket).is_some()
    }

    /// Takes what is to be woken once the lock is released.
    pub fn take_due(&mut self) -> Vec<(Arc<Slot>, Answer)> {
        std::mem::take(&mut self.due)
    }
}

/// Wakes the threads whose answers are there.
pub fn wake(due: Vec<(Arc<Slot>, Answer)>) {
    for (slot, answer) in due {
        slot.fill(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trireme_replicator::Code;

    #[test]
    fn an_answer_may_come_before_or_after_the_claim() {
        let mut waiting = Waiting::default();
        let (first, second) = (waiting.ticket(), waiting.ticket());
        waiting.answer(first, Answer::unordered(Code::Ok));
        assert_eq!(waiting.claim(first).ok().map(|a| a.code), Some(Code::Ok));
        let slot = waiting.claim(second).expect_err("not answered yet");
        assert!(slot.wait_for(Duration::from_millis(1)).is_none());
        waiting.answer(second, Answer::unordered(Code::TrxFail));
        wake(waiting.take_due());
        assert_eq!(slot.wait().code, Code::TrxFail);
        assert!(!waiting.forget(second));
    }
}
