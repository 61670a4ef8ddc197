//! What encryption costs a commit, and what serving a joiner costs the others: measurements, for a machine that has nothing else
//! to do. Three nodes are in this process. How long they hold their locks is measured
//! with `--features lock-times` only.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::server::{Server, certificates};
use crate::transaction::Transaction;
use crate::{ALONE, AtEnd};

/// Commits before those that count.
const WARM_UP: usize = 500;
const COMMITS: usize = 10_000;
const ROUNDS: usize = 3;
const ROW_BYTES: usize = 1 << 10;
/// What encryption may cost.
const COMMIT_MAX: Duration = Duration::from_micros(50);
const LOCK_MAX_US: usize = 10;

/// What a joiner lacks: so many rows of so many bytes.
const MISSED: usize = 1_600;
const MISSED_BYTES: usize = 64 << 10;

/// Values in order: the median, or any other part of a hundred.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// How long a node held its lock, in microseconds: 99 of 100 times no longer, the longest, and how often.
type Held = (usize, usize, u64);

/// Of each of the last three locks that were made, since the last time this was asked. Empty: it is not measured.
#[cfg(feature = "lock-times")]
fn lock_times_us() -> Vec<Held> {
    let all = trireme_handover::take_lock_times_us();
    let held = all.iter().rev().take(3).rev().map(|times| {
        let all: u64 = times.iter().map(|(_, count)| count).sum();
        let mut seen = 0;
        let p99 = times.iter().find(|(_, count)| {
            seen += count;
            seen * 100 >= all * 99
        });
        let longest = times.last().map_or(0, |(us, _)| *us);
        (p99.map_or(0, |(us, _)| *us), longest, all)
    });
    held.collect()
}

#[cfg(not(feature = "lock-times"))]
fn lock_times_us() -> Vec<Held> {
    Vec::new()
}

/// One client's commits of a row on a new cluster: how long each took, and p99 of the lock.
fn commits(options: &str) -> (Vec<Duration>, Vec<Held>) {
    let servers = ["a", "b", "c"].map(|name| Server::start(name, options).expect("init"));
    Server::found(&servers.each_ref());
    let row = "x".repeat(ROW_BYTES);
    let commit = |number: usize| {
        let began = Instant::now();
        assert!(Transaction::new(&servers[1], &number.to_string(), &row).run());
        began.elapsed()
    };
    for number in 0..WARM_UP {
        commit(number);
    }
    lock_times_us();
    let mut took: Vec<Duration> = (WARM_UP..WARM_UP + COMMITS).map(commit).collect();
    took.sort_unstable();
    (took, lock_times_us())
}

/// cargo test --release -p trireme-provider --features lock-times --test alone what_encryption_costs -- --ignored --nocapture
#[test]
#[ignore = "a measurement, on a machine that has nothing else to do"]
fn what_encryption_costs() {
    let _alone = ALONE.lock();
    let dir = tempfile::tempdir().unwrap();
    let ways = [String::new(), certificates(dir.path())];
    let (mut medians, mut locks) = ([Duration::MAX; 2], [usize::MAX; 2]);
    // A B A B ...: the best round of each way is the one that was disturbed least.
    for round in 1..=ROUNDS {
        for (at, (name, options)) in ["plaintext", "encrypted"].iter().zip(&ways).enumerate() {
            let (took, lock) = commits(options);
            let [median, p99] = [50, 99].map(|percent| percentile(&took, percent));
            println!(
                "round {round}, {name}: a commit of 1 KiB {median:?}, p99 {p99:?}; lock held by a, b, c (p99 us, longest us, times) {lock:?}"
            );
            medians[at] = medians[at].min(median);
            locks[at] = locks[at].min(lock.iter().map(|(p99, _, _)| *p99).max().unwrap_or(0));
        }
    }
    let more = medians[1].saturating_sub(medians[0]);
    let lock_more_us = locks[1].saturating_sub(locks[0]);
    println!("encryption costs {more:?} a commit, and {lock_more_us} us under the lock");
    assert!(more <= COMMIT_MAX, "a commit takes {more:?} more");
    assert!(
        lock_more_us <= LOCK_MAX_US,
        "the lock is held {lock_more_us} us more"
    );
}

/// Files of a node's log.
fn log_files(server: &Server) -> Vec<PathBuf> {
    let entries = fs::read_dir(server.data_dir()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    paths.filter(is_log).collect()
}

/// Has the system forget the log of a node, as after days without a joiner: what is read next comes from the disk.
fn forget_log(server: &Server) {
    for path in log_files(server) {
        let file = File::open(path).unwrap();
        file.sync_all().unwrap();
        let fd = file.as_raw_fd();
        // SAFETY: a descriptor that is open.
        let forgotten = unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED) };
        assert_eq!(forgotten, 0);
    }
}

/// Commits of a client on the first server while `change` lasts.
fn meanwhile(server: &Server, name: &str, change: impl FnOnce()) -> Vec<Duration> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = AtEnd(|| is_over.store(true, Ordering::Relaxed));
        let client = scope.spawn(|| {
            let mut took = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                let key = format!("{name}-{}", took.len());
                assert!(Transaction::new(server, &key, "row").run());
                took.push(began.elapsed());
                thread::sleep(Duration::from_millis(1));
            }
            took
        });
        change();
        drop(ends);
        let mut took = client.join().unwrap();
        took.sort_unstable();
        took
    })
}

/// cargo test --release -p trireme-provider --features lock-times --test alone what_serving_costs -- --ignored --nocapture
#[test]
#[ignore = "a measurement, on a machine that has nothing else to do"]
fn what_serving_costs() {
    let _alone = ALONE.lock();
    let [a, b, c] =
        ["a", "b", "c"].map(|name| Server::start(name, "gcache.size=1G").expect("init"));
    Server::found(&[&a, &b, &c]);
    let row = "x".repeat(MISSED_BYTES);
    for (is_cold, has_log) in [(false, true), (true, true), (false, false), (true, false)] {
        c.disconnect();
        if !has_log {
            // What its database lacks it pulls from a member: an incremental state transfer.
            (log_files(&c).iter()).for_each(|file| fs::remove_file(file).unwrap());
        }
        for number in 0..MISSED {
            let key = format!("{is_cold}-{has_log}-{number}");
            assert!(Transaction::new(&a, &key, &row).run());
        }
        if is_cold {
            [&a, &b].into_iter().for_each(forget_log);
        }
        lock_times_us();
        let quiet = meanwhile(&a, &format!("quiet-{is_cold}-{has_log}"), || {
            thread::sleep(Duration::from_secs(2))
        });
        let before = lock_times_us();
        let began = Instant::now();
        let serving = meanwhile(&a, &format!("serving-{is_cold}-{has_log}"), || {
            c.connect(&a.url());
            c.sync();
        });
        let mib = (MISSED * MISSED_BYTES) >> 20;
        let from = if is_cold { "the disk" } else { "memory" };
        let what = if has_log { "its log is fed" } else { "IST" };
        println!("{mib} MiB from {from}, {what}, in {:?}", began.elapsed());
        for (what, took, lock) in [
            ("before", quiet, before),
            ("meanwhile", serving, lock_times_us()),
        ] {
            let [median, p99, most] = [50, 99, 100].map(|percent| percentile(&took, percent));
            println!(
                "  {what}: a commit {median:?}, p99 {p99:?}, longest {most:?}; lock held by a, b, c (p99 us, longest us, times) {lock:?}"
            );
        }
    }
}
