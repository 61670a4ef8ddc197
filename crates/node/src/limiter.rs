//! Limits the log lines that a peer can cause: the first few are written, the others are counted.

use std::collections::BTreeMap;

use trireme_replicator::Level;

use crate::text::one_line;

/// Maximum of lines of one kind about one peer within [`PERIOD_MS`].
const LINES: u64 = 5;
/// Maximum of lines of one kind about all peers: a peer may come back under another name each time.
const LINES_OF_ALL: u64 = 50;
/// After this time a summary counts the lines left out, and the next ones are written again.
const PERIOD_MS: u64 = 10_000;
/// Maximum length of the line that a summary quotes.
const SAMPLE_BYTES: usize = 300;

/// The subject of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A connection was established.
    PeerUp,
    /// A connection is gone.
    PeerDown,
    /// A peer has sent an invalid frame.
    BadFrame,
    /// A connection was refused, by either side.
    Rejected,
}

/// The lines of one kind within the last period.
#[derive(Debug, Default)]
struct Recent {
    began_ms: u64,
    written: u64,
    /// Number of lines per peer. The map has at most [`LINES_OF_ALL`] entries, since each peer in it has had a line
    /// written.
    of: BTreeMap<String, u64>,
    left_out: u64,
    /// The last line that was left out.
    sample: Option<(Level, String)>,
}

/// Lets through a few lines of each kind and peer.
#[derive(Debug, Default)]
pub struct LineLimiter(BTreeMap<Kind, Recent>);

impl LineLimiter {
    /// Returns true if this line about `peer` is to be written now. Otherwise counts it.
    pub fn admits(
        &mut self,
        kind: Kind,
        peer: &str,
        now_ms: u64,
        level: Level,
        text: &str,
    ) -> bool {
        let recent = self.0.entry(kind).or_insert_with(|| Recent {
            began_ms: now_ms,
            ..Recent::default()
        });
        let of_peer = recent.of.get(peer).copied().unwrap_or(0);
        if of_peer >= LINES || recent.written >= LINES_OF_ALL {
            recent.left_out += 1;
            recent.sample = Some((level, one_line(text, SAMPLE_BYTES)));
            return false;
        }
        recent.written += 1;
        recent.of.insert(peer.to_owned(), of_peer + 1);
        true
    }

    /// Returns the summaries that are due: one for each kind with lines left out. A summary quotes the last of them.
    pub fn summaries(&mut self, now_ms: u64) -> Vec<(Level, String)> {
        let mut due = Vec::new();
        self.0.retain(|_, recent| {
            let lasted_ms = now_ms.saturating_sub(recent.began_ms);
            if lasted_ms < PERIOD_MS {
                return true;
            }
            if let Some((level, sample)) = recent.sample.take() {
                let text = match recent.left_out {
                    1 => sample,
                    count => format!(
                        "{sample} (and {} more in the last {} s)",
                        count - 1,
                        lasted_ms / 1000
                    ),
                };
                due.push((level, text));
            }
            false
        });
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(
        limiter: &mut LineLimiter,
        peers: impl Iterator<Item = String>,
        now_ms: u64,
    ) -> usize {
        let mut written = 0;
        for peer in peers {
            let text = format!("{peer} says\nnonsense");
            let is_written = limiter.admits(Kind::BadFrame, &peer, now_ms, Level::Warn, &text);
            written += usize::from(is_written);
        }
        written
    }

    #[test]
    fn a_flood_is_a_few_lines_and_a_summary() {
        let mut limiter = LineLimiter::default();
        let flood = |count| std::iter::repeat_n("a".to_owned(), count);
        assert_eq!(admitted(&mut limiter, flood(14_108), 1_000), 5);
        assert!(limiter.summaries(10_999).is_empty());
        let text = "a says nonsense (and 14102 more in the last 10 s)".to_owned();
        assert_eq!(limiter.summaries(11_000), [(Level::Warn, text)]);
        assert!(limiter.summaries(11_000).is_empty(), "told once");
        assert_eq!(admitted(&mut limiter, flood(3), 11_000), 3, "counted anew");
        assert!(limiter.summaries(30_000).is_empty(), "nothing was left out");
    }

    #[test]
    fn another_peer_and_another_kind_have_lines_of_their_own() {
        let mut limiter = LineLimiter::default();
        admitted(&mut limiter, std::iter::repeat_n("a".to_owned(), 9), 0);
        assert!(limiter.admits(Kind::BadFrame, "b", 0, Level::Warn, "b"));
        assert!(limiter.admits(Kind::PeerDown, "a", 0, Level::Info, "a"));
        assert!(!limiter.admits(Kind::BadFrame, "a", 0, Level::Warn, "a"));
    }

    #[test]
    fn a_peer_that_changes_its_name_gets_no_further() {
        let mut limiter = LineLimiter::default();
        let names = |count: usize| (0..count).map(|n| n.to_string());
        assert_eq!(admitted(&mut limiter, names(10_000), 0), 50);
        assert!(limiter.0[&Kind::BadFrame].of.len() <= 50);
        let summaries = limiter.summaries(10_000);
        assert_eq!(summaries.len(), 1);
        assert!(summaries[0].1.ends_with("(and 9949 more in the last 10 s)"));
    }
}
