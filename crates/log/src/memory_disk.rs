//! A disk in memory that loses power and fails when told to, for tests and the simulator.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};
use crate::error::TOO_MANY_OPEN;
use crate::format::{is_staged_name, segment_number};
use crate::state_file::STATE_NAME;

/// Power loss keeps or loses unflushed writes in pieces of this size, as a page cache does.
const PAGE_BYTES: usize = 4096;

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

#[derive(Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    /// The content that certainly survives a power loss, and the changes since, in order.
    durable: Vec<u8>,
    pending: Vec<Change>,
}

impl Content {
    fn apply(bytes: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Truncate(length) => bytes.truncate(*length as usize),
            Change::Write(offset, data) => {
                let offset = *offset as usize;
                bytes.resize(bytes.len().max(offset + data.len()), 0);
                bytes[offset..offset + data.len()].copy_from_slice(data);
            }
        }
    }
}

impl Content {
    fn flush(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            Content::apply(&mut self.durable, &change);
        }
    }

    /// Of the pages written since the last flush, keeps only those for which `survives` returns true.
    fn lose_pages(&mut self, mut survives: impl FnMut() -> bool) {
        let mut bytes = std::mem::take(&mut self.durable);
        for change in std::mem::take(&mut self.pending) {
            match change {
                Change::Truncate(_) => Content::apply(&mut bytes, &change),
                Change::Write(mut offset, mut data) => {
                    while !data.is_empty() {
                        let to_page_end = PAGE_BYTES - offset as usize % PAGE_BYTES;
                        let rest = data.split_off(to_page_end.min(data.len()));
                        let next = offset + data.len() as u64;
                        if survives() {
                            Content::apply(&mut bytes, &Change::Write(offset, data));
                        }
                        (offset, data) = (next, rest);
                    }
                }
            }
        }
        self.bytes = bytes.clone();
        self.durable = bytes;
    }
}

type Shared = Arc<Mutex<Content>>;

type Names = BTreeMap<String, Shared>;

/// A new meaning of a name: this file from now on; None: no file any more.
type Renaming = (String, Option<Shared>);

fn rename_in(names: &mut Names, (name, content): Renaming) {
    match content {
        Some(content) => names.insert(name, content),
        None => names.remove(&name),
    };
}

#[derive(Default)]
struct Files {
    names: Names,
    durable_names: Names,
    /// Changes of names since the last directory flush; each is atomic.
    pending_names: Vec<Vec<Renaming>>,
    room: Option<u64>,
    fail_syncs: bool,
    /// Number of failed flushes of segments.
    failed_syncs: u64,
    shows_lost: bool,
    fail_state: bool,
    fail_reads: bool,
    no_descriptors: bool,
    /// The device under the directory fails every change.
    device_failed: bool,
    /// Number of mounts: a file that was opened in an earlier mount can still be read, but not written.
    mounts: u64,
}

/// A directory in memory; clones share it, like several openings of the same directory.
#[derive(Clone, Default)]
pub struct MemoryDisk {
    files: Arc<Mutex<Files>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files {
    fn descriptor(&self) -> io::Result<()> {
        match self.no_descriptors {
            true => Err(io::Error::from_raw_os_error(TOO_MANY_OPEN[1])),
            false => Ok(()),
        }
    }

    /// Returns an error if the device refuses changes through a handle of this mount.
    fn device(&self, mount: u64) -> io::Result<()> {
        match self.device_failed || mount != self.mounts {
            true => Err(io::Error::other("simulated failure of the device")),
            false => Ok(()),
        }
    }

    /// Detaches open files: they keep their content, and the directory continues with copies.
    fn detach_handles(&mut self) {
        let mut copies: BTreeMap<*const Mutex<Content>, Shared> = BTreeMap::new();
        let named = self.names.values_mut();
        let named = named.chain(self.durable_names.values_mut());
        let pending = self.pending_names.iter_mut().flatten();
        for content in named.chain(pending.filter_map(|(_, content)| content.as_mut())) {
            let copy = copies.entry(Arc::as_ptr(content)).or_insert_with(|| {
                let content = locked(content);
                Arc::new(Mutex::new(content.clone()))
            });
            *content = copy.clone();
        }
    }

    /// Changes names, but not durably.
    fn change_names(&mut self, change: Vec<Renaming>) {
        for renaming in &change {
            rename_in(&mut self.names, renaming.clone());
        }
        self.pending_names.push(change);
    }

    fn make_durable(&mut self, change: Vec<Renaming>) {
        for renaming in change {
            rename_in(&mut self.durable_names, renaming);
        }
    }
}

impl MemoryDisk {
    /// Returns an empty directory.
    pub fn new() -> Self {
        MemoryDisk::default()
    }

