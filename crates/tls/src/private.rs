//! Who may read a private file: the one rule for keys, their passwords and secrets.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// What to do about a file that others may read.
pub const PRIVATE_REMEDY: &str =
    "chmod 0600; or give it to root and to the group of the server's user, and chmod 0640";

/// Bits of the mode for others than the owner.
const OTHERS: u32 = 0o077;
/// The same, where the group may read: root lends its file so to a service's user.
const OTHERS_OF_ROOT: u32 = 0o027;

/// The mode of a file that more may read or write than should. `None`: only its owner may, or it is root's, and its group may
/// read it.
pub fn exposed_mode(about: &Metadata) -> Option<u32> {
    let forbidden = match about.uid() {
        0 => OTHERS_OF_ROOT,
        _ => OTHERS,
    };
    let mode = about.mode() & 0o7777;
    Some(mode).filter(|mode| mode & forbidden != 0)
}
