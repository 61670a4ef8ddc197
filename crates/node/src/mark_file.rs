//! The file that holds the mark of a write-set log: `trireme-<replica>.mark` in `repl.mark_dir`, `/dev/shm` by default
//! (docs/state-files.md, "The mark"). Others may be able to write to the directory: this module reads, writes and
//! removes only files of this process's user.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use trireme_engine::{KeepMark, MARK_BYTES};
use trireme_group::Uuid;
use trireme_log::{is_lack, own_file};

use crate::file_lock::try_lock;

/// Limit of a read, above the size of any mark: a larger file is damaged, and need not be read whole.
const READ_MAX: u64 = 4096;

/// Least time between two looks at whether the file still has its name: a store is on the path of each commit.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// The mark's file. It is opened at the first use, and locked by this process as long as this value lives.
pub struct MarkFile {
    path: PathBuf,
    file: Option<File>,
    /// The last look at whether the file still has its name.
    looked: Option<Instant>,
    /// The operator was warned that the file had lost its name.
    is_warned: bool,
    warning: Option<String>,
}

impl MarkFile {
    /// Returns the mark of this replica in this directory. Opens nothing yet.
    pub fn new(dir: &Path, replica: Uuid) -> MarkFile {
        MarkFile {
            path: dir.join(format!("trireme-{replica}.mark")),
            file: None,
            looked: None,
            is_warned: false,
            warning: None,
        }
    }

    /// Gives the file up if somebody has removed its name, so that the next process would not find it. Looks now and
    /// then.
    fn see_name(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        if self.looked.is_some_and(|at| at.elapsed() < LOOK_AFTER) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        if has_name(file)? {
            return Ok(());
        }
        self.file = None;
        if !std::mem::replace(&mut self.is_warned, true) {
            self.warning = Some(format!(
                "the mark of the write-set log, {}, was removed while this node uses it, and is made again (did a cleaner \
                 of that directory remove it, or systemd-logind, by RemoveIPC=yes?). If this node had been killed \
                 meanwhile, it might not notice what a failure of the log's volume has taken: let repl.mark_dir name a \
                 directory in memory that nobody cleans",
                self.place()
            ));
        }
        Ok(())
    }

    /// Opens the file. None: there is none, and `make` is false.
    fn open(&mut self, make: bool) -> io::Result<Option<&File>> {
        if self.file.is_none() {
            // A user who may write to the directory can put a link, a pipe, or his own file there.
            let file = match make {
                true => own_file::open_or_make(&self.path)?,
                false => match own_file::open(&self.path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    opened => opened?,
                },
            };
            is_own(&file)?;
            self.file = Some(file);
        }
        Ok(self.file.as_ref())
    }
}

/// Checks that the file is this process's. Err: it is another user's, or another process uses it.
fn is_own(file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    let me = rustix::process::geteuid().as_raw();
    if !about.is_file() || about.uid() != me || about.mode() & 0o077 != 0 || about.nlink() != 1 {
        let text = "it is not a file of this user alone: remove it";
        return Err(io::Error::other(text));
    }
    match try_lock(file)? {
        true => Ok(()),
        false => Err(io::Error::other(
            "another process uses it: is a copy of this node's data directory in use on this machine?",
        )),
    }
}

fn has_name(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() > 0)
}

