//! A log that begins beside the one that it will replace.

mod common;

use std::path::PathBuf;

use trireme_log::{Disk, Durability, Log, LogConfig, MemoryDisk};

use common::segments;

/// Until it is published, a log that was begun beside another one is not there for the next process.
#[test]
fn a_log_that_was_begun_beside_another_one_takes_its_place_when_it_is_published() {
    let disk = MemoryDisk::new();
    let config = LogConfig {
        segment_bytes: 0, // each record would begin a segment
        ..LogConfig::new(PathBuf::new(), 1 << 20, [7; 16], Durability::Os)
    };
    let mut log = Log::create_on(Box::new(disk.clone()), config.clone()).unwrap();
    for position in 1..=3 {
        log.append(position, &[b"old"]).unwrap();
    }
    log.save_state(b"old").unwrap();
    log.flush().unwrap();
    let (old, end) = (segments(&disk), log.written_end());
    let fill = |log: &mut Log| {
        log.append(1, &[b"new"]).unwrap();
        log.put_snapshot(1, b"state").unwrap();
        let staged = log.stage(4).unwrap();
        log.append_staged(2, b"head", 0, b"", 0, staged).unwrap();
        assert!(log.begin_write_back().unwrap().is_none(), "it has no name");
        log.flush().unwrap();
        assert_eq!(log.read(1).unwrap().unwrap(), b"new");
    };
    for power_loss in [false, true] {
        let mut new = log.begin_beside(1).unwrap();
        assert!(!new.is_published());
        fill(&mut new);
        assert_eq!(segments(&disk), old);
        drop(new); // kill -9
        if power_loss {
            disk.lose_power(|| false);
        }
        let (opened, found) = Log::open_on(Box::new(disk.clone()), config.clone()).unwrap();
        assert_eq!((found.dropped_bytes, found.damage.len()), (0, 0));
        assert_eq!(opened.read(3).unwrap().unwrap(), b"old");
        assert_eq!(opened.state(), Some(b"old".as_slice()));
        assert_eq!(segments(&disk), old);
        let names = disk.list().unwrap();
        assert!(
            names.iter().all(|name| !name.contains("staged")),
            "{names:?}"
        );
        log = opened;
    }

    let mut new = log.begin_beside(1).unwrap();
    fill(&mut new);
    new.publish(b"new").unwrap();
    assert!(new.is_published() && new.written_end() > end);
    let published = segments(&disk);
    assert!(published.len() == 1 && !old.contains(&published[0]));
    drop(new);
    disk.lose_power(|| false);
    let (mut log, found) = Log::open_on(Box::new(disk.clone()), config).unwrap();
    assert_eq!((found.dropped_bytes, found.damage.len()), (0, 0));
    assert_eq!(
        (found.first_position, found.last_position),
        (Some(1), Some(2))
    );
    assert_eq!(log.state(), Some(b"new".as_slice()));
    assert_eq!(log.snapshot_at(2).unwrap(), Some((1, b"state".to_vec())));
    log.append(3, &[b"new"]).unwrap();
    log.flush().unwrap();
    assert!(segments(&disk).len() > 1, "it goes on in further segments");
}
