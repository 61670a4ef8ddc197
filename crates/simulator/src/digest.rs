//! Digests of runs: for each channel out of a node a hash over everything that left through it. Equal behaviour gives
//! equal digests, whatever the order between different channels. A file keeps digests for a later comparison.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use trireme_group::Incarnation;

use crate::seen::{NodeId, TimeUs};
use crate::sketch::Sketch;

/// A way out of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// To this process of another node.
    Peer(Incarnation),
    /// Into the log and the files beside it.
    Log,
    /// From the group to the replicator.
    Order,
    /// To the server and its clients.
    Host,
}

/// The output through one channel so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Passed {
    count: u64,
    hash: u64,
    /// The hash after 1, 2, 4, ... items, with the time. The marks show roughly where a difference begins.
    marks: Vec<(u64, TimeUs)>,
}

/// The digest of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest(BTreeMap<(NodeId, Channel), Passed>);

impl Digest {
    /// Adds one item that leaves a node.
    pub fn add(&mut self, at_us: TimeUs, node: NodeId, channel: Channel, what: Sketch) {
        let passed = self.0.entry((node, channel)).or_default();
        passed.count += 1;
        passed.hash = what.and(&passed.hash).number();
        if passed.count.is_power_of_two() {
            passed.marks.push((passed.hash, at_us));
        }
    }

    /// The digest as text, one line for each channel.
    fn lines(&self) -> String {
        let mut text = String::new();
        for ((node, channel), passed) in &self.0 {
            let channel = match channel {
                Channel::Peer(peer) => peer.to_string(),
                Channel::Log => "log".to_owned(),
                Channel::Order => "order".to_owned(),
                Channel::Host => "host".to_owned(),
            };
            let Passed { count, hash, marks } = passed;
            let _ = write!(text, "  n{} {channel} {count} {hash:016x}", node + 1);
            for (hash, at_us) in marks {
                let _ = write!(text, " {hash:016x}@{at_us}");
            }
            text.push('\n');
        }
        text
    }
}

/// Digests of many schedules, to be written to a file or compared with it.
pub struct Digests {
    file: PathBuf,
    schedules: Mutex<BTreeMap<String, String>>,
}

impl Digests {
    /// Compares with the file if it exists, else writes it.
    pub fn new(file: &Path) -> Digests {
        Digests {
            file: file.to_owned(),
            schedules: Mutex::default(),
        }
    }

    /// Takes the digest of a schedule that has been run.
    pub fn take(&self, schedule: String, digest: &Digest) {
        let mut schedules = self.schedules.lock().unwrap_or_else(|e| e.into_inner());
        schedules.insert(schedule, digest.lines());
    }

    /// Writes the file, or compares with it and prints the first difference. Returns true if there is no difference.
    /// Err: the file cannot be read or written.
    pub fn end(self) -> Result<bool, String> {
        let schedules = self
            .schedules
            .into_inner()
            .unwrap_or_else(|e| e.into_inner());
        let at = self.file.display();
        if !self.file.exists() {
            let text = schedules
                .iter()
                .map(|(name, lines)| format!("{name}\n{lines}"));
            std::fs::write(&self.file, text.collect::<String>())
                .map_err(|error| format!("cannot write {at}: {error}"))?;
            println!("digests of {} schedules are in {at}", schedules.len());
            return Ok(true);
        }
        let recorded = std::fs::read_to_string(&self.file)
            .map_err(|error| format!("cannot read {at}: {error}"))?;
        let recorded = parse(&recorded);
        let (mut compared, mut differ) = (0, 0);
        for (name, lines) in &schedules {
            let Some(expected) = recorded.get(name.as_str()) else {
                continue;
            };
            compared += 1;
            if let Some(difference) = first_difference(expected, lines) {
                if differ == 0 {
                    println!("{name}: {difference}");
                }
                differ += 1;
            }
        }
        let missing = schedules.len() - compared;
        println!(
            "{compared} digests compared with {at}: {differ} differ, {missing} more are not in it"
        );
        Ok(differ == 0 && missing == 0)
    }
}

/// Splits the text of a file into schedules and their lines.
fn parse(text: &str) -> BTreeMap<&str, String> {
    let mut schedules: BTreeMap<&str, String> = BTreeMap::new();
    let mut name = "";
    for line in text.lines() {
        match line.starts_with("  ") {
            true => {
                let lines = schedules.entry(name).or_default();
                lines.push_str(line);
                lines.push('\n');
            }
            false => {
                name = line;
                schedules.entry(name).or_default();
            }
        }
    }
    schedules
}

