//! The evidence on a node without SQL: its data directory, its error log, and this machine's /proc.

use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error_log::is_start;
use crate::local::{LogFiles, end_of, file_names, journal, log_files, replica, small};
use rustix::fs::{major, minor};
use trireme_agent::state_file;
use trireme_node::state_file::StateFile;

/// The most bytes to read from the end of an error log.
const MAX_LOG_BYTES: u64 = 1 << 20;
/// A volume with fewer free bytes is full.
pub(super) const FULL_BYTES: u64 = 2 << 20;
/// The data directory of Debian's server, whose error log is in /var/log/mysql, or in the journal of its unit.
const SYSTEM_DATADIR: &str = "/var/lib/mysql";
const UNIT: &str = "mariadb";
/// `f_type` of overlayfs and btrfs.
const DEVICE_HIDERS: [i64; 2] = [0x794c_7630, 0x9123_683e];
/// The most lines to read of the journal.
const MAX_JOURNAL_LINES: u32 = 200;

/// All evidence about a node.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) state: Option<StateFile>,
    /// The age of the state file in ms, by the file system's clock, because the node's own clock may be wrong.
    pub(super) state_age_ms: u64,
    /// The reason why the state file cannot be used.
    pub(super) unreadable: Option<String>,
    pub(super) server: Server,
    pub(super) saved: Option<Saved>,
    pub(super) replica: Option<String>,
    /// The files of the write-set log; None if its directory is unknown or cannot be read.
    pub(super) log: Option<LogFiles>,
    pub(super) free_bytes: Option<u64>,
    /// Whether an error log was found and read.
    pub(super) has_error_log: bool,
    /// The last line of the error log that explains a wait, and the last error.
    pub(super) told: Told,
}

/// The server's process on the data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Server {
    /// No process uses the directory.
    #[default]
    Down,
    /// The process with this id runs.
    Up(u32),
    /// A signal (SIGSTOP) has stopped the process with this id.
    Paused(u32),
    /// It is unknown: the file system shows no locks.
    Unknown,
}

/// The content of `grastate.dat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    pub(super) uuid: String,
    pub(super) seqno: i64,
    pub(super) safe_to_bootstrap: bool,
}

impl Saved {
    /// Returns true if this node stopped last of all. A joiner within its first state transfer writes the same flag, and
    /// no history.
    pub(super) fn left_last(&self) -> bool {
        let has_history = self.uuid.chars().any(|c| c.is_ascii_hexdigit() && c != '0');
        self.safe_to_bootstrap && has_history
    }
}

/// The telling lines of the error log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) wait: Option<String>,
    pub(super) error: Option<String>,
}

