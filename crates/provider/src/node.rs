//! The shared handle on a node: the core, which threads hand to each other, and the state that needs no lock of the
//! core.

use std::collections::HashSet;
use std::fs::File;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use trireme_engine::Host;
use trireme_handover::{Handover, UnderLock};
use trireme_log::FlushJob;
use trireme_node::state_file::ConflictLine;
use trireme_node::{Station, unix_ms};
use trireme_replicator::{Answer, Event, Loss, Ticket, TrxId, Work};
use trireme_wsrep_abi::InitSettings;

use crate::conflict_log::{self, ConflictLog};
use crate::core::Core;
use crate::logging::Logger;
use crate::options::Options;
use crate::reactor::Reactor;
use crate::reporter::Reporter;
use crate::server_state::ServerState;
use crate::times::Times;
use crate::transaction::Transaction;
use crate::waiting::Waiting;

/// Maximum of a winner's keys that are searched for the one that collided.
const WINNER_KEYS_MAX: usize = 4_096;

/// One provider instance. Threads of the server reach its core through the methods of [`Handover`].
pub struct Node {
    /// Keeps other servers out of it while this instance lives.
    _log_directory: Option<File>,
    handover: Handover<Core>,
    /// The arguments of init().
    pub settings: InitSettings,
    pub logger: Logger,
    /// Locked for a moment only: many calls of the server read an option.
    pub options: Mutex<Options>,
    /// Locked while a thread changes options, before `options`. The thread may read files meanwhile, which may hang.
    pub options_change: Mutex<()>,
    /// Writes the state-and-event file, from the first connect() on.
    pub reporter: Mutex<Option<Reporter>>,
    /// When init() was called.
    pub started_at_unix_ms: u64,
    /// The state of the server around this provider.
    pub server: ServerState,
    /// The connection's thread; none while disconnected.
    pub reactor: Mutex<Option<Reactor>>,
    /// Transactions that have appended data or keys and were not certified yet.
    pub executing: Mutex<HashSet<TrxId>>,
    /// Own transactions that lost.
    conflicts: Mutex<ConflictLog>,
    /// `cert.log_conflicts`.
    pub logs_conflicts: AtomicBool,
    /// The times that the server's threads measure.
    pub times: Times,
    /// `repl.max_ws_size`.
    pub max_ws_bytes: AtomicU64,
    /// True after the warning that others may read the traffic: it comes once per start.
    pub has_told_exposure: AtomicBool,
}

impl Node {
    pub fn new(
        core: Core,
        settings: InitSettings,
        options: Options,
        log_directory: Option<File>,
        logger: Logger,
    ) -> Node {
        Node {
            _log_directory: log_directory,
            handover: Handover::new(core),
            settings,
            logger,
            options: Mutex::new(options),
            options_change: Mutex::new(()),
            reporter: Mutex::new(None),
            started_at_unix_ms: unix_ms(),
            server: ServerState::default(),
            reactor: Mutex::new(None),
            executing: Mutex::new(HashSet::new()),
            conflicts: Mutex::default(),
            logs_conflicts: AtomicBool::new(false),
            times: Times::default(),
            max_ws_bytes: AtomicU64::new(i32::MAX as u64),
            has_told_exposure: AtomicBool::new(false),
        }
    }

    /// Flushes the log, and tells the core. Returns the next flush, if one has become due meanwhile and the calling
    /// thread should do it.
    pub fn flush(&self, job: FlushJob) -> Option<FlushJob> {
        let (began, bytes) = (Instant::now(), job.bytes());
        let done = job.run();
        self.with(|core| {
            core.flushed(done, bytes, began.elapsed());
            Station::pump(core);
            core.take_quick_flush(None)
        })
    }

    /// Warns of something that each statement may repeat: only the first few lines are written.
    pub fn warn(&self, text: &str) {
        self.with(|core| core.parts().1.warn(text));
    }

    /// Notes that an own transaction has lost.
    pub fn note_loss(&self, loss: Loss, transaction: &Transaction) {
        let keys = loss.winner.as_ref().map(|winner| {
            self.peek(|core| {
                core.engine
                    .replicator
                    .keys_of(winner.seqno, WINNER_KEYS_MAX)
            })
        });
        let key = keys.and_then(|keys| transaction.key_log().collides(&keys));
        let line = conflict_log::line(unix_ms(), loss, key, transaction.conn());
        if self.logs_conflicts.load(Ordering::Relaxed) {
            self.logger.info(conflict_log::text(&line));
        }
        let mut conflicts = (self.conflicts.lock()).unwrap_or_else(PoisonError::into_inner);
        conflicts.add(line);
    }

    /// Returns at most `most` own transactions that lost, the newest first.
    pub fn conflicts(&self, most: usize) -> Vec<ConflictLine> {
        let conflicts = (self.conflicts.lock()).unwrap_or_else(PoisonError::into_inner);
        conflicts.newest(most)
    }

    /// Makes the connection's thread check its deadlines again.
    pub fn wake_reactor(&self) {
        if let Some(reactor) = self
            .reactor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
        {
            reactor.wake();
        }
    }
}

impl Deref for Node {
    type Target = Handover<Core>;

    fn deref(&self) -> &Handover<Core> {
        &self.handover
    }
}

/// Panics under the lock end the process at the border (see border.rs).
impl UnderLock for Core {
    type Event = Event;
    type Answer = Answer;
    type Work = Work;

    fn handle(&mut self, event: Event) {
        self.node(event);
    }

    fn pump(&mut self) {
        Station::pump(self);
        self.disk.hand_over_flush();
    }

    fn take_work(&mut self) -> Option<Work> {
        self.engine.replicator.take_work()
    }

    fn take_appliers_due(&mut self) -> usize {
        std::mem::take(&mut self.appliers_due)
    }

    fn cancel(&mut self, ticket: Ticket) {
        self.node(Event::CancelTicket { ticket });
    }

    fn waiting(&mut self) -> &mut Waiting {
        &mut self.waiting
    }
}
