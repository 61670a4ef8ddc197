//! Flushes: beside the log, put off, and such as fail.

mod common;

use trireme_log::{Durability, Log, LogConfig, LogError, MemoryDisk, Recovered};

use common::{fill, segments, verify};

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 1024,
        ..LogConfig::new("".into(), 1 << 20, [7; 16], Durability::Disk)
    }
}

fn create(disk: &MemoryDisk) -> Log {
    Log::create_on(Box::new(disk.clone()), config()).unwrap()
}

fn open(disk: &MemoryDisk) -> Result<(Log, Recovered), LogError> {
    Log::open_on(Box::new(disk.clone()), config())
}

/// A power loss that takes whatever was not flushed leaves all up to this position.
fn survives(disk: &MemoryDisk, position: u64) {
    disk.lose_power(|| false);
    let (kept, recovered) = open(disk).unwrap();
    assert!(recovered.last_position >= Some(position));
    verify(&kept);
}

#[test]
fn a_failed_flush_poisons_the_log() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=5);
    log.flush().unwrap();
    fill(&mut log, 6..=9);
    let positions = log.last_position();
    disk.set_fail_syncs(true);
    assert!(matches!(
        log.flush(),
        Err(LogError::Io {
            action: "flush",
            ..
        })
    ));
    disk.set_fail_syncs(false);
    assert!(
        matches!(log.flush(), Err(LogError::Poisoned { .. })),
        "never tried again"
    );
    assert!(matches!(
        log.append(10, &[]),
        Err(LogError::Poisoned { .. })
    ));
    assert!(matches!(log.reset(6), Err(LogError::Poisoned { .. })));
    assert_eq!(log.last_position(), positions);
    // What had been flushed before is there.
    let (log, recovered) = open(&disk).unwrap();
    assert!(recovered.last_position >= Some(5));
    assert!(!recovered.may_have_forgotten());
    verify(&log);
}

/// The operating system shows what a failed flush has given up, to the next process, too, and flushes it no more.
#[test]
fn what_is_only_shown_is_written_again() {
    for (anew, is_there) in [(false, false), (true, true)] {
        let disk = MemoryDisk::new();
        disk.set_shows_lost(true);
        let mut log = create(&disk);
        fill(&mut log, 1..=5);
        log.flush().unwrap();
        disk.set_fail_syncs(true);
        fill(&mut log, 6..=40); // several segments
        assert!(log.flush().is_err());
        disk.set_fail_syncs(false);
        let (mut log, recovered) = open(&disk).unwrap();
        assert_eq!(recovered.last_position, Some(40));
        match anew {
            true => log.flush_anew().unwrap(),
            false => log.flush().unwrap(),
        }
        disk.lose_power(|| false);
        let kept = open(&disk).is_ok_and(|(_, found)| found.last_position == Some(40));
        assert_eq!(kept, is_there);
    }
}

/// A flush that runs beside the log covers what was appended before it began, and nothing else.
#[test]
fn a_flush_apart_covers_what_was_there_when_it_began() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=30); // several segments
    let job = log.begin_flush().unwrap();
    fill(&mut log, 31..=32);
    let done = job.run();
    survives(&disk, 30);
    assert!(log.end_flush(done).unwrap());
    // One of another log says nothing.
    let stranger = create(&MemoryDisk::new()).begin_flush().unwrap().run();
    assert!(!log.end_flush(stranger).unwrap());
    // One that has failed poisons it.
    disk.set_fail_syncs(true);
    fill(&mut log, 33..=33);
    let done = log.begin_flush().unwrap().run();
    assert!(log.end_flush(done).is_err());
    assert!(matches!(
        log.append(34, &[]),
        Err(LogError::Poisoned { .. })
    ));
}

/// One that was put off covers what came meanwhile.
#[test]
fn a_flush_put_off_covers_what_was_there_when_it_was_renewed() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=30); // several segments
    let put_off = log.begin_flush().unwrap();
    fill(&mut log, 31..=60);
    let done = log.renew_flush(put_off).unwrap().unwrap().run();
    assert!(log.end_flush(done).unwrap());
    survives(&disk, 60);
    // One of another log is of no use.
    let stranger = create(&MemoryDisk::new()).begin_flush().unwrap();
    assert!(log.renew_flush(stranger).unwrap().is_none());
}

/// One that nothing waits for leaves less to do to the next, and takes away no flush's evidence.
#[test]
fn what_was_written_back_is_flushed() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=30); // several segments
    assert!(log.unflushed_bytes() > 30 * 100);
    let job = log.begin_write_back().unwrap().unwrap();
    assert!(!job.is_awaited());
    let awaited = log.begin_flush().unwrap();
    assert!(awaited.is_awaited());
    assert!(log.end_flush(job.run()).unwrap());
    assert_eq!(log.unflushed_bytes(), 0);
    assert!(log.end_flush(awaited.run()).unwrap());
    survives(&disk, 30);
}

/// A write-back that has begun and not ended has not flushed the names of new files.
#[test]
fn a_flush_beside_a_write_back_covers_all_that_it_may_not_have_covered() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=30); // several segments
    let job = log.begin_write_back().unwrap().unwrap();
    log.flush().unwrap();
    survives(&disk, 30);
    assert!(log.end_flush(job.run()).unwrap());
}

/// An operating system reports an error once per handle. A flush of the owner beside it uses the same handles, and must
/// not take what was lost for kept: a power loss after it would count as none. Nor does the removal of old segments.
#[test]
fn no_later_flush_covers_what_a_failed_one_beside_the_log_has_lost() {
    let small = || LogConfig {
        size_bytes: 1024,
        ..config()
    };
    let disk = MemoryDisk::new();
    disk.set_shows_lost(true);
    let mut log = Log::create_on(Box::new(disk.clone()), small()).unwrap();
    fill(&mut log, 1..=5);
    log.flush().unwrap();
    fill(&mut log, 6..=30);
    let job = log.begin_flush().unwrap();
    disk.set_fail_syncs(true);
    let done = job.run();
    disk.set_fail_syncs(false);
    // The oldest segments may go only when the last one is flushed.
    let before = segments(&disk);
    log.set_pins(25).unwrap();
    assert_eq!(segments(&disk), before);
    let error = log.flush().unwrap_err();
    assert!(matches!(error, LogError::Poisoned { .. }), "{error}");
    assert!(error.is_of_volume());
    assert!(log.end_flush(done).is_err());
    // The next process writes again what no flush has covered.
    let (mut log, _) = Log::open_on(Box::new(disk.clone()), small()).unwrap();
    log.flush_anew().unwrap();
    survives(&disk, 30);
}

/// Without a free descriptor, or on a disk that fails.
#[test]
fn a_write_back_is_put_off_or_fails_as_any_flush() {
    let disk = MemoryDisk::new();
    let mut log = create(&disk);
    fill(&mut log, 1..=5);
    disk.set_no_descriptors(true);
    assert!(log.begin_write_back().unwrap().is_none());
    disk.set_no_descriptors(false);
    disk.set_fail_syncs(true);
    let job = log.begin_write_back().unwrap().unwrap();
    assert!(log.end_flush(job.run()).is_err());
    assert!(matches!(log.append(6, &[]), Err(LogError::Poisoned { .. })));
}
