//! `trireme-state.log`: a small state that is on stable storage when [`StateFile::save`] returns.

use crate::disk::{Disk, DiskFile};
use crate::error::LogError;
use crate::format::{FORMAT_VERSION, u32_at, u64_at};

pub(crate) const STATE_NAME: &str = "trireme-state.log";
const MAGIC: &[u8; 8] = b"TRIRMSTA";
const SLOT_BYTES: usize = 16384;
const HEADER_BYTES: usize = 64;
/// The largest state, in bytes.
pub(crate) const MAX_BLOB_BYTES: usize = SLOT_BYTES - HEADER_BYTES;

/// The state file; the first save creates it.
pub(crate) struct StateFile {
    identity: [u8; 16],
    file: Option<Box<dyn DiskFile>>,
    /// Sequence number of the valid slot; 0: none.
    sequence: u64,
    blob: Vec<u8>,
}

impl StateFile {
    /// Returns a file without a state; the first save replaces any old file.
    pub(crate) fn absent(identity: [u8; 16]) -> Self {
        StateFile {
            identity,
            file: None,
            sequence: 0,
            blob: Vec::new(),
        }
    }

    /// Reads the newest valid slot.
    pub(crate) fn open(disk: &dyn Disk, identity: [u8; 16]) -> Result<Self, LogError> {
        let mut state = StateFile::absent(identity);
        let error = |action, offset, e| LogError::io(action, disk.path(STATE_NAME), offset, e);
        let file = match disk.open(STATE_NAME) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(state),
            other => other.map_err(|e| error("open", 0, e))?,
        };
        let length = file.length().map_err(|e| error("read", 0, e))?;
        let (mut saved_twice, mut whole) = (false, false);
        for offset in [0, SLOT_BYTES as u64] {
            let mut slot = vec![0; (length.saturating_sub(offset)).min(SLOT_BYTES as u64) as usize];
            if slot.is_empty() {
                continue; // the disk was full when the file was made
            }
            file.read_exact_at(&mut slot, offset)
                .map_err(|e| error("read", offset, e))?;
            saved_twice |= offset == 0 && slot.iter().any(|byte| *byte != 0);
            if slot.len() < HEADER_BYTES || &slot[0..8] != MAGIC {
                continue;
            }
            let version = u32_at(&slot, 8);
            if version > FORMAT_VERSION {
                let (file, found) = (disk.path(STATE_NAME), format!("format {version}"));
                return Err(LogError::NewerFormat {
                    file,
                    offset: offset + 8,
                    found,
                    supported: "format 1",
                });
            }
            let end = HEADER_BYTES.saturating_add(u32_at(&slot, 12) as usize);
            let Some(blob) = slot.get(HEADER_BYTES..end) else {
                continue;
            };
            if crc(&slot[..60], blob) != u32_at(&slot, 60) {
                continue;
            }
            whole = true;
            let sequence = u64_at(&slot, 32);
            if slot[16..32] == identity && sequence > state.sequence {
                state.sequence = sequence;
                state.blob = blob.to_vec();
            }
        }
        // The first save goes into the second slot; the first slot is written only after that save was flushed.
        if saved_twice && !whole {
            let reason = "neither of its two states is whole";
            return Err(LogError::corrupt(&disk.path(STATE_NAME), 0, reason));
        }
        state.file = Some(file);
        Ok(state)
    }

    /// Returns the last saved state; `None` if there is none.
    pub(crate) fn get(&self) -> Option<&[u8]> {
        (self.sequence > 0).then_some(self.blob.as_slice())
    }

    /// Saves `blob`, flushed.
    pub(crate) fn save(&mut self, disk: &dyn Disk, blob: &[u8]) -> Result<(), LogError> {
        if blob.len() > MAX_BLOB_BYTES {
            let (bytes, limit) = (blob.len() as u64, MAX_BLOB_BYTES as u64);
            return Err(LogError::TooLarge {
                what: "state",
                bytes,
                limit,
            });
        }
        let error = |action, offset, e| LogError::io(action, disk.path(STATE_NAME), offset, e);
        let is_new = self.file.is_none();
        let file = match self.file.take() {
            Some(file) => file,
            None => disk.create(STATE_NAME).map_err(|e| error("create", 0, e))?,
        };
        if is_new {
            // Later saves overwrite these bytes and need no room: they succeed on a full disk.
            file.write_all_at(&[0; 2 * SLOT_BYTES], 0)
                .map_err(|e| error("write", 0, e))?;
        }
        let file = self.file.insert(file);
        let sequence = self.sequence + 1;
        let mut slot = vec![0; HEADER_BYTES];
        slot[0..8].copy_from_slice(MAGIC);
        slot[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        slot[12..16].copy_from_slice(&(blob.len() as u32).to_le_bytes());
        slot[16..32].copy_from_slice(&self.identity);
        slot[32..40].copy_from_slice(&sequence.to_le_bytes());
        let crc = crc(&slot[..60], blob);
        slot[60..64].copy_from_slice(&crc.to_le_bytes());
        slot.extend_from_slice(blob);
        let offset = sequence % 2 * SLOT_BYTES as u64;
        file.write_all_at(&slot, offset)
            .map_err(|e| error("write", offset, e))?;
        file.sync_data().map_err(|e| error("flush", offset, e))?;
        if is_new {
            disk.sync_directory()
                .map_err(|e| error("flush the directory of", 0, e))?;
        }
        self.sequence = sequence;
        self.blob = blob.to_vec();
        Ok(())
    }
}

