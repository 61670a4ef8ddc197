//! Whatever the size of the log, a restart finds the newest log checkpoint and all entries above it.

use trireme_log::{Disk, Durability, Log, LogConfig, MemoryDisk};

fn config(durability: Durability) -> LogConfig {
    LogConfig::new("".into(), 1 << 20, [7; 16], durability)
}

/// A log whose checkpoint at 100 is the last record of its segment, with so many more entries of 1 KB. All but the
/// newest entries may go.
fn with_checkpoint(disk: &MemoryDisk, durability: Durability, more: u64) -> Log {
    let mut log = Log::create_on(Box::new(disk.clone()), config(durability)).unwrap();
    for position in 1..=100 {
        log.append(position, &[&[1; 10]]).unwrap();
    }
    log.put_snapshot(100, &[2; 200 << 10]).unwrap();
    log.flush().unwrap();
    for position in 101..101 + more {
        log.append(position, &[&[3; 1000]]).unwrap();
        log.set_pins(position).unwrap();
    }
    log
}

fn reopened(disk: &MemoryDisk) -> Log {
    let opened = Log::open_on(Box::new(disk.clone()), config(Durability::Os));
    opened.unwrap().0
}

/// Position and length of the newest checkpoint.
fn newest_checkpoint(log: &Log) -> Option<(u64, usize)> {
    let found = log.snapshot_at(u64::MAX).unwrap();
    found.map(|(position, state)| (position, state.len()))
}

#[test]
fn the_log_keeps_the_newest_checkpoint_and_all_above() {
    for durability in [Durability::Memory, Durability::Os, Durability::Disk] {
        let disk = MemoryDisk::new();
        let mut log = with_checkpoint(&disk, durability, 4000);
        log.write_out().unwrap();
        for log in [log, reopened(&disk)] {
            let newest = newest_checkpoint(&log);
            assert_eq!(newest, Some((100, 200 << 10)), "{durability:?}");
            assert!(log.read(101).unwrap().is_some(), "{durability:?}");
        }
    }
}

/// Entries above the checkpoint may precede its record.
#[test]
fn the_log_keeps_entries_above_a_checkpoint_that_were_written_before_it() {
    let disk = MemoryDisk::new();
    let mut log = with_checkpoint(&disk, Durability::Disk, 900);
    log.put_snapshot(110, &[4; 10]).unwrap();
    log.flush().unwrap();
    for position in 1001..4000 {
        log.append(position, &[&[3; 1000]]).unwrap();
        log.set_pins(position).unwrap();
    }
    assert_eq!(newest_checkpoint(&log), Some((110, 10)));
    assert!(log.read(111).unwrap().is_some());
    assert_eq!(log.snapshot_at(109).unwrap(), None, "the one before goes");
}

/// A power loss takes a checkpoint that was not flushed: the next process needs the one before.
#[test]
fn the_log_keeps_the_newest_checkpoint_that_survives_a_power_loss() {
    // The newest may be of the same position, if nothing was committed in between.
    for (at, flushes) in [(100, false), (100, true), (1000, false), (1000, true)] {
        let disk = MemoryDisk::new();
        let mut log = with_checkpoint(&disk, Durability::Os, 900);
        log.put_snapshot(at, &[4; 10]).unwrap();
        for position in 1001..6000 {
            log.append(position, &[&[3; 1000]]).unwrap();
            log.set_pins(position).unwrap();
            if flushes && position == 5000 {
                log.flush().unwrap();
            }
        }
        assert!(log.read(at + 1).unwrap().is_some());
        let is_kept = log.snapshot_at(at - 1).unwrap().is_some();
        assert_eq!(is_kept, at > 100 && !flushes, "the one before");
        // The removal of the old segments survives.
        disk.sync_directory().unwrap();
        disk.lose_power(|| false);
        let expected = match flushes {
            true => (at, 10),
            false => (100, 200 << 10),
        };
        assert_eq!(newest_checkpoint(&reopened(&disk)), Some(expected));
    }
}

/// The checkpoint before becomes the newest again.
#[test]
fn the_log_keeps_the_checkpoint_below_a_truncation() {
    let disk = MemoryDisk::new();
    let mut log = with_checkpoint(&disk, Durability::Disk, 900);
    log.put_snapshot(1000, &[4; 10]).unwrap();
    log.truncate_after(500).unwrap();
    for position in 501..4000 {
        log.append(position, &[&[3; 1000]]).unwrap();
        log.set_pins(position).unwrap();
    }
    assert_eq!(newest_checkpoint(&log), Some((100, 200 << 10)));
    assert!(log.read(101).unwrap().is_some());
}
