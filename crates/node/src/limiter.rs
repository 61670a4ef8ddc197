//! Limits the node's log lines: of lines that repeat, the first few are written, the others are counted. A peer can
//! cause lines about connections. Any cause that lasts repeats lines of the engine, the group and the replicator.

use std::collections::BTreeMap;

use trireme_replicator::Level;

use crate::text::one_line;

/// Maximum of lines of one kind about one peer within [`PERIOD_MS`].
const LINES: u64 = 5;
/// Maximum of lines of one kind about all peers: a peer may come back under another name each time.
const LINES_OF_ALL: u64 = 50;
/// Maximum of lines of one shape within [`PERIOD_MS`].
const LINES_OF_SHAPE: u64 = 20;
/// Maximum of shapes that are counted apart; lines of all further ones are counted together.
const SHAPES_MAX: usize = 64;
/// Lines whose shapes are the same up to here have one shape.
const SHAPE_CHARS_MAX: usize = 200;
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

/// Lines that are counted together, within the last period.
#[derive(Debug)]
struct Recent {
    began_ms: u64,
    written: u64,
    left_out: u64,
    /// The last line that was left out.
    sample: Option<(Level, String)>,
}

impl Recent {
    fn begin(now_ms: u64) -> Recent {
        Recent {
            began_ms: now_ms,
            written: 0,
            left_out: 0,
            sample: None,
        }
    }

    /// Counts a line, which is written if there is room for it. Returns `has_room`.
    fn count(&mut self, has_room: bool, level: Level, text: &str) -> bool {
        if has_room {
            self.written += 1;
        } else {
            self.left_out += 1;
            self.sample = Some((level, one_line(text, SAMPLE_BYTES)));
        }
        has_room
    }

    /// Returns true while the period lasts. At its end adds the summary to `due`, if lines were left out.
    fn lasts(&mut self, now_ms: u64, due: &mut Vec<(Level, String)>) -> bool {
        let lasted_ms = now_ms.saturating_sub(self.began_ms);
        if lasted_ms < PERIOD_MS {
            return true;
        }
        if let Some((level, sample)) = self.sample.take() {
            let text = match self.left_out {
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
    }
}

/// The lines of one kind about peers.
#[derive(Debug)]
struct AboutPeers {
    all: Recent,
    /// Number of lines per peer. The map has at most [`LINES_OF_ALL`] entries, since each peer in it has had a line
    /// written.
    of: BTreeMap<String, u64>,
}

/// Lets through a few lines of each kind and peer, and of each shape.
#[derive(Debug, Default)]
pub struct LineLimiter {
    about_peers: BTreeMap<Kind, AboutPeers>,
    /// Lines of the engine, the group and the replicator. The shape of lines beyond [`SHAPES_MAX`] is empty.
    shapes: BTreeMap<String, Recent>,
}

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
        let about = (self.about_peers.entry(kind)).or_insert_with(|| AboutPeers {
            all: Recent::begin(now_ms),
            of: BTreeMap::new(),
        });
        let of_peer = about.of.get(peer).copied().unwrap_or(0);
        let has_room = of_peer < LINES && about.all.written < LINES_OF_ALL;
        if has_room {
            about.of.insert(peer.to_owned(), of_peer + 1);
        }
        about.all.count(has_room, level, text)
    }

    /// Returns true if this line of the engine, the group or the replicator is to be written now. Otherwise counts it.
    /// An error is always written: it may announce the node's end. So is a debug line, which a developer has asked for.
    pub fn admits_shape(&mut self, now_ms: u64, level: Level, text: &str) -> bool {
        if matches!(level, Level::Error | Level::Debug) {
            return true;
        }
        let mut shape = shape_of(text);
        if self.shapes.len() >= SHAPES_MAX && !self.shapes.contains_key(&shape) {
            shape.clear();
        }
        let recent = (self.shapes.entry(shape)).or_insert_with(|| Recent::begin(now_ms));
        recent.count(recent.written < LINES_OF_SHAPE, level, text)
    }

