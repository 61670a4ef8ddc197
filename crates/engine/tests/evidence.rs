//! A node that may have forgotten, alone, goes on with the best evidence: its log, or its database (rules 4, 5).

mod common;

use common::{HISTORY, Out};
use trireme_engine::{Doubts, Engine, Start, Storage};
use trireme_group::{Body, ComponentState, Configuration, Entry, Uuid};
use trireme_log::{Durability, MemoryDisk};
use trireme_replicator::{Gtid, NOT_DELIVERED, Options, Replicator, Seqno};

const BOOTSTRAP: Uuid = Uuid([6; 16]);
const NOT_MADE: Uuid = Uuid([4; 16]);

fn at(seqno: Seqno) -> Gtid {
    Gtid {
        uuid: HISTORY,
        seqno,
    }
}

/// Without flushes each process may have forgotten entries that the one before acknowledged.
fn begins(disk: &MemoryDisk, incarnation: u8, local: Gtid, bootstrap: Option<Uuid>) -> Engine {
    let start = Start {
        bootstrap,
        // All but the last of the log's payloads are read back, one each time.
        options: Options {
            queue_bytes: 1,
            ..Options::default()
        },
        ..common::start(disk, incarnation, Durability::Memory, local)
    };
    let mut engine = Engine::new(Replicator::new(Options::default()));
    engine.connect(1_000, start).expect("a log in memory");
    engine
}

fn passes(engine: &mut Engine, out: &mut Out, steps: u64) {
    for step in 0..steps {
        let now_ms = 1_000 + 100 * step;
        engine.tick(now_ms);
        engine.pump(now_ms, out);
    }
    out.must_be_well();
    let state = engine.link().expect("connected").group.component_state();
    assert_eq!(state, ComponentState::Primary);
}

/// A process bootstraps the history at 5, orders so many write-sets, and is killed. Returns the last seqno.
fn killed_after(disk: &MemoryDisk, write_sets: u64) -> Seqno {
    let mut out = Out::default();
    let mut engine = begins(disk, 1, at(5), Some(BOOTSTRAP));
    passes(&mut engine, &mut out, 10);
    for trx in 1..=write_sets {
        engine.node(9_000, common::certify(trx, &[7; 30]));
        engine.pump(9_000, &mut out);
    }
    let last = engine.replicator.last_seqno().expect("in step");
    assert!(last >= 5 + write_sets as Seqno);
    last
}

/// The log's outcomes say what was committed before the log has been read back.
#[test]
fn a_database_within_its_log_is_no_evidence_against_the_log() {
    let disk = MemoryDisk::new();
    let last = killed_after(&disk, 300);
    let mut engine = begins(&disk, 2, at(100), None);
    let read = engine.replicator.last_seqno().expect("a control state");
    assert!(read < 100, "{read}: the log has to be read back");

    let mut out = Out::default();
    passes(&mut engine, &mut out, 400);
    let lost_from = engine.lost_from().expect("it may have forgotten");
    assert!(
        lost_from.seqno > last,
        "{lost_from} is lost, and {last} was committed"
    );
    assert!(engine.replicator.last_seqno() > Some(last));
}

/// Another process appended a forced view, which its database did not come to. Unless the log `keeps` it, the next
/// leader dropped it.
fn append_forced_view(disk: &MemoryDisk, keeps: bool) {
    let mut storage = common::storage(disk, common::log_config(Durability::Memory));
    let recovered = storage.recover(HISTORY, usize::MAX, Doubts::default());
    let log = recovered.expect("read").expect("a log").log;
    storage
        .note_override(NOT_MADE, &[BOOTSTRAP])
        .expect("noted");
    if keeps {
        let last = log.entries.last().expect("it ordered write-sets");
        let view = Configuration {
            number: log.checkpoint.configuration.number + 1,
            override_id: Some(NOT_MADE),
            ..log.checkpoint.configuration.clone()
        };
        let entry = Entry {
            position: last.position + 1,
            term: last.term,
            body: Body::Configuration(view),
        };
        storage.append(&entry).expect("appended");
        storage.write_out().expect("written");
    }
}

fn noted(disk: &MemoryDisk) -> Vec<(Uuid, Seqno)> {
    let mut storage: Storage = common::storage(disk, common::log_config(Durability::Memory));
    storage.recall(HISTORY, Uuid::NIL).expect("read").1
}

/// An override that was never made would keep all other databases out of the new history.
#[test]
fn a_history_that_begins_anew_above_the_database_has_only_overrides_of_the_log() {
    for keeps in [false, true] {
        let disk = MemoryDisk::new();
        let last = killed_after(&disk, 3);
        append_forced_view(&disk, keeps);
        assert!(noted(&disk).contains(&(NOT_MADE, NOT_DELIVERED)));

        let local = at(last + 10);
        let mut engine = begins(&disk, 2, local, None);
        let mut out = Out::default();
        passes(&mut engine, &mut out, 100);
        let lost_from = engine.lost_from().expect("it may have forgotten");
        assert_eq!(lost_from, at(last + 11), "it goes on with the database");
        let in_log = engine.link().expect("connected").group.overrides_in_log();
        let past = match keeps {
            true => &[BOOTSTRAP, NOT_MADE][..],
            false => &[BOOTSTRAP],
        };
        let (own, before) = in_log.split_last().expect("its own");
        assert_eq!(before, past);
        assert_eq!(noted(&disk).last(), Some(&(*own, local.seqno)));
        let is_noted = noted(&disk).contains(&(NOT_MADE, NOT_DELIVERED));
        assert_eq!(is_noted, keeps);
    }
}
