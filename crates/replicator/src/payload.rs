//! Payloads that wait for their turn, the memory that they take, and its bound.
//!
//! A delivered entry is in the node's log. When the payloads that wait take `Options::queue_bytes`, a further one is
//! not kept: it is read back when its turn comes near.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use trireme_group::Position;

/// Counts the memory that is taken. A clone counts the same memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    taken_bytes: Arc<AtomicUsize>,
}

impl Memory {
    pub(crate) fn taken_bytes(&self) -> usize {
        self.taken_bytes.load(Ordering::Relaxed)
    }

    /// Takes so many bytes, until the returned share is dropped.
    pub(crate) fn take(&self, bytes: usize) -> Share {
        self.taken_bytes.fetch_add(bytes, Ordering::Relaxed);
        Share {
            memory: self.clone(),
            bytes,
        }
    }
}

/// The memory of one payload.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Memory,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let taken = &self.memory.taken_bytes;
        taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The place of the payload of something that waits.
#[derive(Debug)]
pub(crate) enum Payload {
    /// There is no payload, or none worth counting.
    None,
    /// In memory.
    Here {
        /// Held only for its drop.
        _share: Share,
    },
    /// Only in the node's own log, as a part of the entry at `position`.
    InLog { position: Position, bytes: usize },
}

impl Payload {
    pub(crate) fn here(memory: &Memory, bytes: usize) -> Payload {
        let _share = memory.take(bytes);
        Payload::Here { _share }
    }

    pub(crate) fn is_in_log(&self) -> bool {
        matches!(self, Payload::InLog { .. })
    }
}

/// The next payload to be read back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Missing {
    pub first: Position,
    /// No payload above this position is missing.
    pub last: Position,
    /// Size of the first payload.
    pub bytes: usize,
    /// True if nothing stands before it: then it is read even if there is no room.
    pub is_next: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_takes_no_memory() {
        let memory = Memory::default();
        let first = Payload::here(&memory, 100);
        let second = Payload::here(&memory.clone(), 20);
        assert_eq!(memory.taken_bytes(), 120);
        drop(first);
        assert_eq!(memory.taken_bytes(), 20);
        drop(second);
        assert_eq!(memory.taken_bytes(), 0);
    }
}
