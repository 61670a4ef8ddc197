//! Locks that keep other processes away from a file or a directory.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};

/// Locks the file or directory until the last handle on this opening is closed. Returns false if another process, or
/// another opening in this one, has the lock.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
