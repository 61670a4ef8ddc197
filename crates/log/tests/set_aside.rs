//! Another cluster's log in the directory is set aside, wherever the process dies.

mod common;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use trireme_log::{Durability, Log, LogConfig, LogError, MemoryDisk};

use common::{WatchedDisk, contents, fill, segments};

fn config(identity: u8) -> LogConfig {
    LogConfig {
        segment_bytes: 1024,
        ..LogConfig::new(PathBuf::new(), 1 << 20, [identity; 16], Durability::Os)
    }
}

/// Returns a directory whose changes fail from the `n`-th on, as if the process had died before it.
fn until(disk: &MemoryDisk, n: u64) -> Box<WatchedDisk> {
    let changes = AtomicU64::new(0);
    let watch = move |_| match changes.fetch_add(1, Ordering::Relaxed) < n {
        true => Ok(()),
        false => Err(io::Error::other("dead")),
    };
    Box::new(WatchedDisk::new(disk, watch))
}

/// Begins a log where another cluster's is, and dies before the `n`-th change. Returns the directory, that cluster's
/// segments, and whether the process has outlived it.
fn begin_until(n: u64) -> (MemoryDisk, Vec<Vec<u8>>, bool) {
    let disk = MemoryDisk::new();
    let mut log = Log::create_on(Box::new(disk.clone()), config(7)).unwrap();
    fill(&mut log, 1..=20); // several segments
    log.save_state(b"theirs").unwrap();
    log.flush().unwrap();
    let theirs = segments(&disk);
    let theirs = theirs.iter().map(|name| disk.contents(name).unwrap());
    let theirs: Vec<_> = theirs.collect();
    let created = Log::create_on(until(&disk, n), config(9));
    (disk, theirs, created.is_ok())
}

fn are_there(disk: &MemoryDisk, theirs: &[Vec<u8>]) -> bool {
    let there: Vec<_> = contents(disk).into_values().collect();
    theirs.iter().all(|segment| there.contains(segment))
}

#[test]
fn another_clusters_segments_outlive_a_death_while_a_log_begins() {
    for power_loss in [false, true] {
        let mut ends = 0;
        for n in 0.. {
            let (disk, theirs, outlived) = begin_until(n);
            if power_loss {
                disk.lose_power(|| true);
            }
            match Log::open_on(Box::new(disk.clone()), config(9)) {
                Ok((log, found)) => {
                    assert_eq!((log.last_position(), found.damage.len()), (None, 0));
                    assert_eq!(segments(&disk).len(), 1, "after {n} changes");
                    ends += 1;
                }
                Err(LogError::OtherIdentity { .. }) => {}
                Err(error) => panic!("after {n} changes: {error}"),
            }
            assert!(are_there(&disk, &theirs), "after {n} changes");
            // The next process begins the log, again, and once more.
            for _ in 0..2 {
                let log = Log::create_on(Box::new(disk.clone()), config(9));
                log.unwrap().reset(5).unwrap();
                assert!(
                    are_there(&disk, &theirs),
                    "after {n} changes, and a new log"
                );
            }
            if outlived {
                break;
            }
        }
        assert!(ends > 5, "only {ends} deaths after the log had begun");
    }
}
