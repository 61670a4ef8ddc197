//! Crashes, bad disks and full disks.

mod common;

use trireme_log::{Disk, Durability, Log, LogConfig, LogError, Lost, MemoryDisk, Recovered};

use common::{change, contents, fill, payload, segments, verify};

const SEGMENT_BYTES: u64 = 1024;

fn config(durability: Durability) -> LogConfig {
    LogConfig {
        segment_bytes: SEGMENT_BYTES,
        ..LogConfig::new("".into(), 1 << 20, [7; 16], durability)
    }
}

fn create(disk: &MemoryDisk) -> Log {
    Log::create_on(Box::new(disk.clone()), config(Durability::Os)).unwrap()
}

fn open(disk: &MemoryDisk) -> Result<(Log, Recovered), LogError> {
    Log::open_on(Box::new(disk.clone()), config(Durability::Os))
}

#[test]
fn a_tail_torn_at_any_byte_is_dropped() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=2);
    let name = segments(&disk).pop().unwrap();
    let before = disk.contents(&name).unwrap().len();
    log.append(3, &[&payload(3)]).unwrap();
    log.write_out().unwrap();
    let after = disk.contents(&name).unwrap().len();
    for length in before..=after {
        for zeroed in [false, true] {
            let disk = disk.copy();
            change(&disk, &name, |bytes| {
                bytes.truncate(length);
                if zeroed {
                    bytes.resize(after, 0);
                }
            });
            let (mut log, recovered) = open(&disk).unwrap();
            // The last bytes of the record are padding, zero anyway.
            let whole = length == after || (zeroed && length >= after - 4);
            assert_eq!(
                recovered.last_position,
                Some(if whole { 3 } else { 2 }),
                "{length}"
            );
            assert!(recovered.damage.is_empty());
            assert_eq!(
                recovered.dropped_bytes > 0,
                !whole && length > before,
                "{length}"
            );
            verify(&log);
            if !whole {
                fill(&mut log, 3..=3);
            }
            fill(&mut log, 4..=4);
            let (log, recovered) = open(&disk).unwrap();
            assert_eq!(
                (recovered.last_position, recovered.dropped_bytes),
                (Some(4), 0)
            );
            verify(&log);
        }
    }
}

#[test]
fn a_torn_header_of_a_new_segment_is_dropped() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    while segments(&disk).len() < 2 {
        let next = log.next_position().unwrap_or(1);
        log.append(next, &[&payload(next)]).unwrap();
    }
    let last = log.last_position().unwrap() - 1;
    log.write_out().unwrap();
    let name = segments(&disk).pop().unwrap();
    for length in 0..=128 {
        let disk = disk.copy();
        change(&disk, &name, |bytes| bytes.truncate(length));
        let (mut log, recovered) = open(&disk).unwrap();
        assert_eq!(recovered.last_position, Some(last), "{length}");
        assert_eq!(recovered.damage.len(), 0);
        fill(&mut log, last + 1..=last + 20);
        assert_eq!(open(&disk).unwrap().1.last_position, Some(last + 20));
    }
}

/// Every bit of a log of several segments is flipped in turn: never a panic, never wrong data, always a word about
/// it.
#[test]
fn every_flipped_bit_is_noticed() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=8);
    log.flush().unwrap();
    fill(&mut log, 9..=16);
    let names = segments(&disk);
    assert!(names.len() >= 3);
    for name in &names {
        for at in 0..disk.contents(name).unwrap().len() {
            for bit in [0, 7] {
                let disk = disk.copy();
                change(&disk, name, |bytes| bytes[at] ^= 1 << bit);
                match open(&disk) {
                    Ok((log, recovered)) => {
                        let noticed = recovered.dropped_bytes > 0 || !recovered.damage.is_empty();
                        assert!(noticed, "{name} byte {at} bit {bit}");
                        verify(&log);
                        let state = (log.first_position(), log.next_position());
                        let (log, recovered) = open(&disk).unwrap();
                        assert_eq!(
                            (log.first_position(), log.next_position()),
                            state,
                            "{name} byte {at}"
                        );
                        assert!(recovered.damage.is_empty() && recovered.dropped_bytes == 0);
                    }
                    Err(e) => assert!(
                        matches!(e, LogError::NewerFormat { .. }) && at < 12,
                        "{name} {at}: {e}"
                    ),
                }
            }
        }
    }
}

#[test]
fn a_bit_flipped_under_an_open_log_is_reported_by_read() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=20);
    let name = segments(&disk).remove(0);
    disk.flip_bit(&name, 200, 0);
    let Err(LogError::Corrupt { file, offset, .. }) = log.read(1) else {
        panic!("read bad data")
    };
    assert_eq!((file, offset), (disk.path(&name), 128));
    assert_eq!(log.read(2).unwrap().unwrap(), payload(2));
}

