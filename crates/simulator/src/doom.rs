//! Kills a process in the middle of an input: its steps so far stay, the others are never done.
//!
//! A step is an effect that outlives the process: each change on its disk, each promise and saved state, each frame
//! that leaves. After the last allowed step, the next one unwinds to the world. Drops during the unwinding change
//! nothing: a killed process does not tidy up.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use trireme_engine::{KeepMark, MARK_BYTES, OpenDisk};
use trireme_log::{Disk, DiskFile, MemoryDisk};

use crate::mark::MemoryMark;

/// No limit: the process does not die.
const NEVER: u64 = u64::MAX;

/// The payload of the unwinding.
struct Dies;

#[derive(Debug)]
struct State {
    steps_left: AtomicU64,
    /// True until the steps count ([`Doom::seal_at_rename`]).
    awaits_rename: AtomicBool,
    /// True while [`Doom::within`] catches the unwinding.
    is_caught: AtomicBool,
    is_dead: AtomicBool,
}

/// The fate of one process; clones share it.
#[derive(Clone, Debug)]
pub struct Doom(Arc<State>);

impl Default for Doom {
    fn default() -> Doom {
        Doom(Arc::new(State {
            steps_left: AtomicU64::new(NEVER),
            awaits_rename: AtomicBool::new(false),
            is_caught: AtomicBool::new(false),
            is_dead: AtomicBool::new(false),
        }))
    }
}

impl Doom {
    /// Returns a function that opens this disk, for the process with this fate.
    pub fn opens(&self, disk: &MemoryDisk) -> OpenDisk {
        let (disk, doom) = (disk.clone(), self.clone());
        Box::new(move || {
            Box::new(DoomedDisk {
                disk: disk.clone(),
                doom: doom.clone(),
            })
        })
    }

    /// Returns this mark, for the process with this fate.
    pub fn mark(&self, mark: &MemoryMark) -> Box<dyn KeepMark> {
        Box::new(DoomedMark {
            mark: mark.clone(),
            doom: self.clone(),
        })
    }

    /// Lets the process do so many more steps, then die.
    pub fn seal(&self, steps: u64) {
        self.0.steps_left.store(steps, Relaxed);
        self.0.awaits_rename.store(false, Relaxed);
    }

    /// The same, but the steps count from the first renaming or removal of a file on.
    pub fn seal_at_rename(&self, steps: u64) {
        self.seal(steps);
        self.0.awaits_rename.store(true, Relaxed);
    }

    /// A file is about to be renamed or removed.
    fn renames(&self) {
        self.0.awaits_rename.store(false, Relaxed);
    }

    /// Removes the limit of [`Doom::seal`].
    pub fn spare(&self) {
        self.seal(NEVER);
    }

    /// Marks the process as dead: its later steps have no effect.
    pub fn kill(&self) {
        self.0.is_dead.store(true, Relaxed);
    }

    /// True if the process is dead.
    pub fn is_dead(&self) -> bool {
        self.0.is_dead.load(Relaxed)
    }

    /// Runs `act` in the process; None if the process died in it.
    pub fn within<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        if self.0.steps_left.load(Relaxed) == NEVER {
            return Some(act());
        }
        self.0.is_caught.store(true, Relaxed);
        let done = catch_unwind(AssertUnwindSafe(act));
        self.0.is_caught.store(false, Relaxed);
        match done {
            Ok(done) => Some(done),
            Err(cause) if cause.is::<Dies>() => None,
            Err(cause) => resume_unwind(cause),
        }
    }

    /// A step outside of [`Doom::within`]; false if the process is dead, so that the step is not done.
    pub fn does_step(&self) -> bool {
        let state = &self.0;
        let left = match state.awaits_rename.load(Relaxed) {
            true => NEVER,
            false => state.steps_left.load(Relaxed),
        };
        if left == 0 {
            self.kill();
        } else if left != NEVER {
            state.steps_left.store(left - 1, Relaxed);
        }
        !self.is_dead()
    }

    /// A step; false if the process is dead, so that the step must have no effect. Within [`Doom::within`] it unwinds
    /// if the process dies here.
    pub fn step(&self) -> bool {
        if self.is_dead() {
            return false;
        }
        if self.0.is_caught.load(Relaxed) && !self.does_step() {
            resume_unwind(Box::new(Dies));
        }
        true
    }
}

