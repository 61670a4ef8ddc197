//! A small world of one process.

use std::collections::BTreeMap;

use bytes::Bytes;
use trireme_engine::{Channel, Engine, Host, HostAction, NotKept, ServeJob, StageJob, Start};
use trireme_group::{Config, Incarnation, Member, ReplicaId, Term, Uuid};
use trireme_log::{Durability, FlushJob, LogConfig, MemoryDisk};
use trireme_replicator::{Gtid, Level, NoHistory, Options, Replicator, Status};

use crate::random::Random;
use crate::seen::{Seen, TimeUs};
use crate::server::{Ctx, Datadir, Next, Server, ServerPlan, ThreadId, Transfer};
use crate::watch::Watch;

/// What comes out of the engine.
#[derive(Default)]
struct Out {
    server: Option<Server>,
    logs: Vec<String>,
    closed: bool,
}

impl Host for Out {
    fn send(&mut self, _to: &[Incarnation], _channel: Channel, _bytes: Bytes) {}
    fn queued_bytes(&self, _peer: Incarnation) -> Option<usize> {
        Some(0)
    }
    fn promise(&mut self, _term: Term) -> Result<(), NotKept> {
        Ok(())
    }
    fn in_log(&mut self, _id: Uuid) -> Result<(), NotKept> {
        Ok(())
    }

    fn in_history(&mut self, _history: Uuid) {}
    fn refused(&mut self, reason: String) {
        panic!("{reason}")
    }
    fn note(&mut self, _text: &str) {}
    fn flush(&mut self, _job: FlushJob) {
        unreachable!("flushes are not apart")
    }
    fn stage(&mut self, _job: StageJob) {
        unreachable!("nor is staging")
    }
    fn serve(&mut self, _job: ServeJob) {
        unreachable!("nor are reads for peers")
    }
    fn fail(&mut self, text: &str) {
        panic!("{text}")
    }
    fn act(&mut self, action: HostAction) {
        let server = self.server.as_mut().expect("there is a server");
        match action {
            HostAction::Answer { ticket, answer } => server.answered(ticket, answer),
            HostAction::WakeAppliers { n } => server.wake_appliers(n),
            HostAction::Admitted => server.admitted(),
            HostAction::Closed => self.closed = true,
            HostAction::Fatal { text } => panic!("{text}"),
            HostAction::Log { level, text } => {
                assert!(!matches!(level, Level::Error), "{text}");
                self.logs.push(text);
            }
            _ => {}
        }
    }
}

/// One process and its time.
pub struct Solo {
    pub engine: Engine,
    pub watch: Watch,
    pub transfers: Vec<Transfer>,
    pub now_us: TimeUs,
    pub steps: u64,
    out: Out,
    random: Random,
    due: BTreeMap<ThreadId, TimeUs>,
}

pub const HISTORY: Uuid = Uuid([9; 16]);

impl Solo {
    /// A new database, bootstrapped.
    pub fn new(plan: ServerPlan, seed: u64) -> Solo {
        Solo::on(Datadir::new(), Gtid::UNDEFINED, 1, plan, seed)
    }

    /// A process on this database, whose position the provider is told.
    pub fn on(datadir: Datadir, local: Gtid, start: u64, plan: ServerPlan, seed: u64) -> Solo {
        let mut random = Random::new(seed, 1);
        let me = Member {
            replica: ReplicaId(Uuid([1; 16])),
            incarnation: Incarnation(Uuid([start as u8; 16])),
            full_weight: 1,
            app_protocol: 4,
            ..Member::default()
        };
        let server = Server::new(datadir, plan, 0, start, &mut random);
        let mut engine = Engine::new(Replicator::new(Options::default()));
        let disk = MemoryDisk::new();
        let start = Start {
            config: Config::new(me),
            promised: Term::default(),
            last_log: Uuid::NIL,
            recover: false,
            boot_id: [0; 16],
            log: LogConfig::new("".into(), 1 << 20, [0; 16], Durability::Os),
            disk: Box::new(move || Box::new(disk.clone())),
            mark: None,
            local,
            bootstrap: Some(HISTORY),
            expect: None,
            untouched: false,
            flushes_apart: false,
            server_running: false,
            apply_again: 0,
            options: Options::default(),
            thresholds: trireme_engine::Thresholds::default(),
        };
        engine.connect(1000, start).expect("a log in memory");
        let out = Out {
            server: Some(server),
            ..Out::default()
        };
        let mut solo = Solo {
            engine,
            watch: Watch::recording(),
            transfers: Vec::new(),
            now_us: 1_000_000,
            steps: 0,
            out,
            random,
            due: BTreeMap::new(),
        };
        solo.pump();
        solo
    }

    pub fn server(&mut self) -> &mut Server {
        self.out.server.as_mut().expect("there is a server")
    }

    pub fn take_server(&mut self) -> Server {
        self.out.server.take().expect("there is a server")
    }

    pub fn logs(&self) -> &[String] {
        &self.out.logs
    }

    pub fn closed(&self) -> bool {
        self.out.closed
    }

    /// Carries out everything, and plans who has become runnable.
    pub fn pump(&mut self) {
        self.engine.pump(self.now_us / 1000, &mut self.out);
        let mut runnable = Vec::new();
        self.server().take_runnable(&mut runnable);
        for thread in runnable {
            let at = self.now_us + self.random.within(1..=50);
            self.due.insert(thread, at);
        }
    }

    /// Runs for so long.
    pub fn run(&mut self, us: TimeUs) {
        let until = self.now_us + us;
        loop {
            let tick = self.engine.next_deadline_ms().map(|ms| ms * 1000);
            let thread = self.due.iter().map(|(t, at)| (*at, *t)).min();
            match (thread, tick) {
                (Some((at, thread)), tick) if at <= until && tick.is_none_or(|t| at <= t) => {
                    self.now_us = self.now_us.max(at);
                    self.due.remove(&thread);
                    self.step(thread);
                }
                (_, Some(tick)) if tick <= until => {
                    self.now_us = self.now_us.max(tick);
                    self.engine.tick(self.now_us / 1000 + 1);
                }
                _ => break,
            }
            self.pump();
        }
        self.now_us = until;
    }

    fn step(&mut self, thread: ThreadId) {
        self.steps += 1;
        let mut ctx = Ctx {
            now_us: self.now_us,
            now_ms: self.now_us / 1000,
            node: 0,
            engine: &mut self.engine,
            random: &mut self.random,
            watch: &mut self.watch,
            may_fail: true,
            is_hindered: false,
            transfers: &mut self.transfers,
        };
        let server = self.out.server.as_mut().expect("there is a server");
        if let Next::After(us) = server.step(thread, &mut ctx) {
            self.due.insert(thread, self.now_us + us);
        }
    }

    /// Clients finish; everything comes to rest.
    pub fn finish(&mut self) {
        self.server().set_busy(false);
        self.run(20_000_000);
        assert_eq!(self.server().waiting(), Vec::<String>::new());
    }

    /// SHOW STATUS.
    pub fn status(&self) -> Status {
        self.engine.replicator.status(&NoHistory)
    }

    /// How many sights of a kind there are.
    pub fn count(&self, of: impl Fn(&Seen) -> bool) -> usize {
        self.watch
            .sights
            .iter()
            .filter(|sight| of(&sight.what))
            .count()
    }
}
