//! A process that ends in a long pause: the next one leaves in the log what waits there, and reads it a slice at a time.

mod common;

use std::path::{Path, PathBuf};

use common::{HISTORY, Out};
use trireme_engine::{Engine, Start};
use trireme_group::{ComponentState, Position};
use trireme_log::{Disk, Durability, LogConfig, MemoryDisk, OsDisk};
use trireme_replicator::{Event, Gtid, Options, Replicator};

const IST_BYTES: usize = 600;

/// Where the log is.
#[derive(Clone)]
enum Place {
    Memory(MemoryDisk),
    Dir(PathBuf),
}

impl Place {
    fn open(&self) -> Box<dyn Disk> {
        match self {
            Place::Memory(disk) => Box::new(disk.clone()),
            Place::Dir(dir) => Box::new(OsDisk::new(dir)),
        }
    }
}

/// A process of a node that is alone.
struct Process {
    engine: Engine,
    out: Out,
    now_ms: u64,
    trx: u64,
}

impl Process {
    /// The first founds.
    fn begin(place: &Place, number: u8, local: Gtid, queue_bytes: usize) -> Process {
        let disk = place.clone();
        let segment_bytes = match place {
            Place::Memory(_) => 128, // so many files that not all of them stay open
            Place::Dir(_) => 64 << 20,
        };
        let options = Options {
            fc_limit: u64::MAX / 4,
            queue_bytes,
            ist_chunk_bytes: IST_BYTES,
            ..Options::default()
        };
        let start = Start {
            log: LogConfig {
                segment_bytes,
                ..common::log_config(Durability::Os)
            },
            disk: Box::new(move || disk.open()),
            bootstrap: (number == 1).then_some(HISTORY),
            server_running: number > 1,
            options: options.clone(),
            ..common::start(&MemoryDisk::new(), number, Durability::Os, local)
        };
        let mut process = Process {
            engine: Engine::new(Replicator::new(options)),
            out: Out::default(),
            now_ms: u64::from(number) * 1_000_000,
            trx: 0,
        };
        let now_ms = process.now_ms;
        let begun = process.engine.connect(now_ms, start);
        begun.expect("the log is whole");
        process
    }

    fn tick(&mut self, ms: u64) {
        self.now_ms += ms;
        self.engine.tick(self.now_ms);
        self.engine.pump(self.now_ms, &mut self.out);
    }

    fn settle(&mut self) {
        common::settle(&mut self.engine, &mut self.now_ms, &mut self.out);
    }

    /// A client asks for a commit, with so many bytes.
    fn certify(&mut self, bytes: usize) {
        self.trx += 1;
        let trx = self.trx;
        let certify = common::certify(trx, &vec![trx as u8; bytes]);
        self.engine.node(self.now_ms, certify);
        self.engine.pump(self.now_ms, &mut self.out);
    }

    /// FLUSH TABLES WITH READ LOCK.
    fn pause(&mut self) {
        let ticket = 1_000_000_000;
        self.engine.node(self.now_ms, Event::Pause { ticket });
        self.engine.pump(self.now_ms, &mut self.out);
    }

    /// Payloads that take memory: of the log's end, and of what waits to be applied.
    fn held_bytes(&self) -> (usize, usize) {
        let link = self.engine.link().expect("connected");
        let waiting = self.engine.replicator.payload_bytes();
        (link.group.payload_bytes(), waiting)
    }

    /// How far deliveries have been processed.
    fn position(&self) -> Position {
        let digest = self.engine.replicator.control_digest();
        digest.map_or(0, |digest| digest.position)
    }

    fn is_primary(&self) -> bool {
        let link = self.engine.link().expect("connected");
        link.group.component_state() == ComponentState::Primary
    }
}

/// A process that has died in a pause, with so many write-sets ordered meanwhile.
struct Died {
    /// Where its database was.
    local: Gtid,
    /// What it had processed, and what it had delivered.
    positions: (Position, Position),
}

fn dies_in_a_pause(place: &Place, count: usize, bytes: usize) -> Died {
    let mut process = Process::begin(place, 1, Gtid::UNDEFINED, 1 << 20);
    process.settle();
    assert!(process.is_primary());
    process.pause();
    let local = process.engine.replicator.last_committed();
    let paused_at = process.position();
    (0..count).for_each(|_| process.certify(bytes));
    assert_eq!(
        process.position(),
        paused_at,
        "nothing is certified in a pause"
    );
    let commit = process.engine.link().expect("connected").group.commit();
    assert!(commit >= paused_at + count as Position);
    let positions = (paused_at, commit);
    Died { local, positions }
}