    /// Sets the room: from here on files can grow by `bytes` together. When the room is used up, the disk is full, and
    /// has taken part of the last write. Overwriting needs no room. `None`: never full.
    pub fn set_room(&self, bytes: Option<u64>) {
        locked(&self.files).room = bytes;
    }

    /// Switches failing flushes of segments on or off. As an operating system may do, a failed flush gives up the
    /// written pages: some of them have reached the disk, and from then on the file holds only these.
    pub fn set_fail_syncs(&self, fail: bool) {
        locked(&self.files).fail_syncs = fail;
    }

    /// Switches stale reads on or off: after a failed flush, files still show the lost pages, as on most file systems.
    /// A later flush succeeds, and does not write them.
    pub fn set_shows_lost(&self, shows: bool) {
        locked(&self.files).shows_lost = shows;
    }

    /// Switches failing writes and flushes of the state file on or off.
    pub fn set_fail_state(&self, fail: bool) {
        locked(&self.files).fail_state = fail;
    }

    /// Switches failing reads on or off: about every second read of a segment fails.
    pub fn set_fail_reads(&self, fail: bool) {
        locked(&self.files).fail_reads = fail;
    }

    /// Switches the lack of descriptors on or off: opening and making a file fails, as in a process with too many open
    /// files.
    pub fn set_no_descriptors(&self, none: bool) {
        locked(&self.files).no_descriptors = none;
    }

    /// Lets the device under the directory fail: from here on nothing can be written or flushed, no file made, renamed
    /// or removed. Content in the operating system's cache can still be read. [`MemoryDisk::remount`] ends the failure.
    pub fn fail_device(&self) {
        locked(&self.files).device_failed = true;
    }

    /// Returns the number of failed flushes of segments ([`MemoryDisk::set_fail_syncs`]): each may have lost written
    /// pages.
    pub fn failed_syncs(&self) -> u64 {
        locked(&self.files).failed_syncs
    }

    /// Returns true while reads fail ([`MemoryDisk::set_fail_reads`]).
    pub fn is_failing_reads(&self) -> bool {
        locked(&self.files).fail_reads
    }

    /// Returns the result of `look` when every read succeeds and there are descriptors: for an observer, whose reads
    /// are no part of the test.
    pub fn readable<T>(&self, look: impl FnOnce() -> T) -> T {
        let set = |reads, descriptors| {
            let mut files = locked(&self.files);
            let reads = std::mem::replace(&mut files.fail_reads, reads);
            (
                reads,
                std::mem::replace(&mut files.no_descriptors, descriptors),
            )
        };
        let (reads, descriptors) = set(false, false);
        let found = look();
        set(reads, descriptors);
        found
    }

    /// Returns true while the device fails.
    pub fn is_device_failed(&self) -> bool {
        locked(&self.files).device_failed
    }

    /// Mounts the directory again while the machine goes on. Unflushed changes are lost as in a power loss
    /// ([`MemoryDisk::lose_power`]). Files that were opened before cannot be written any more.
    pub fn remount(&self, survives: impl FnMut() -> bool) {
        {
            let mut files = locked(&self.files);
            files.device_failed = false;
            files.mounts += 1;
            files.detach_handles();
        }
        self.lose_power(survives);
    }

    /// Flips a bit of a stored file.
    ///
    /// # Panics
    /// If the file has no such byte.
    pub fn flip_bit(&self, name: &str, offset: usize, bit: u8) {
        let content = locked(&self.files).names[name].clone();
        let mut content = locked(&content);
        content.bytes[offset] ^= 1 << bit;
        let flipped = Change::Write(offset as u64, vec![content.bytes[offset]]);
        if !content.pending.is_empty() {
            content.pending.push(flipped); // a later flush writes the bytes that are read now
        }
        if let Some(byte) = content.durable.get_mut(offset) {
            *byte ^= 1 << bit;
        }
    }

    /// Returns an independent disk with the same files, all flushed.
    pub fn copy(&self) -> MemoryDisk {
        let copy = MemoryDisk::new();
        for (name, content) in &locked(&self.files).names {
            copy.set_contents(name, locked(content).bytes.clone());
        }
        copy
    }

    /// Lets the machine lose power. Of the unflushed changes survive: the changes of names up to the first for which
    /// `survives` returns false (as in a journal), and each written page for which it returns true. `survives` is
    /// called in order of time.
    pub fn lose_power(&self, mut survives: impl FnMut() -> bool) {
        let mut files = locked(&self.files);
        for change in std::mem::take(&mut files.pending_names) {
            if !survives() {
                break;
            }
            files.make_durable(change);
        }
        files.names = files.durable_names.clone();
        for content in files.names.values() {
            locked(content).lose_pages(&mut survives);
        }
    }

