//! The repair of a damaged log's files: cutting, setting aside, removing.

use std::path::PathBuf;

use crate::disk::Disk;
use crate::error::LogError;
use crate::format::{SEGMENT_HEADER_BYTES, damaged_name, segment_name};
use crate::recovery::{Found, Stop, open, segment_path};

/// One change of the files. The process may die between two steps, and within each: the next start then ends the
/// remaining log at the same place.
pub(crate) enum Step {
    /// Renames whole segments out of the log, in this order.
    SetAside(Vec<u64>),
    /// Copies the content of a segment from an offset on out of the log.
    CopyAside { number: u64, from: u64 },
    /// Ends a segment at this offset.
    Cut { number: u64, at: u64 },
    /// Removes segments, in this order.
    Remove(Vec<u64>),
}

/// Returns the steps that end the log before the place where reading stopped, and the number of dropped bytes. The data
/// behind is set aside if `keep_rest` is true.
pub(crate) fn end_before(
    disk: &dyn Disk,
    found: &[Found],
    stop: &Stop,
    keep_rest: bool,
) -> Result<(Vec<Step>, u64), LogError> {
    let used = |number, from| {
        let used = open(disk, number)?.used_from(from);
        used.map_err(|e| LogError::io("read", segment_path(disk, number), from, e))
    };
    let (mut steps, mut dropped_bytes) = (Vec::new(), 0);
    // Without a valid header (or with missing data before it) the whole segment is given up, and so are all segments
    // behind it.
    let is_cut = stop.offset >= SEGMENT_HEADER_BYTES;
    let whole = stop.at + usize::from(is_cut);
    if is_cut {
        let (number, at) = (found[stop.at].number, stop.offset);
        if keep_rest {
            steps.push(Step::CopyAside { number, from: at });
        } else {
            dropped_bytes += used(number, at)?;
        }
        steps.push(Step::Cut { number, at });
    }
    // From the newest on: after an interruption, the next start ends the log at the same place.
    let rest: Vec<u64> = found[whole..].iter().rev().map(|f| f.number).collect();
    if keep_rest {
        steps.push(Step::SetAside(rest));
    } else {
        for number in &rest {
            dropped_bytes += used(*number, 0)?;
        }
        steps.push(Step::Remove(rest));
    }
    Ok((steps, dropped_bytes))
}

/// Returns the steps that take segments below the log's base out of it. Those of another cluster are kept aside: the
/// process may have died within [`Log::create`](crate::Log::create), before it had renamed them.
pub(crate) fn end_remnants(remnants: &[Found], identity: [u8; 16]) -> [Step; 2] {
    let identities = |found: &Found| found.header.as_ref().ok().map(|h| h.identity);
    let is_other = |found: &Found| identities(found).is_some_and(|other| other != identity);
    // A bad header does not tell whose segment it is.
    let has_other = remnants.iter().any(is_other);
    let is_kept = |found: &&Found| has_other && identities(found) != Some(identity);
    let (kept, removed): (Vec<&Found>, Vec<&Found>) = remnants.iter().partition(is_kept);
    let numbers = |found: Vec<&Found>| found.iter().map(|f| f.number).collect();
    [
        Step::SetAside(numbers(kept)),
        Step::Remove(numbers(removed)),
    ]
}

impl Step {
    /// Returns the files that will hold the given-up data.
    pub(crate) fn kept_in(&self, disk: &dyn Disk) -> Vec<PathBuf> {
        match self {
            Step::SetAside(numbers) => (numbers.iter())
                .map(|number| disk.path(&damaged_name(*number, 0)))
                .collect(),
            Step::CopyAside { number, from } => vec![disk.path(&damaged_name(*number, *from))],
            Step::Cut { .. } | Step::Remove(_) => Vec::new(),
        }
    }

    /// Carries out the step, durably.
    pub(crate) fn carry_out(&self, disk: &dyn Disk) -> Result<(), LogError> {
        match self {
            Step::SetAside(numbers) => set_aside(disk, numbers),
            Step::CopyAside { number, from } => copy_aside(disk, *number, *from),
            Step::Cut { number, at } => cut(disk, *number, *at),
            Step::Remove(numbers) => remove(disk, numbers),
        }
    }
}

fn set_aside(disk: &dyn Disk, numbers: &[u64]) -> Result<(), LogError> {
    for number in numbers {
        let result = disk.rename(&segment_name(*number), &damaged_name(*number, 0));
        result.map_err(|e| LogError::io("rename", segment_path(disk, *number), 0, e))?;
    }
    sync_directory(disk)
}

fn remove(disk: &dyn Disk, numbers: &[u64]) -> Result<(), LogError> {
    for number in numbers {
        let result = disk.remove(&segment_name(*number));
        result.map_err(|e| LogError::io("remove", segment_path(disk, *number), 0, e))?;
    }
    sync_directory(disk)
}

fn cut(disk: &dyn Disk, number: u64, at: u64) -> Result<(), LogError> {
    let file = open(disk, number)?.into_file();
    let result = file.truncate(at).and_then(|()| file.sync_data());
    result.map_err(|e| LogError::io("cut", segment_path(disk, number), at, e))
}

fn copy_aside(disk: &dyn Disk, number: u64, from: u64) -> Result<(), LogError> {
    let name = damaged_name(number, from);
    let error = |action, e| LogError::io(action, disk.path(&name), 0, e);
    let mut reader = open(disk, number)?;
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
    copy.sync_data().map_err(|e| error("flush", e))
}

fn sync_directory(disk: &dyn Disk) -> Result<(), LogError> {
    disk.sync_directory()
        .map_err(|e| LogError::io("flush", disk.path(""), 0, e))
}