fn crc(header: &[u8], blob: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header), blob)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDisk;

    /// A full disk, or a crash, can end the making of the file anywhere.
    #[test]
    fn a_file_that_was_not_made_whole_holds_no_state() {
        for room in [0, 1, 100, 16383, 16384, 16385, 32767] {
            let disk = MemoryDisk::new();
            disk.set_room(Some(room));
            let mut state = StateFile::open(&disk, [1; 16]).unwrap();
            assert!(state.save(&disk, b"too much").is_err());
            disk.set_room(None);
            let mut state = StateFile::open(&disk, [1; 16]).unwrap();
            assert_eq!(state.get(), None, "{room}");
            state.save(&disk, b"first").unwrap();
            state.save(&disk, b"second").unwrap();
            let state = StateFile::open(&disk, [1; 16]).unwrap();
            assert_eq!(state.get(), Some(&b"second"[..]), "{room}");
        }
    }

    #[test]
    fn the_newest_whole_state_is_found() {
        let disk = MemoryDisk::new();
        let mut state = StateFile::open(&disk, [1; 16]).unwrap();
        assert_eq!(state.get(), None);
        for n in 1..=5u8 {
            state.save(&disk, &[n; 100]).unwrap();
            assert_eq!(
                StateFile::open(&disk, [1; 16]).unwrap().get(),
                Some([n; 100].as_slice())
            );
        }
        assert_eq!(
            StateFile::open(&disk, [2; 16]).unwrap().get(),
            None,
            "of another history"
        );
        let too_large = vec![0; MAX_BLOB_BYTES + 1];
        assert!(matches!(
            state.save(&disk, &too_large),
            Err(LogError::TooLarge { .. })
        ));
        // Sequence 5 lies in slot 1: any damage to it leaves sequence 4.
        let whole = disk.contents(STATE_NAME).unwrap();
        for at in SLOT_BYTES..SLOT_BYTES + HEADER_BYTES + 100 {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            disk.set_contents(STATE_NAME, bytes);
            match StateFile::open(&disk, [1; 16]) {
                Ok(state) => assert_eq!(state.get(), Some([4; 100].as_slice()), "byte {at}"),
                Err(e) => assert!(matches!(e, LogError::NewerFormat { .. }), "{e}"),
            }
        }
    }
}