    /// Returns the bytes of a file, if it exists.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let files = locked(&self.files);
        files
            .names
            .get(name)
            .map(|content| locked(content).bytes.clone())
    }

    /// Puts a file there, durably, in place of any other.
    pub fn set_contents(&self, name: &str, bytes: Vec<u8>) {
        let content = Content {
            durable: bytes.clone(),
            bytes,
            pending: Vec::new(),
        };
        let content = Arc::new(Mutex::new(content));
        let mut files = locked(&self.files);
        files
            .durable_names
            .insert(name.to_string(), content.clone());
        files.names.insert(name.to_string(), content);
    }
}

struct MemoryFile {
    files: Arc<Mutex<Files>>,
    content: Shared,
    /// A segment of the log, or a staged one.
    is_segment: bool,
    /// The state file beside the log.
    is_state: bool,
    /// See [`Files::mounts`].
    mount: u64,
}

impl MemoryFile {
    /// Returns an error if no change can be made through this handle.
    fn can_change(&self, files: &Files) -> io::Result<()> {
        match self.is_state && files.fail_state {
            true => Err(io::Error::other("simulated failure of the state file")),
            false => files.device(self.mount),
        }
    }

    fn boxed(disk: &MemoryDisk, name: &str, content: Shared, mount: u64) -> Box<dyn DiskFile> {
        Box::new(MemoryFile {
            mount,
            files: disk.files.clone(),
            content,
            is_state: name == STATE_NAME,
            is_segment: segment_number(name).is_some() || is_staged_name(name),
        })
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk for MemoryDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(locked(&self.files).names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let content = Shared::default();
        let mut files = locked(&self.files);
        files.descriptor()?;
        files.device(files.mounts)?;
        files.change_names(vec![(name.to_string(), Some(content.clone()))]);
        Ok(MemoryFile::boxed(self, name, content, files.mounts))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let files = locked(&self.files);
        files.descriptor()?;
        let content = files.names.get(name).cloned().ok_or_else(not_found)?;
        Ok(MemoryFile::boxed(self, name, content, files.mounts))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = locked(&self.files);
        files.device(files.mounts)?;
        let content = files.names.get(from).cloned().ok_or_else(not_found)?;
        files.change_names(vec![
            (from.to_string(), None),
            (to.to_string(), Some(content)),
        ]);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut files = locked(&self.files);
        files.device(files.mounts)?;
        if !files.names.contains_key(name) {
            return Err(not_found());
        }
        files.change_names(vec![(name.to_string(), None)]);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut files = locked(&self.files);
        files.device(files.mounts)?;
        for change in std::mem::take(&mut files.pending_names) {
            files.make_durable(change);
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new("/memory").join(name)
    }
}

impl DiskFile for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        Ok(locked(&self.content).bytes.len() as u64)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        // A long read certainly meets a bad place.
        let bad = offset % 16 == 0 || buf.len() > 2048;
        if bad && self.is_segment && locked(&self.files).fail_reads {
            return Err(io::Error::other("simulated read failure"));
        }
        let content = locked(&self.content);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(buf.len());
        let found = content.bytes.get(start..end);
        buf.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut files = locked(&self.files);
        self.can_change(&files)?;
        let mut content = locked(&self.content);
        let mut taken = bytes.len();
        if let Some(room) = &mut files.room {
            let inside = (content.bytes.len() as u64).saturating_sub(offset);
            let grows = (taken as u64).saturating_sub(inside);
            let lacking = grows.saturating_sub(*room);
            *room -= grows - lacking;
            taken -= lacking as usize;
        }
        let change = Change::Write(offset, bytes[..taken].to_vec());
        Content::apply(&mut content.bytes, &change);
        content.pending.push(change);
        if taken < bytes.len() {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut files = locked(&self.files);
        self.can_change(&files)?;
        let mut content = locked(&self.content);
        if let Some(room) = &mut files.room {
            *room += (content.bytes.len() as u64).saturating_sub(length);
        }
        let change = Change::Truncate(length);
        Content::apply(&mut content.bytes, &change);
        content.pending.push(change);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut files = locked(&self.files);
        self.can_change(&files)?;
        let fails = self.is_segment && files.fail_syncs;
        files.failed_syncs += u64::from(fails);
        let shows_lost = files.shows_lost;
        drop(files);
        let mut content = locked(&self.content);
        if fails {
            let mut pages = 0;
            let shown = shows_lost.then(|| content.bytes.clone());
            content.lose_pages(|| {
                pages += 1;
                pages % 2 == 0
            });
            if let Some(shown) = shown {
                content.bytes = shown;
            }
            return Err(io::Error::other("simulated flush failure"));
        }
        content.flush();
        Ok(())
    }
}
