//! The rule for private files (keys, their passwords, secrets): which users may read them.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The remedy for a file that other users may read.
pub const PRIVATE_REMEDY: &str =
    "chmod 0600; or give it to root and to the group of the server's user, and chmod 0640";

/// The forbidden bits of the mode: all bits of group and others.
const OTHERS: u32 = 0o077;
/// The forbidden bits for a file of root. Its group may read it: so root lends the file to the user of a service.
const OTHERS_OF_ROOT: u32 = 0o027;

/// Returns the file's mode if too many users may read or write the file. None if only its owner may, or if the file is
/// root's and its group may read it.
pub fn exposed_mode(about: &Metadata) -> Option<u32> {
    let forbidden = match about.uid() {
        0 => OTHERS_OF_ROOT,
        _ => OTHERS,
    };
    let mode = about.mode() & 0o7777;
    Some(mode).filter(|mode| mode & forbidden != 0)
}
