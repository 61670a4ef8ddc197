//! What these tests share: a process on a disk in memory, and what comes out of its engine.
#![allow(dead_code)] // each takes its part

use bytes::Bytes;
use trireme_certification::{KeySetBuilder, KeyType};
use trireme_engine::{
    Channel, Engine, Forgotten, Host, HostAction, NotKept, OpenDisk, ServeJob, StageJob, Start,
    Storage,
};
use trireme_group::{Checkpoint, Config, Incarnation, Member, ReplicaId, Term, Uuid};
use trireme_log::{Disk, Durability, FlushJob, LogConfig, MemoryDisk};
use trireme_replicator::{Answer, Event, Gtid, Options, Task, Ticket, TrxId, WriteSetDraft, flags};

pub const HISTORY: Uuid = Uuid([9; 16]);

/// What comes out of the engine.
#[derive(Default)]
pub struct Out {
    pub answers: Vec<(Ticket, Answer)>,
    pub failures: Vec<String>,
    pub warnings: Vec<String>,
    pub flushes: Vec<FlushJob>,
    pub serves: Vec<ServeJob>,
    pub founded: Vec<Uuid>,
    pub saved: Option<Gtid>,
    pub closed: bool,
    pub fatal: Option<String>,
    pub promised: Term,
    /// The log that the data directory names.
    pub log: Uuid,
    pub fail_log: bool,
    pub fail_promise: bool,
}

impl Out {
    /// The node has no reason to leave, or to end its server.
    pub fn must_be_well(&self) {
        assert_eq!((&self.failures[..], &self.fatal), (&[][..], &None));
    }
}

fn read_only() -> NotKept {
    NotKept {
        text: "the data directory is read-only".to_owned(),
        is_lack: false,
    }
}

impl Host for Out {
    fn send(&mut self, _to: &[Incarnation], _channel: Channel, _bytes: Bytes) {}
    fn queued_bytes(&self, _peer: Incarnation) -> Option<usize> {
        Some(0)
    }
    fn promise(&mut self, term: Term) -> Result<(), NotKept> {
        if self.fail_promise {
            return Err(read_only());
        }
        self.promised = term;
        Ok(())
    }
    fn in_log(&mut self, id: Uuid) -> Result<(), NotKept> {
        self.log = id;
        match self.fail_log {
            true => Err(read_only()),
            false => Ok(()),
        }
    }
    fn in_history(&mut self, _history: Uuid) {}
    fn refused(&mut self, reason: String) {
        panic!("{reason}")
    }
    fn note(&mut self, _text: &str) {}
    fn warn(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }
    fn flush(&mut self, job: FlushJob) {
        self.flushes.push(job);
    }
    fn stage(&mut self, _job: StageJob) {
        unreachable!("nothing here is so large")
    }
    fn serve(&mut self, job: ServeJob) {
        self.serves.push(job);
    }
    fn fail(&mut self, text: &str) {
        self.failures.push(text.to_owned());
    }
    fn act(&mut self, action: HostAction) {
        match action {
            HostAction::Answer { ticket, answer } => self.answers.push((ticket, answer)),
            HostAction::SaveState { gtid, .. } => self.saved = Some(gtid),
            HostAction::Closed => self.closed = true,
            HostAction::Fatal { text } => self.fatal = Some(text),
            _ => {}
        }
    }
    fn founds(&mut self, history: Uuid) {
        self.founded.push(history);
    }
}

/// A log's configuration.
pub fn log_config(durability: Durability) -> LogConfig {
    LogConfig::new("".into(), 1 << 20, [0; 16], durability)
}

/// Handles on this disk.
pub fn opens(disk: &MemoryDisk) -> OpenDisk {
    let disk = disk.clone();
    Box::new(move || -> Box<dyn Disk> { Box::new(disk.clone()) })
}

/// The log on this disk, not opened.
pub fn storage(disk: &MemoryDisk, config: LogConfig) -> Storage {
    Storage::new(config, opens(disk), [0; 16], None)
}

/// The log on this disk, begun.
pub fn begun(disk: &MemoryDisk, config: LogConfig, history: Uuid) -> Storage {
    let mut storage = storage(disk, config);
    let checkpoint = Checkpoint {
        history,
        ..Checkpoint::default()
    };
    storage
        .begin(&checkpoint, Forgotten::default())
        .expect("a log in memory");
    storage
}

/// A process of the replica on this disk joins a cluster, with its database at `local`.
pub fn start(disk: &MemoryDisk, incarnation: u8, durability: Durability, local: Gtid) -> Start {
    let me = Member {
        replica: ReplicaId(Uuid([1; 16])),
        incarnation: Incarnation(Uuid([incarnation; 16])),
        full_weight: 1,
        app_protocol: 4,
        ..Member::default()
    };
    Start {
        config: Config::new(me),
        promised: Term::default(),
        last_log: Uuid::NIL,
        recover: true,
        boot_id: [0; 16],
        log: log_config(durability),
        disk: opens(disk),
        mark: None,
        flushes_apart: false,
        local,
        bootstrap: None,
        expect: None,
        untouched: false,
        server_running: false,
        apply_again: 0,
        options: Options::default(),
        thresholds: trireme_engine::Thresholds::default(),
    }
}

/// Everything is carried out, the server's part included.
pub fn settle(engine: &mut Engine, now_ms: &mut u64, out: &mut Out) {
    for _ in 0..150 {
        *now_ms += 10;
        engine.tick(*now_ms);
        engine.pump(*now_ms, out);
        while let Some(work) = engine.replicator.take_work() {
            if matches!(work.task, Task::Exit { .. }) {
                return; // as for every thread from here on
            }
            let done = Event::WorkDone {
                work: work.id,
                ok: true,
            };
            engine.node(*now_ms, done);
            engine.pump(*now_ms, out);
        }
    }
}

/// A total-order action.
pub fn ddl(statement: &[u8]) -> WriteSetDraft {
    let mut keys = KeySetBuilder::new();
    keys.append(&[b"db", b"t"], KeyType::Exclusive);
    let both = flags::TRX_START | flags::TRX_END;
    WriteSetDraft::new(both, 0, 1, &keys, &[statement])
}

/// A client asks for the commit of a transaction that has changed a row of its own; its ticket has the same number.
pub fn certify(trx: TrxId, data: &[u8]) -> Event {
    let mut keys = KeySetBuilder::new();
    let row = trx.to_string();
    keys.append(&[b"db", b"t", row.as_bytes()], KeyType::Exclusive);
    let both = flags::TRX_START | flags::TRX_END;
    Event::Certify {
        ticket: trx,
        trx,
        conn: trx,
        draft: WriteSetDraft::new(both, trx, trx, &keys, &[data]),
    }
}
