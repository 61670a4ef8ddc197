//! Entries are read for a joiner by their seqnos.

use std::time::{Duration, Instant};

use trireme_log::{Durability, Log, LogConfig, MemoryDisk, Outcome};

/// A node that is held still goes on taking entries in, without outcomes. The job is made under the node's lock.
#[test]
fn a_pull_costs_no_more_with_many_entries_above_that_have_no_outcome() {
    const ORDERED: u64 = 10;
    const WAITING: u64 = 300_000;
    let config = LogConfig::new("".into(), 64 << 20, [7; 16], Durability::Os);
    let mut log = Log::create_on(Box::new(MemoryDisk::new()), config).unwrap();
    for position in 1..=ORDERED {
        log.append(position, &[b"entry"]).unwrap();
        let outcome = Outcome {
            seqno: position as i64,
            flags: 0,
            depends_on: 0,
        };
        log.set_outcome(position, outcome).unwrap();
    }
    // The fastest of some: the machine may be busy with something else.
    let fastest = |log: &Log| -> Duration {
        let pull = || {
            let begin = Instant::now();
            for _ in 0..20 {
                let job = log.run_job_from_seqno(ORDERED as i64 - 2, 1 << 20).unwrap();
                assert_eq!(job.run().unwrap().len(), 3);
            }
            begin.elapsed()
        };
        (0..10).map(|_| pull()).min().expect("some")
    };
    let before = fastest(&log);
    for position in ORDERED + 1..=ORDERED + WAITING {
        log.append(position, &[b"entry"]).unwrap();
    }
    let after = fastest(&log);
    assert!(after < 20 * before, "{before:?}, then {after:?}");
}
