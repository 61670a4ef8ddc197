//! `grastate.dat`: the database's position, in the file and the format that Galera, the suites and people know.
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

/// More than any honest file has; nothing beyond is read.
const READ_LIMIT_BYTES: u64 = 64 * 1024;

/// The file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("state file '{}': {source}", path.display())]
pub struct StateFileError {
    path: PathBuf,
    source: io::Error,
}

/// What was found when the file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file, which was read.
    State,
    /// No file, or an empty one; the position is unknown and bootstrapping is safe.
    Nothing,
    /// Another process holds the file's lock, so it was not read: taken for [`Found::Nothing`], as Galera does.
    /// Writes would be lost on the other process, so none are made.
    LockedByOther,
}

/// The saved state, and the rules for when it may be on disk.
#[derive(Debug)]
pub struct SavedState {
    path: PathBuf,
    /// `None` if somebody else holds the lock.
    file: Option<File>,
    /// Bytes in the file now: what a shorter text is padded to.
    file_len_bytes: usize,
    /// What was last written, so that an unchanged state costs no flush.
    written: String,
    position: Gtid,
    safe_to_bootstrap: bool,
    /// How many things go on that a crash would leave half-done.
    unsafe_count: u32,
    corrupt: bool,
}

impl SavedState {
    /// Opens or creates the file in `dir`, locks it and reads it. The lock lasts as long as the value, and as long as
    /// nothing else in this process opens and closes the same file (POSIX locks are per process).
    pub fn open(dir: &Path) -> Result<(SavedState, Found), StateFileError> {
        let path = dir.join(FILE_NAME);
        let fail = |source| StateFileError { path: path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o660)
            .open(&path)
            .map_err(fail)?;
        let mut state = SavedState {
            path: path.clone(),
            file: None,
            file_len_bytes: 0,
            written: String::new(),
            position: Gtid::UNDEFINED,
            safe_to_bootstrap: true,
            unsafe_count: 0,
            corrupt: false,
        };
        if !try_lock(&file).map_err(fail)? {
            return Ok((state, Found::LockedByOther));
        }
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take(READ_LIMIT_BYTES).read_to_end(&mut bytes).map_err(fail)?;
        state.file_len_bytes =
            usize::try_from(file.metadata().map_err(fail)?.len()).map_err(|e| fail(io::Error::other(e)))?;
        state.file = Some(file);
        if bytes.is_empty() {
            return Ok((state, Found::Nothing));
        }
        (state.position, state.safe_to_bootstrap) = parse(&String::from_utf8_lossy(&bytes));
        Ok((state, Found::State))
    }

    /// The saved position: nil and -1 if unknown.
    pub fn position(&self) -> Gtid {
        self.position
    }

    /// Whether the node may start a new cluster from this state.
    pub fn safe_to_bootstrap(&self) -> bool {
        self.safe_to_bootstrap
    }

    /// Whether the state is known to be wrong ([`SavedState::mark_corrupt`]).
    pub fn is_corrupt(&self) -> bool {
        self.corrupt
    }

    /// Saves a position: seqno -1 while running, the real one on a clean stop or a pause. Kept in memory only while
    /// something unsafe goes on, and ignored while the state is corrupt.
    pub fn set(&mut self, uuid: Uuid, seqno: Seqno, safe_to_bootstrap: bool) -> Result<(), StateFileError> {
        if self.corrupt {
            return Ok(());
        }
        self.position = Gtid { uuid, seqno };
        self.safe_to_bootstrap = safe_to_bootstrap;
        if self.unsafe_count > 0 { Ok(()) } else { self.write(self.position) }
    }

    /// Something begins that a crash would leave half-done (DDL, a state transfer): until the matching
    /// [`SavedState::mark_safe`] the file holds no position. Counted.
    pub fn mark_unsafe(&mut self) -> Result<(), StateFileError> {
        self.unsafe_count += 1;
        if self.unsafe_count == 1 { self.write(Gtid::UNDEFINED) } else { Ok(()) }
    }

    /// Ends what [`SavedState::mark_unsafe`] began. The file gets the history back, without a seqno since work goes on.
    pub fn mark_safe(&mut self) -> Result<(), StateFileError> {
        let was_last = self.unsafe_count == 1;
        self.unsafe_count = self.unsafe_count.saturating_sub(1);
        if was_last && !self.corrupt {
            return self.write(Gtid { uuid: self.position.uuid, seqno: SEQNO_UNDEFINED });
        }
        Ok(())
    }

