//! The events of the future, in order of time. Events of one time are ordered by lane, and within a lane in the order
//! of planning.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::seen::TimeUs;

/// An event with a lane. The order of events in different lanes at one time does not depend on which was planned
/// first.
pub trait Lane {
    /// The lane: the node of the event.
    fn lane(&self) -> u32;
}

/// A queue of events. The heap holds small keys only; the events do not move.
#[derive(Debug)]
pub struct Queue<T> {
    keys: BinaryHeap<Reverse<(TimeUs, u32, u64, u32)>>,
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    last: u64,
    has_lanes: bool,
}

impl<T: Lane> Queue<T> {
    /// An empty queue. Without lanes, all events are in one lane.
    pub fn new(has_lanes: bool) -> Self {
        Queue {
            keys: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            last: 0,
            has_lanes,
        }
    }

    /// Plans an event.
    pub fn push(&mut self, at: TimeUs, happening: T) {
        self.last += 1;
        let lane = if self.has_lanes { happening.lane() } else { 0 };
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
        self.keys.push(Reverse((at, lane, self.last, slot)));
    }

    /// Takes the next event, if it is due by `until`.
    pub fn pop(&mut self, until: TimeUs) -> Option<(TimeUs, T)> {
        let Reverse((at, _, _, slot)) = *self.keys.peek()?;
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

    impl Lane for (u32, char) {
        fn lane(&self) -> u32 {
            self.0
        }
    }

    fn order(has_lanes: bool) -> String {
        let mut queue = Queue::new(has_lanes);
        for (at, lane, what) in [
            (5, 2, 'c'),
            (3, 1, 'a'),
            (5, 1, 'd'),
            (5, 2, 'b'),
            (9, 0, 'e'),
        ] {
            queue.push(at, (lane, what));
        }
        let mut out = String::new();
        while let Some((_, (_, what))) = queue.pop(8) {
            out.push(what);
        }
        queue.push(7, (0, 'f'));
        assert_eq!(queue.pop(100), Some((7, (0, 'f'))));
        assert_eq!(queue.pop(100), Some((9, (0, 'e'))));
        assert_eq!(queue.pop(100), None);
        out
    }

    #[test]
    fn comes_out_by_time_then_by_lane_then_in_order() {
        assert_eq!(order(true), "adcb");
        assert_eq!(order(false), "acdb");
    }
}
