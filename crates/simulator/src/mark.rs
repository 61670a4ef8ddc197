//! Marks in a machine's memory: they outlive a process, but not a boot of the machine.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trireme_engine::{KeepMark, MARK_BYTES};

/// The mark of one node; clones share it.
#[derive(Clone, Default)]
pub struct MemoryMark(Arc<Mutex<Option<Vec<u8>>>>);

impl MemoryMark {
    fn locked(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the mark: the machine loses power.
    pub fn lose_power(&self) {
        *self.locked() = None;
    }
}

impl KeepMark for MemoryMark {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.locked().clone())
    }

    fn store(&mut self, bytes: &[u8; MARK_BYTES]) -> io::Result<()> {
        *self.locked() = Some(bytes.to_vec());
        Ok(())
    }

    fn remove(&mut self) -> io::Result<()> {
        *self.locked() = None;
        Ok(())
    }

    fn place(&self) -> String {
        "/memory".to_owned()
    }
}
