//! Large entries are read from the log in parts: their heads cost nothing, and damage is noticed by the last part.

mod common;

use bytes::Bytes;
use common::HISTORY;
use trireme_engine::{Forgotten, Storage};
use trireme_group::{
    Body, Checkpoint, Entry, EntryHead, Incarnation, LogReader, Position, SubmissionId, Term,
};
use trireme_log::{Disk, Durability, MemoryDisk};

/// Where the large entry is, between small ones.
const LARGE: Position = 2;
/// No multiple of anything: its record is padded, its last part is short.
const LARGE_BYTES: usize = 100_003;
const PART_BYTES: u32 = 30_000;

fn id(number: u64) -> SubmissionId {
    SubmissionId {
        incarnation: Incarnation::default(),
        number,
    }
}

/// No part of it is like another, and none of those with another `seed`.
fn payload(len: usize, seed: u8) -> Bytes {
    let byte = |at: usize| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ seed;
    (0..len).map(byte).collect()
}

fn submission(position: Position, number: u64, payload: Bytes) -> Entry {
    let term = Term {
        number: 7,
        ..Term::default()
    };
    let id = id(number);
    Entry {
        position,
        term,
        body: Body::Submission { id, payload },
    }
}

/// A term start, a large submission and a small one, in the buffer.
fn storage(disk: &MemoryDisk) -> Storage {
    let mut storage = common::begun(disk, common::log_config(Durability::Os), HISTORY);
    let start = Entry {
        body: Body::TermStart,
        ..submission(1, 0, Bytes::new())
    };
    let large = submission(LARGE, 22, payload(LARGE_BYTES, 0));
    for entry in [start, large, submission(3, 33, payload(100, 0))] {
        storage.append(&entry).expect("appended");
    }
    storage
}

/// A bit of this file's large payload is no longer what was written.
fn damage(disk: &MemoryDisk) -> String {
    let large = payload(LARGE_BYTES, 0);
    let inside = &large[50_000..50_100];
    for name in disk.list().expect("a list") {
        let bytes = disk.contents(&name).expect("it is there");
        if let Some(at) = bytes.windows(inside.len()).position(|of| of == inside) {
            disk.flip_bit(&name, at, 3);
            return name;
        }
    }
    panic!("it was not written out");
}

fn head(storage: &Storage, position: Position) -> Option<EntryHead> {
    storage.head(position).expect("no shortage")
}

/// The head of what `entry` is.
fn head_of(entry: &Entry) -> EntryHead {
    let Body::Submission { payload, .. } = &entry.body else {
        panic!("no submission");
    };
    let mut without = entry.clone();
    without.drop_payload();
    EntryHead {
        entry: without,
        len: payload.len() as u32,
        digest: crc32c::crc32c(payload),
    }
}

/// Who fetches a payload, part by part.
struct Reader {
    id: SubmissionId,
    got: Vec<u8>,
    part_bytes: u32,
}

impl Reader {
    fn new(number: u64, part_bytes: u32) -> Reader {
        Reader {
            id: id(number),
            got: Vec::new(),
            part_bytes,
        }
    }

    /// The next part; None: the log says that it does not hold it.
    fn ask(&self, storage: &Storage) -> Option<Bytes> {
        let offset = self.got.len() as u32;
        let part = storage.read_part(LARGE, self.id, offset, self.part_bytes);
        part.expect("no shortage")
    }

    /// False at the end, which is an empty part.
    fn step(&mut self, storage: &Storage) -> bool {
        let part = self.ask(storage).expect("intact");
        self.got.extend_from_slice(&part);
        !part.is_empty()
    }

    fn read_all(mut self, storage: &Storage) -> Vec<u8> {
        while self.step(storage) {}
        self.got
    }
}

#[test]
fn the_head_of_a_large_entry_does_not_take_its_payload() {
    let disk = MemoryDisk::new();
    let mut storage = storage(&disk);
    let large = head_of(&submission(LARGE, 22, payload(LARGE_BYTES, 0)));
    let small = head_of(&submission(3, 33, payload(100, 0)));
    for place in ["buffer", "file"] {
        assert_eq!(head(&storage, LARGE).as_ref(), Some(&large), "{place}");
        assert_eq!(head(&storage, 3).as_ref(), Some(&small), "{place}");
        let start = head(&storage, 1).expect("held");
        assert_eq!((start.entry.body, start.len), (Body::TermStart, 0));
        assert_eq!(head(&storage, 4), None, "{place}");
        storage.write_out().expect("written");
    }
    damage(&disk);
    // Whoever reads all of it sees the damage.
    assert_eq!(LogReader::read(&storage, LARGE), Ok(None));
    assert_eq!(head(&storage, LARGE), Some(large));
}

#[test]
fn a_part_is_of_the_submission_that_was_asked_for() {
    let mut storage = storage(&MemoryDisk::new());
    let (large, small) = (payload(LARGE_BYTES, 0), payload(100, 0));
    for place in ["buffer", "file"] {
        for (position, number, payload) in [(LARGE, 22, &large), (3, 33, &small)] {
            let end = payload.len();
            for (offset, len) in [
                (0, 10),
                (0, end),
                (0, 0),
                (70, 20),
                (70, end),
                (70, u32::MAX as usize),
                (end - 1, 1),
                (end, 5),
                (end + 1, 5),
                (u32::MAX as usize, u32::MAX as usize),
            ] {
                let part = storage.read_part(position, id(number), offset as u32, len as u32);
                let from = offset.min(end);
                let expected = payload.slice(from..(from + len).min(end));
                let at = format!("{place}, {position}: {len} bytes at {offset}");
                assert_eq!(part, Ok(Some(expected)), "{at}");
            }
            let read = |at, number| storage.read_part(at, id(number), 0, 10);
            assert_eq!(read(position, number + 1), Ok(None), "another submission");
            assert_eq!(read(1, number), Ok(None), "no submission");
            for none in [0, 4] {
                assert_eq!(read(none, number), Ok(None), "not held");
            }
        }
        storage.write_out().expect("written");
    }
    assert!(storage.take_read_error().is_none());
}