/// Describes the channel whose difference is the earliest in time.
fn first_difference(expected: &str, found: &str) -> Option<String> {
    if expected == found {
        return None;
    }
    let channels = |text: &str| -> BTreeMap<String, Vec<String>> {
        let words = text.lines().map(|line| line.split_whitespace());
        let channel = words.filter_map(|mut words| {
            let name = format!("{} {}", words.next()?, words.next()?);
            Some((name, words.map(str::to_owned).collect()))
        });
        channel.collect()
    };
    let (expected, found) = (channels(expected), channels(found));
    let names = expected.keys().chain(found.keys());
    let differences = names.filter_map(|name| {
        let nothing = Vec::new();
        let [then, now] = [&expected, &found].map(|all| all.get(name).unwrap_or(&nothing));
        (then != now).then(|| where_it_begins(name, then, now))
    });
    let first = differences.min()?;
    Some(first.1)
}

/// The time of the first different mark, and its description.
fn where_it_begins(name: &str, then: &[String], now: &[String]) -> (TimeUs, String) {
    let marks = |words: &[String]| words.get(2..).unwrap_or_default().to_vec();
    let (marks_then, marks_now) = (marks(then), marks(now));
    let same = marks_then.iter().zip(&marks_now);
    let same = same.take_while(|(then, now)| then == now).count();
    let at = |marks: &[String], index: usize| {
        let mark = marks.get(index)?.split_once('@')?;
        mark.1.parse::<TimeUs>().ok()
    };
    let until = [&marks_then, &marks_now].map(|marks| at(marks, same));
    let until_us = until.into_iter().flatten().min().unwrap_or(TimeUs::MAX);
    let from = match same {
        0 => "from the first item on".to_owned(),
        _ => {
            let last_us = at(&marks_now, same - 1).unwrap_or_default();
            format!(
                "after item {}, which left at {} us",
                1u64 << (same - 1),
                last_us
            )
        }
    };
    let count = |words: &[String]| words.first().cloned().unwrap_or("no".to_owned());
    let text = format!(
        "{name} differs {from}: {} items were recorded, {} left now",
        count(then),
        count(now)
    );
    (until_us, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(items: &[(Channel, u64)]) -> Digest {
        let mut digest = Digest::default();
        for (at, (channel, item)) in items.iter().enumerate() {
            digest.add(at as TimeUs, 0, *channel, Sketch::of(*item));
        }
        digest
    }

    #[test]
    fn the_order_counts_in_a_channel_only() {
        use Channel::{Host, Log};
        let hashes = |items: &[(Channel, u64)]| -> Vec<u64> {
            let digest = digest(items);
            digest.0.values().map(|passed| passed.hash).collect()
        };
        let one = hashes(&[(Log, 1), (Host, 2), (Log, 3)]);
        assert_eq!(one, hashes(&[(Host, 2), (Log, 1), (Log, 3)]));
        assert_ne!(one, hashes(&[(Host, 2), (Log, 3), (Log, 1)]));
    }

    #[test]
    fn the_first_difference_is_told() {
        use Channel::{Host, Log};
        let recorded = digest(&[(Log, 1), (Log, 2), (Host, 3), (Host, 4)]).lines();
        assert_eq!(first_difference(&recorded, &recorded), None);
        let now = digest(&[(Log, 1), (Log, 9), (Host, 8), (Host, 4)]).lines();
        let text = first_difference(&recorded, &now).expect("they differ");
        let expected =
            "n1 log differs after item 1, which left at 0 us: 2 items were recorded, 2 left now";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_file_is_written_once_and_then_compared_with() {
        let file = std::env::temp_dir().join(format!("trireme-digests-{}", std::process::id()));
        let end = |item| {
            let digests = Digests::new(&file);
            digests.take("seed 1".to_owned(), &digest(&[(Channel::Log, item)]));
            digests.end()
        };
        assert_eq!((end(1), end(1), end(2)), (Ok(true), Ok(true), Ok(false)));
        let digests = Digests::new(&file);
        digests.take("seed 2".to_owned(), &Digest::default());
        assert_eq!(digests.end(), Ok(false), "nothing is recorded of it");
        std::fs::remove_file(&file).expect("it was written");
    }
}
