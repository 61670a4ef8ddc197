//! What is to happen, in order of time; at the same time, in the order in which it was planned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::seen::TimeUs;

/// A queue of happenings. The heap holds small keys only; the happenings lie still.
#[derive(Debug)]
pub struct Queue<T> {
    keys: BinaryHeap<Reverse<(TimeUs, u64, u32)>>,
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    last: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue {
            keys: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            last: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Plans a happening.
    pub fn push(&mut self, at: TimeUs, happening: T) {
        self.last += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(happening);
                slot
            }
            None => {
                self.slots.push(Some(happening));
                self.slots.len() as u32 - 1
            }
        };
        self.keys.push(Reverse((at, self.last, slot)));
    }

    /// The next one, if it is due by `until`.
    pub fn pop(&mut self, until: TimeUs) -> Option<(TimeUs, T)> {
        let Reverse((at, _, slot)) = *self.keys.peek()?;
        if at > until {
            return None;
        }
        self.keys.pop();
        self.free.push(slot);
        let happening = self.slots[slot as usize].take();
        happening.map(|happening| (at, happening))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_out_by_time_then_in_order() {
        let mut queue = Queue::default();
        for (at, what) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b'), (9, 'e')] {
            queue.push(at, what);
        }
        let mut out = String::new();
        while let Some((_, what)) = queue.pop(8) {
            out.push(what);
        }
        assert_eq!(out, "abcd");
        queue.push(7, 'f');
        assert_eq!(queue.pop(100), Some((7, 'f')));
        assert_eq!(queue.pop(100), Some((9, 'e')));
        assert_eq!(queue.pop(100), None);
    }
}
