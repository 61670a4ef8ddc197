//! As many overrides as a history may have (rule 11) fit beside the log, and one more is refused before anything is changed.

mod common;

use common::{HISTORY, Out};
use trireme_engine::{Doubts, Engine, Forgotten, Start, StartError, Storage, unvouched_position};
use trireme_group::{Checkpoint, ComponentState, OVERRIDES_MAX, Uuid, unvouched_override};
use trireme_log::{Disk, Durability, MemoryDisk};
use trireme_replicator::{Gtid, NOT_DELIVERED, Options, Replicator};

const AT: Gtid = Gtid {
    uuid: HISTORY,
    seqno: 5,
};

fn id(number: usize) -> Uuid {
    let mut bytes = [1; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Uuid(bytes)
}

fn storage(disk: &MemoryDisk) -> Storage {
    common::storage(disk, common::log_config(Durability::Memory))
}

fn noted(count: usize) -> MemoryDisk {
    noted_as(Durability::Memory, count)
}

/// What an earlier process has left: a database at [`AT`], with so many overrides in its past.
fn noted_as(durability: Durability, count: usize) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let mut storage = common::begun(&disk, common::log_config(durability), HISTORY);
    let overrides = (0..count).map(|number| (id(number), 3)).collect();
    storage.note_overrides(overrides).expect("they fit");
    disk
}

/// A process on this disk begins. Without flushes it may have forgotten what the process before it held.
fn begins(
    disk: &MemoryDisk,
    incarnation: u8,
    local: Gtid,
    bootstrap: Option<Uuid>,
) -> Result<Engine, StartError> {
    begins_as(Durability::Memory, disk, incarnation, local, bootstrap)
}

fn begins_as(
    durability: Durability,
    disk: &MemoryDisk,
    incarnation: u8,
    local: Gtid,
    bootstrap: Option<Uuid>,
) -> Result<Engine, StartError> {
    let start = Start {
        bootstrap,
        ..common::start(disk, incarnation, durability, local)
    };
    let mut out = Out::default();
    let mut engine = Engine::new(Replicator::new(Options::default()));
    engine.connect(1_000, start)?;
    for step in 0..100 {
        let now_ms = 1_000 + 100 * step;
        engine.tick(now_ms);
        engine.pump(now_ms, &mut out);
    }
    out.must_be_well();
    Ok(engine)
}

fn overrides(engine: &Engine) -> usize {
    let group = &engine.link().expect("connected").group;
    assert_eq!(group.component_state(), ComponentState::Primary);
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
    noting.recall(HISTORY, Uuid::NIL).expect("read");
    noting
        .begin(&checkpoint, Forgotten::default())
        .expect("begun");
    for number in 0..2_000 {
        let mut in_log: Vec<Uuid> = (0..OVERRIDES_MAX - 1).map(id).collect();
        in_log.push(id(10_000 + number));
        noting
            .note_override(id(10_000 + number), &in_log)
            .expect("it fits");
    }
    let (_, known) = storage(&disk).recall(HISTORY, Uuid::NIL).expect("read");
    assert_eq!(known.len(), OVERRIDES_MAX);
    assert_eq!(known.last(), Some(&(id(11_999), NOT_DELIVERED)));
    assert!((0..OVERRIDES_MAX - 1).all(|number| known.contains(&(id(number), 3))));
}

/// Nobody vouches for a database whose grastate.dat was removed: whoever is beyond the first view takes a snapshot of it.
#[test]
fn who_is_bootstrapped_without_grastate_has_nothing_in_common_with_the_others() {
    for (bootstrap, common) in [
        (Uuid([6; 16]), AT.seqno),
        (unvouched_override(Uuid([6; 16])), 1),
    ] {
        let disk = noted(0);
        let engine = begins(&disk, 1, AT, Some(bootstrap)).expect("bootstrapped");
        assert_eq!(overrides(&engine), 1);
        drop(engine);
        let (_, known) = storage(&disk).recall(HISTORY, Uuid::NIL).expect("read");
        assert_eq!(known, [(bootstrap, common)]);
    }
}

/// A lone server, say, of which each start is a fresh container: grastate.dat is gone each time, the rest is kept.
#[test]
fn a_node_without_others_is_bootstrapped_without_grastate_as_often_as_it_likes() {
    let disk = noted_as(Durability::Disk, 0);
    for start in 1..20 {
        let bootstrap = unvouched_override(id(usize::from(start)));
        let engine = begins_as(Durability::Disk, &disk, start, AT, Some(bootstrap));
        assert_eq!(
            overrides(&engine.expect("bootstrapped")),
            1,
            "start {start}"
        );
    }
}

/// Its log makes other rows of it: it goes on from where it stands, and the others take a snapshot of it.
#[test]
fn a_diverged_database_that_is_bootstrapped_does_not_go_on_with_its_log() {
    let disk = noted_as(Durability::Disk, 0);
    for (start, diverged, forks) in [(1, false, 1), (2, true, 2), (3, false, 2)] {
        if diverged {
            let mut noting = common::storage(&disk, common::log_config(Durability::Disk));
            let resumed = noting
                .recover(HISTORY, usize::MAX, Doubts::default())
                .expect("read");
            assert!(resumed.is_some(), "the log is used but for that");
            noting.note_diverged(true).expect("it fits");
        }
        let bootstrap = unvouched_override(id(usize::from(start)));
        let engine = begins_as(Durability::Disk, &disk, start, AT, Some(bootstrap));
        assert_eq!(
            overrides(&engine.expect("bootstrapped")),
            forks,
            "start {start}"
        );
        let (_, known) = storage(&disk).recall(HISTORY, Uuid::NIL).expect("read");
        assert!(known.iter().all(|(_, common)| *common == 1));
    }
}

#[test]
fn without_grastate_a_position_counts_beside_its_own_log_only() {
    let other = Uuid([8; 16]);
    assert_eq!(unvouched_position(AT, Some(HISTORY)), AT);
    assert_eq!(unvouched_position(AT, Some(other)), Gtid::UNDEFINED);
    assert_eq!(unvouched_position(AT, None), Gtid::UNDEFINED, "a copy");
    let unknown = Gtid { seqno: -1, ..AT };
    assert_eq!(unvouched_position(unknown, Some(HISTORY)), Gtid::UNDEFINED);
    let disk = noted(0);
    assert_eq!(Storage::history_on(&disk).expect("read"), Some(HISTORY));
    let empty = MemoryDisk::new();
    assert_eq!(Storage::history_on(&empty).expect("read"), None);
}