    /// The state is wrong (inconsistency): no position is saved until [`SavedState::mark_uncorrupt`].
    pub fn mark_corrupt(&mut self) -> Result<(), StateFileError> {
        self.corrupt = true;
        self.position = Gtid::UNDEFINED;
        self.write(Gtid::UNDEFINED)
    }

    /// A whole snapshot replaced the state, at the given position; whatever was unsafe is over.
    pub fn mark_uncorrupt(&mut self, uuid: Uuid, seqno: Seqno) -> Result<(), StateFileError> {
        self.corrupt = false;
        self.unsafe_count = 0;
        self.position = Gtid { uuid, seqno };
        self.write(self.position)
    }

    /// Overwrites the file in place and flushes it. It fits into one disk sector, so a torn write is not to be feared.
    fn write(&mut self, position: Gtid) -> Result<(), StateFileError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut text = format(position, self.safe_to_bootstrap);
        if self.written.trim_end() == text.trim_end() {
            return Ok(());
        }
        // Blanks hide the tail of a longer text; readers skip them.
        while text.len() < self.file_len_bytes {
            text.push(' ');
        }
        // After a failure nobody knows what the file says.
        self.written.clear();
        let mut write = || {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|source| StateFileError { path: self.path.clone(), source })?;
        self.file_len_bytes = text.len();
        self.written = text;
        Ok(())
    }
}

/// The text of the file.
fn format(position: Gtid, safe_to_bootstrap: bool) -> String {
    format!(
        "# GALERA saved state\nversion: 2.1\nuuid:    {}\nseqno:   {}\nsafe_to_bootstrap: {}\n",
        position.uuid,
        position.seqno,
        u8::from(safe_to_bootstrap)
    )
}

/// Reads the text of the file: unknown lines are skipped, a bad UUID is nil, a bad seqno -1, and whoever wrote something
/// other than 0 or 1 for `safe_to_bootstrap` did not mean "safe".
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