#[test]
fn flushed_data_gone_bad_costs_the_older_part_only() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=20);
    log.flush().unwrap();
    fill(&mut log, 21..=21);
    let names = segments(&disk);
    let bad = disk.contents(&names[1]).unwrap();
    change(&disk, &names[1], |bytes| bytes[200] ^= 1);
    let (mut log, recovered) = open(&disk).unwrap();
    let [found] = &recovered.damage[..] else {
        panic!("{recovered:?}")
    };
    assert_eq!(
        (found.lost, found.was_flushed, found.offset),
        (Lost::Older, true, 176)
    );
    assert_eq!(found.file, disk.path(&names[1]));
    assert!(!recovered.may_have_forgotten());
    assert_eq!(recovered.last_position, Some(21));
    assert!(recovered.first_position > Some(5));
    assert_eq!(found.set_aside.len(), 2);
    assert_eq!(
        disk.contents("trireme-damaged-000000000002-0.log")
            .unwrap()
            .len(),
        bad.len()
    );
    verify(&log);
    assert_eq!(log.outcome(21).unwrap().seqno, 21);
    assert_eq!(
        log.first_seqno_kept(),
        recovered.first_position.map(|p| p as i64)
    );
    fill(&mut log, 22..=40);
    verify(&open(&disk).unwrap().0);
}

#[test]
fn flushed_data_gone_bad_in_the_last_segment_may_mean_forgetting() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=2);
    log.flush().unwrap();
    fill(&mut log, 3..=3);
    let name = segments(&disk).remove(0);
    change(&disk, &name, |bytes| bytes[200] ^= 1);
    let (log, recovered) = open(&disk).unwrap();
    assert!(recovered.may_have_forgotten());
    assert_eq!(
        (recovered.damage[0].offset, log.last_position()),
        (128, None)
    );
    assert_eq!(
        recovered.damage[0].set_aside,
        [disk.path("trireme-damaged-000000000001-128.log")]
    );
}

/// Only what is written later tells that something had been flushed (docs/log-format.md, "When the disk fails").
#[test]
fn what_the_last_flush_wrote_looks_as_if_it_had_not() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=3);
    log.flush().unwrap();
    let name = segments(&disk).remove(0);
    change(&disk, &name, |bytes| bytes[200] ^= 1);
    let (_, recovered) = open(&disk).unwrap();
    assert_eq!(recovered.damage[0].lost, Lost::Newer);
    assert!(!recovered.may_have_forgotten());
}

/// The owner can note what was found before the repair takes the evidence away.
#[test]
fn damage_is_reported_before_it_is_repaired() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=20);
    log.flush().unwrap();
    fill(&mut log, 21..=40);
    log.save_state(b"at first").unwrap();
    let names = segments(&disk);
    for (spoilt, offset) in [
        (&names[1], 200),             // the older part
        (names.last().unwrap(), 200), // the end
        (&names[1], 40),              // a segment's header
        (names.last().unwrap(), 40),
    ] {
        let disk = disk.copy();
        change(&disk, spoilt, |bytes| bytes[offset] ^= 1);
        let before = contents(&disk);
        let config = config(Durability::Os);
        let mut examined = Log::examine_on(Box::new(disk.clone()), config).unwrap();
        assert_eq!(contents(&disk), before, "{spoilt} {offset}");
        assert_eq!(examined.state(), Some(&b"at first"[..]));
        let reported = format!("{:?}", examined.found());
        examined.save_state(b"damaged").unwrap();
        let (log, found) = examined.open().unwrap();
        assert_eq!(format!("{found:?}"), reported);
        assert_eq!(log.state(), Some(&b"damaged"[..]));
        verify(&log);
        for damage in &found.damage {
            for path in &damage.set_aside {
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(disk.contents(name).is_some(), "{name} is where it was said");
            }
        }
        let (log, found) = open(&disk).unwrap();
        assert!(found.damage.is_empty(), "nothing tells of it any more");
        assert_eq!(log.state(), Some(&b"damaged"[..]));
    }
}

#[test]
fn a_segment_taken_away_is_reported() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=20);
    log.flush().unwrap();
    fill(&mut log, 21..=40);
    let names = segments(&disk);
    let last = names.len() - 1;
    disk.remove(&names[1]).unwrap();
    let (log, recovered) = open(&disk).unwrap();
    assert_eq!(
        (recovered.damage[0].lost, recovered.last_position),
        (Lost::Older, Some(40))
    );
    assert!(
        recovered.damage[0].reason.contains("missing"),
        "{recovered:?}"
    );
    verify(&log);
    // Not flushed: the log ends before the gap.
    disk.remove(&names[last - 1]).unwrap();
    let (log, recovered) = open(&disk).unwrap();
    assert_eq!(recovered.damage[0].lost, Lost::Newer);
    assert!(!recovered.may_have_forgotten() && recovered.last_position < Some(40));
    verify(&log);
}

