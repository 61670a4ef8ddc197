//! With `disk` a segment's file grows ahead of its records.

mod common;

use trireme_log::{Disk, Durability, Log, LogConfig, LogError, MemoryDisk};

use common::segments;

const SEGMENT_BYTES: u64 = 64 << 10;
const STEP_BYTES: usize = 4 << 10;

fn config(durability: Durability) -> LogConfig {
    LogConfig {
        segment_bytes: SEGMENT_BYTES,
        ..LogConfig::new("".into(), 1 << 20, [7; 16], durability)
    }
}

fn create(disk: &MemoryDisk, durability: Durability) -> Log {
    Log::create_on(Box::new(disk.clone()), config(durability)).unwrap()
}

/// Length of the newest segment's file, and how much of it is not zero.
fn newest(disk: &MemoryDisk) -> (usize, usize) {
    let bytes = disk.contents(segments(disk).last().unwrap()).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0);
    (bytes.len(), used.map_or(0, |last| last + 1))
}

/// A flush of a file whose length has not changed is what it is for.
#[test]
fn most_flushes_find_the_files_length_as_it_was() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk, Durability::Disk);
    let (mut lengths, mut changes) = (vec![newest(&disk).0], 0);
    for position in 1..=400 {
        log.append(position, &[&[1; 88]]).unwrap();
        log.flush().unwrap();
        let (length, used) = newest(&disk);
        assert!(length - used <= STEP_BYTES && length as u64 <= SEGMENT_BYTES);
        changes += usize::from(lengths.last() != Some(&length));
        lengths.push(length);
    }
    // 48,000 bytes of records.
    assert!((10..14).contains(&changes), "{lengths:?}");
    assert_eq!(segments(&disk).len(), 1);
}

#[test]
fn nothing_grows_ahead_where_no_flush_is_waited_for() {
    for durability in [Durability::Os, Durability::Memory] {
        let disk = MemoryDisk::new();
        let mut log = create(&disk, durability);
        log.append(1, &[&[1; 88]]).unwrap();
        log.flush().unwrap();
        let (length, used) = newest(&disk);
        assert_eq!((length, length - used), (128 + 32 + 88, 0));
    }
}

/// The zero bytes behind the last record are no torn tail, and the room is used by the next process.
#[test]
fn a_log_goes_on_within_what_it_has_grown() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk, Durability::Disk);
    for position in 1..=700 {
        log.append(position, &[&[position as u8; 88]]).unwrap();
        log.write_out().unwrap();
        if position % 50 == 0 {
            drop(log);
            let before = newest(&disk);
            let opened = Log::open_on(Box::new(disk.clone()), config(Durability::Disk));
            let (again, found) = opened.unwrap();
            assert_eq!((found.dropped_bytes, found.damage.len()), (0, 0));
            assert_eq!(found.last_position, Some(position));
            assert_eq!(newest(&disk), before);
            log = again;
        }
    }
    assert_eq!(segments(&disk).len(), 2);
    for position in 1..=700 {
        assert_eq!(log.read(position).unwrap().unwrap(), [position as u8; 88]);
    }
}

/// What does not fit ahead is no failure: the disk is full when a record does not fit.
#[test]
fn the_last_bytes_of_a_disk_are_used() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk, Durability::Disk);
    let room = 5 * 120 + newest(&disk).0 as u64 - 128;
    disk.set_room(Some(5 * 120));
    let mut position = 0;
    let error = loop {
        let appended = log.append(position + 1, &[&[1; 88]]);
        match appended.and_then(|()| log.flush()) {
            Ok(()) => position += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LogError::Io { .. }), "{error}");
    assert_eq!(position, room / 120, "records of 120 bytes");
    disk.set_room(None);
    let (_, found) = Log::open_on(Box::new(disk.clone()), config(Durability::Disk)).unwrap();
    assert_eq!(found.last_position, Some(position));
}

/// Else a log that begins anew on a small disk finds no room for its next segment.
#[test]
fn what_does_not_fit_ahead_takes_no_room() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk, Durability::Disk);
    let grown = newest(&disk).0;
    disk.set_room(Some(600));
    let mut position = 0;
    while newest(&disk).0 <= grown {
        position += 1;
        log.append(position, &[&[1; 88]]).unwrap();
        log.flush().unwrap();
    }
    let other = disk.create("other").unwrap();
    other.write_all_at(&[1; 480], 0).unwrap();
}
