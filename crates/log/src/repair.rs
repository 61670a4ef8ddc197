//! What opening a damaged log does to its files: cutting, setting aside, removing.

use std::path::PathBuf;

use crate::disk::Disk;
use crate::error::LogError;
use crate::format::{SEGMENT_HEADER_BYTES, damaged_name, segment_name};
use crate::recovery::{Found, Stop, open, segment_path};
use crate::scan::SegmentReader;

/// Ends the log before the place where reading stopped. What follows is set aside if `keep_rest` says so, otherwise
/// dropped. Returns the bytes dropped and the files set aside.
pub(crate) fn cut(
    disk: &dyn Disk,
    found: &mut Vec<Found>,
    stop: &Stop,
    keep_rest: bool,
) -> Result<(u64, Vec<PathBuf>), LogError> {
    let (mut dropped_bytes, mut aside) = (0, Vec::new());
    // Without a valid header (or with missing data before it) the segment goes as a whole, as all behind it do.
    let whole = if stop.offset < SEGMENT_HEADER_BYTES {
        stop.at
    } else {
        stop.at + 1
    };
    if whole > stop.at {
        let number = found[stop.at].number;
        let error = |action, e| LogError::io(action, segment_path(disk, number), stop.offset, e);
        let mut reader = open(disk, number)?;
        if keep_rest {
            aside.push(copy_aside(disk, number, &mut reader, stop.offset)?);
        } else {
            dropped_bytes += reader
                .used_from(stop.offset)
                .map_err(|e| error("read", e))?;
        }
        let file = reader.into_file();
        file.truncate(stop.offset)
            .and_then(|()| file.sync_data())
            .map_err(|e| error("cut", e))?;
    }
    // From the newest on: interrupted, this leaves a log that the next start ends at the same place.
    let rest = found.drain(whole..).rev();
    if keep_rest {
        aside.extend(set_aside(disk, rest)?);
    } else {
        let numbers: Vec<u64> = rest.map(|segment| segment.number).collect();
        for number in &numbers {
            let error = |e| LogError::io("read", segment_path(disk, *number), 0, e);
            dropped_bytes += open(disk, *number)?.used_from(0).map_err(error)?;
        }
        remove(disk, &numbers)?;
    }
    Ok((dropped_bytes, aside))
}

/// Renames whole segments out of the log; returns their new paths.
pub(crate) fn set_aside(
    disk: &dyn Disk,
    segments: impl Iterator<Item = Found>,
) -> Result<Vec<PathBuf>, LogError> {
    let mut aside = Vec::new();
    for Found { number, .. } in segments {
        let name = damaged_name(number, 0);
        let result = disk.rename(&segment_name(number), &name);
        result.map_err(|e| LogError::io("rename", segment_path(disk, number), 0, e))?;
        aside.push(disk.path(&name));
    }
    sync_directory(disk)?;
    Ok(aside)
}

/// Removes segments.
pub(crate) fn remove(disk: &dyn Disk, numbers: &[u64]) -> Result<(), LogError> {
    for number in numbers {
        let result = disk.remove(&segment_name(*number));
        result.map_err(|e| LogError::io("remove", segment_path(disk, *number), 0, e))?;
    }
    sync_directory(disk)
}

fn copy_aside(
    disk: &dyn Disk,
    number: u64,
    reader: &mut SegmentReader,
    from: u64,
) -> Result<PathBuf, LogError> {
    let name = damaged_name(number, from);
    let path = disk.path(&name);
    let error = |action, e| LogError::io(action, path.clone(), 0, e);
    let copy = disk.create(&name).map_err(|e| error("create", e))?;
    let mut at = from;
    while at < reader.length() {
        let bytes = reader
            .bytes(at, u64::MAX)
            .map_err(|e| error("copy to", e))?;
        copy.write_all_at(bytes, at - from)
            .map_err(|e| error("write", e))?;
        at += bytes.len() as u64;
    }
    copy.sync_data().map_err(|e| error("flush", e))?;
    Ok(path)
}

fn sync_directory(disk: &dyn Disk) -> Result<(), LogError> {
    disk.sync_directory()
        .map_err(|e| LogError::io("flush", disk.path(""), 0, e))
}
