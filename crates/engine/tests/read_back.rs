//! What was delivered is read back from the log, as it was, written out or not.

mod common;

use bytes::Bytes;
use common::HISTORY;
use trireme_engine::{Forgotten, Storage};
use trireme_group::{
    Body, Checkpoint, Delivery, Entry, Incarnation, LogReader, NotNow, Position, SubmissionId, Term,
};
use trireme_log::{Disk, Durability, LogConfig, MemoryDisk, Outcome};
use trireme_replicator::{History, Unread};

fn id(number: u64) -> SubmissionId {
    SubmissionId {
        incarnation: Incarnation::default(),
        number,
    }
}

fn payload(position: Position) -> Bytes {
    Bytes::from(vec![position as u8; 100])
}

/// Entries 1 to 9, of which 4 belongs to the group itself; those above 6 are not written out.
fn storage(disk: &MemoryDisk, durability: Durability) -> Storage {
    let config = LogConfig {
        segment_bytes: 128,
        size_bytes: 1 << 30,
        ..common::log_config(durability)
    };
    let mut storage = common::begun(disk, config, HISTORY);
    for position in 1..=9 {
        let body = match position {
            4 => Body::TermStart,
            _ => Body::Submission {
                id: id(position),
                payload: payload(position),
            },
        };
        let term = Term::default();
        let entry = Entry {
            position,
            term,
            body,
        };
        storage.append(&entry).expect("appended");
        if position == 6 {
            storage.write_out().expect("written");
        }
    }
    storage
}

fn expected(positions: &[Position]) -> Vec<(Position, Delivery)> {
    let delivery = |position: &Position| {
        let (id, payload) = (id(*position), payload(*position));
        (*position, Delivery::Submission { id, payload })
    };
    positions.iter().map(delivery).collect()
}

#[test]
fn what_was_delivered_comes_back() {
    for durability in [Durability::Memory, Durability::Os, Durability::Disk] {
        let storage = storage(&MemoryDisk::new(), durability);
        let read = |first, last, bytes| storage.read_back(first, last, bytes);
        assert_eq!(read(3, 8, 1 << 20), Ok(expected(&[3, 5, 6, 7, 8])));
        assert_eq!(read(2, 9, 0), Ok(expected(&[2])), "one at least");
        assert_eq!(read(1, 9, 350).map(|found| found.len()), Ok(2));
        assert_eq!(read(10, 12, 1 << 20), Ok(Vec::new()));
    }
}

#[test]
fn a_log_that_was_closed_can_still_be_read() {
    let mut storage = storage(&MemoryDisk::new(), Durability::Os);
    storage.close().expect("closed");
    assert_eq!(storage.read_back(8, 9, 1 << 20), Ok(expected(&[8, 9])));
}

#[test]
fn what_cannot_be_read_is_an_error_that_names_the_file() {
    let disk = MemoryDisk::new();
    let storage = storage(&disk, Durability::Os);
    disk.set_fail_reads(true);
    let error = storage.read_back(3, 9, 1 << 20).expect_err("reads fail");
    assert!(
        matches!(&error, Unread::Lost(text) if text.contains("trireme-0")),
        "{error:?}"
    );
}

/// So many segments that not all of their files stay open, and a position in one that was closed.
fn with_closed_files(disk: &MemoryDisk) -> (Storage, Position) {
    let mut storage = storage(disk, Durability::Os);
    note(&mut storage, 2);
    for position in 10..=40_000 {
        append(&mut storage, position);
    }
    let names = disk.list().expect("a list").into_iter();
    let segments = names.filter(|name| name.starts_with("trireme-0")).count();
    assert!(segments >= 70, "{segments}");
    (storage, 2)
}

/// Its seqno is its position.
fn append(storage: &mut Storage, position: Position) {
    let entry = Entry {
        position,
        term: Term::default(),
        body: Body::Submission {
            id: id(position),
            payload: payload(position),
        },
    };
    storage.append(&entry).expect("appended");
    note(storage, position);
}

fn note(storage: &mut Storage, position: Position) {
    let outcome = Outcome {
        seqno: position as i64,
        flags: 0,
        depends_on: 0,
    };
    storage.set_outcome(position, outcome).expect("noted");
}

#[test]
fn too_many_open_files_are_no_loss() {
    let disk = MemoryDisk::new();
    let (mut storage, position) = with_closed_files(&disk);
    let seqno = position as i64;
    disk.set_no_descriptors(true);
    assert_eq!(LogReader::read(&storage, position), Err(NotNow));
    assert_eq!(storage.read_run(position, 50, 1 << 20), Err(NotNow));
    assert_eq!(History::read(&storage, seqno, 1 << 20), Err(NotNow));
    assert_eq!(
        storage.read_back(position, 50, 1 << 20),
        Err(Unread::NotNow)
    );
    let told = storage.take_read_error().expect("a reason").to_string();
    assert!(told.contains("raise open_files_limit"), "{told}");
    disk.set_no_descriptors(false);
    assert!(storage.first_seqno().is_some_and(|first| first <= seqno));
    let found = History::read(&storage, seqno, 1 << 20).expect("read");
    assert_eq!(found.first().map(|record| record.position), Some(position));
    assert_eq!(
        storage.read_run(position, position, 1).map(|run| run.len()),
        Ok(1)
    );
}

/// What was in the log before is no word on what is in it now.
#[test]
fn a_log_that_begins_anew_is_readable_again() {
    let disk = MemoryDisk::new();
    let (mut storage, position) = with_closed_files(&disk);
    disk.set_fail_reads(true);
    let first = storage.first_seqno().expect("served");
    assert_eq!(
        History::read(&storage, position as i64, 1 << 20),
        Ok(vec![])
    );
    assert!(
        storage.first_seqno().is_some_and(|now| now > first),
        "others go elsewhere"
    );
    disk.set_fail_reads(false);
    let checkpoint = Checkpoint {
        history: HISTORY,
        position: 20,
        ..Checkpoint::default()
    };
    storage
        .begin(&checkpoint, Forgotten::default())
        .expect("begun anew");
    append(&mut storage, 21);
    assert_eq!(storage.first_seqno(), Some(21));
}
