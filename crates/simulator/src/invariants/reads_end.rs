//! A current read ends: it is answered, or fails, as soon as its node has applied everything for which it may wait
//! (rule 17).
//!
//! If a node is primary and synced, and has nothing left to commit or to apply, a read can only wait for the answers
//! of a majority. The server's own timeout (30 s) does not count as an end: it would hide a read that waits for
//! something that never comes. A node whose log grows is still catching up: with a small window over a long line this
//! takes longer than any limit here (seed 291, leadership). The wait begins anew when the node's disk hangs, and when
//! cut links leave it no majority.

use super::logs::name;
use super::{HashMap, Invariant};
use crate::seen::{ClientTrx, NodeId, Seen, Sight, TimeUs};

/// A majority answers within this time, or the node is not primary any more (`evs.suspect_timeout` is at most 3 s).
const TIMEOUT_US: TimeUs = 6_000_000;
/// If a process was not seen for longer, it was paused.
const PAUSE_US: TimeUs = 1_000_000;

/// The invariant of this module.
#[derive(Default)]
pub struct ReadsEnd {
    waiting: HashMap<(NodeId, ClientTrx), Waiting>,
}

/// A read whose node has nothing left for which the read could wait.
struct Waiting {
    since: TimeUs,
    /// Time of the last event about this read.
    seen: TimeUs,
    /// The end of the node's log at that time.
    at: u64,
}

impl Invariant for ReadsEnd {
    fn name(&self) -> &'static str {
        "reads-end"
    }

    fn see(&mut self, sight: &Sight) -> Result<(), String> {
        let (node, now) = (sight.node, sight.at_us);
        match sight.what {
            Seen::ReadWaits {
                trx,
                rests_at: Some(at),
            } => {
                let anew = Waiting {
                    since: now,
                    seen: now,
                    at,
                };
                let known = self.waiting.remove(&(node, trx));
                let known = known.filter(|w| w.at == at && now <= w.seen + PAUSE_US);
                let waiting = Waiting {
                    seen: now,
                    ..known.unwrap_or(anew)
                };
                let since = waiting.since;
                self.waiting.insert((node, trx), waiting);
                if now >= since + TIMEOUT_US {
                    return Err(format!(
                        "rule 17: current read {trx} on {} has waited for {} ms with nothing left to apply there",
                        name(node),
                        (now - since) / 1000
                    ));
                }
            }
            Seen::ReadWaits {
                trx,
                rests_at: None,
            }
            | Seen::Began { trx, .. }
            | Seen::Ended { trx, .. } => {
                self.waiting.remove(&(node, trx));
            }
            Seen::Started { .. } => self.waiting.retain(|(on, _), _| *on != node),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(reads: &mut ReadsEnd, at_us: TimeUs, what: Seen) -> Result<(), String> {
        let node = 1;
        reads.see(&Sight { at_us, node, what })
    }

    fn waits(
        from_us: TimeUs,
        to_us: TimeUs,
        rests_at: impl Fn(TimeUs) -> Option<u64>,
        reads: &mut ReadsEnd,
    ) -> bool {
        let trx = 7;
        let mut times = (from_us..to_us).step_by(500_000);
        times.all(|at| {
            let rests_at = rests_at(at);
            see(reads, at, Seen::ReadWaits { trx, rests_at }).is_ok()
        })
    }

    fn still(_: TimeUs) -> Option<u64> {
        Some(5)
    }

    #[test]
    fn a_read_that_waits_for_nothing_is_found() {
        let reads = &mut ReadsEnd::default();
        assert!(waits(0, 20_000_000, |_| None, reads), "there is a queue");
        assert!(waits(20_000_000, 25_000_000, still, reads));
        assert!(!waits(25_000_000, 27_000_000, still, reads));
    }

    #[test]
    fn a_log_that_grows_is_waited_for() {
        let reads = &mut ReadsEnd::default();
        let grows = |at: TimeUs| Some(at / 5_000_000);
        assert!(waits(0, 60_000_000, grows, reads));
        assert!(!waits(60_000_000, 67_000_000, still, reads));
    }

    #[test]
    fn a_pause_and_an_end_begin_anew() {
        let reads = &mut ReadsEnd::default();
        assert!(waits(0, 5_000_000, still, reads));
        assert!(waits(9_000_000, 14_000_000, still, reads));
        let began = Seen::Began {
            trx: 7,
            current: true,
        };
        see(reads, 14_000_000, began).expect("it begins");
        assert!(waits(14_000_000, 19_000_000, still, reads));
    }
}