/// Examines a data directory. Fails if it cannot be read.
pub(super) fn collect(dir: &Path, error_log: Option<&Path>) -> std::io::Result<Evidence> {
    let names = file_names(dir)?;
    let (state, unreadable) = match state_file::read(dir) {
        Ok(state) => (state, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let error_log = match error_log
        .map(Path::to_owned)
        .or_else(|| usual_error_log(dir, &names))
    {
        Some(file) => end_of(&file, MAX_LOG_BYTES),
        None if dir == Path::new(SYSTEM_DATADIR) => journal(UNIT, MAX_JOURNAL_LINES),
        None => None,
    };
    Ok(Evidence {
        state_age_ms: state_file::age_ms(dir).unwrap_or(0),
        server: server(dir, state.as_ref()),
        log: write_set_log(dir, &names, state.as_ref()),
        state,
        unreadable,
        saved: small(&dir.join("grastate.dat")).map(|text| saved(&text)),
        replica: replica(dir).ok().flatten(),
        free_bytes: rustix::fs::statvfs(dir)
            .ok()
            .map(|volume| volume.f_bavail * volume.f_frsize),
        has_error_log: error_log.is_some(),
        told: error_log.map(|text| told(&text)).unwrap_or_default(),
    })
}

/// Finds the log's files in the directory that the node tells. An older library tells none: then only files that are
/// here count, because the log may lie elsewhere.
fn write_set_log(dir: &Path, names: &[String], state: Option<&StateFile>) -> Option<LogFiles> {
    match state.and_then(|state| state.node.log_dir.as_deref()) {
        Some(log_dir) => {
            let log_dir = dir.join(log_dir);
            let names = file_names(&log_dir).ok()?;
            Some(log_files(&log_dir, &names))
        }
        None => Some(log_files(dir, names)).filter(|files| files.segments > 0),
    }
}

/// The error log's usual place, for a server whose configuration names none.
fn usual_error_log(dir: &Path, names: &[String]) -> Option<PathBuf> {
    let beside = dir.parent().map(|parent| parent.join("error.log"));
    let own = names
        .iter()
        .find(|name| name.ends_with(".err"))
        .map(|name| dir.join(name));
    let system = [
        PathBuf::from("/var/log/mysql/error.log"),
        PathBuf::from("/var/log/mysql.err"),
    ];
    let system = system
        .into_iter()
        .filter(|_| dir == Path::new(SYSTEM_DATADIR));
    own.into_iter()
        .chain(beside)
        .chain(system)
        .find(|path| path.is_file())
}

/// Finds the process that holds the lock of `grastate.dat`, or else the live process that wrote the state file.
fn server(dir: &Path, state: Option<&StateFile>) -> Server {
    let by_lock = fs::metadata(dir.join("grastate.dat"))
        .ok()
        .and_then(|file| {
            let locks = small(Path::new("/proc/locks"))?;
            let owns = |lock: &Lock| is_of(lock, &file, dir);
            Some(write_locks(&locks).find(owns).map(|lock| lock.pid))
        });
    let pid = match (by_lock, state) {
        (Some(Some(pid)), _) => Some(pid),
        (_, Some(state)) if state.process.pid > 0 && is_server(state.process.pid) => {
            Some(state.process.pid)
        }
        (Some(None), _) => None,
        (None, Some(_)) => None,
        (None, None) => return Server::Unknown,
    };
    match pid {
        None => Server::Down,
        Some(pid) if process_state(pid) == Some('T') => Server::Paused(pid),
        Some(pid) => Server::Up(pid),
    }
}

/// A process's lock of a file.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    pid: u32,
    /// Major and minor number of the file system's device.
    device: (u32, u32),
    inode: u64,
}

/// Parses lines `1: POSIX  ADVISORY  WRITE 4711 08:01:12345 0 EOF`, whose devices have hexadecimal digits.
fn write_locks(locks: &str) -> impl Iterator<Item = Lock> {
    locks.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, place, ..] = words[..] else {
            return None;
        };
        let mut place = place.split(':');
        let mut number = || u32::from_str_radix(place.next()?, 16).ok();
        Some(Lock {
            device: (number()?, number()?),
            inode: place.next()?.parse().ok()?,
            pid: pid.parse().ok()?,
        })
    })
}

/// Whether a lock is of this file in `dir`. Files of other devices have the same inode number; some file systems show
/// another device for a file than for its lock. There, the server is known by its working directory: its data directory.
fn is_of(lock: &Lock, file: &Metadata, dir: &Path) -> bool {
    if lock.inode != file.ino() {
        return false;
    }
    if lock.device == (major(file.dev()), minor(file.dev())) {
        return true;
    }
    let place = |path: &Path| fs::metadata(path).map(|at| (at.dev(), at.ino()));
    let working_dir = PathBuf::from(format!("/proc/{}/cwd", lock.pid));
    match (place(&working_dir), place(dir)) {
        (Ok(working_dir), Ok(dir)) => working_dir == dir,
        // Only root and the server's user may see it.
        _ => hides_devices(dir),
    }
}

/// Whether the file system shows another device for a file than for its lock.
fn hides_devices(dir: &Path) -> bool {
    #[allow(clippy::unnecessary_cast)] // its type depends on the platform
    let kind = rustix::fs::statfs(dir).map(|found| found.f_type as i64);
    kind.is_ok_and(|kind| DEVICE_HIDERS.contains(&kind))
}

fn is_server(pid: u32) -> bool {
    let name = small(Path::new(&format!("/proc/{pid}/comm"))).unwrap_or_default();
    name.contains("mariadbd") || name.contains("mysqld")
}

fn process_state(pid: u32) -> Option<char> {
    let mut stat = String::new();
    fs::File::open(format!("/proc/{pid}/stat"))
        .ok()?
        .take(4096)
        .read_to_string(&mut stat)
        .ok()?;
    // The name, in brackets, may have any characters.
    stat[stat.rfind(')')? + 1..].trim_start().chars().next()
}

pub(super) fn saved(text: &str) -> Saved {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.map(|rest| rest.trim().to_owned()).unwrap_or_default()
    };
    Saved {
        uuid: value("uuid:"),
        seqno: value("seqno:").parse().unwrap_or(-1),
        safe_to_bootstrap: value("safe_to_bootstrap:") == "1",
    }
}

