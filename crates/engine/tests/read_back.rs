//! What was delivered is read back from the log, as it was, written out or not.

use bytes::Bytes;
use trireme_engine::Storage;
use trireme_group::{
    Ballot, Body, Checkpoint, Delivery, Entry, Incarnation, Position, SubmissionId, Uuid,
};
use trireme_log::{Disk, Durability, LogConfig, MemoryDisk};
use trireme_replicator::History;

const HISTORY: Uuid = Uuid([9; 16]);

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
    let config = LogConfig::new("".into(), 1, [0; 16], durability);
    let disk = disk.clone();
    let open = Box::new(move || -> Box<dyn Disk> { Box::new(disk.clone()) });
    let mut storage = Storage::new(config, open, [0; 16]);
    let checkpoint = Checkpoint {
        history: HISTORY,
        ..Checkpoint::default()
    };
    storage.begin(&checkpoint, false).expect("a log in memory");
    for position in 1..=9 {
        let body = match position {
            4 => Body::BallotStart,
            _ => Body::Submission {
                id: id(position),
                payload: payload(position),
            },
        };
        let ballot = Ballot::default();
        let entry = Entry {
            position,
            ballot,
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
    assert!(error.contains("trireme-0"), "{error}");
}