#[test]
fn a_newer_format_is_left_alone() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=20);
    change(&disk, &segments(&disk)[0], |bytes| bytes[300] ^= 1);
    change(&disk, segments(&disk).last().unwrap(), |bytes| bytes[8] = 2);
    let before = contents(&disk);
    let Err(e) = open(&disk) else {
        panic!("opened a newer format")
    };
    assert!(e.to_string().contains("format 2"), "{e}");
    let Err(e) = Log::create_on(Box::new(disk.clone()), config(Durability::Os)) else {
        panic!("replaced a newer format")
    };
    assert!(e.to_string().contains("format 2"), "{e}");
    assert_eq!(contents(&disk), before);
}

#[test]
fn a_full_disk_poisons_the_log_but_not_its_past() {
    for budget in 0..600 {
        let disk = MemoryDisk::new();
        let mut log = create(&disk);
        fill(&mut log, 1..=5);
        log.save_state(b"at first").unwrap();
        disk.set_room(Some(budget));
        let mut reached = 5;
        let error = loop {
            if let Err(e) = log
                .append(reached + 1, &[&payload(reached + 1)])
                .and_then(|()| log.write_out())
            {
                break e;
            }
            reached += 1;
        };
        assert!(matches!(&error, LogError::Io { .. }), "{error}");
        assert!(error.to_string().contains("free space"), "{error}");
        assert!(error.to_string().contains("trireme-0"), "{error}");
        assert!(matches!(
            log.append(reached + 2, &[]),
            Err(LogError::Poisoned { .. })
        ));
        assert!(matches!(log.flush(), Err(LogError::Poisoned { .. })));
        verify(&log);
        log.save_state(b"on a full disk").unwrap();
        disk.set_room(None);
        let (mut log, recovered) = open(&disk).unwrap();
        assert_eq!(
            (recovered.last_position, recovered.damage.len()),
            (Some(reached), 0)
        );
        assert_eq!(log.state(), Some(&b"on a full disk"[..]));
        fill(&mut log, reached + 1..=reached + 10);
        verify(&log);
    }
}

/// Any subset of the unflushed pages may survive a power loss; what was flushed stays, and no damage is seen in it.
#[test]
fn flushed_entries_survive_a_power_loss() {
    // With the smallest gcache everything applied goes at once; with `disk` what stays must be found again.
    for (durability, size_bytes) in [
        (Durability::Os, 1 << 20),
        (Durability::Disk, 1 << 20),
        (Durability::Disk, 1),
    ] {
        for seed in 0..200u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = move || {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random
            };
            let disk = MemoryDisk::new();
            let config = LogConfig {
                segment_bytes: 9000,
                size_bytes,
                ..config(durability)
            };
            let mut log = Log::create_on(Box::new(disk.clone()), config.clone()).unwrap();
            let (mut last, mut flushed) = (0, 0);
            for _ in 0..4 {
                for _ in 0..next() % 5 {
                    let upto = last + next() % 60;
                    fill(&mut log, last + 1..=upto);
                    last = upto;
                    log.set_pins(last / 2 + next() % (last / 2 + 1)).unwrap();
                }
                if next() % 2 == 0 {
                    log.flush().unwrap();
                    flushed = last;
                }
            }
            disk.lose_power(|| next() % 3 != 0);
            let (reopened, recovered) = Log::open_on(Box::new(disk.clone()), config).unwrap();
            assert!(
                recovered.next_position.unwrap_or(1) > flushed,
                "seed {seed}: {recovered:?}"
            );
            assert!(
                !recovered.may_have_forgotten(),
                "seed {seed}: {recovered:?}"
            );
            assert!(
                recovered.damage.iter().all(|d| d.lost == Lost::Newer),
                "seed {seed}: {recovered:?}"
            );
            verify(&reopened);
        }
    }
}

/// Its checksum is right: somebody has made the header up.
#[test]
fn a_segment_with_an_impossible_start_is_refused() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=20);
    let names = segments(&disk);
    let make_up = |disk: &MemoryDisk, name: &str| {
        change(disk, name, |bytes| {
            bytes[48..56].copy_from_slice(&(u64::MAX - 7).to_le_bytes());
            let crc = crc32c::crc32c(&bytes[..124]);
            bytes[124..128].copy_from_slice(&crc.to_le_bytes());
        });
    };
    make_up(&disk, names.last().unwrap());
    let (log, recovered) = open(&disk).unwrap();
    let reason = &recovered.damage[0].reason;
    assert!(reason.contains("address is out of range"), "{reason}");
    assert!(recovered.last_position < Some(20));
    verify(&log);

    let disk = MemoryDisk::new();
    fill(&mut create(&disk), 1..=1);
    make_up(&disk, &segments(&disk)[0]);
    assert!(matches!(open(&disk), Err(LogError::NoLog { .. })));
}
