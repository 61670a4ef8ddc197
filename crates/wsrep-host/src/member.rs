//! The calls of a provider into the application, which is this process.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trireme_wsrep_abi::Gtid;
use trireme_wsrep_abi::host::{Application, Applied, HostError};
use xxhash_rust::xxh3::xxh3_64;

use crate::sequence::Sequence;

/// First bytes of a state transfer request: the name of the method. The path of the joiner's file follows.
const METHOD: &[u8] = b"lab\0";

/// A member of the cluster; its only data is the sequence of write-sets.
pub struct Member {
    /// The file for the donor's position. A donor transfers nothing else: all sequences begin with the load.
    donated: PathBuf,
    sequence: Sequence,
    is_synced: Mutex<bool>,
    changed: Condvar,
}

impl Member {
    /// Returns a member with its files in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self {
            donated: dir.join("donated-position"),
            sequence: Sequence::default(),
            is_synced: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Returns the position that a donor has left, and removes the file; `None` if there is no file.
    pub fn take_donated(&self) -> Option<Gtid> {
        let text = fs::read_to_string(&self.donated).ok()?;
        fs::remove_file(&self.donated).ok()?;
        let (uuid, seqno) = text.split_once(':')?;
        Some(Gtid {
            uuid: uuid.parse().ok()?,
            seqno: seqno.parse().ok()?,
        })
    }

    /// Returns the sequence of write-sets that have committed here.
    pub fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    /// Waits until the node is in step with its group. Returns false if that takes longer than `timeout`.
    pub fn wait_synced(&self, timeout: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), timeout, |synced| !*synced);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_synced
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Application for Member {
    fn view(&self, position: Gtid, is_primary: bool, members: usize) {
        let kind = if is_primary { "primary" } else { "non-primary" };
        eprintln!("host: {kind} view of {members} at {position}");
    }

    fn state_request(&self) -> Vec<u8> {
        [METHOD, self.donated.as_os_str().as_bytes()].concat()
    }

    fn donate(&self, request: &[u8], position: Gtid) -> bool {
        let Some(path) = request.strip_prefix(METHOD) else {
            eprintln!(
                "host: a joiner asks for a state transfer of another kind: it is no host of ours"
            );
            return false;
        };
        let path = Path::new(OsStr::from_bytes(path));
        let written = write_whole(path, &position.to_string());
        if let Err(error) = &written {
            eprintln!("host: cannot write {}: {error}", path.display());
        }
        written.is_ok()
    }

    fn apply(&self, write_set: Applied<'_>) -> Result<(), HostError> {
        let seqno = write_set.seqno;
        let payload = write_set.commits.then(|| xxh3_64(write_set.data));
        write_set.in_commit_order(|| self.sequence.add(seqno, payload))
    }

    fn synced(&self) {
        *self.lock() = true;
        self.changed.notify_all();
    }
}

/// Writes a file atomically: the file has the whole text, or is not there.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, text)?;
    fs::rename(&partial, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_goes_from_donor_to_joiner_once() {
        let dir = tempfile::tempdir().unwrap();
        let (donor, joiner) = (
            Member::new(Path::new("/nonexistent")),
            Member::new(dir.path()),
        );
        assert_eq!(joiner.take_donated(), None);
        let position = Gtid {
            uuid: "3b1c0f2e-0102-11ee-8b1c-00ff7f80a5c3".parse().unwrap(),
            seqno: 42,
        };
        assert!(donor.donate(&joiner.state_request(), position));
        assert_eq!(joiner.take_donated(), Some(position));
        assert_eq!(joiner.take_donated(), None);
        assert!(!donor.donate(b"rsync\0x", position));
        assert!(!donor.donate(&donor.state_request(), position));
    }
}
