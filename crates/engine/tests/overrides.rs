//! As many overrides as a history may have (rule 11) fit beside the log, and one more is refused before anything is changed.

use bytes::Bytes;
use trireme_engine::{Channel, Engine, Outside, Start, StartError, Storage};
use trireme_group::{
    Ballot, Checkpoint, Config, Incarnation, Member, OVERRIDES_MAX, ReplicaId, Standing, Uuid,
};
use trireme_log::{Disk, Durability, FlushJob, LogConfig, MemoryDisk};
use trireme_replicator::{Action, Gtid, Options, Replicator};

const HISTORY: Uuid = Uuid([9; 16]);
const AT: Gtid = Gtid {
    uuid: HISTORY,
    seqno: 5,
};

struct Out;

impl Outside for Out {
    fn in_log(&mut self, _: Uuid) -> Result<(), String> {
        Ok(())
    }

    fn send(&mut self, _to: &[Incarnation], _channel: Channel, _bytes: Bytes) {}
    fn promise(&mut self, _ballot: Ballot) -> Result<(), String> {
        Ok(())
    }
    fn in_history(&mut self, _history: Uuid) {}
    fn refused(&mut self, reason: String) {
        panic!("{reason}")
    }
    fn note(&mut self, _text: &str) {}
    fn flush(&mut self, _job: FlushJob) {}
    fn fail(&mut self, text: &str) {
        panic!("{text}")
    }
    fn act(&mut self, action: Action) {
        if let Action::Fatal { text } = action {
            panic!("{text}")
        }
    }
}

fn id(number: usize) -> Uuid {
    let mut bytes = [1; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Uuid(bytes)
}

fn storage(disk: &MemoryDisk) -> Storage {
    let config = LogConfig::new("".into(), 1 << 20, [0; 16], Durability::Memory);
    let disk = disk.clone();
    let open = Box::new(move || -> Box<dyn Disk> { Box::new(disk.clone()) });
    Storage::new(config, open, [0; 16])
}

/// What an earlier process has left: a database at [`AT`], with so many overrides in its past.
fn noted(count: usize) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let mut storage = storage(&disk);
    let checkpoint = Checkpoint {
        history: HISTORY,
        ..Checkpoint::default()
    };
    storage.begin(&checkpoint, false).expect("a log in memory");
    let overrides = (0..count).map(|number| (id(number), 3)).collect();
    storage.note_overrides(overrides).expect("they fit");
    disk
}

/// A process on this disk begins.
fn begins(
    disk: &MemoryDisk,
    incarnation: u8,
    local: Gtid,
    bootstrap: Option<Uuid>,
) -> Result<Engine, StartError> {
    let me = Member {
        replica: ReplicaId(Uuid([1; 16])),
        incarnation: Incarnation(Uuid([incarnation; 16])),
        full_weight: 1,
        app_protocol: 4,
        ..Member::default()
    };
    let log_disk = disk.clone();
    let start = Start {
        last_log: Uuid::NIL,
        config: Config::new(me),
        promised: Ballot::default(),
        recover: true,
        boot_id: [0; 16],
        log: LogConfig::new("".into(), 1 << 20, [0; 16], Durability::Memory),
        disk: Box::new(move || -> Box<dyn Disk> { Box::new(log_disk.clone()) }),
        flushes_apart: false,
        local,
        bootstrap,
        expect: None,
        untouched: false,
        server_running: false,
        options: Options::default(),
    };
    let mut engine = Engine::new(Replicator::new(Options::default()));
    engine.connect(1_000, start)?;
    for step in 0..100 {
        let now_ms = 1_000 + 100 * step;
        engine.tick(now_ms);
        engine.pump(now_ms, &mut Out);
    }
    Ok(engine)
}

fn overrides(engine: &Engine) -> usize {
    let group = &engine.link().expect("connected").group;
    assert_eq!(group.standing(), Standing::Primary);
    group.overrides_in_log().len()
}

fn files(disk: &MemoryDisk) -> Vec<(String, Option<Vec<u8>>)> {
    let names = disk.list().expect("a list").into_iter();
    names
        .map(|name| (name.clone(), disk.contents(&name)))
        .collect()
}

fn must_be_refused(disk: &MemoryDisk, incarnation: u8) {
    let refused = begins(disk, incarnation, AT, Some(Uuid([6; 16]))).err();
    let error = refused.expect("refused").to_string();
    assert!(error.contains("found the cluster anew"), "{error}");
}

#[test]
fn who_has_as_many_overrides_as_there_may_be_is_not_bootstrapped_with_another() {
    // The database goes on from where it stands.
    let disk = noted(OVERRIDES_MAX);
    let before = files(&disk);
    must_be_refused(&disk, 1);
    assert_eq!(files(&disk), before, "something was changed");
    // The remedy: another history, with the same data.
    for (incarnation, local) in [(2, Gtid { seqno: -1, ..AT }), (3, Gtid::UNDEFINED)] {
        let disk = noted(OVERRIDES_MAX);
        let anew = begins(&disk, incarnation, local, Some(Uuid([8; 16]))).expect("founded");
        assert_eq!(overrides(&anew), 0, "{local}");
    }

    // The last one that there may be; and, as its log has been forgotten, it would take one to go on with it.
    let disk = noted(OVERRIDES_MAX - 1);
    let last = begins(&disk, 1, AT, Some(Uuid([6; 16]))).expect("bootstrapped");
    assert_eq!(overrides(&last), OVERRIDES_MAX);
    drop(last);
    must_be_refused(&disk, 2);
    // It starts all the same, and waits for others.
    let again = begins(&disk, 3, AT, None).expect("it does not abort");
    let group = &again.link().expect("connected").group;
    assert_eq!(group.overrides_in_log().len(), OVERRIDES_MAX);
}

#[test]
fn overrides_that_come_to_nothing_do_not_fill_the_note() {
    let disk = noted(OVERRIDES_MAX - 1);
    let mut noting = storage(&disk);
    let checkpoint = Checkpoint {
        history: HISTORY,
        ..Checkpoint::default()
    };
    noting.recall(HISTORY).expect("read");
    noting.begin(&checkpoint, false).expect("begun");
    for number in 0..2_000 {
        let mut in_log: Vec<Uuid> = (0..OVERRIDES_MAX - 1).map(id).collect();
        in_log.push(id(10_000 + number));
        noting
            .note_override(id(10_000 + number), &in_log)
            .expect("it fits");
    }
    let (_, known) = storage(&disk).recall(HISTORY).expect("read");
    assert_eq!(known.len(), OVERRIDES_MAX);
    assert_eq!(known.last(), Some(&(id(11_999), 0)));
    assert!((0..OVERRIDES_MAX - 1).all(|number| known.contains(&(id(number), 3))));
}
