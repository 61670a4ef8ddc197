//! pause() and resume(): the calls that hold the node still, and those that wait until it stands still.

use std::collections::BTreeSet;

use crate::event::Ticket;

#[derive(Debug, Default)]
pub(crate) struct Pauses {
    /// Pauses that were not taken back, including those that wait.
    count: u32,
    /// Callers that wait until everything certified is released.
    waiting: BTreeSet<Ticket>,
}

impl Pauses {
    /// Starts over for a new connection: the pauses of the last one are over.
    pub(crate) fn start_over(&mut self) {
        self.count = 0;
    }

    /// Begins a pause.
    pub(crate) fn begin(&mut self, ticket: Ticket) {
        self.count += 1;
        self.waiting.insert(ticket);
    }

    /// Notes that the caller no longer waits.
    pub(crate) fn cancel(&mut self, ticket: Ticket) {
        if self.waiting.remove(&ticket) {
            self.end();
        }
    }

    /// Ends a pause.
    pub(crate) fn end(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    /// Returns true if the node is paused, or a caller wants that.
    pub(crate) fn is_any(&self) -> bool {
        self.count > 0
    }

    /// Returns true if a caller waits.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns true if a pause was granted: the server must be held still.
    pub(crate) fn is_granted(&self) -> bool {
        self.count as usize > self.waiting.len()
    }

    /// Takes all callers that wait, because the node stands still.
    pub(crate) fn grant(&mut self) -> BTreeSet<Ticket> {
        std::mem::take(&mut self.waiting)
    }

    /// Takes all callers that wait, because the node will not stand still for them.
    pub(crate) fn give_up(&mut self) -> BTreeSet<Ticket> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.iter().for_each(|_| self.end());
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_holds_once_it_is_granted_and_until_it_is_taken_back() {
        let mut pauses = Pauses::default();
        pauses.begin(1);
        assert!(pauses.is_any() && !pauses.is_granted());
        assert_eq!(pauses.grant(), BTreeSet::from([1]));
        assert!(pauses.is_granted());
        pauses.begin(2);
        pauses.begin(3);
        pauses.cancel(2);
        pauses.cancel(2);
        assert_eq!(pauses.give_up(), BTreeSet::from([3]));
        assert!(pauses.is_granted(), "the first holds");
        pauses.end();
        assert!(!pauses.is_any());
    }
}
