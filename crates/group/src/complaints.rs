//! Log lines about peers that send messages which no correct member sends: at most one line for each
//! peer in 10 s.

use std::collections::BTreeMap;

use crate::ids::{Incarnation, TimeMs};

/// Shortest time between two lines about one peer.
const PERIOD_MS: TimeMs = 10_000;
/// Greatest number of peers that are remembered at a time.
const PEERS_MAX: usize = 256;

/// The last complaint about each peer.
#[derive(Clone, Debug, Default, Hash)]
pub struct Complaints(BTreeMap<Incarnation, Complaint>);

#[derive(Clone, Debug, Hash)]
struct Complaint {
    told_at: TimeMs,
    left_out: u64,
}

impl Complaints {
    /// Returns the line to write about this peer now, with the number of lines suppressed since the last one. None:
    /// this line is suppressed, too, and `text` is not called.
    pub fn line(
        &mut self,
        of: Incarnation,
        now: TimeMs,
        text: impl FnOnce() -> String,
    ) -> Option<String> {
        if self.0.len() >= PEERS_MAX && !self.0.contains_key(&of) {
            self.0.retain(|_, past| now < past.told_at + PERIOD_MS);
            if self.0.len() >= PEERS_MAX {
                return None;
            }
        }
        let mut left_out = 0;
        if let Some(past) = self.0.get_mut(&of) {
            if now < past.told_at + PERIOD_MS {
                past.left_out += 1;
                return None;
            }
            left_out = past.left_out;
        }
        let complaint = Complaint {
            told_at: now,
            left_out: 0,
        };
        self.0.insert(of, complaint);
        Some(match left_out {
            0 => text(),
            count => format!(
                "{}; {count} messages like it since the last such line",
                text()
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Uuid;

    fn peer(number: u64) -> Incarnation {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Incarnation(Uuid(bytes))
    }

    #[test]
    fn a_peer_is_complained_of_once_in_ten_seconds() {
        let mut complaints = Complaints::default();
        let mut line = |of, now| complaints.line(peer(of), now, || "bad".into());
        assert_eq!(line(1, 1_000).as_deref(), Some("bad"), "at once");
        for now in 1_000..1_007 {
            assert_eq!(line(1, now), None);
        }
        assert_eq!(line(1, 10_999), None);
        assert_eq!(line(2, 10_999).as_deref(), Some("bad"), "another peer");
        let again = line(1, 11_000).expect("ten seconds later");
        assert!(again.starts_with("bad; 8 messages"), "{again}");
        assert_eq!(line(1, 21_000).as_deref(), Some("bad"), "counted anew");
    }

    #[test]
    fn what_is_not_told_is_not_worded() {
        let mut complaints = Complaints::default();
        assert!(complaints.line(peer(1), 5, String::new).is_some());
        let line = complaints.line(peer(1), 6, || unreachable!("it is left out"));
        assert_eq!(line, None);
    }

    /// A peer that returns under ever new names must not fill the memory.
    #[test]
    fn no_more_peers_are_known_than_fit() {
        let mut complaints = Complaints::default();
        let told = |complaints: &mut Complaints, now| {
            let lines = (0..1_000).filter_map(|n| complaints.line(peer(n), now, String::new));
            lines.count()
        };
        assert_eq!(told(&mut complaints, 5), PEERS_MAX);
        assert_eq!(complaints.0.len(), PEERS_MAX);
        assert_eq!(told(&mut complaints, 6), 0);
        assert_eq!(told(&mut complaints, 5 + PERIOD_MS), PEERS_MAX);
    }
}
