//! The server has too many files open for a moment: nothing is lost by it, and nothing is taken for damage.

mod common;

use std::path::Path;

use trireme_log::{Durability, Log, LogConfig, LogError, MemoryDisk};

use common::{segments, write_staged};

fn log_on(disk: &MemoryDisk, segment_bytes: u64, durability: Durability) -> Log {
    let config = config(segment_bytes, durability);
    Log::create_on(Box::new(disk.clone()), config).unwrap()
}

fn config(segment_bytes: u64, durability: Durability) -> LogConfig {
    LogConfig {
        segment_bytes,
        ..LogConfig::new(Path::new("").into(), 1 << 30, [7; 16], durability)
    }
}

fn append(log: &mut Log, positions: std::ops::RangeInclusive<u64>) {
    for position in positions {
        log.append(position, &[&[position as u8; 300]]).unwrap();
    }
}

/// One file each, as of large entries.
fn append_staged(log: &mut Log, positions: std::ops::RangeInclusive<u64>) {
    for position in positions {
        let payload = [position as u8; 300];
        let mut staged = log.stage(4).unwrap();
        write_staged(&mut staged, &payload);
        let crc = crc32c::crc32c(&payload);
        log.append_staged(position, b"head", 0, &payload, crc, staged)
            .unwrap();
    }
}

#[test]
fn a_log_is_written_flushed_and_read_without_a_free_descriptor() {
    let disk = MemoryDisk::new();
    let mut log = log_on(&disk, 1024, Durability::Disk);
    append(&mut log, 1..=40);
    let before = segments(&disk).len();
    assert!(before > 10);
    disk.set_no_descriptors(true);
    // No segment can be begun: the last one grows.
    append(&mut log, 41..=60);
    log.flush().unwrap();
    assert_eq!(segments(&disk).len(), before);
    let run = log.read_run(1, u64::MAX).unwrap();
    assert_eq!(run.len(), 60);
    disk.set_no_descriptors(false);
    append(&mut log, 61..=62);
    assert_eq!(segments(&disk).len(), before + 1);
    // The flush was one.
    disk.lose_power(|| false);
    let (log, found) =
        Log::open_on(Box::new(disk.clone()), config(1024, Durability::Disk)).unwrap();
    assert_eq!((log.last_position(), found.damage.len()), (Some(60), 0));
    // What is opened anew is kept open, too.
    disk.set_no_descriptors(true);
    assert_eq!(log.read_run(1, u64::MAX).unwrap().len(), 60);
}

#[test]
fn no_more_files_than_a_bound_stay_open_and_older_ones_are_read_later() {
    let disk = MemoryDisk::new();
    let mut log = log_on(&disk, 1024, Durability::Os);
    append(&mut log, 1..=1);
    append_staged(&mut log, 2..=100);
    assert_eq!(segments(&disk).len(), 100);
    for _ in 0..2 {
        disk.set_no_descriptors(true);
        let error = log.read(3).unwrap_err();
        assert!(error.is_shortage(), "{error}");
        let text = error.to_string();
        for words in [
            "trireme-000000000003.log",
            "tried again",
            "open_files_limit",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert!(log.read(60).is_ok());
        log.flush().unwrap();
        disk.set_no_descriptors(false);
        assert_eq!(log.read(3).unwrap().unwrap()[4..], [3; 300]);
        // The same of a log that was opened.
        drop(log);
        (log, _) = Log::open_on(Box::new(disk.clone()), config(1024, Durability::Os)).unwrap();
    }
}

/// Files are closed beyond the bound only when they are flushed.
#[test]
fn what_is_closed_was_flushed() {
    let disk = MemoryDisk::new();
    let mut log = log_on(&disk, 1024, Durability::Os);
    append(&mut log, 1..=1);
    append_staged(&mut log, 2..=100);
    disk.lose_power(|| false);
    drop(log);
    let (log, _) = Log::open_on(Box::new(disk.clone()), config(1024, Durability::Os)).unwrap();
    assert!(log.last_position() >= Some(30), "{:?}", log.last_position());
}

#[test]
fn an_unreadable_file_is_no_shortage() {
    let disk = MemoryDisk::new();
    let mut log = log_on(&disk, 1024, Durability::Os);
    append(&mut log, 1..=10);
    disk.set_fail_reads(true);
    let errors = (1..=10).filter_map(|position| log.read(position).err());
    let errors: Vec<LogError> = errors.collect();
    assert!(!errors.is_empty() && !errors.iter().any(LogError::is_shortage));
}