/// Takes the lock that Galera takes: `fcntl` F_WRLCK on the whole file. `false` if another process has it.
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    const UUID: &str = "3b1c0f2e-0102-11ee-8b1c-00ff7f80a5c3";

    fn uuid() -> Uuid {
        UUID.parse().unwrap()
    }

    fn content(dir: &tempfile::TempDir) -> String {
        fs::read_to_string(dir.path().join(FILE_NAME)).unwrap()
    }

    fn open(dir: &tempfile::TempDir) -> (SavedState, Found) {
        SavedState::open(dir.path()).unwrap()
    }

    #[test]
    fn the_file_is_galeras_to_the_byte() {
        let dir = tempfile::tempdir().unwrap();
        let (mut state, found) = open(&dir);
        assert_eq!((found, state.position(), state.safe_to_bootstrap()), (Found::Nothing, Gtid::UNDEFINED, true));
        state.set(uuid(), 77, false).unwrap();
        let golden = format!(
            "# GALERA saved state\nversion: 2.1\nuuid:    {UUID}\nseqno:   77\nsafe_to_bootstrap: 0\n"
        );
        assert_eq!(content(&dir), golden);
        drop(state);
        let (state, found) = open(&dir);
        assert_eq!((found, state.position()), (Found::State, Gtid { uuid: uuid(), seqno: 77 }));
        assert!(!state.safe_to_bootstrap());
        // Opening alone writes nothing.
        assert_eq!(content(&dir), golden);
    }

    #[test]
    fn a_longer_file_is_padded_and_still_reads_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let long = format!("# edited by hand\nuuid: {UUID}\nseqno: 1234567890\nnonsense: 1\n{}\n", "#".repeat(100));
        fs::write(dir.path().join(FILE_NAME), &long).unwrap();
        let (mut state, _) = open(&dir);
        assert_eq!(state.position().seqno, 1_234_567_890);
        assert!(state.safe_to_bootstrap());
        state.set(uuid(), -1, true).unwrap();
        let text = content(&dir);
        assert_eq!(text.len(), long.len());
        assert!(text.trim_end().ends_with("safe_to_bootstrap: 1"));
        drop(state);
        assert_eq!(open(&dir).0.position(), Gtid { uuid: uuid(), seqno: -1 });
    }

    #[test]
    fn unsafe_sections_nest_and_hide_the_position() {
        let dir = tempfile::tempdir().unwrap();
        let (mut state, _) = open(&dir);
        state.set(uuid(), 5, true).unwrap();
        state.mark_unsafe().unwrap();
        let hidden = content(&dir);
        assert!(hidden.contains("uuid:    00000000-0000-0000-0000-000000000000\nseqno:   -1\n"));
        state.mark_unsafe().unwrap();
        state.set(uuid(), 6, false).unwrap();
        state.mark_safe().unwrap();
        assert_eq!(content(&dir), hidden);
        state.mark_safe().unwrap();
        // Running again: history known, no seqno.
        assert!(content(&dir).contains(&format!("uuid:    {UUID}\nseqno:   -1\nsafe_to_bootstrap: 0")));
        // One `mark_safe` too many must not make the next unsafe section invisible.
        state.mark_safe().unwrap();
        state.mark_unsafe().unwrap();
        assert!(content(&dir).contains("uuid:    0000"));
    }

    #[test]
    fn corruption_lasts_until_a_snapshot() {
        let dir = tempfile::tempdir().unwrap();
        let (mut state, _) = open(&dir);
        state.set(uuid(), -1, false).unwrap();
        state.mark_unsafe().unwrap();
        state.mark_corrupt().unwrap();
        state.set(uuid(), 9, true).unwrap();
        state.mark_safe().unwrap();
        assert!(state.is_corrupt());
        assert!(content(&dir).contains("uuid:    0000") && content(&dir).contains("safe_to_bootstrap: 0"));
        state.mark_uncorrupt(uuid(), 12).unwrap();
        assert!(content(&dir).contains(&format!("uuid:    {UUID}\nseqno:   12\n")));
        state.set(uuid(), -1, true).unwrap();
        assert!(content(&dir).contains("seqno:   -1") && content(&dir).contains("safe_to_bootstrap: 1"));
    }

    #[test]
    fn odd_content_is_read_cautiously() {
        let read = |text: &str| parse(text);
        assert_eq!(read(""), (Gtid::UNDEFINED, true));
        assert_eq!(read("uuid: x\nseqno: 7\nsafe_to_bootstrap: yes"), (Gtid::UNDEFINED, false));
        assert_eq!(read(&format!("uuid: {UUID}\nseqno: 1x\n")).0, Gtid { uuid: uuid(), seqno: -1 });
        assert_eq!(read("uuid:\nseqno:\nsafe_to_bootstrap:"), (Gtid::UNDEFINED, false));
        assert_eq!(read("safe_to_bootstrap:  1"), (Gtid::UNDEFINED, true));
    }

    #[test]
    fn a_file_locked_by_another_process_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let golden = format(Gtid { uuid: uuid(), seqno: 3 }, false);
        fs::write(&path, &golden).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut pipe = [0; 2];
        // SAFETY: an array of two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        // SAFETY: the child makes only async-signal-safe calls: fcntl, write, pause, _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let locked = matches!(try_lock(&file), Ok(true));
            // SAFETY: as above; the byte is on the stack.
            unsafe {
                libc::write(pipe[1], [u8::from(locked)].as_ptr().cast(), 1);
                libc::pause();
                libc::_exit(0);
            }
        }
        let mut byte = [0_u8];
        // SAFETY: one byte of room.
        assert_eq!(unsafe { libc::read(pipe[0], byte.as_mut_ptr().cast(), 1) }, 1);
        assert_eq!(byte, [1], "the child could not lock");

        let (mut state, found) = open(&dir);
        assert_eq!((found, state.position()), (Found::LockedByOther, Gtid::UNDEFINED));
        state.set(uuid(), 99, true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), golden);

        // SAFETY: our own child and our own descriptors.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
            libc::close(pipe[0]);
            libc::close(pipe[1]);
        }
        assert_eq!(open(&dir).1, Found::State);
    }

    #[test]
    fn a_missing_directory_is_an_error_that_names_the_file() {
        let error = SavedState::open(Path::new("/nonexistent-dir")).unwrap_err();
        assert!(error.to_string().starts_with("state file '/nonexistent-dir/grastate.dat': No such file"));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_written_is_read(bytes: [u8; 16], seqno in -1i64.., safe: bool) {
            let position = Gtid { uuid: Uuid { bytes }, seqno };
            prop_assume!(!position.uuid.is_nil());
            prop_assert_eq!(parse(&format(position, safe)), (position, safe));
        }
    }
}