/// Without the head, the leader sends a checkpoint to members that lack the entry.
#[test]
fn damage_is_told_by_the_last_part_and_no_head_is_given_any_more() {
    let disk = MemoryDisk::new();
    let mut storage = storage(&disk);
    storage.write_out().expect("written");
    let name = damage(&disk);
    let mut reader = Reader::new(22, PART_BYTES);
    for _ in 0..LARGE_BYTES as u32 / PART_BYTES {
        assert!(reader.step(&storage));
    }
    assert!(storage.take_read_error().is_none());
    assert!(head(&storage, LARGE).is_some());
    assert_eq!(reader.ask(&storage), None);
    let told = storage.take_read_error().expect("an error").to_string();
    assert!(told.contains(&name), "{told}");
    assert_eq!(head(&storage, LARGE), None);
    assert_eq!(Reader::new(22, PART_BYTES).ask(&storage), None);
    assert!(head(&storage, 3).is_some(), "the others are intact");
}

/// The damaged entry was found out, or somebody is half way.
fn storage_with_history(disk: &MemoryDisk, found_out: bool) -> Storage {
    let mut storage = storage(disk);
    storage.write_out().expect("written");
    damage(disk);
    let mut reader = Reader::new(22, PART_BYTES);
    while (reader.got.len() as u32) < 3 * PART_BYTES {
        assert!(reader.step(&storage));
    }
    if found_out {
        assert_eq!(reader.ask(&storage), None);
    }
    storage
}

/// Another large entry is there now.
fn assert_readable_again(mut storage: Storage) {
    let other = submission(LARGE, 44, payload(LARGE_BYTES, 0xff));
    storage.append(&other).expect("appended");
    storage.write_out().expect("written");
    assert_eq!(head(&storage, LARGE), Some(head_of(&other)));
    // The checksum of the begin that was read is one of the other entry.
    let last = storage.read_part(LARGE, id(44), 3 * PART_BYTES, PART_BYTES);
    let expected = payload(LARGE_BYTES, 0xff).slice(3 * PART_BYTES as usize..);
    assert_eq!(last, Ok(Some(expected)));
    let found = Reader::new(44, PART_BYTES).read_all(&storage);
    assert!(found == payload(LARGE_BYTES, 0xff));
    assert_eq!(head(&storage, LARGE), Some(head_of(&other)));
}

#[test]
fn another_entry_in_the_place_of_a_damaged_one_can_be_read() {
    for found_out in [true, false] {
        let mut storage = storage_with_history(&MemoryDisk::new(), found_out);
        storage.truncate(LARGE - 1).expect("truncated");
        assert_eq!(head(&storage, LARGE), None);
        assert_readable_again(storage);
    }
}

#[test]
fn what_a_truncation_leaves_stays_damaged() {
    let mut storage = storage_with_history(&MemoryDisk::new(), true);
    storage.truncate(LARGE).expect("truncated");
    assert_eq!(head(&storage, LARGE), None);
}

#[test]
fn a_log_that_begins_anew_holds_nothing_damaged() {
    for found_out in [true, false] {
        let mut storage = storage_with_history(&MemoryDisk::new(), found_out);
        let checkpoint = Checkpoint {
            history: HISTORY,
            position: LARGE - 1,
            ..Checkpoint::default()
        };
        storage
            .begin(&checkpoint, Forgotten::default())
            .expect("begun anew");
        assert_readable_again(storage);
    }
}

/// They share checksums where they have come to the same offset, and must not where they have not.
#[test]
fn readers_do_not_disturb_each_other() {
    for (first_bytes, second_bytes, lead) in [
        (PART_BYTES, PART_BYTES, 2),
        (PART_BYTES, PART_BYTES, 0),
        (10_000, PART_BYTES, 4),
        (PART_BYTES, 10_000, 1),
    ] {
        let mut storage = storage(&MemoryDisk::new());
        storage.write_out().expect("written");
        let readers = [first_bytes, second_bytes].map(|bytes| Reader::new(22, bytes));
        let [mut first, mut second] = readers;
        for _ in 0..lead {
            assert!(first.step(&storage));
        }
        loop {
            // A part that is lost on its way is asked for twice.
            first.ask(&storage).expect("intact");
            let more = [first.step(&storage), second.step(&storage)];
            if more == [false, false] {
                break;
            }
        }
        for reader in [first, second] {
            assert!(reader.got == payload(LARGE_BYTES, 0));
        }
        assert!(head(&storage, LARGE).is_some());
        assert!(storage.take_read_error().is_none());
    }
}

/// Its head could be: whoever lacks the entry would be sent back to it for ever.
#[test]
fn what_has_a_part_that_cannot_be_read_has_no_head_any_more() {
    let disk = MemoryDisk::new();
    let mut storage = storage(&disk);
    storage.write_out().expect("written");
    let mut reader = Reader::new(22, PART_BYTES);
    assert!(reader.step(&storage));
    disk.set_fail_reads(true);
    assert_eq!(reader.ask(&storage), None);
    let told = storage.take_read_error().expect("an error").to_string();
    assert!(told.contains("trireme-0"), "{told}");
    disk.set_fail_reads(false);
    assert_eq!(head(&storage, LARGE), None);
    assert!(head(&storage, LARGE + 1).is_some());
}
