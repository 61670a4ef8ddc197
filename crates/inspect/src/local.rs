//! Reads files of this machine, with limits on their size.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;

/// The most bytes to read of a file in /proc or of `trireme.gvwstate.dat`.
const MAX_SMALL_BYTES: u64 = 1 << 20;
/// The most entries of a directory to read.
const MAX_ENTRIES: usize = 10_000;

/// The names in a directory, at most the first `MAX_ENTRIES`.
pub(crate) fn file_names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(dir)?.flatten().take(MAX_ENTRIES);
    Ok(entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect())
}

/// Reads a small text file, or the beginning of a large one.
pub(crate) fn small(file: &Path) -> Option<String> {
    read_small(file).ok()
}

fn read_small(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(file)?
        .take(MAX_SMALL_BYTES)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the last `max_bytes` of a file.
pub(crate) fn end_of(file: &Path, max_bytes: u64) -> Option<String> {
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut file = fs::File::open(file).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(max_bytes)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs a program for at most 5 s, and returns its output. None if it is not here, fails or prints nothing.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("timeout");
    let done = command.args(["5", program]).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    (done.status.success() && !text.is_empty()).then_some(text)
}

/// Reads the last lines that a unit of systemd has printed: a server's error log, if `log_error` is empty.
pub(crate) fn journal(unit: &str, lines: u32) -> Option<String> {
    let lines = lines.to_string();
    let arguments = ["-u", unit, "-n", &lines, "--no-pager", "-o", "cat", "-q"];
    output("journalctl", &arguments)
}

/// The files of a write-set log.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogFiles {
    pub(crate) segments: usize,
    pub(crate) bytes: u64,
    /// The names of damaged files that the log has set aside.
    pub(crate) damaged: Vec<String>,
}

/// Finds the log's files among the `names` in `dir` (docs/log-format.md).
pub(crate) fn log_files(dir: &Path, names: &[String]) -> LogFiles {
    let is_segment = |name: &&String| {
        let number = name
            .strip_prefix("trireme-")
            .and_then(|rest| rest.strip_suffix(".log"));
        number.is_some_and(|number| {
            number.len() == 12 && number.bytes().all(|digit| digit.is_ascii_digit())
        })
    };
    let is_damaged =
        |name: &&String| name.starts_with("trireme-damaged-") && name.ends_with(".log");
    let segments = names.iter().filter(is_segment);
    let sizes = (segments.clone()).filter_map(|name| fs::metadata(dir.join(name)).ok());
    LogFiles {
        segments: segments.count(),
        bytes: sizes.map(|file| file.len()).sum(),
        damaged: names.iter().filter(is_damaged).cloned().collect(),
    }
}

/// The replica id of a directory with a node's files; None if it has none. Fails if the file cannot be read.
pub(crate) fn replica(dir: &Path) -> io::Result<Option<String>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    let text = match read_small(&dir.join("trireme.gvwstate.dat")) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(None),
        Err(error) => return Err(error),
    };
    let line = text.lines().find_map(|line| line.strip_prefix("replica:"));
    Ok(line.map(|line| line.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_little_time() {
        assert_eq!(output("echo", &["x"]).as_deref(), Some("x\n"));
        assert_eq!(output("no-such-program-trireme", &[]), None);
        assert_eq!(output("sleep", &["60"]), None);
    }

    #[test]
    fn the_end_of_a_log_is_read() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("log");
        fs::write(&file, "0123456789").unwrap();
        assert_eq!(end_of(&file, 4).as_deref(), Some("6789"));
        assert_eq!(end_of(Path::new("/dev/zero"), 4), None);
        assert_eq!(end_of(temp.path(), 4), None);
    }
}
