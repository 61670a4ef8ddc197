//! The bytes on disk. The golden files come from a second encoder, written after docs/log-format.md alone; a change
//! of them is a change of the format and needs a new version.

use trireme_log::{Disk, Durability, Log, LogConfig, MemoryDisk, Outcome};

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/golden/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let text: String = std::fs::read_to_string(path)
        .unwrap()
        .split_whitespace()
        .collect();
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
        .collect()
}

fn config() -> LogConfig {
    let identity = std::array::from_fn(|i| i as u8);
    LogConfig {
        segment_bytes: 384,
        ..LogConfig::new("".into(), 1 << 20, identity, Durability::Os)
    }
}

#[test]
fn the_log_writes_the_bytes_specified() {
    let disk = MemoryDisk::new();
    let mut log = Log::create_on(Box::new(disk.clone()), config()).unwrap();
    log.append(100, &[b"first", b" entry"]).unwrap();
    log.append(101, &[]).unwrap();
    log.set_outcome(
        100,
        Outcome {
            seqno: 7,
            flags: Outcome::FAILED,
            depends_on: -1,
        },
    )
    .unwrap();
    log.flush().unwrap();
    log.put_snapshot(100, b"state").unwrap();
    log.append(102, &[b"dropped!"]).unwrap();
    log.truncate_after(101).unwrap();
    log.append(102, &[b"kept"]).unwrap();
    log.write_out().unwrap();
    log.save_state(b"ballot 1").unwrap();
    log.save_state(b"ballot 2, promise 3").unwrap();
    assert_eq!(
        disk.contents("trireme-000000000001.log").unwrap(),
        golden("segment-1")
    );
    assert_eq!(
        disk.contents("trireme-000000000002.log").unwrap(),
        golden("segment-2")
    );
    let state = disk.contents("trireme-state.log").unwrap();
    for (slot, name) in ["state-slot-0", "state-slot-1"].into_iter().enumerate() {
        let bytes = golden(name);
        assert_eq!(state[slot * 16384..][..bytes.len()], bytes, "{name}");
    }
    assert_eq!(disk.list().unwrap().len(), 3);
}

#[test]
fn the_golden_files_are_read() {
    let disk = MemoryDisk::new();
    disk.set_contents("trireme-000000000001.log", golden("segment-1"));
    disk.set_contents("trireme-000000000002.log", golden("segment-2"));
    let mut state = golden("state-slot-0");
    state.resize(16384, 0);
    state.extend(golden("state-slot-1"));
    disk.set_contents("trireme-state.log", state);
    let (log, recovered) = Log::open_on(Box::new(disk), config()).unwrap();
    assert_eq!(
        (recovered.first_position, recovered.last_position),
        (Some(100), Some(102))
    );
    assert_eq!((recovered.dropped_bytes, recovered.damage.len()), (0, 0));
    assert_eq!(log.read(100).unwrap().unwrap(), b"first entry");
    assert_eq!(log.read(101).unwrap().unwrap(), b"");
    assert_eq!(log.read(102).unwrap().unwrap(), b"kept");
    assert_eq!(
        log.outcome(100),
        Some(Outcome {
            seqno: 7,
            flags: Outcome::FAILED,
            depends_on: -1
        })
    );
    assert_eq!(
        log.snapshot_at(101).unwrap(),
        Some((100, b"state".to_vec()))
    );
    assert_eq!(log.state(), Some(b"ballot 2, promise 3".as_slice()));
}
