use trireme_group::{Body, Checkpoint, Entry, ReplicaId, SubmissionId, Term, Uuid};
use trireme_log::{Disk, Durability, LogConfig, MemoryDisk};
use trireme_replicator::Recorded;

use super::*;
use crate::session::Forgotten;
use crate::storage::OpenDisk;

const PART_BYTES: u32 = 30_000;
/// No multiple of anything: its record is padded, its last part is short.
const LONG_BYTES: usize = 100_003;

fn payload(len: usize) -> Bytes {
    let byte = |at: usize| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0];
    (0..len).map(byte).collect()
}

fn submission(position: Position, len: usize) -> Entry {
    Entry {
        position,
        term: Term {
            number: 1,
            replica: ReplicaId::default(),
        },
        body: Body::Submission {
            id: SubmissionId {
                incarnation: Incarnation::default(),
                number: position,
            },
            payload: payload(len),
        },
    }
}

fn outcome(position: Position) -> Outcome {
    Outcome {
        seqno: position as i64 * 10,
        depends_on: 3,
        flags: 0,
    }
}

/// Entry 1 is short and has seqno 10, entry 2 is long (20), entry 3 has no seqno yet, entry 4 is short (40).
fn storage(disk: &MemoryDisk) -> Storage {
    let config = LogConfig::new("".into(), 1 << 20, [0; 16], Durability::Os);
    let opened = disk.clone();
    let opens: OpenDisk = Box::new(move || -> Box<dyn Disk> { Box::new(opened.clone()) });
    let mut storage = Storage::new(config, opens, [0; 16], None);
    let checkpoint = Checkpoint {
        history: Uuid([7; 16]),
        ..Checkpoint::default()
    };
    (storage.begin(&checkpoint, Forgotten::default())).expect("a log in memory");
    for (position, len) in [(1, 100), (2, LONG_BYTES), (3, 50), (4, 200)] {
        let entry = submission(position, len);
        storage.append(&entry).expect("appended");
    }
    storage.write_out().expect("written");
    for position in [1, 2, 4] {
        let noted = storage.set_outcome(position, outcome(position));
        noted.expect("noted");
    }
    storage
}

fn pull(seqno: i64, offset: u32) -> Pull {
    Pull {
        to: Incarnation::default(),
        seqno,
        offset,
        part_bytes: PART_BYTES,
        chunk_bytes: 1 << 20,
    }
}

fn answer(storage: &Storage, pull: Pull) -> Option<Bytes> {
    let served = match begin(storage, pull) {
        Ok(job) => end(storage, job.run()).expect("the same log"),
        Err(served) => served,
    };
    match served {
        Served::Answer(_, bytes) => Some(bytes),
        Served::Lost(_) => None,
        Served::NotNow => panic!("nothing is short"),
    }
}

/// As the log has it, without its payload.
fn record(position: Position, len: usize) -> Recorded {
    let Body::Submission { id, .. } = submission(position, 0).body else {
        unreachable!("it is one");
    };
    let payload = payload(len);
    let delivery = trireme_group::Delivery::Submission { id, payload };
    with_outcome(position, outcome(position), delivery)
}

fn part_at(offset: u32) -> Bytes {
    let whole = payload(LONG_BYTES);
    let until = (offset + PART_BYTES).min(LONG_BYTES as u32);
    ist_part(RecordedPart {
        record: record(2, 0),
        len: LONG_BYTES as u32,
        digest: crc32c::crc32c(&whole),
        offset,
        bytes: whole.slice(offset as usize..until as usize),
    })
}

#[test]
fn a_long_entry_is_given_in_parts_and_short_ones_with_all_that_follow() {
    let storage = storage(&MemoryDisk::new());
    for offset in (0..LONG_BYTES as u32).step_by(PART_BYTES as usize) {
        assert_eq!(answer(&storage, pull(20, offset)), Some(part_at(offset)));
    }
    let last = ist_chunk(40, vec![record(4, 200)]);
    assert_eq!(answer(&storage, pull(40, 0)), Some(last));
    let two = Pull {
        part_bytes: 1 << 20,
        ..pull(20, 0)
    };
    let both = ist_chunk(20, vec![record(2, LONG_BYTES), record(4, 200)]);
    assert_eq!(answer(&storage, two), Some(both), "none without a seqno");
    assert_eq!(answer(&storage, pull(30, 0)), None, "no entry has it");
}

#[test]
fn what_cannot_be_read_is_told_and_not_looked_for_again() {
    let disk = MemoryDisk::new();
    let mut storage = storage(&disk);
    disk.set_fail_reads(true);
    assert_eq!(answer(&storage, pull(20, 0)), None);
    assert!(storage.take_read_error().is_some());
    disk.set_fail_reads(false);
    let first = trireme_replicator::History::first_seqno(&storage);
    assert_eq!(first, Some(21), "nothing up to this one is served");
    let above = ist_chunk(40, vec![record(4, 200)]);
    assert_eq!(answer(&storage, pull(40, 0)), Some(above));
    for other in [10, 50, i64::MAX] {
        storage.note_unreadable(other);
        let first = trireme_replicator::History::first_seqno(&storage);
        assert_eq!(
            first,
            Some(21),
            "a lower one, and those that it has not: {other}"
        );
    }
}

#[test]
fn parts_that_are_not_what_was_written_are_noticed_with_the_last() {
    let disk = MemoryDisk::new();
    let mut storage = storage(&disk);
    let inside = &payload(LONG_BYTES)[50_000..50_100];
    let at = |name: &String| {
        let bytes = disk.contents(name)?;
        bytes.windows(inside.len()).position(|of| of == inside)
    };
    let names = disk.list().expect("a list");
    let (name, at) = (names.iter())
        .find_map(|name| Some((name, at(name)?)))
        .expect("it was written out");
    disk.flip_bit(name, at, 3);
    let offsets = (0..LONG_BYTES as u32).step_by(PART_BYTES as usize);
    let answers: Vec<bool> = offsets
        .map(|offset| answer(&storage, pull(20, offset)).is_some())
        .collect();
    assert_eq!(answers, [true, true, true, false]);
    assert!(storage.take_read_error().is_some());
    assert_eq!(answer(&storage, pull(20, 0)), None);
}

#[test]
fn what_was_read_of_a_suffix_that_is_gone_is_not_given() {
    let mut storage = storage(&MemoryDisk::new());
    let job = |storage: &Storage| begin(storage, pull(40, 0)).ok().expect("there");
    let early = job(&storage);
    storage.truncate(4).expect("truncated");
    assert!(end(&storage, early.run()).is_none());
    let late = job(&storage);
    let checkpoint = Checkpoint {
        history: Uuid([8; 16]),
        ..Checkpoint::default()
    };
    (storage.begin(&checkpoint, Forgotten::default())).expect("a log in memory");
    assert!(end(&storage, late.run()).is_none());
}

#[test]
fn a_peer_is_served_once_at_a_time() {
    let storage = storage(&MemoryDisk::new());
    let mut serving = Serving::default();
    let other = Pull {
        to: Incarnation(Uuid([1; 16])),
        ..pull(10, 0)
    };
    let Some(NextStep::Job(job)) = serving.pulled(pull(10, 0), &storage, true) else {
        panic!("it can be read");
    };
    assert!(serving.pulled(pull(20, 0), &storage, true).is_none());
    let others = serving.pulled(other, &storage, true);
    assert!(matches!(others, Some(NextStep::Job(_))));
    serving.job_ended(job.run());
    assert_eq!(serving.take_answers(&storage).len(), 1);
    assert!(serving.pulled(pull(20, 0), &storage, true).is_some());
}