    /// Returns the summaries that are due: one for each kind and shape with lines left out. A summary quotes the last of
    /// them.
    pub fn summaries(&mut self, now_ms: u64) -> Vec<(Level, String)> {
        let mut due = Vec::new();
        (self.about_peers).retain(|_, about| about.all.lasts(now_ms, &mut due));
        (self.shapes).retain(|_, recent| recent.lasts(now_ms, &mut due));
        due
    }
}

/// Returns the shape of a line: its text without numbers. Lines that repeat differ in these only. A word with a digit
/// counts as a number, since a UUID does.
fn shape_of(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '-');
    let plain = words.filter(|word| !word.contains(char::is_numeric));
    plain.flat_map(str::chars).take(SHAPE_CHARS_MAX).collect()
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
        assert!(limiter.about_peers[&Kind::BadFrame].of.len() <= 50);
        let summaries = limiter.summaries(10_000);
        assert_eq!(summaries.len(), 1);
        assert!(summaries[0].1.ends_with("(and 9949 more in the last 10 s)"));
    }

    fn admitted_of_shape(limiter: &mut LineLimiter, level: Level, texts: &[String]) -> usize {
        let admits = |text: &&String| limiter.admits_shape(1_000, level, text);
        texts.iter().filter(admits).count()
    }

    fn lines(count: u64, line: impl Fn(u64) -> String) -> Vec<String> {
        (0..count).map(line).collect()
    }

    /// Returns a word without a digit, another one for each number.
    fn word(number: u64) -> String {
        let letter = |digit: char| char::from(b'a' + digit as u8 - b'0');
        number.to_string().chars().map(letter).collect()
    }

    #[test]
    fn lines_that_differ_in_numbers_are_a_few_lines_and_a_summary() {
        let mut limiter = LineLimiter::default();
        let unreadable = lines(200, |n| {
            let id = format!("01a22518-{}-de1a-af1d-{n:012x}", word(n));
            format!("control state of {id} cannot be used: {n} bytes")
        });
        let written = admitted_of_shape(&mut limiter, Level::Warn, &unreadable);
        assert_eq!(written, 20);
        let other = lines(1, |_| "the write-set log: no room".to_owned());
        assert_eq!(admitted_of_shape(&mut limiter, Level::Warn, &other), 1);
        assert!(limiter.summaries(10_999).is_empty());
        let text = format!("{} (and 179 more in the last 10 s)", unreadable[199]);
        assert_eq!(limiter.summaries(11_000), [(Level::Warn, text)]);
        assert!(limiter.summaries(11_000).is_empty(), "told once");
        let written = admitted_of_shape(&mut limiter, Level::Warn, &unreadable[..21]);
        assert_eq!(written, 20, "counted anew");
        assert_eq!(
            limiter.summaries(30_000),
            [(Level::Warn, unreadable[20].clone())]
        );
    }

    #[test]
    fn errors_and_debug_lines_are_always_written() {
        let mut limiter = LineLimiter::default();
        let same = lines(100, |_| "the disk is full".to_owned());
        for (level, written) in [
            (Level::Error, 100),
            (Level::Debug, 100),
            (Level::Info, 20),
            (Level::Warn, 0),
            (Level::Error, 100),
        ] {
            let admitted = admitted_of_shape(&mut limiter, level, &same);
            assert_eq!(admitted, written, "{level:?}");
        }
    }

    #[test]
    fn the_shapes_are_few_and_short() {
        let mut limiter = LineLimiter::default();
        let names = lines(10_000, word);
        let written = admitted_of_shape(&mut limiter, Level::Info, &names);
        assert_eq!(written, 64 + 20, "one of each, then those counted together");
        assert_eq!(
            admitted_of_shape(&mut limiter, Level::Info, &names[..64]),
            64
        );
        let long = lines(100, |n| format!("{}{}", "x ".repeat(300), word(n)));
        assert_eq!(shape_of(&long[0]), shape_of(&long[99]));
        assert!(limiter.shapes.keys().all(|shape| shape.len() <= 800));
        assert_eq!(limiter.shapes.len(), 65);
        assert_eq!(limiter.summaries(11_000).len(), 1);
        assert!(limiter.shapes.is_empty());
    }
}