/// Reads the lines since the last start in the log.
pub(super) fn told(log: &str) -> Told {
    let mut told = Told::default();
    let waits = [
        "waiting for a majority",
        "waits for",
        "waiting for",
        "to found the cluster",
        "no donor",
        "catching up",
        "has not ended for",
    ];
    for line in log.lines() {
        if is_start(line) {
            told = Told::default();
        }
        let Some((_, text)) = line.split_once("] ") else {
            continue;
        };
        if line.contains("[ERROR]") {
            told.error = Some(text.to_owned());
        }
        if let Some(text) = text.strip_prefix("WSREP: ") {
            if text.contains("Synchronized with group") || text.contains("joined -> synced") {
                told.wait = None;
            } else if waits.iter().any(|word| text.contains(word)) {
                told.wait = Some(text.to_owned());
            }
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_read() {
        let locks = "1: FLOCK  ADVISORY  WRITE 7 08:01:55 0 EOF\n2: POSIX  ADVISORY  WRITE 4711 00:2d:55 0 EOF\n2: -> POSIX x\n";
        let expected = Lock {
            pid: 4711,
            device: (0, 0x2d),
            inode: 55,
        };
        assert_eq!(write_locks(locks).collect::<Vec<_>>(), [expected]);
        assert_eq!(write_locks("nonsense").count(), 0);
    }

    /// Two file systems have files with the same inode number.
    #[test]
    fn a_lock_of_another_device_is_anothers() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("grastate.dat");
        fs::write(&path, "").unwrap();
        let file = fs::metadata(&path).unwrap();
        let own = Lock {
            pid: std::process::id(),
            device: (major(file.dev()), minor(file.dev())),
            inode: file.ino(),
        };
        assert!(is_of(&own, &file, temp.path()));
        let inode = file.ino() + 1;
        assert!(!is_of(&Lock { inode, ..own }, &file, temp.path()));
        let elsewhere = Lock {
            device: (0xfff, 0),
            ..own
        };
        assert!(!is_of(&elsewhere, &file, temp.path()));
        // This process works in another directory, as a server whose file system hides the device works in its own.
        let working_dir = std::env::current_dir().unwrap();
        assert!(is_of(&elsewhere, &file, &working_dir));
        let ended = Lock {
            pid: u32::MAX,
            ..elsewhere
        };
        assert_eq!(
            is_of(&ended, &file, temp.path()),
            hides_devices(temp.path())
        );
    }

    #[test]
    fn grastate_is_read_as_the_node_reads_it() {
        let text =
            "# GALERA saved state\nversion: 2.1\nuuid:    3b1c\nseqno:   7\nsafe_to_bootstrap: 1\n";
        assert_eq!(
            saved(text),
            Saved {
                uuid: "3b1c".to_owned(),
                seqno: 7,
                safe_to_bootstrap: true
            }
        );
        assert_eq!(saved("").seqno, -1);
    }

    #[test]
    fn the_last_start_of_an_error_log_counts() {
        let log = "2026-11-25 [ERROR] WSREP: old\n\
                   2026-11-25 0 [Note] Starting MariaDB 10.11.19-MariaDB-0+deb12u1 as process 7\n\
                   2026-11-25 0 [Note] WSREP: waiting for a majority of the last view: missing are n2\n\
                   2026-11-25 0 [ERROR] WSREP: disk is full\n";
        let found = told(log);
        assert_eq!(
            found.wait.as_deref(),
            Some("waiting for a majority of the last view: missing are n2")
        );
        assert_eq!(found.error.as_deref(), Some("WSREP: disk is full"));
        let synced = format!("{log}2026-11-25 0 [Note] WSREP: Synchronized with group, ready\n");
        assert_eq!(told(&synced).wait, None);
    }

    #[test]
    fn a_directory_without_files_is_no_server() {
        let temp = tempfile::tempdir().unwrap();
        let found = collect(temp.path(), None).unwrap();
        assert_eq!(found.server, Server::Unknown);
        assert!(found.log.is_none() && found.saved.is_none());
        assert!(collect(Path::new("/nonexistent"), None).is_err());
    }

    #[test]
    fn the_log_is_looked_for_where_the_node_has_it() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, log_dir) = (temp.path().join("data"), temp.path().join("log"));
        for dir in [&dir, &log_dir] {
            fs::create_dir(dir).unwrap();
        }
        let segments = |told: Option<&str>| {
            let mut state = StateFile::default();
            state.node.log_dir = told.map(str::to_owned);
            fs::write(dir.join("trireme-state.json"), state.encode()).unwrap();
            let log = collect(&dir, None).unwrap().log;
            log.map(|log| (log.segments, log.bytes))
        };
        let there = log_dir.to_str().unwrap();
        assert_eq!(segments(Some(there)), Some((0, 0)));
        fs::write(log_dir.join("trireme-000000000001.log"), "12345").unwrap();
        assert_eq!(segments(Some(there)), Some((1, 5)));
        assert_eq!(segments(Some("/nonexistent")), None);
        assert_eq!(segments(Some(".")), Some((0, 0)));
        assert_eq!(segments(None), None, "an older library");
        fs::write(dir.join("trireme-000000000001.log"), "1234").unwrap();
        assert_eq!(segments(None), Some((1, 4)));
    }
}
