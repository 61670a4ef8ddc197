//! Reads the journal of a simulated disk (`power_loss.c` writes it) and takes back the writes that no flush covers.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::random::Random;

/// Length of a record without its trailing bytes.
const HEADER: usize = 48;

/// A disk writes a sector entirely or not at all.
const SECTOR: u64 = 512;

const CHANGE: u64 = 1;
const FLUSH: u64 = 2;

/// One change of a file, not covered by a flush.
#[derive(Debug, PartialEq, Eq)]
struct Change<'a> {
    inode: u64,
    offset: u64,
    length_before: u64,
    written: u64,
    bytes_before: &'a [u8],
}

/// The result of a power loss.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Number of changes that the loss took back.
    pub changes: usize,
    /// Number of unflushed changes that survived; one more may survive in part.
    pub survived: usize,
}

/// Takes back the changes below `root` that no flush covers, and empties the journal. With `survivors`, a prefix of
/// the changes of some files survives, the last change perhaps in part: a disk may write without a flush.
pub fn lose(journal: &Path, root: &Path, mut survivors: Option<Random>) -> io::Result<Loss> {
    let bytes = match fs::read(journal) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loss::default()),
        other => other?,
    };
    let mut files = HashMap::new();
    find_files(root, &mut files)?;
    let mut by_file: HashMap<u64, Vec<Change>> = HashMap::new();
    for change in unflushed(&bytes) {
        by_file.entry(change.inode).or_default().push(change);
    }
    // Sort, so that the order is the same in every run.
    let mut by_file: Vec<(u64, Vec<Change>)> = by_file.into_iter().collect();
    by_file.sort_by_key(|(inode, _)| *inode);
    let mut loss = Loss::default();
    for (inode, changes) in by_file {
        let Some(path) = files.get(&inode) else {
            continue; // the file was removed since
        };
        let file = File::options().write(true).open(path)?;
        let kept = survivors.as_mut().map_or(0, |random| {
            let some = random.chance(50);
            let kept = random.below(changes.len() as u64 + 1) as usize;
            if some { kept } else { 0 }
        });
        loss.survived += kept;
        loss.changes += changes.len() - kept;
        for (i, change) in changes.iter().enumerate().skip(kept).rev() {
            let sectors = change.written / SECTOR;
            let torn = match &mut survivors {
                Some(random) if i == kept && kept > 0 && sectors > 1 => {
                    random.below(sectors) * SECTOR
                }
                _ => 0,
            };
            take_back(&file, change, torn)?;
        }
    }
    File::create(journal)?;
    Ok(loss)
}

/// Takes back a change, except its first `survived` bytes.
fn take_back(file: &File, change: &Change, survived: u64) -> io::Result<()> {
    let from = (survived as usize).min(change.bytes_before.len());
    file.write_all_at(&change.bytes_before[from..], change.offset + from as u64)?;
    let survives_until = if survived > 0 {
        change.offset + survived
    } else {
        0
    };
    file.set_len(change.length_before.max(survives_until))
}

/// The changes that no flush covers, in order. A torn record at the end belongs to a change that did not begin.
fn unflushed(journal: &[u8]) -> Vec<Change<'_>> {
    let mut changes = Vec::new();
    let mut covered: HashMap<u64, u64> = HashMap::new();
    let mut at = 0;
    while let Some(header) = journal.get(at..at + HEADER) {
        let number = |i: usize| {
            let bytes = header[8 * i..8 * i + 8].try_into();
            u64::from_ne_bytes(bytes.expect("eight bytes"))
        };
        let [kind, inode, offset, length_before, written, bytes] = [0, 1, 2, 3, 4, 5].map(number);
        let end = at + HEADER + bytes as usize;
        let Some(bytes_before) = journal.get(at + HEADER..end) else {
            break;
        };
        match kind {
            CHANGE => changes.push((
                at as u64,
                Change {
                    inode,
                    offset,
                    length_before,
                    written,
                    bytes_before,
                },
            )),
            FLUSH => {
                // A flush that began before the journal was emptied covers only the records before its own.
                let until = covered.entry(inode).or_default();
                *until = offset.min(at as u64).max(*until);
            }
            _ => break,
        }
        at = end;
    }
    let lost = |(at, change): &(u64, Change)| covered.get(&change.inode).is_none_or(|c| at >= c);
    let lost = changes.into_iter().filter(lost);
    lost.map(|(_, change)| change).collect()
}