/// A disk on which each change is a step.
struct DoomedDisk {
    disk: MemoryDisk,
    /// The fate of the process that uses the disk.
    doom: Doom,
}

struct DoomedFile {
    file: Box<dyn DiskFile>,
    doom: Doom,
}

fn dead() -> io::Error {
    io::Error::other("the process is dead")
}

impl DoomedDisk {
    fn file(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let doom = self.doom.clone();
        Box::new(DoomedFile { file, doom })
    }

    fn change<T>(&self, change: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.doom.step() {
            true => change(),
            false => Err(dead()),
        }
    }
}

impl Disk for DoomedDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.change(|| Ok(self.file(self.disk.create(name)?)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.disk.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.doom.renames();
        self.change(|| self.disk.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.doom.renames();
        self.change(|| self.disk.remove(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.change(|| self.disk.sync_directory())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.disk.path(name)
    }
}

impl DoomedFile {
    fn change(&self, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self.doom.step() {
            true => change(),
            false => Err(dead()),
        }
    }
}

impl DiskFile for DoomedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.change(|| self.file.write_all_at(bytes, offset))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.change(|| self.file.truncate(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(|| self.file.sync_data())
    }
}

/// A mark on which each change is a step.
struct DoomedMark {
    mark: MemoryMark,
    /// The fate of the process that uses the mark.
    doom: Doom,
}

impl KeepMark for DoomedMark {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.mark.load()
    }

    fn store(&mut self, bytes: &[u8; MARK_BYTES]) -> io::Result<()> {
        match self.doom.step() {
            true => self.mark.store(bytes),
            false => Err(dead()),
        }
    }

    fn remove(&mut self) -> io::Result<()> {
        match self.doom.step() {
            true => self.mark.remove(),
            false => Err(dead()),
        }
    }

    fn place(&self) -> String {
        self.mark.place()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(disk: &MemoryDisk) -> Vec<String> {
        disk.list().expect("in memory")
    }

    #[test]
    fn what_was_done_stays_and_the_rest_is_never_done() {
        let disk = MemoryDisk::new();
        let doom = Doom::default();
        let doomed = DoomedDisk {
            disk: disk.clone(),
            doom: doom.clone(),
        };
        doom.seal(3);
        let done = doom.within(|| {
            for name in ["1", "2", "3", "4", "5"] {
                doomed.create(name).expect("there is room");
            }
        });
        assert_eq!(done, None);
        assert!(doom.is_dead());
        assert_eq!(names(&disk), ["1", "2", "3"]);
        assert!(doomed.remove("1").is_err(), "it does not tidy up");
        assert_eq!(names(&disk).len(), 3);
    }

    #[test]
    fn steps_may_count_from_a_renaming_on() {
        let disk = MemoryDisk::new();
        let doom = Doom::default();
        let doomed = DoomedDisk {
            disk: disk.clone(),
            doom: doom.clone(),
        };
        doom.seal_at_rename(1);
        let done = doom.within(|| {
            for name in ["1", "2", "3"] {
                doomed.create(name).expect("there is room");
            }
            doomed.rename("1", "4").expect("it is there");
            doomed.create("5").expect("there is room");
        });
        assert_eq!(done, None);
        assert_eq!(names(&disk), ["2", "3", "4"]);
    }

    #[test]
    fn who_is_not_doomed_goes_on() {
        let doom = Doom::default();
        assert_eq!(doom.within(|| doom.step()), Some(true));
        doom.seal(0);
        assert!(doom.step(), "nobody would catch it");
        assert!(!doom.does_step());
        assert!(!doom.step());
    }
}
