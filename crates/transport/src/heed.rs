//! The pace at which a node heeds the Gossip from one IP address: each address that a peer tells leads to calls.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses that are heeded at once: as many as a node has links.
const AT_ONCE: u64 = 128;
/// Addresses per second that are heeded after these.
const PER_SECOND: u64 = 16;
/// Units of time per address; a unit is a [`PER_SECOND`]th of a millisecond.
const COST: u64 = 1_000;

/// Maximum of IP addresses whose pace is remembered; beyond it, the one that has most available gives way.
const MAX_REMEMBERED: usize = 256;

/// The paces of the IP addresses from which peers have told addresses. A peer that connects again gains nothing.
#[derive(Debug, Default)]
pub(crate) struct Heeds(BTreeMap<IpAddr, Heed>);

impl Heeds {
    /// Returns true if one more address from a peer at `ip` is to be heeded.
    pub(crate) fn takes(&mut self, ip: IpAddr, now_ms: u64) -> bool {
        if !self.0.contains_key(&ip) && self.0.len() >= MAX_REMEMBERED {
            let paid_first = self.0.iter().min_by_key(|(_, heed)| heed.paid_at);
            if let Some(ip) = paid_first.map(|(ip, _)| *ip) {
                self.0.remove(&ip);
            }
        }
        self.0.entry(ip).or_default().takes(now_ms)
    }
}

/// The addresses of one IP address that were heeded.
#[derive(Debug, Default)]
struct Heed {
    /// The time, in units, from which on all [`AT_ONCE`] are available again.
    paid_at: u64,
}

impl Heed {
    /// Returns true if one more address is to be heeded.
    fn takes(&mut self, now_ms: u64) -> bool {
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

    #[test]
    fn each_ip_address_has_a_pace_of_its_own_and_few_are_remembered() {
        let mut heeds = Heeds::default();
        let at = |i: u64| IpAddr::from(u32::try_from(i).unwrap().to_be_bytes());
        let mut heeded = |i, now_ms| (0..1_000).filter(|_| heeds.takes(at(i), now_ms)).count();
        assert_eq!((heeded(0, 0), heeded(0, 0), heeded(1, 0)), (128, 0, 128));
        for i in 2..1_000 {
            assert!(heeds.takes(at(i), 1));
            assert!(heeds.0.len() <= MAX_REMEMBERED);
        }
        assert!(
            !heeds.takes(at(0), 1),
            "the one that has none available is kept"
        );
    }
}
