//! Observes by strace, from outside, the writes and flushes of a running server.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use trireme_testbed::interrupt;
use trireme_testbed::packages;
use trireme_testbed::process;

use super::error::LatencyError;

/// The time limit for strace to attach to all threads of a server, and to detach.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes that strace shows of a write; longer than any write of interest.
const WRITE_BYTES: usize = 8 << 20;

/// A running strace on one process. Dropping it ends strace; the process continues.
pub struct Strace {
    child: Child,
    dir: PathBuf,
}

impl Strace {
    /// Attaches to all threads of process `pid`. The output goes into `dir`, which is made.
    pub fn attach(pid: u32, dir: &Path) -> Result<Self, LatencyError> {
        let io_error = |source| LatencyError::Io {
            path: dir.to_path_buf(),
            source,
        };
        let strace = packages::find("strace", "strace")?;
        fs::create_dir_all(dir).map_err(io_error)?;
        let words = dir.join("words");
        // One file per thread, so that no line interrupts a call of another thread.
        let child = Command::new(strace)
            .args(["-ff", "-ttt", "-T", "-y", "-e", "signal=none"])
            .args(["-e", "trace=write,pwrite64,fsync,fdatasync"])
            .arg("-s")
            .arg(WRITE_BYTES.to_string())
            .arg("-o")
            .arg(dir.join("thread"))
            .arg("-p")
            .arg(pid.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&words).map_err(io_error)?)
            .spawn()
            .map_err(io_error)?;
        let mut strace = Self {
            child,
            dir: dir.to_path_buf(),
        };
        let began = Instant::now();
        loop {
            let said = fs::read_to_string(&words).unwrap_or_default();
            if said.contains(" attached") {
                return Ok(strace);
            }
            if strace.child.try_wait().map_err(io_error)?.is_some() || began.elapsed() > TIMEOUT {
                let first = said.lines().next().unwrap_or("no word").to_string();
                return Err(LatencyError::Strace(first));
            }
            interrupt::sleep(Duration::from_millis(20))?;
        }
    }

    /// Ends strace, and returns the calls on the files whose names are `chosen`.
    pub fn finish(mut self, chosen: fn(&str) -> bool) -> Result<Calls, LatencyError> {
        self.end();
        let io_error = |source| LatencyError::Io {
            path: self.dir.clone(),
            source,
        };
        let mut calls = Calls::default();
        for entry in fs::read_dir(&self.dir).map_err(io_error)? {
            let path = entry.map_err(io_error)?.path();
            if path.file_stem().is_some_and(|stem| stem == "thread") {
                let file = File::open(&path).map_err(io_error)?;
                calls.read(BufReader::new(file), chosen).map_err(io_error)?;
            }
        }
        Ok(calls)
    }

    fn end(&mut self) {
        let began = Instant::now();
        // strace then detaches from the server and writes its buffered output.
        let _ = process::signal(self.child.id(), Signal::TERM);
        while matches!(self.child.try_wait(), Ok(None)) {
            if began.elapsed() > TIMEOUT {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

/// A write to a file. Times are microseconds since 1970.
struct Write {
    file: String,
    end_us: u64,
    /// The bytes as strace shows them: printable characters are unchanged.
    bytes: String,
}

/// A flush of a file.
struct Flush {
    file: String,
    begin_us: u64,
    end_us: u64,
}

/// The writes and flushes of one server.
#[derive(Default)]
pub struct Calls {
    writes: Vec<Write>,
    flushes: Vec<Flush>,
}

impl Calls {
    /// The number of flushes.
    pub fn flushes(&self) -> usize {
        self.flushes.len()
    }

    /// For each of `marks`, which all have the same `prefix` and length: the end of the first flush that began after
    /// the mark was written. None if there was no such flush.
    pub fn flushed_us(&self, prefix: &str, marks: &[String]) -> Vec<Option<u64>> {
        let mut written: std::collections::HashMap<&str, &Write> = std::collections::HashMap::new();
        let length = marks.first().map_or(prefix.len(), String::len);
        for write in &self.writes {
            for (at, _) in write.bytes.match_indices(prefix) {
                let Some(mark) = write.bytes.get(at..at + length) else {
                    continue;
                };
                let first = written.entry(mark).or_insert(write);
                if write.end_us < first.end_us {
                    *first = write;
                }
            }
        }
        let flushed = |mark: &String| {
            let write = written.get(mark.as_str())?;
            let covering = self.flushes.iter();
            covering
                .filter(|flush| flush.file == write.file && flush.begin_us >= write.end_us)
                .map(|flush| flush.end_us)
                .min()
        };
        marks.iter().map(flushed).collect()
    }

    fn read(&mut self, lines: impl BufRead, chosen: fn(&str) -> bool) -> io::Result<()> {
        for line in lines.lines() {
            self.take(&line?, chosen);
        }
        Ok(())
    }

    /// Takes in a line such as `1700000000.000001 fdatasync(43</data/x.log>) = 0 <0.000200>`. Skips calls that failed,
    /// and calls on other files.
    fn take(&mut self, line: &str, chosen: fn(&str) -> bool) -> Option<()> {
        let (time, call) = line.split_once(' ')?;
        let (name, arguments) = call.split_once('(')?;
        let (_, arguments) = arguments.split_once('<')?;
        let (path, arguments) = arguments.split_once('>')?;
        let file = path.rsplit('/').next()?.to_string();
        if !chosen(&file) {
            return None;
        }
        let (rest, duration) = arguments.strip_suffix('>')?.rsplit_once(" <")?;
        let (rest, result) = rest.rsplit_once(" = ")?;
        let result: u64 = result.trim().parse().ok()?;
        let begin_us = micros(time)?;
        let end_us = begin_us + micros(duration)?;
        match name {
            "fsync" | "fdatasync" if result == 0 => self.flushes.push(Flush {
                file,
                begin_us,
                end_us,
            }),
            "write" | "pwrite64" => self.writes.push(Write {
                file,
                end_us,
                bytes: rest.to_string(),
            }),
            _ => {}
        }
        Some(())
    }
}

/// Parses a text such as `12.000345` as microseconds.
fn micros(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let fraction: u64 = (fraction.len() == 6)
        .then(|| fraction.parse().ok())
        .flatten()?;
    Some(seconds * 1_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(lines: &[&str]) -> Calls {
        let mut calls = Calls::default();
        let text = lines.join("\n");
        calls
            .read(text.as_bytes(), |name| name.ends_with(".log"))
            .unwrap();
        calls
    }

    fn flushed(lines: &[&str], mark: &str) -> Option<u64> {
        calls(lines).flushed_us("m-", &[mark.to_string()])[0]
    }

    const WRITE: &str =
        r#"10.000100 pwrite64(7</d/a.log>, "\1\0m-01\0m-02", 12, 128) = 12 <0.000010>"#;

    #[test]
    fn a_flush_counts_that_began_after_the_write() {
        let begun_before = "10.000105 fdatasync(7</d/a.log>) = 0 <0.000900>";
        let begun_after = "10.000110 fdatasync(7</d/a.log>) = 0 <0.002000>";
        assert_eq!(flushed(&[WRITE, begun_before], "m-01"), None);
        let lines = [WRITE, begun_before, begun_after];
        assert_eq!(flushed(&lines, "m-01"), Some(10_002_110));
        assert_eq!(flushed(&lines, "m-02"), Some(10_002_110));
        assert_eq!(flushed(&lines, "m-03"), None);
        assert_eq!(calls(&lines).flushes(), 2);
    }

    #[test]
    fn another_file_and_a_failed_flush_keep_nothing() {
        let other = "10.000200 fdatasync(8</d/b.log>) = 0 <0.000001>";
        let failed = "10.000200 fdatasync(7</d/a.log>) = -1 EIO (Input/output error) <0.000001>";
        let strange = "10.000200 fdatasync(9</d/ibdata1>) = 0 <0.000001>";
        let unfinished = "10.000200 fdatasync(7</d/a.log> <detached ...>";
        let lines = [WRITE, other, failed, strange, unfinished];
        assert_eq!(flushed(&lines, "m-01"), None);
        assert_eq!(calls(&lines).flushes(), 1);
    }

    #[test]
    fn of_two_writes_the_first_counts() {
        let again = r#"10.000300 pwrite64(7</d/a.log>, "m-01", 4, 500) = 4 <0.000010>"#;
        let flush = "10.000200 fdatasync(7</d/a.log>) = 0 <0.000050>";
        assert_eq!(flushed(&[again, WRITE, flush], "m-01"), Some(10_000_250));
    }
}