impl KeepMark for MarkFile {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        // A file that is not ours tells nothing. The error is reported when the mark is to be written.
        // Nothing is known of one that cannot be opened for a moment.
        let file = match self.open(false) {
            Ok(Some(file)) => file,
            Err(error) if is_lack(&error) => return Err(error),
            Ok(None) | Err(_) => return Ok(None),
        };
        let length = file.metadata()?.len().min(READ_MAX);
        if length == 0 {
            return Ok(None); // its process ended before it had written anything
        }
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(Some(bytes))
    }

    fn store(&mut self, bytes: &[u8; MARK_BYTES]) -> io::Result<()> {
        self.see_name()?;
        match self.open(true)? {
            // One write into one page: a process that is killed has made all of it, or nothing.
            Some(file) => file.write_all_at(bytes, 0),
            None => Ok(()),
        }
    }

    fn remove(&mut self) -> io::Result<()> {
        if let Ok(Some(file)) = self.open(false) {
            if has_name(file)? {
                std::fs::remove_file(&self.path)?;
            }
            self.file = None;
        }
        Ok(())
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const ID: Uuid = Uuid([5; 16]);

    fn mark(dir: &Path) -> MarkFile {
        MarkFile::new(dir, ID)
    }

    #[test]
    fn it_outlives_its_process_and_is_its_users_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = mark(dir.path());
        assert_eq!(first.load().unwrap(), None);
        first.store(&[1; 64]).unwrap();
        first.store(&[2; 64]).unwrap();
        let about = std::fs::metadata(first.place()).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        assert_eq!(about.len(), 64);
        drop(first);
        let mut second = mark(dir.path());
        assert_eq!(second.load().unwrap(), Some(vec![2; 64]));
        second.remove().unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        second.remove().unwrap();
        second.store(&[3; 64]).unwrap();
        assert_eq!(second.load().unwrap(), Some(vec![3; 64]));
    }

    #[test]
    fn a_file_that_lost_its_name_is_made_again_and_told_of_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = mark(dir.path());
        first.store(&[1; 64]).unwrap();
        assert_eq!(first.take_warning(), None);
        for (byte, is_told) in [(2, true), (3, false)] {
            std::fs::remove_file(first.place()).unwrap();
            first.looked = None; // a second later
            first.store(&[byte; 64]).unwrap();
            let stored = std::fs::read(first.place()).unwrap();
            assert_eq!(stored, [byte; 64]);
            let warning = first.take_warning();
            assert_eq!(
                warning.is_some_and(|text| text.contains("RemoveIPC")),
                is_told
            );
        }
        std::fs::remove_file(first.place()).unwrap();
        first.remove().unwrap();
        assert_eq!(first.load().unwrap(), None);
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let mut mark = mark(dir.path());
        symlink(&victim, mark.place()).unwrap();
        assert_eq!(mark.load().unwrap(), None);
        assert!(mark.store(&[1; 64]).is_err());
        mark.remove().unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        assert!(
            Path::new(&mark.place()).is_symlink(),
            "it is not ours to remove"
        );
        // Nor is a dangling one.
        std::fs::remove_file(&victim).unwrap();
        assert!(mark.store(&[1; 64]).is_err());
        assert!(!victim.exists());
    }

    #[test]
    fn what_others_may_write_or_have_linked_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let mut wide = mark(dir.path());
        std::fs::write(wide.place(), [7; 64]).unwrap();
        let wider = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(wide.place(), wider).unwrap();
        assert_eq!(wide.load().unwrap(), None);
        assert!(wide.store(&[1; 64]).is_err());
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(wide.place(), own).unwrap();
        std::fs::hard_link(wide.place(), dir.path().join("other")).unwrap();
        assert_eq!(mark(dir.path()).load().unwrap(), None);
    }

    #[test]
    fn two_processes_of_one_replica_do_not_share_it() {
        let dir = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (mark(dir.path()), mark(dir.path()));
        first.store(&[1; 64]).unwrap();
        assert_eq!(second.load().unwrap(), None);
        let error = second.store(&[2; 64]).unwrap_err();
        assert!(error.to_string().contains("copy"), "{error}");
        drop(first);
        assert_eq!(second.load().unwrap(), Some(vec![1; 64]));
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_of_the_first_write() {
        let mut mark = mark(Path::new("/nowhere"));
        assert_eq!(mark.load().unwrap(), None);
        assert!(mark.store(&[1; 64]).is_err());
        mark.remove().unwrap();
    }

    /// `cargo test --release -p trireme-node -- --ignored --nocapture mark_costs`
    #[test]
    #[ignore = "a measurement"]
    fn what_a_mark_costs() {
        let mut mark = MarkFile::new(Path::new("/dev/shm"), ID);
        mark.store(&[0; 64]).unwrap();
        let mut rounds: Vec<_> = (0..1_000_u32)
            .map(|_| {
                let began = std::time::Instant::now();
                (0..1_000_u32).for_each(|n| mark.store(&[n as u8; 64]).unwrap());
                began.elapsed().as_nanos() / 1_000
            })
            .collect();
        rounds.sort_unstable();
        println!("least {} ns, median {} ns", rounds[0], rounds[500]);
        mark.remove().unwrap();
    }
}
