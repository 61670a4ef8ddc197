//! An arbitrator's log: lines go to standard error, to a file, or to the system's log. A line that cannot be written is
//! lost.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use trireme_node::{LINE_BYTES_MAX, one_line};
use trireme_replicator::Level;

/// The socket of the system's log.
const SYSLOG: &str = "/dev/log";
/// The syslog facility `daemon`.
const DAEMON: u8 = 3;

/// The reason why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be opened.
    #[error("log '{}': {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The system's log does not answer.
    #[error("the system's log does not listen at {SYSLOG}: {0} (--log FILE writes to a file)")]
    Syslog(io::Error),
}

/// The place where lines go.
#[derive(Debug)]
enum Target {
    /// Standard error.
    Stderr,
    /// A file, appended to.
    File { file: File, path: PathBuf },
    /// The system's log, at this path.
    Syslog { socket: UnixDatagram, path: PathBuf },
}

/// The log. Lines that cannot be written are lost.
#[derive(Debug)]
pub struct Log {
    target: Target,
    debug: bool,
}

impl Log {
    /// A log to standard error.
    pub fn to_stderr() -> Log {
        Log::to(Target::Stderr)
    }

    /// A log to the end of this file, which is made if it does not exist.
    pub fn to_file(path: &Path) -> Result<Log, LogError> {
        let (file, path) = (open(path)?, path.to_owned());
        Ok(Log::to(Target::File { file, path }))
    }

    /// A log to the system's log.
    pub fn to_syslog() -> Result<Log, LogError> {
        Log::to_socket(Path::new(SYSLOG))
    }

    fn to_socket(path: &Path) -> Result<Log, LogError> {
        let socket = UnixDatagram::unbound().and_then(|socket| {
            socket.connect(path)?;
            // A full socket loses the line: the arbitrator must not wait for it.
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let (socket, path) = (socket.map_err(LogError::Syslog)?, path.to_owned());
        Ok(Log::to(Target::Syslog { socket, path }))
    }

    /// Opens the file of the log again: its name may be another file's since (logrotate). On an error lines still go to
    /// the file before.
    pub fn reopen(&mut self) -> Result<(), LogError> {
        if let Target::File { file, path } = &mut self.target {
            *file = open(path)?;
        }
        Ok(())
    }

    fn to(target: Target) -> Log {
        let debug = false;
        Log { target, debug }
    }

    /// Turns debug lines on or off (option `debug`).
    pub fn set_debug(&mut self, on: bool) {
        self.debug = on;
    }

    /// Writes a line. The text may hold any character: peers choose parts of it.
    pub fn line(&self, level: Level, text: &str) {
        let (name, severity) = match level {
            Level::Error => ("ERROR", 3),
            Level::Warn => ("WARN", 4),
            Level::Info => ("INFO", 6),
            Level::Debug if self.debug => ("DEBUG", 7),
            Level::Debug => return,
        };
        let text = one_line(text, LINE_BYTES_MAX);
        // A failed write is ignored: it must not stop a member that votes.
        let _ = match &self.target {
            Target::Stderr => writeln!(io::stderr(), "{} {name}: {text}", now()),
            Target::File { file, .. } => {
                let mut file = file;
                file.write_all(format!("{} {name}: {text}\n", now()).as_bytes())
            }
            Target::Syslog { socket, path } => {
                let (priority, pid) = (DAEMON * 8 + severity, std::process::id());
                let line = format!("<{priority}>trireme-arbitrator[{pid}]: {text}");
                let send = || socket.send(line.as_bytes()).map(drop);
                // A restart of the system's log makes another socket at the same path.
                send().or_else(|_| socket.connect(path).and_then(|()| send()))
            }
        };
    }
}

fn open(path: &Path) -> Result<File, LogError> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.map_err(|source| LogError::File {
        path: path.to_owned(),
        source,
    })
}

fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    utc(since.as_secs(), since.subsec_millis())
}

/// Formats a time in UTC, as in `2026-11-21 23:30:05.123Z`. The date is by Howard Hinnant's `civil_from_days`.
fn utc(seconds: u64, ms: u32) -> String {
    let (days, of_day) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hours, minutes, seconds) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_people_write_them() {
        assert_eq!(utc(0, 7), "1970-01-01 00:00:00.007Z");
        assert_eq!(utc(951_827_696, 0), "2000-02-29 12:34:56.000Z");
        assert_eq!(utc(1_795_303_805, 999), "2026-11-21 23:30:05.999Z");
        assert_eq!(utc(4_107_542_399, 0), "2100-02-28 23:59:59.000Z");
        assert_eq!(utc(4_107_542_400, 0), "2100-03-01 00:00:00.000Z");
    }

    #[test]
    fn a_file_is_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("arbitrator.log");
        for text in ["one", "two"] {
            let mut log = Log::to_file(&path).unwrap();
            log.line(Level::Warn, text);
            log.line(Level::Debug, "unseen");
            log.set_debug(true);
            log.line(Level::Debug, "seen");
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().map(|line| &line[25..]).collect();
        assert_eq!(
            lines,
            ["WARN: one", "DEBUG: seen", "WARN: two", "DEBUG: seen"]
        );
        let hostile = dir.path().join("hostile.log");
        let name = "n1\n2026-11-23 00:00:00.000Z ERROR: all is lost\x1b[2J";
        Log::to_file(&hostile).unwrap().line(Level::Info, name);
        let text = std::fs::read_to_string(&hostile).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.ends_with("all is lost?[2J\n"), "{text}");
        let nowhere = Log::to_file(&dir.path().join("no/such/directory"));
        assert!(nowhere.unwrap_err().to_string().contains("no/such"));
    }

    #[test]
    fn the_systems_log_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let listener = UnixDatagram::bind(&path).unwrap();
        let log = Log::to_socket(&path).unwrap();
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        log.line(Level::Info, "nobody listens");
        for text in ["the first", "the second"] {
            let listener = UnixDatagram::bind(&path).unwrap();
            listener.set_nonblocking(true).unwrap();
            log.line(Level::Info, text);
            let mut line = [0; 100];
            let bytes = listener.recv(&mut line).unwrap();
            assert!(String::from_utf8_lossy(&line[..bytes]).ends_with(text));
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_file_that_was_renamed_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let [path, old] = ["arbitrator.log", "arbitrator.log.1"].map(|name| dir.path().join(name));
        let mut log = Log::to_file(&path).unwrap();
        log.line(Level::Info, "before");
        std::fs::rename(&path, &old).unwrap();
        log.reopen().unwrap();
        log.line(Level::Info, "behind");
        let texts = [&old, &path].map(|path| std::fs::read_to_string(path).unwrap());
        assert!(texts[0].ends_with("before\n") && texts[1].ends_with("behind\n"));
        assert!(!texts[1].contains("before"));
        // A file that cannot be opened stays as it is.
        std::fs::remove_dir_all(dir.path()).unwrap();
        assert!(log.reopen().is_err());
        log.line(Level::Info, "lost");
    }
}
