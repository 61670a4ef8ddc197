//! What the tests do to files of a log.
#![allow(dead_code)] // each of the tests uses some of it

use std::collections::BTreeMap;

use trireme_log::{Disk, Log, MemoryDisk, Outcome, Staged};

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
