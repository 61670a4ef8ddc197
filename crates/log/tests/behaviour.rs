//! What the log promises its owner, on a healthy disk.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use trireme_log::{Disk, Durability, Log, LogConfig, LogError, MemoryDisk, OsDisk, Outcome};

use common::{segments, write_staged};

const IDENTITY: [u8; 16] = [7; 16];

fn config(dir: &Path, size_bytes: u64) -> LogConfig {
    LogConfig::new(dir.into(), size_bytes, IDENTITY, Durability::Os)
}

fn outcome(seqno: i64) -> Outcome {
    Outcome {
        seqno,
        flags: 0,
        depends_on: seqno - 1,
    }
}

#[test]
fn entries_are_readable_at_once_and_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(config(dir.path(), 1 << 20)).unwrap();
    assert_eq!((log.next_position(), log.first_position()), (None, None));
    log.append(5, &[b"ab", b"cd"]).unwrap();
    assert_eq!(log.read(5).unwrap().unwrap(), b"abcd", "from the buffer");
    log.append(6, &[b"e"]).unwrap();
    log.write_out().unwrap();
    assert_eq!(log.read(5).unwrap().unwrap(), b"abcd", "from the file");
    assert!(matches!(
        log.append(8, &[]),
        Err(LogError::NotContiguous {
            expected: 7,
            got: 8
        })
    ));
    assert!(matches!(
        log.set_outcome(7, outcome(1)),
        Err(LogError::NoSuchPosition { position: 7 })
    ));
    log.set_outcome(5, outcome(1)).unwrap();
    assert!(matches!(
        log.set_outcome(6, outcome(1)),
        Err(LogError::SeqnoOrder { .. })
    ));
    log.set_outcome(6, outcome(2)).unwrap();
    log.flush().unwrap();
    drop(log);
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o177, 0, "not more than 0600");
    }
    assert_eq!(Log::identity_in(dir.path()).unwrap(), Some(IDENTITY));
    let (mut log, recovered) = Log::open(config(dir.path(), 1 << 20)).unwrap();
    assert_eq!((recovered.dropped_bytes, recovered.damage.len()), (0, 0));
    assert_eq!(
        (log.first_position(), log.last_position()),
        (Some(5), Some(6))
    );
    assert_eq!(
        (log.outcome(6), log.position_of_seqno(2)),
        (Some(outcome(2)), Some(6))
    );
    let run = log.read_run_from_seqno(1, 4).unwrap();
    assert_eq!(run.len(), 1, "the second would exceed max_bytes");
    assert_eq!(log.read_run_from_seqno(1, 5).unwrap().len(), 2);
    assert_eq!(log.read_run_from_seqno(1, 0).unwrap(), run, "at least one");
    log.append(7, &[b"after"]).unwrap();
    assert_eq!(log.read(7).unwrap().unwrap(), b"after");
}

/// A run is read in pieces, over the ends of segments and into what is not written yet.
#[test]
fn a_run_holds_what_its_entries_hold_one_by_one() {
    let disk = MemoryDisk::default();
    let mut config = config(Path::new(""), 64 << 20);
    config.segment_bytes = 700 << 10;
    let mut log = Log::create_on(Box::new(disk.clone()), config).unwrap();
    for position in 1..=300_u64 {
        let length = (position * 7919 % 9000) as usize;
        log.append(position, &[&vec![position as u8; length]])
            .unwrap();
        log.set_outcome(position, outcome(position as i64)).unwrap();
        if position == 280 {
            log.write_out().unwrap();
        }
    }
    let one_by_one: Vec<Vec<u8>> = (1..=300).map(|at| log.read(at).unwrap().unwrap()).collect();
    for max_bytes in [0, 1000, 300_000, u64::MAX] {
        let mut next = 1;
        while next <= 300 {
            let run = log.read_run(next, max_bytes).unwrap();
            for item in &run {
                assert_eq!(item.position, next);
                assert_eq!(item.payload, one_by_one[next as usize - 1]);
                next += 1;
            }
            let bytes: usize = run.iter().map(|item| item.payload.len()).sum();
            assert!(run.len() == 1 || bytes as u64 <= max_bytes);
        }
    }
    assert_eq!(log.read_between(7, 9, u64::MAX).unwrap().len(), 3);
    assert_eq!(log.read_between(299, 400, u64::MAX).unwrap().len(), 2);
    // Now a read in pieces fails, and every other record cannot be read: a run ends there.
    disk.set_fail_reads(true);
    let mut given = 0;
    for position in 1..=270 {
        let run = log.read_run(position, u64::MAX);
        assert_eq!(run.is_ok(), log.read(position).is_ok(), "{position}");
        for item in run.unwrap_or_default() {
            assert_eq!(item.payload, one_by_one[item.position as usize - 1]);
            given += 1;
        }
    }
    assert!(given > 0);
}

