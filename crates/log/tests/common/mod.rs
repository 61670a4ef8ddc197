//! What the tests do to files of a log.
#![allow(dead_code)] // each of the tests uses some of it

use std::collections::BTreeMap;

use trireme_log::{Disk, MemoryDisk};

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
