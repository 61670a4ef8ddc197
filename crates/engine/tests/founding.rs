//! A node that founds a cluster because all that were expected support it; here it is all of them.

use bytes::Bytes;
use trireme_engine::{Channel, Engine, Expected, Outside, Start};
use trireme_group::{Ballot, Config, Event, Incarnation, Member, ReplicaId, Standing, Uuid};
use trireme_log::{Disk, Durability, FlushJob, LogConfig, MemoryDisk};
use trireme_replicator::{Action, Gtid, Options, Replicator};

const FIRST: Uuid = Uuid([7; 16]);
const SECOND: Uuid = Uuid([8; 16]);

/// What a process leaves beside its log.
#[derive(Default)]
struct Out {
    promised: Ballot,
    log: Uuid,
    saved: Option<Gtid>,
    founded: Vec<Uuid>,
}

impl Outside for Out {
    fn send(&mut self, _to: &[Incarnation], _channel: Channel, _bytes: Bytes) {}
    fn promise(&mut self, ballot: Ballot) -> Result<(), String> {
        self.promised = ballot;
        Ok(())
    }
    fn in_log(&mut self, id: Uuid) -> Result<(), String> {
        self.log = id;
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
        if let Action::SaveState { gtid, .. } = action {
            self.saved = Some(gtid);
        }
    }
    fn founds(&mut self, history: Uuid) {
        self.founded.push(history);
    }
}

/// A process on the disk, with its database at `local`; `history` names what it may found.
fn process(
    disk: &MemoryDisk,
    number: u8,
    out: &mut Out,
    (local, untouched): (Gtid, bool),
    history: Uuid,
) -> Engine {
    let me = Member {
        replica: ReplicaId(Uuid([1; 16])),
        incarnation: Incarnation(Uuid([number; 16])),
        full_weight: 1,
        app_protocol: 4,
        ..Member::default()
    };
    let incarnation = me.incarnation;
    let disk = disk.clone();
    let start = Start {
        config: Config::new(me),
        promised: out.promised,
        last_log: out.log,
        recover: true,
        boot_id: [0; 16],
        log: LogConfig::new("".into(), 1 << 20, [0; 16], Durability::Os),
        disk: Box::new(move || -> Box<dyn Disk> { Box::new(disk.clone()) }),
        flushes_apart: false,
        local,
        untouched,
        bootstrap: None,
        expect: Some(Expected { nodes: 1, history }),
        server_running: false,
        options: Options::default(),
    };
    let mut engine = Engine::new(Replicator::new(Options::default()));
    engine.connect(1_000, start).expect("a log in memory");
    let listed = Event::Listed {
        members: vec![incarnation],
        missing: Vec::new(),
    };
    engine.group(1_000, listed);
    engine
}

fn passes(engine: &mut Engine, out: &mut Out) -> Standing {
    for step in 0..50 {
        let now_ms = 1_000 + step * 100;
        engine.tick(now_ms);
        engine.pump(now_ms, out);
    }
    engine.link().expect("connected").group.standing()
}

#[test]
fn a_founder_that_dies_at_once_goes_on_with_its_history() {
    let disk = MemoryDisk::new();
    let mut out = Out::default();
    let fresh = (Gtid::UNDEFINED, false);
    let mut first = process(&disk, 1, &mut out, fresh, FIRST);
    assert_eq!(passes(&mut first, &mut out), Standing::Primary);
    let at = |seqno| Gtid { uuid: FIRST, seqno };
    assert_eq!((&out.founded[..], out.saved), (&[FIRST][..], Some(at(0))));
    drop(first);
    disk.lose_power(|| false);

    // grastate.dat says 0, or as of a server that runs: the database has no position of its own.
    for local in [(at(0), false), (at(-1), true)] {
        let mut second = process(&disk, 2, &mut out, local, SECOND);
        assert_eq!(second.replicator.local(), at(0));
        assert_eq!(passes(&mut second, &mut out), Standing::Primary);
        assert_eq!(second.link().expect("connected").group.history(), FIRST);
    }
    assert_eq!(out.founded, [FIRST], "it has a history");
}

#[test]
fn a_log_that_was_begun_and_never_spoken_of_is_no_history() {
    let disk = MemoryDisk::new();
    let mut out = Out::default();
    let checkpoint = trireme_group::Checkpoint {
        history: FIRST,
        ..Default::default()
    };
    let handle = disk.clone();
    let mut storage = trireme_engine::Storage::new(
        LogConfig::new("".into(), 1 << 20, [0; 16], Durability::Os),
        Box::new(move || -> Box<dyn Disk> { Box::new(handle.clone()) }),
        [0; 16],
    );
    storage.begin(&checkpoint, false).expect("a log in memory");
    drop(storage);
    for uuid in [Uuid::NIL, FIRST] {
        let seqno = if uuid.is_nil() { -1 } else { 0 };
        let disk = disk.clone();
        let local = (Gtid { uuid, seqno }, false);
        let mut engine = process(&disk, 1, &mut out, local, SECOND);
        let blank = engine.group_mut().is_some_and(|group| group.is_blank());
        assert!(blank || out.founded.contains(&SECOND), "at {uuid}");
        drop(engine);
    }
}

#[test]
fn who_has_a_history_founds_nothing() {
    let disk = MemoryDisk::new();
    let mut out = Out::default();
    let seqno = -1;
    let local = (Gtid { uuid: FIRST, seqno }, false);
    let mut engine = process(&disk, 1, &mut out, local, SECOND);
    assert_eq!(passes(&mut engine, &mut out), Standing::Outside);
    assert!(out.founded.is_empty());
}
