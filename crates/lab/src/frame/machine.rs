//! The machine before a run: no other measurement is active, and memory and disk suffice.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, statvfs};
use trireme_testbed::directories::make_private_dir;

use super::error::LabError;
use super::experiment::Experiment;
use super::facts;
use super::ground::Ground;
use crate::work_dir::work_dir;

/// Takes the lock that allows only one measurement at a time on this machine.
pub fn lock() -> Result<File, LabError> {
    make_private_dir(&work_dir())?;
    let path = lock_path();
    // Another user's file in a shared directory can only be opened for reading (fs.protected_regular).
    let file = File::open(&path).or_else(|_| File::create(&path));
    let file = file.map_err(LabError::io(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(LabError::Busy(path)),
        Err(error) => Err(LabError::io(&path)(error.into())),
    }
}

/// The path of the lock: in a directory that all users share, if there is one.
fn lock_path() -> PathBuf {
    let shared = Path::new("/run/lock");
    let dir = if shared.is_dir() {
        shared.to_path_buf()
    } else {
        work_dir()
    };
    dir.join("trireme-lab.lock")
}

/// Fails before any start if memory or disk is too small.
pub fn enough<G: Ground>(experiment: &dyn Experiment<G>) -> Result<(), LabError> {
    let dir = work_dir();
    let stat = statvfs(&dir).map_err(|error| LabError::io(&dir)(error.into()))?;
    let free_mib = (
        facts::free_memory_mib(),
        (stat.f_bavail * stat.f_frsize) >> 20,
    );
    is_enough(experiment.needs_mib(), free_mib, &dir)
}

/// Compares needed and free MiB: of memory, and of the disk that holds `dir`.
fn is_enough(needed: (u64, u64), free: (u64, u64), dir: &Path) -> Result<(), LabError> {
    let check = |what: String, needed_mib, free_mib, remedy| match free_mib < needed_mib {
        false => Ok(()),
        true => Err(LabError::TooLittle {
            what,
            needed_mib,
            free_mib,
            remedy,
        }),
    };
    let smaller = "end other programs, or take a smaller --preset";
    check("memory".to_string(), needed.0, free.0, smaller)?;
    let what = format!("disk at {}", dir.display());
    let room = "make room, or set TMPDIR to another directory";
    check(what, needed.1, free.1, room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_or_disk_is_refused_with_its_remedy() {
        let check = |memory, disk| {
            let ended = is_enough((100, 1000), (memory, disk), Path::new("/x"));
            ended.map_err(|error| error.to_string())
        };
        assert_eq!(check(100, 1000), Ok(()));
        let memory = check(99, 1000).unwrap_err();
        assert!(memory.starts_with("100 MiB of memory are needed, 99 MiB are free; end other"));
        let disk = check(100, 999).unwrap_err();
        assert!(disk.starts_with("1000 MiB of disk at /x are needed, 999 MiB are free; make room"));
    }
}
