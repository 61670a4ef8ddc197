//! `Log::open` on damaged files: one or two segments and the state file.
//!
//! Random bytes do not get past checksums, so the target repairs them where the first byte of the input says so
//! (offsets: docs/log-format.md). Whatever was opened must then be readable, writable, and open again.
#![no_main]

use std::path::PathBuf;

use trireme_log::{Durability, Log, LogConfig, LogError, MemoryDisk};

const IDENTITY: [u8; 16] = *b"fuzzed identity!";
const REPAIR_HEADERS: u8 = 1;
const REPAIR_RECORDS: u8 = 2;
const TWO_SEGMENTS: u8 = 4;
const STATE: u8 = 8;

const HEADER_BYTES: usize = 128;
const RECORD_HEADER_BYTES: usize = 32;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn repair_header(segment: &mut [u8], number: u64) {
    if segment.len() < HEADER_BYTES {
        return;
    }
    put(segment, 0, b"TRIRMLOG\x01\0\0\0\x80\0\0\0");
    put(segment, 16, &IDENTITY);
    put(segment, 32, &number.to_le_bytes());
    let crc = crc32c::crc32c(&segment[..124]);
    put(segment, 124, &crc.to_le_bytes());
}

fn repair_records(segment: &mut [u8]) {
    if segment.len() < HEADER_BYTES {
        return;
    }
    let start = u64_at(segment, 48);
    let mut at = HEADER_BYTES;
    while at + RECORD_HEADER_BYTES <= segment.len() {
        let record = &mut segment[at..];
        let body_len = u64_at(record, 8) >> 32;
        let end = RECORD_HEADER_BYTES as u64 + body_len.next_multiple_of(8);
        if end <= record.len() as u64 {
            let end = end as usize;
            record[RECORD_HEADER_BYTES + body_len as usize..end].fill(0);
            let body_crc = crc32c::crc32c(&record[RECORD_HEADER_BYTES..end]);
            put(record, 4, &body_crc.to_le_bytes());
        }
        put(record, 10, &[0, 0]);
        let address = start.wrapping_add(at as u64).to_le_bytes();
        let crc = crc32c::crc32c_append(crc32c::crc32c(&address), &record[4..RECORD_HEADER_BYTES]);
        put(record, 0, &crc.to_le_bytes());
        if end > record.len() as u64 {
            break;
        }
        at += end as usize;
    }
}

fn open(disk: &MemoryDisk) -> Result<Log, LogError> {
    let config = LogConfig::new(PathBuf::new(), 1 << 20, IDENTITY, Durability::Os);
    Log::open_on(Box::new(disk.clone()), config).map(|(log, _)| log)
}

trireme_fuzz::fuzz!(|bytes| {
    let Some((&flags, mut rest)) = bytes.split_first() else {
        return;
    };
    let disk = MemoryDisk::new();
    if flags & STATE != 0 {
        let (state, segments) = rest.split_at(rest.len() / 3);
        disk.set_contents("trireme-state.log", state.to_vec());
        rest = segments;
    }
    let segments = if flags & TWO_SEGMENTS != 0 {
        let (first, second) = rest.split_at(rest.len() / 2);
        vec![first, second]
    } else {
        vec![rest]
    };
    for (number, segment) in (1..).zip(segments) {
        let mut segment = segment.to_vec();
        if flags & REPAIR_HEADERS != 0 {
            repair_header(&mut segment, number);
        }
        if flags & REPAIR_RECORDS != 0 {
            repair_records(&mut segment);
        }
        disk.set_contents(&format!("trireme-{number:012}.log"), segment);
    }

    let Ok(mut log) = open(&disk) else {
        return;
    };
    if let Some(first) = log.first_position() {
        log.read_run(first, 1 << 20)
            .expect("what was opened can be read");
    }
    let position = log.next_position().unwrap_or(1);
    if log.append(position, &[b"payload"]).is_ok() {
        log.flush().expect("a disk in memory takes everything");
        let log = open(&disk).expect("a repaired log opens again");
        let payload = log.read(position).expect("an entry can be read");
        assert_eq!(payload.as_deref(), Some(&b"payload"[..]));
    }
});
