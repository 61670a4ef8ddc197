//! The sockets that wait for the handshaker's thread, and the choice of the one that gives way when there are too many.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::Task;

/// Maximum of callers that wait for the thread.
const MAX_WAITING: usize = 32;
/// Maximum of dialed sockets that wait. The address book makes one call to an address at a time.
const MAX_DIALED: usize = 512;
/// Maximum of callers from one address, among those that wait or among those that shake hands.
const MAX_PER_ADDRESS: usize = 16;

/// The facts that decide about a caller's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    pub ip: IpAddr,
    pub is_known: bool,
}

/// Sockets on their way to the thread.
#[derive(Debug, Default)]
pub(crate) struct Lobby {
    dialed: VecDeque<Task>,
    callers: VecDeque<Task>,
}

impl Lobby {
    /// Takes a task in. Returns a task that finds no room.
    pub fn push(&mut self, task: Task) -> Option<Task> {
        if task.target.is_some() {
            if self.dialed.len() >= MAX_DIALED {
                return Some(task);
            }
            self.dialed.push_back(task);
            return None;
        }
        let ranks: Vec<Rank> = self.callers.iter().map(Task::rank).collect();
        let gone = match displaced(&ranks, MAX_WAITING, task.rank()) {
            Place::Free => None,
            Place::Instead(at) => self.callers.remove(at),
            Place::Taken => return Some(task),
        };
        self.callers.push_back(task);
        gone
    }

    /// Returns the next task: dialed sockets first, then known callers, then others; the oldest first.
    pub fn pop(&mut self) -> Option<Task> {
        let known = |callers: &VecDeque<Task>| callers.iter().position(|task| task.is_known);
        self.dialed.pop_front().or_else(|| {
            let at = known(&self.callers).unwrap_or(0);
            self.callers.remove(at)
        })
    }
}

impl Task {
    pub(crate) fn rank(&self) -> Rank {
        Rank {
            ip: self.remote.ip().to_canonical(),
            is_known: self.is_known,
        }
    }
}

/// The place of a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// There is room.
    Free,
    /// The caller at this index gives way.
    Instead(usize),
    /// No caller gives way.
    Taken,
}

/// Finds a newcomer's place among others (oldest first). No address gets more than its limit. Beyond `room` the oldest
/// unknown caller gives way; a known one gives way only to another known one.
pub(crate) fn displaced(others: &[Rank], room: usize, newcomer: Rank) -> Place {
    let same = |rank: &Rank| rank.ip == newcomer.ip;
    if others.iter().filter(|rank| same(rank)).count() >= MAX_PER_ADDRESS {
        return others
            .iter()
            .position(same)
            .map_or(Place::Free, Place::Instead);
    }
    if others.len() < room {
        return Place::Free;
    }
    match others.iter().position(|rank| !rank.is_known) {
        Some(oldest) => Place::Instead(oldest),
        None if newcomer.is_known => Place::Instead(0),
        None => Place::Taken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(last: u8, is_known: bool) -> Rank {
        let ip = IpAddr::from([192, 0, 2, last]);
        Rank { ip, is_known }
    }

    #[test]
    fn an_address_displaces_only_itself() {
        let mut others = vec![rank(9, true)];
        others.extend([rank(1, false); MAX_PER_ADDRESS]);
        assert_eq!(displaced(&others, 64, rank(1, false)), Place::Instead(1));
        assert_eq!(displaced(&others, 64, rank(2, false)), Place::Free);
    }

    #[test]
    fn strangers_give_way_to_members() {
        let known: Vec<Rank> = (0..8).map(|last| rank(last, true)).collect();
        assert_eq!(displaced(&known, 8, rank(99, false)), Place::Taken);
        assert_eq!(displaced(&known, 8, rank(99, true)), Place::Instead(0));
        let mixed = [rank(1, true), rank(2, false), rank(3, false)];
        assert_eq!(displaced(&mixed, 3, rank(99, true)), Place::Instead(1));
        assert_eq!(displaced(&mixed, 3, rank(99, false)), Place::Instead(1));
    }
}