#[test]
fn truncated_entries_never_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(config(dir.path(), 1 << 20)).unwrap();
    for position in 1..=9 {
        log.append(position, &[b"old"]).unwrap();
        log.set_outcome(position, outcome(position as i64)).unwrap();
    }
    log.truncate_after(20).unwrap();
    assert_eq!(log.last_position(), Some(9));
    log.truncate_after(4).unwrap();
    assert_eq!((log.last_position(), log.last_seqno()), (Some(4), Some(4)));
    drop(log);
    let (mut log, _) = Log::open(config(dir.path(), 1 << 20)).unwrap();
    assert_eq!((log.last_position(), log.read(5).unwrap()), (Some(4), None));
    log.append(5, &[b"new"]).unwrap();
    log.write_out().unwrap();
    let (log, _) = Log::open(config(dir.path(), 1 << 20)).unwrap();
    assert_eq!(
        (log.read(5).unwrap().unwrap(), log.outcome(5)),
        (b"new".to_vec(), None)
    );
}

#[test]
fn reset_and_create_begin_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(config(dir.path(), 1 << 20)).unwrap();
    log.append(1, &[b"old"]).unwrap();
    log.save_state(b"ballot").unwrap();
    log.reset(1000).unwrap();
    assert!(matches!(
        log.append(2, &[]),
        Err(LogError::NotContiguous { expected: 1000, .. })
    ));
    drop(log);
    let (mut log, recovered) = Log::open(config(dir.path(), 1 << 20)).unwrap();
    assert_eq!(
        (recovered.last_position, recovered.next_position),
        (None, Some(1000))
    );
    assert_eq!(
        (log.read(1).unwrap(), log.state()),
        (None, Some(b"ballot".as_slice()))
    );
    log.put_snapshot(999, b"from the donor").unwrap();
    log.append(1000, &[b"new"]).unwrap();
    log.write_out().unwrap();
    let stranger = LogConfig {
        identity: [8; 16],
        ..config(dir.path(), 1 << 20)
    };
    assert!(matches!(
        Log::open(stranger.clone()),
        Err(LogError::OtherIdentity { .. })
    ));
    let (log, _) = Log::open(config(dir.path(), 1 << 20)).unwrap();
    assert_eq!(
        log.read(1000).unwrap().unwrap(),
        b"new",
        "untouched by the stranger"
    );
    assert_eq!(
        log.snapshot_at(1000).unwrap(),
        Some((999, b"from the donor".to_vec()))
    );
    std::fs::write(dir.path().join("other.log"), "not ours").unwrap();
    let mut log = Log::create(config(dir.path(), 1 << 20)).unwrap();
    assert_eq!(log.state(), Some(b"ballot".as_slice()), "the same history");
    log.save_state(b"ballot 2").unwrap();
    let disk = OsDisk::new(dir.path());
    let saved = |identity| Log::state_on(&disk, identity).unwrap();
    assert_eq!(saved([7; 16]), Some(b"ballot 2".to_vec()));
    assert_eq!(saved([8; 16]), None);
    Log::create(stranger.clone()).unwrap();
    let (log, _) = Log::open(stranger).unwrap();
    assert_eq!((log.next_position(), log.state()), (None, None));
    assert!(dir.path().join("other.log").exists());
}