/// Collects all files below `dir`, by inode.
fn find_files(dir: &Path, files: &mut HashMap<u64, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            find_files(&entry.path(), files)?;
        } else if metadata.is_file() {
            files.insert(metadata.ino(), entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Disk {
        dir: tempfile::TempDir,
        inode: u64,
        journal: Vec<u8>,
    }

    impl Disk {
        /// With one file, which holds `text`.
        fn with(text: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("root")).unwrap();
            let file = dir.path().join("root/f");
            fs::write(&file, text).unwrap();
            let inode = fs::metadata(file).unwrap().ino();
            Self {
                dir,
                inode,
                journal: Vec::new(),
            }
        }

        fn record(&mut self, numbers: [u64; 5], bytes: &[u8]) {
            let [kind, offset, length_before, written, all] = numbers;
            for n in [kind, self.inode, offset, length_before, written, all] {
                self.journal.extend(n.to_ne_bytes());
            }
            self.journal.extend(bytes);
        }

        fn change(&mut self, offset: u64, length_before: u64, written: u64, before: &str) {
            let all = before.len() as u64;
            self.record(
                [CHANGE, offset, length_before, written, all],
                before.as_bytes(),
            );
        }

        fn flush(&mut self, covered: usize) {
            self.record([FLUSH, covered as u64, 0, 0, 0], b"");
        }

        fn lose(&self, survivors: Option<Random>) -> (Loss, String) {
            let journal = self.dir.path().join("journal");
            fs::write(&journal, &self.journal).unwrap();
            let root = self.dir.path().join("root");
            let loss = lose(&journal, &root, survivors).unwrap();
            assert_eq!(fs::metadata(&journal).unwrap().len(), 0);
            (loss, fs::read_to_string(root.join("f")).unwrap())
        }
    }

    #[test]
    fn what_was_written_over_and_appended_is_taken_back() {
        let mut disk = Disk::with("abXYefGH");
        disk.change(2, 6, 2, "cd"); // abcdef -> abXYef
        disk.change(6, 6, 2, ""); // abXYef -> abXYefGH
        let (loss, text) = disk.lose(None);
        assert_eq!((loss.changes, text.as_str()), (2, "abcdef"));
    }

    #[test]
    fn what_a_flush_covers_stays_and_a_torn_record_is_none() {
        let mut disk = Disk::with("abXYefGH");
        disk.change(2, 6, 2, "cd");
        let covered = disk.journal.len();
        disk.change(6, 6, 2, "");
        disk.flush(covered);
        disk.change(0, 8, 1, "?");
        disk.journal.pop();
        assert_eq!(disk.lose(None).1, "abXYef");
    }

    #[test]
    fn a_cut_off_end_comes_back() {
        let mut disk = Disk::with("ab");
        disk.change(2, 5, 0, "cde");
        assert_eq!(disk.lose(None).1, "abcde");
    }

    #[test]
    fn a_change_may_survive_in_part() {
        let file = File::options();
        let disk = Disk::with(&"x".repeat(1500));
        let path = disk.dir.path().join("root/f");
        let change = Change {
            inode: disk.inode,
            offset: 0,
            length_before: 1000,
            written: 1500,
            bytes_before: &[b'o'; 1000],
        };
        let open = || file.clone().write(true).open(&path).unwrap();
        take_back(&open(), &change, 512).unwrap();
        let expected = "x".repeat(512) + &"o".repeat(488);
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        fs::write(&path, "x".repeat(1500)).unwrap();
        take_back(&open(), &change, 1024).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "x".repeat(1024));
    }

    #[test]
    fn of_the_survivors_the_first_come_first() {
        let mut disk = Disk::with("1234");
        for i in 0..4 {
            disk.change(i, i, 1, "");
        }
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..40 {
            fs::write(disk.dir.path().join("root/f"), "1234").unwrap();
            seen.insert(disk.lose(Some(Random::new(seed))).1);
        }
        let all: Vec<&str> = seen.iter().map(String::as_str).collect();
        assert_eq!(all, ["", "1", "12", "123", "1234"]);
    }
}
