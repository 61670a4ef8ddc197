//! `grastate.dat`: the database's position, in Galera's file and format, which the suites and users know.
//!
//! While a node runs, the file never holds a seqno, so that after a crash the position can only come from the storage
//! engine. The byte format is in docs/state-files.md.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use trireme_wsrep_abi::{Gtid, SEQNO_UNDEFINED, Seqno, Uuid};

/// Name of the file in `base_dir`.
pub const FILE_NAME: &str = "grastate.dat";

/// Limit of a read, above the size of any valid file.
const READ_LIMIT_BYTES: u64 = 64 * 1024;

/// An error of reading or writing the file.
#[derive(Debug, thiserror::Error)]
#[error("state file '{}': {source}; check its owner and mode, and the free space there", path.display())]
pub struct GrastateError {
    path: PathBuf,
    source: io::Error,
}

/// The file at the time of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file, which was read.
    State,
    /// No file, or an empty one; the position is unknown and bootstrapping is safe.
    Nothing,
    /// Another process holds the file's lock, so it was not read: a server runs on this data directory already.
    LockedByOther,
}

/// The saved state, with the rules for its writes to disk.
#[derive(Debug)]
pub struct Grastate {
    path: PathBuf,
    /// `None` if another process holds the lock.
    file: Option<File>,
    /// Length of the file now, in bytes: a shorter text is padded to it.
    file_len_bytes: usize,
    /// The last written text: an unchanged state costs no flush.
    written: String,
    position: Gtid,
    safe_to_bootstrap: bool,
    /// There was a file, and it contained no history.
    says_unknown: bool,
    /// Number of running actions that a crash would leave half-done.
    unsafe_count: u32,
    corrupt: bool,
}

impl Grastate {
    /// Opens or creates the file in `dir`, locks it and reads it. The lock lasts as long as the value, and as long as
    /// nothing else in this process opens and closes the same file (POSIX locks are per process).
    pub fn open(dir: &Path) -> Result<(Grastate, Found), GrastateError> {
        let path = dir.join(FILE_NAME);
        let fail = |source| GrastateError {
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o660)
            .open(&path)
            .map_err(fail)?;
        let mut state = Grastate {
            path: path.clone(),
            file: None,
            file_len_bytes: 0,
            written: String::new(),
            position: Gtid::UNDEFINED,
            safe_to_bootstrap: true,
            says_unknown: false,
            unsafe_count: 0,
            corrupt: false,
        };
        if !try_lock(&file).map_err(fail)? {
            return Ok((state, Found::LockedByOther));
        }
        let mut bytes = Vec::new();
        Read::by_ref(&mut file)
            .take(READ_LIMIT_BYTES)
            .read_to_end(&mut bytes)
            .map_err(fail)?;
        state.file_len_bytes = usize::try_from(file.metadata().map_err(fail)?.len())
            .map_err(|e| fail(io::Error::other(e)))?;
        state.file = Some(file);
        if bytes.is_empty() {
            return Ok((state, Found::Nothing));
        }
        (state.position, state.safe_to_bootstrap) = parse(&String::from_utf8_lossy(&bytes));
        state.says_unknown = state.position.uuid == Gtid::UNDEFINED.uuid;
        Ok((state, Found::State))
    }

    /// Returns the saved position: nil and -1 if unknown.
    pub fn position(&self) -> Gtid {
        self.position
    }

    /// Returns true if the file said that the position is unknown, or says so since [`Grastate::mark_corrupt`]; a missing
    /// file only says nothing.
    pub fn says_unknown(&self) -> bool {
        self.says_unknown
    }

    /// Returns true if there was no file, or an empty one, and nothing has been saved since: an operator who removes
    /// the file allows that the data be replaced.
    pub fn says_nothing(&self) -> bool {
        !self.says_unknown && self.position.uuid == Gtid::UNDEFINED.uuid
    }

    /// Returns true if the node may start a new cluster from this state.
    pub fn safe_to_bootstrap(&self) -> bool {
        self.safe_to_bootstrap
    }

    /// Saves a position: seqno -1 while running, the real one on a clean stop or a pause. Only kept in memory while an
    /// unsafe action runs, and ignored while the state is corrupt.
    pub fn set(
        &mut self,
        uuid: Uuid,
        seqno: Seqno,
        safe_to_bootstrap: bool,
    ) -> Result<(), GrastateError> {
        if self.corrupt {
            return Ok(());
        }
        self.position = Gtid { uuid, seqno };
        self.safe_to_bootstrap = safe_to_bootstrap;
        if self.unsafe_count > 0 {
            Ok(())
        } else {
            self.write(self.position)
        }
    }