/// A crash in the middle of `reset` or `create` leaves old segments behind.
#[test]
fn remnants_of_an_earlier_log_are_removed() {
    let disk = MemoryDisk::new();
    let create = |identity| {
        let config = LogConfig {
            identity,
            ..config(Path::new(""), 1 << 20)
        };
        Log::create_on(Box::new(disk.clone()), config).unwrap()
    };
    let mut log = create([1; 16]);
    log.append(1, &[b"old"]).unwrap();
    log.flush().unwrap();
    let old = (
        "trireme-000000000001.log",
        disk.contents("trireme-000000000001.log").unwrap(),
    );
    log.reset(10).unwrap();
    assert_eq!(disk.list().unwrap(), ["trireme-000000000002.log"]);
    for name in ["trireme-000000000003.log", "trireme-000000000004.log"] {
        // First the remnant of a reset, then those of creating a log of another identity.
        let identity = [if name.contains('3') { 1 } else { 2 }; 16];
        drop(create(identity));
        assert_eq!(segments(&disk), [name]);
        disk.set_contents(old.0, old.1.clone());
        let config = LogConfig {
            identity,
            ..config(Path::new(""), 1 << 20)
        };
        let (log, recovered) = Log::open_on(Box::new(disk.clone()), config).unwrap();
        assert_eq!((recovered.damage.len(), log.read(1).unwrap()), (0, None));
        assert_eq!(segments(&disk), [name]);
    }
}

#[test]
fn an_absurdly_small_gcache_keeps_and_serves_what_it_must() {
    for size_bytes in [0, 1, 16 << 10] {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::create(config(dir.path(), size_bytes)).unwrap();
        let payload = [0x55; 1000];
        for position in 1..=1000 {
            log.append(position, &[&payload]).unwrap();
            log.set_outcome(position, outcome(position as i64)).unwrap();
        }
        assert_eq!(
            log.first_position(),
            Some(1),
            "nothing goes before pins are set"
        );
        assert_eq!(log.first_seqno_kept(), Some(1));
        let served = log.first_seqno();
        if size_bytes < 1000 {
            assert_eq!(served, None, "nothing is served");
        } else {
            assert!(served > Some(980) && served < Some(995), "{served:?}");
        }
        log.set_pins(900).unwrap();
        let first = log.first_position().unwrap();
        assert!(first > 700 && first <= 900, "{first}");
        log.set_pins(u64::MAX).unwrap();
        assert!(log.bytes_kept() <= 250 << 10, "{}", log.bytes_kept());
        let names = OsDisk::new(dir.path()).list().unwrap();
        assert!(names.len() <= 3, "{names:?}");
        drop(log);
        let (log, recovered) = Log::open(config(dir.path(), size_bytes)).unwrap();
        // The unwritten buffer went with the process; all else is whole.
        assert_eq!((recovered.dropped_bytes, recovered.damage.len()), (0, 0));
        assert_eq!(
            log.read(log.last_position().unwrap()).unwrap().unwrap(),
            payload
        );
    }
}

#[test]
fn retention_keeps_the_newest_bytes() {
    let disk = MemoryDisk::new();
    let mut log = Log::create_on(Box::new(disk.clone()), config(Path::new(""), 1 << 20)).unwrap();
    for position in 1..=4000u64 {
        log.append(position, &[&[1; 1000]]).unwrap();
        log.set_pins(position).unwrap();
    }
    assert!(
        (1 << 20..(1 << 20) + (300 << 10)).contains(&log.bytes_kept()),
        "{}",
        log.bytes_kept()
    );
    assert!(log.read(log.first_position().unwrap()).unwrap().is_some());
    assert_eq!(log.read(1).unwrap(), None);
    assert!(disk.list().unwrap().len() < 12);
    log.set_outcome(1, outcome(1)).unwrap();
    assert_eq!(
        log.outcome(1),
        None,
        "an outcome for what is gone is ignored"
    );
}

