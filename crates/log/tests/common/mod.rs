//! What the tests do to files of a log.
#![allow(dead_code)] // each of the tests uses some of it

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use trireme_log::{Disk, DiskFile, Log, MemoryDisk, Outcome, Staged};

/// Names of the segments, in their order.
pub fn segments(disk: &MemoryDisk) -> Vec<String> {
    let names = disk.list().unwrap().into_iter();
    names.filter(|name| name.starts_with("trireme-0")).collect()
}

/// All files.
pub fn contents(disk: &MemoryDisk) -> BTreeMap<String, Vec<u8>> {
    let names = disk.list().unwrap().into_iter();
    names
        .map(|name| (name.clone(), disk.contents(&name).unwrap()))
        .collect()
}

/// Changes the bytes of a file.
pub fn change(disk: &MemoryDisk, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.contents(name).unwrap();
    change(&mut bytes);
    disk.set_contents(name, bytes);
}

/// What [`fill`] appends at a position.
pub fn payload(position: u64) -> Vec<u8> {
    vec![position as u8; 100]
}

/// Appends with outcomes; seqno = position.
pub fn fill(log: &mut Log, positions: std::ops::RangeInclusive<u64>) {
    for position in positions {
        log.append(position, &[&payload(position)]).unwrap();
        log.set_outcome(
            position,
            Outcome {
                seqno: position as i64,
                flags: 0,
                depends_on: 0,
            },
        )
        .unwrap();
    }
    log.write_out().unwrap();
}

/// Everything that the log claims to hold is what was appended.
pub fn verify(log: &Log) {
    if let (Some(first), Some(last)) = (log.first_position(), log.last_position()) {
        for position in first..=last {
            assert_eq!(log.read(position).unwrap().unwrap(), payload(position));
        }
    }
}

/// Stages the next bytes of a payload.
pub fn write_staged(staged: &mut Staged, bytes: &[u8]) {
    let written = staged.written_bytes();
    staged.writer().write(written, bytes).unwrap();
    staged.wrote(bytes.len() as u64);
}

/// A change of a directory or of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Name,
    Bytes,
    Flush,
}

/// Called before each change, which it may hold up or refuse.
type Watch = Arc<dyn Fn(Change) -> io::Result<()> + Send + Sync>;

/// A directory whose changes a test watches.
pub struct WatchedDisk {
    disk: MemoryDisk,
    watch: Watch,
}

struct WatchedFile {
    file: Box<dyn DiskFile>,
    watch: Watch,
}

impl WatchedDisk {
    pub fn new(
        disk: &MemoryDisk,
        watch: impl Fn(Change) -> io::Result<()> + Send + Sync + 'static,
    ) -> WatchedDisk {
        WatchedDisk {
            disk: disk.clone(),
            watch: Arc::new(watch),
        }
    }

    fn watched(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let watch = self.watch.clone();
        Box::new(WatchedFile { file, watch })
    }
}

impl Disk for WatchedDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        (self.watch)(Change::Name)?;
        Ok(self.watched(self.disk.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.watched(self.disk.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        (self.watch)(Change::Name)?;
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        (self.watch)(Change::Name)?;
        self.disk.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        (self.watch)(Change::Flush)?;
        self.disk.sync_directory()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.disk.path(name)
    }
}

impl DiskFile for WatchedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        (self.watch)(Change::Bytes)?;
        self.file.write_all_at(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        (self.watch)(Change::Bytes)?;
        self.file.truncate(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        (self.watch)(Change::Flush)?;
        self.file.sync_data()
    }
}