#[test]
fn what_waits_in_the_log_is_left_there_until_its_turn_comes() {
    let (count, bytes) = (500, 300);
    for bound_bytes in [3_000, 0, 1 << 20] {
        let place = Place::Memory(MemoryDisk::new());
        let before = dies_in_a_pause(&place, count, bytes);
        let mut process = Process::begin(&place, 2, before.local, bound_bytes);
        assert!(process.held_bytes().0 <= bound_bytes);
        let mut slices = 0;
        while process.position() < before.positions.1 {
            let done = process.position().max(before.positions.0);
            process.tick(1);
            slices += u32::from(process.position() > done);
            let (end, waiting) = process.held_bytes();
            assert!(end <= bound_bytes && waiting <= bound_bytes + IST_BYTES + bytes);
            assert!(process.now_ms < 2_060_000);
        }
        match bound_bytes {
            3_000 => assert!((30..200).contains(&slices), "{slices}"),
            0 => assert_eq!(slices, count as u32),
            _ => assert_eq!(slices, 1),
        }
        process.settle();
        assert!(process.is_primary());
        let last = process.engine.replicator.last_seqno();
        let expected = before.local.seqno + count as i64 + 1;
        assert_eq!(last, Some(expected), "and a view");
    }
}

#[test]
fn what_cannot_be_read_when_its_turn_comes_is_not_passed_over() {
    let disk = MemoryDisk::new();
    let place = Place::Memory(disk.clone());
    let before = dies_in_a_pause(&place, 40_000, 100);
    let mut process = Process::begin(&place, 2, before.local, 3_000);
    disk.set_no_descriptors(true);
    (0..300).for_each(|_| process.tick(10));
    assert_eq!(process.out.failures.len(), 0, "it is read later");
    let early = process.position();
    assert!(early <= before.positions.0, "{early}");
    disk.set_no_descriptors(false);
    while process.position() == early {
        process.tick(10);
    }
    disk.set_fail_reads(true);
    (0..300).for_each(|_| process.tick(10));
    let [failure] = &process.out.failures[..] else {
        panic!("one error says it all: {:?}", process.out.failures);
    };
    assert!(
        failure.contains("cannot be read") && failure.contains("trireme-0"),
        "{failure}"
    );
    assert!(process.position() < before.positions.1);
}

fn memory_kib(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(what));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.expect("a number").parse().expect("in KiB")
}

/// `DIR=/some/dir MIB=1024 BYTES=4000 cargo test --release -p trireme-engine --test long_pause -- --ignored --nocapture`
/// writes a log; once more, with `KEEP=64` instead of `MIB`, tells the time and memory of a restart with so many MiB of payloads
/// kept (beyond what there is: all, as before).
#[test]
#[ignore = "writes a large log"]
fn measure() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
    };
    let dir = std::env::var("DIR").expect("DIR: where the log goes");
    let place = Place::Dir(Path::new(&dir).to_owned());
    if let Some(mib) = number("MIB") {
        let bytes: usize = number("BYTES").unwrap_or(4_000);
        let died = dies_in_a_pause(&place, (mib << 20) / bytes, bytes);
        return println!("processed and delivered: {:?}", died.positions);
    }
    let local = Gtid {
        uuid: HISTORY,
        seqno: 1,
    };
    let keep_mib: usize = number("KEEP").expect("KEEP or MIB");
    let (at_first, began) = (memory_kib("VmRSS"), std::time::Instant::now());
    let mut process = Process::begin(&place, 2, local, keep_mib << 20);
    let (connected, after) = (began.elapsed(), memory_kib("VmRSS"));
    let end = process.engine.link().expect("connected").group.end();
    let mut longest = std::time::Duration::ZERO;
    while process.position() < end {
        let begins = std::time::Instant::now();
        process.tick(1);
        longest = longest.max(begins.elapsed());
    }
    println!(
        "{end} entries, {keep_mib} MiB kept: opened in {connected:.1?} with {} MiB, all processed after {:.1?}, {longest:.0?} \
         at once at most; peak {} MiB, before the restart {} MiB",
        after >> 10,
        began.elapsed(),
        memory_kib("VmHWM") >> 10,
        at_first >> 10,
    );
}