/// The outcome record may itself begin the segment that pushes its entry out.
#[test]
fn an_outcome_does_not_outlive_its_entry() {
    let config = LogConfig {
        segment_bytes: 0,
        ..config(Path::new(""), 1)
    };
    let mut log = Log::create_on(Box::new(MemoryDisk::new()), config).unwrap();
    log.set_pins(u64::MAX).unwrap();
    for position in 1..=3 {
        log.append(position, &[b"payload"]).unwrap();
    }
    log.set_outcome(2, outcome(1)).unwrap();
    assert_eq!((log.read(2).unwrap(), log.outcome(2)), (None, None));
    assert_eq!((log.last_seqno(), log.position_of_seqno(1)), (None, None));
}

#[test]
fn a_record_larger_than_a_segment_gets_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(config(dir.path(), 1)).unwrap();
    let big: Vec<u8> = (0..5_000_003u32).map(|i| (i / 7) as u8).collect();
    log.append(1, &[b"small"]).unwrap();
    log.append(2, &[&big[..3_000_000], &big[3_000_000..]])
        .unwrap();
    log.append(3, &[b"small"]).unwrap();
    assert_eq!(log.read(2).unwrap().unwrap(), big);
    log.write_out().unwrap();
    let (log, _) = Log::open(config(dir.path(), 1)).unwrap();
    assert_eq!(log.read(2).unwrap().unwrap(), big);
    assert_eq!(log.read_run(1, u64::MAX).unwrap().len(), 3);
}

#[test]
fn a_snapshot_is_wanted_once_per_segment() {
    let mut log = Log::create_on(Box::new(MemoryDisk::new()), config(Path::new(""), 1)).unwrap();
    let mut wanted = 0;
    for position in 1..=1000 {
        log.append(position, &[&[0; 1000]]).unwrap();
        if log.wants_snapshot() {
            wanted += 1;
            log.put_snapshot(position, &position.to_le_bytes()).unwrap();
        }
    }
    assert!((8..=16).contains(&wanted), "{wanted}");
    let (at, state) = log.snapshot_at(500).unwrap().unwrap();
    assert!(at <= 500 && at > 300);
    assert_eq!(state, at.to_le_bytes());
    assert!(matches!(
        log.put_snapshot(1001, b""),
        Err(LogError::NoSuchPosition { .. })
    ));
}

/// Found by the simulator (seed 3400018312): a large control state, and staged payloads, each of which begins a
/// segment.
#[test]
fn checkpoints_larger_than_segments_take_at_most_half_of_the_log() {
    let config = LogConfig {
        segment_bytes: 1024,
        ..LogConfig::new("".into(), 1 << 30, IDENTITY, Durability::Os)
    };
    let mut log = Log::create_on(Box::new(MemoryDisk::new()), config).unwrap();
    let (entry, snapshot) = ([0; 500], [0; 20_000]);
    let mut snapshots = 0;
    for position in 1..=1000 {
        log.append(position, &[&entry]).unwrap();
        if log.wants_snapshot() {
            snapshots += 1;
            log.put_snapshot(position, &snapshot).unwrap();
        }
    }
    assert!((15..=30).contains(&snapshots), "{snapshots}");
}

#[test]
fn a_missing_directory_or_log_is_said_clearly() {
    let dir = tempfile::tempdir().unwrap();
    let Err(e) = Log::open(config(dir.path(), 1)) else {
        panic!("opened nothing")
    };
    assert!(matches!(e, LogError::NoLog { .. }));
    let Err(e) = Log::create(config(&dir.path().join("missing"), 1)) else {
        panic!("created nowhere")
    };
    assert!(e.to_string().contains("missing"), "{e}");
    assert_eq!(Log::identity_in(dir.path()).unwrap(), None);
}

