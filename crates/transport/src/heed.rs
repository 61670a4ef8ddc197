//! The pace at which a node heeds one peer's Gossip: each address leads to calls.

/// Addresses that are heeded at once: as many as a node has links.
const AT_ONCE: u64 = 128;
/// Addresses per second that are heeded after these.
const PER_SECOND: u64 = 16;
/// Units of time per address; a unit is a [`PER_SECOND`]th of a millisecond.
const COST: u64 = 1_000;

/// The addresses of one link that were heeded.
#[derive(Debug, Default)]
pub(crate) struct Heed {
    /// The time, in units, from which on all [`AT_ONCE`] are available again.
    paid_at: u64,
}

impl Heed {
    /// Returns true if one more address is to be heeded.
    pub(crate) fn takes(&mut self, now_ms: u64) -> bool {
        let now = now_ms.saturating_mul(PER_SECOND);
        let paid_at = self.paid_at.max(now);
        let has_room = paid_at - now <= (AT_ONCE - 1) * COST;
        if has_room {
            self.paid_at = paid_at + COST;
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_and_then_so_many_a_second() {
        let mut heed = Heed::default();
        let mut heeded = |now_ms| (0..1_000).filter(|_| heed.takes(now_ms)).count() as u64;
        assert_eq!(heeded(5_000), AT_ONCE);
        assert_eq!(heeded(5_000), 0);
        let seconds = (1..=4).map(|second| heeded(5_000 + 1_000 * second));
        assert_eq!(seconds.collect::<Vec<_>>(), [PER_SECOND; 4]);
        assert_eq!(
            (0..100).map(|i| heeded(9_000 + 10 * i)).sum::<u64>(),
            PER_SECOND - 1
        );
        assert_eq!(heeded(100_000), AT_ONCE, "no more after a silence");
    }
}
