//! A node that founds a cluster because all that were expected support it; here it is all of them.

mod common;

use common::Out;
use trireme_engine::{Engine, Expected, Start};
use trireme_group::{ComponentState, Event, Uuid};
use trireme_log::{Durability, LogConfig, MemoryDisk};
use trireme_replicator::{Gtid, Options, Replicator};

const FIRST: Uuid = Uuid([7; 16]);
const SECOND: Uuid = Uuid([8; 16]);

/// A process on the disk, with its database at `local`; `history` names what it may found.
fn process(
    disk: &MemoryDisk,
    number: u8,
    out: &mut Out,
    (local, untouched): (Gtid, bool),
    history: Uuid,
) -> Engine {
    let start = Start {
        promised: out.promised,
        last_log: out.log,
        untouched,
        expect: Some(Expected { nodes: 1, history }),
        log: LogConfig {
            segment_bytes: 128, // a snapshot after every few entries
            ..common::log_config(Durability::Os)
        },
        ..common::start(disk, number, Durability::Os, local)
    };
    let incarnation = start.config.me.incarnation;
    let mut engine = Engine::new(Replicator::new(Options::default()));
    engine.connect(1_000, start).expect("a log in memory");
    let listed = Event::Listed {
        members: vec![incarnation],
        missing: Vec::new(),
    };
    engine.group(1_000, listed);
    engine
}

fn passes(engine: &mut Engine, out: &mut Out) -> ComponentState {
    for step in 0..50 {
        let now_ms = 1_000 + step * 100;
        engine.tick(now_ms);
        engine.pump(now_ms, out);
    }
    out.must_be_well();
    engine.link().expect("connected").group.component_state()
}

#[test]
fn a_founder_that_dies_at_once_goes_on_with_its_history() {
    let disk = MemoryDisk::new();
    let mut out = Out::default();
    let fresh = (Gtid::UNDEFINED, false);
    let mut first = process(&disk, 1, &mut out, fresh, FIRST);
    assert_eq!(passes(&mut first, &mut out), ComponentState::Primary);
    let at = |seqno| Gtid { uuid: FIRST, seqno };
    assert_eq!((&out.founded[..], out.saved), (&[FIRST][..], Some(at(0))));
    drop(first);
    disk.lose_power(|| false);

    // grastate.dat says 0, or as of a server that runs: the database has no position of its own.
    for local in [(at(0), false), (at(-1), true)] {
        let mut second = process(&disk, 2, &mut out, local, SECOND);
        assert_eq!(second.replicator.local(), at(0));
        assert_eq!(passes(&mut second, &mut out), ComponentState::Primary);
        assert_eq!(second.link().expect("connected").group.history(), FIRST);
    }
    assert_eq!(out.founded, [FIRST], "it has a history");
}

/// Nothing of what it has committed was in its database yet: all of it is in the log, from the first entry on.
#[test]
fn a_founder_that_dies_before_its_database_has_anything_applies_its_log() {
    let disk = MemoryDisk::new();
    let mut out = Out::default();
    let mut first = process(&disk, 1, &mut out, (Gtid::UNDEFINED, false), FIRST);
    passes(&mut first, &mut out);
    for trx in 1..10 {
        first.node(9_000, common::certify(trx, &[7; 300]));
        first.pump(9_000, &mut out);
    }
    drop(first);
    let at = |seqno| Gtid { uuid: FIRST, seqno };
    let second = process(&disk, 2, &mut out, (at(-1), true), SECOND);
    let checkpoint = second.link().expect("connected").group.checkpoint();
    assert!(checkpoint.configuration.number == 1 && checkpoint.position > 2);
    assert_eq!(second.replicator.local(), at(0));
}

#[test]
fn a_log_that_was_begun_and_never_spoken_of_is_no_history() {
    let disk = MemoryDisk::new();
    let mut out = Out::default();
    drop(common::begun(
        &disk,
        common::log_config(Durability::Os),
        FIRST,
    ));
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
    assert_eq!(passes(&mut engine, &mut out), ComponentState::Outside);
    assert!(out.founded.is_empty());
}