/// Everything that a payload of these bytes leaves behind, staged or not.
fn appended(stages: bool, payload: &[u8]) -> (MemoryDisk, Log) {
    let disk = MemoryDisk::new();
    let config = LogConfig::new("".into(), 1 << 20, IDENTITY, Durability::Os);
    let mut log = Log::create_on(Box::new(disk.clone()), config).unwrap();
    log.append(1, &[b"one"]).unwrap();
    let staged = stages.then(|| {
        let mut staged = log.stage(4).unwrap();
        let (first, rest) = payload.split_at(payload.len() / 3);
        // The first bytes are not known yet.
        let unknown = [&[0; 2], &first[2..]].concat();
        write_staged(&mut staged, &unknown);
        write_staged(&mut staged, rest);
        staged
    });
    // Meanwhile.
    log.append(2, &[b"two"]).unwrap();
    log.set_outcome(1, outcome(1)).unwrap();
    match staged {
        Some(staged) => {
            let crc = crc32c::crc32c(payload);
            let appended = log.append_staged(3, b"head", 2, payload, crc, staged);
            appended.unwrap();
        }
        None => log.append(3, &[b"head", payload]).unwrap(),
    }
    log.set_outcome(2, outcome(2)).unwrap();
    log.append(4, &[b"four"]).unwrap();
    log.set_outcome(3, outcome(3)).unwrap();
    (disk, log)
}

#[test]
fn a_staged_entry_is_like_any_other() {
    for len in [10, 11, 100_000] {
        let payload: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let whole = [b"head", &payload[..]].concat();
        let (disk, mut log) = appended(true, &payload);
        assert_eq!(log.read(3).unwrap().unwrap(), whole);
        assert_eq!(log.read(4).unwrap().unwrap(), b"four");
        log.flush().unwrap();
        drop(log);
        let config = LogConfig::new("".into(), 1 << 20, IDENTITY, Durability::Os);
        let (log, recovered) = Log::open_on(Box::new(disk.clone()), config).unwrap();
        assert_eq!((recovered.dropped_bytes, recovered.damage.len()), (0, 0));
        let (_, plain) = appended(false, &payload);
        for position in 1..=4 {
            assert_eq!(log.read(position).unwrap(), plain.read(position).unwrap());
            assert_eq!(log.outcome(position), plain.outcome(position));
        }
        let is_staged = |name: &String| name.contains("staged");
        assert!(!disk.list().unwrap().iter().any(is_staged));
    }
}

#[test]
fn what_was_staged_in_vain_is_removed() {
    let disk = MemoryDisk::new();
    let config = || LogConfig::new("".into(), 1 << 20, IDENTITY, Durability::Os);
    let mut log = Log::create_on(Box::new(disk.clone()), config()).unwrap();
    log.append(1, &[b"one"]).unwrap();
    let mut staged = log.stage(4).unwrap();
    write_staged(&mut staged, b"pay");
    assert_eq!(disk.list().unwrap().len(), 2);
    drop(staged);
    assert_eq!(disk.list().unwrap().len(), 1);
    // A process that died.
    std::mem::forget(log.stage(4).unwrap());
    log.write_out().unwrap();
    drop(log);
    let (mut log, _) = Log::open_on(Box::new(disk.clone()), config()).unwrap();
    assert_eq!(disk.list().unwrap().len(), 1);
    // Not all of it, or for another head: as if it were not there.
    for (head, piece) in [(4, &b"pay"[..]), (5, b"payload")] {
        let position = log.next_position().unwrap();
        let mut staged = log.stage(head).unwrap();
        write_staged(&mut staged, piece);
        let appended = log.append_staged(position, b"head", 0, b"payload", 0, staged);
        appended.unwrap();
        assert_eq!(log.read(position).unwrap().unwrap(), b"headpayload");
    }
    assert_eq!(disk.list().unwrap().len(), 1);
}

/// It is renamed before its bytes have reached the disk.
#[test]
fn a_staged_entry_that_a_power_loss_has_torn_is_dropped() {
    for survives in 0..8 {
        let payload: Vec<u8> = (0..20_000).map(|at| at as u8).collect();
        let (disk, log) = appended(true, &payload);
        drop(log);
        let mut page = 0;
        disk.lose_power(|| {
            page += 1;
            page % 8 != survives
        });
        let config = LogConfig::new("".into(), 1 << 20, IDENTITY, Durability::Os);
        let Ok((log, _)) = Log::open_on(Box::new(disk), config) else {
            continue; // nothing at all was left
        };
        if let Ok(Some(read)) = log.read(3) {
            assert_eq!(read, [b"head", &payload[..]].concat());
        }
    }
}