    /// Takes out a seqno that the database's position, `local`, refutes: the machine lost power after the seqno was saved,
    /// and the database had not flushed that far. This process may end before it saves another one, and a process that is
    /// started without its position would rely on the file.
    pub fn refute(&mut self, local: Gtid) -> Result<(), GrastateError> {
        let saved = self.position;
        if saved.uuid != local.uuid || saved.seqno < 0 || saved.seqno == local.seqno {
            return Ok(());
        }
        self.set(saved.uuid, -1, self.safe_to_bootstrap)
    }

    /// Notes that an action begins that a crash would leave half-done (DDL, a state transfer): until the matching
    /// [`Grastate::mark_safe`] the file holds no position. Counted.
    pub fn mark_unsafe(&mut self) -> Result<(), GrastateError> {
        self.unsafe_count += 1;
        if self.unsafe_count == 1 {
            self.write(Gtid::UNDEFINED)
        } else {
            Ok(())
        }
    }

    /// Ends an action of [`Grastate::mark_unsafe`]. After the last one the file gets its history back, without a seqno
    /// since the node still runs.
    pub fn mark_safe(&mut self) -> Result<(), GrastateError> {
        let was_last = self.unsafe_count == 1;
        self.unsafe_count = self.unsafe_count.saturating_sub(1);
        if was_last && !self.corrupt {
            return self.write(Gtid {
                uuid: self.position.uuid,
                seqno: SEQNO_UNDEFINED,
            });
        }
        Ok(())
    }

    /// Marks the state as wrong (inconsistency): no position is saved until [`Grastate::mark_uncorrupt`].
    pub fn mark_corrupt(&mut self) -> Result<(), GrastateError> {
        self.corrupt = true;
        self.says_unknown = true;
        self.position = Gtid::UNDEFINED;
        self.write(Gtid::UNDEFINED)
    }

    /// Notes that a whole SST replaces the state: positions are saved again from the next [`Grastate::set`] on.
    pub fn mark_uncorrupt(&mut self) {
        self.corrupt = false;
    }

    /// Overwrites the file in place and flushes it. The text fits into one disk sector, so the write cannot be torn.
    fn write(&mut self, position: Gtid) -> Result<(), GrastateError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut text = format(position, self.safe_to_bootstrap);
        if self.written.trim_end() == text.trim_end() {
            return Ok(());
        }
        // Blanks hide the rest of a longer text; readers skip them.
        while text.len() < self.file_len_bytes {
            text.push(' ');
        }
        // After a failure the content of the file is unknown.
        self.written.clear();
        let mut write = || {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|source| GrastateError {
            path: self.path.clone(),
            source,
        })?;
        self.file_len_bytes = text.len();
        self.written = text;
        Ok(())
    }
}

/// Returns the text of the file.
fn format(position: Gtid, safe_to_bootstrap: bool) -> String {
    format!(
        "# GALERA saved state\nversion: 2.1\nuuid:    {}\nseqno:   {}\nsafe_to_bootstrap: {}\n",
        position.uuid,
        position.seqno,
        u8::from(safe_to_bootstrap)
    )
}

/// Reads the text of the file. Unknown lines are skipped, a bad UUID is nil, and a bad seqno is -1. For
/// `safe_to_bootstrap`, any value other than 0 or 1 means "not safe".
fn parse(text: &str) -> (Gtid, bool) {
    let mut position = Gtid::UNDEFINED;
    let mut safe_to_bootstrap = true;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let key = words.next().unwrap_or("");
        let value = words.next().unwrap_or("");
        match key {
            "uuid:" => position.uuid = value.parse().unwrap_or(Uuid::NIL),
            "seqno:" => position.seqno = value.parse().unwrap_or(SEQNO_UNDEFINED),
            "safe_to_bootstrap:" => safe_to_bootstrap = value == "1",
            _ => {}
        }
    }
    if position.uuid.is_nil() {
        position.seqno = SEQNO_UNDEFINED;
    }
    (position, safe_to_bootstrap)
}

/// Takes Galera's lock: `fcntl` F_WRLCK on the whole file. Returns `false` if another process has it.
fn try_lock(file: &File) -> io::Result<bool> {
    // SAFETY: all-zero is a valid `flock`; it then means the whole file.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // F_WRLCK and SEEK_SET are small constants; the struct has short fields.
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is open and the struct outlives the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &lock) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EAGAIN) => Ok(false),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests;
