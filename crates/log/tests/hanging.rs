//! A flush that hangs holds up nothing but what waits for it.

mod common;

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use trireme_log::{Disk, Durability, FlushDone, FlushJob, Log, LogConfig, MemoryDisk};

use common::{Change, WatchedDisk, fill, segments, verify};

/// True while flushes hang.
#[derive(Clone, Default)]
struct Hang(Arc<(Mutex<bool>, Condvar)>);

impl Hang {
    fn set(&self, hangs: bool) {
        *self.0.0.lock().unwrap() = hangs;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let hangs = self.0.0.lock().unwrap();
        let _passed = self.0.1.wait_while(hangs, |hangs| *hangs).unwrap();
    }
}

/// Returns a directory whose flushes wait while there is a hang.
fn hanging(disk: &MemoryDisk, hang: &Hang) -> Box<dyn Disk> {
    let hang = hang.clone();
    let disk = WatchedDisk::new(disk, move |change| {
        if change == Change::Flush {
            hang.pass();
        }
        Ok(())
    });
    Box::new(disk)
}

fn config(durability: Durability, size_bytes: u64) -> LogConfig {
    LogConfig {
        segment_bytes: 1024,
        ..LogConfig::new("".into(), size_bytes, [7; 16], durability)
    }
}

/// Ends a hang when the test ends, also by a panic.
struct Ends(Hang, Receiver<()>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.set(false);
        let _ = self.1.recv();
    }
}

/// Runs `work` on a thread, and fails if it waits for the disk.
fn within_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told): (Sender<T>, Receiver<T>) = mpsc::channel();
    thread::spawn(move || tell.send(work()));
    let result = told.recv_timeout(Duration::from_secs(20));
    result.expect("the owner of the log waits for the disk")
}

/// Runs the flush on a thread; it hangs until the second value is dropped.
fn run(job: FlushJob, hang: &Hang) -> (JoinHandle<FlushDone>, Ends) {
    let (ended, end) = mpsc::channel();
    let flushing = thread::spawn(move || {
        let done = job.run();
        let _ = ended.send(());
        done
    });
    (flushing, Ends(hang.clone(), end))
}

/// Old segments stay until the flush has ended, and go then.
#[test]
fn no_segment_is_purged_while_a_flush_hangs() {
    let (disk, hang) = (MemoryDisk::new(), Hang::default());
    let config = config(Durability::Disk, 4 << 10);
    let mut log = Log::create_on(hanging(&disk, &hang), config.clone()).unwrap();
    log.set_pins(u64::MAX).unwrap();
    fill(&mut log, 1..=60);
    log.flush().unwrap();
    log.set_pins(u64::MAX).unwrap();
    let full = segments(&disk);
    assert!(full.len() < 10, "old segments are removed: {full:?}");
    fill(&mut log, 61..=62);
    let job = log.begin_flush().unwrap();
    hang.set(true);
    let (flushing, ends) = run(job, &hang);
    let mut log = within_time(move || {
        fill(&mut log, 63..=90);
        log.set_pins(u64::MAX).unwrap();
        log
    });
    assert!(segments(&disk).len() > full.len());
    drop(ends);
    assert!(log.end_flush(flushing.join().unwrap()).unwrap());
    log.flush().unwrap();
    log.set_pins(u64::MAX).unwrap();
    assert!(segments(&disk).len() <= full.len());
    verify(&log);
    drop(log);
    disk.lose_power(|| false);
    let (log, found) = Log::open_on(Box::new(disk), config).unwrap();
    assert_eq!((found.last_position, found.damage.len()), (Some(90), 0));
    verify(&log);
}

/// The bound of open files does not hold while a flush is under way: the files beyond it are not flushed.
#[test]
fn files_stay_open_while_a_flush_hangs() {
    for durability in [Durability::Disk, Durability::Os] {
        let (disk, hang) = (MemoryDisk::new(), Hang::default());
        let mut config = config(durability, 1 << 20);
        config.thresholds.open_files = 4;
        let mut log = Log::create_on(hanging(&disk, &hang), config).unwrap();
        fill(&mut log, 1..=2);
        let job = log.begin_flush().unwrap();
        hang.set(true);
        let (flushing, ends) = run(job, &hang);
        let mut log = within_time(move || {
            fill(&mut log, 3..=60);
            log
        });
        drop(ends);
        assert!(log.end_flush(flushing.join().unwrap()).unwrap());
        log.flush().unwrap();
        fill(&mut log, 61..=70);
        verify(&log);
    }
}
