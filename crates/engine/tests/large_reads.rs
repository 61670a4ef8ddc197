//! A large entry is read from the log a part at a time, and never believed if it is damaged.

mod common;

use bytes::Bytes;
use common::HISTORY;
use trireme_engine::Storage;
use trireme_group::{Ballot, Body, Entry, Incarnation, LogReader, Position, SubmissionId};
use trireme_log::{Disk, Durability, LogConfig, MemoryDisk};

const LEN: usize = 200_003;
const PART: u32 = 64 << 10;

fn id(number: u64) -> SubmissionId {
    SubmissionId {
        incarnation: Incarnation::default(),
        number,
    }
}

fn entry(position: Position, number: u64, len: usize) -> Entry {
    let bytes = (0..len).map(|at| (at as u64 * 31 + number) as u8);
    Entry {
        position,
        ballot: Ballot::default(),
        body: Body::Submission {
            id: id(number),
            payload: bytes.collect(),
        },
    }
}

fn payload(entry: &Entry) -> Bytes {
    let part = entry.submission();
    part.and_then(|id| entry.payload_part(id, 0, u32::MAX))
        .expect("a submission")
}

/// A small entry, a large one, a small one.
fn storage(disk: &MemoryDisk) -> Storage {
    let config = LogConfig {
        size_bytes: 1 << 30,
        ..common::log_config(Durability::Os)
    };
    let mut storage = common::begun(disk, config, HISTORY);
    for (position, len) in [(1, 10), (2, LEN), (3, 10)] {
        let entry = entry(position, position, len);
        storage.append(&entry).expect("appended");
    }
    storage
}

/// Asks for one part after the other, as who fetches it does.
fn read_in_parts(storage: &Storage, position: Position, number: u64) -> Option<Vec<u8>> {
    let mut found = Vec::new();
    while found.len() < LEN {
        let part = storage.read_part(position, id(number), found.len() as u32, PART);
        found.extend_from_slice(&part.expect("readable")?);
    }
    Some(found)
}

#[test]
fn the_head_and_the_parts_are_those_of_the_entry() {
    let mut storage = storage(&MemoryDisk::new());
    for _ in ["in the buffer", "in the file"] {
        for (position, len) in [(1, 10), (2, LEN)] {
            let whole = entry(position, position, len);
            let head = LogReader::head(&storage, position)
                .expect("readable")
                .expect("held");
            assert_eq!(head.entry.submission(), Some(id(position)));
            assert_eq!((head.entry.payload_bytes(), head.len as usize), (0, len));
            assert_eq!(head.digest, crc32c::crc32c(&payload(&whole)));
        }
        assert_eq!(
            read_in_parts(&storage, 2, 2).expect("intact"),
            payload(&entry(2, 2, LEN))
        );
        let part = |position, number, offset| storage.read_part(position, id(number), offset, 4);
        assert_eq!(
            part(1, 1, 2),
            Ok(Some(payload(&entry(1, 1, 10)).slice(2..6)))
        );
        assert_eq!(
            part(2, 2, u32::MAX),
            Ok(Some(Bytes::new())),
            "beyond the end"
        );
        assert_eq!(
            [part(2, 7, 0), part(1, 7, 0), part(9, 9, 0)],
            [Ok(None), Ok(None), Ok(None)]
        );
        storage.write_out().expect("written");
    }
}

#[test]
fn two_who_read_it_do_not_disturb_each_other() {
    let storage = storage(&MemoryDisk::new());
    let offsets = [
        0,
        0,
        PART,
        2 * PART,
        PART,
        3 * PART,
        2 * PART,
        3 * PART,
        3 * PART,
    ];
    for offset in offsets {
        let part = storage.read_part(2, id(2), offset, PART);
        assert!(part.expect("readable").is_some(), "{offset}");
    }
}

#[test]
fn damage_is_told_and_nobody_is_referred_to_it_any_more() {
    let disk = MemoryDisk::new();
    let mut storage = storage(&disk);
    storage.flush().expect("flushed");
    let names = disk.list().expect("a list").into_iter();
    let segment = names.max_by_key(|name| disk.contents(name).map(|bytes| bytes.len()));
    disk.flip_bit(&segment.expect("there is one"), LEN / 2, 3);
    assert_eq!(read_in_parts(&storage, 2, 2), None);
    let told = storage.take_read_error().expect("a reason").to_string();
    assert!(told.contains("trireme-0"), "{told}");
    assert_eq!(LogReader::head(&storage, 2), Ok(None));
    assert!(LogReader::head(&storage, 3).expect("readable").is_some());
    // What takes its place is another entry.
    storage.truncate(1).expect("truncated");
    storage.append(&entry(2, 5, LEN)).expect("appended");
    assert_eq!(
        read_in_parts(&storage, 2, 5).expect("intact"),
        payload(&entry(2, 5, LEN))
    );
}

#[test]
fn half_of_what_was_there_before_says_nothing_of_an_entry() {
    let mut storage = storage(&MemoryDisk::new());
    assert!(
        storage
            .read_part(2, id(2), 0, PART)
            .expect("readable")
            .is_some()
    );
    storage.truncate(1).expect("truncated");
    storage.append(&entry(2, 5, LEN)).expect("appended");
    for offset in [PART, 2 * PART, 3 * PART] {
        let part = storage.read_part(2, id(5), offset, PART);
        assert!(part.expect("readable").is_some(), "{offset}");
    }
}
