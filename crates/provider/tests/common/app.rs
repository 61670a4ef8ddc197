//! What a server knows and records, and its joiner's script.

use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trireme_wsrep_abi::{Gtid, LogLevel, Seqno, Uuid, ViewStatus, WsHandle, Wsrep, WsrepStatus};

use super::call;

/// Whatever a test waits for takes less, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What every instance has logged: the callback has no context.
pub static LOG: Mutex<Vec<(LogLevel, String)>> = Mutex::new(Vec::new());
/// Options that a server sets as soon as a line with this text is logged.
pub static AT_LINE: Mutex<Option<(String, Arc<App>, CString)>> = Mutex::new(None);
/// Snapshots on their way from donors to joiners, by the joiner's request.
pub static SNAPSHOTS: Mutex<Option<HashMap<Vec<u8>, Snapshot>>> = Mutex::new(None);

/// A database: what was committed, in the order of its commits.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub position: Gtid,
    pub rows: Vec<(Seqno, String)>,
}

/// What the server knows; tests look at it and wait for it to change.
#[derive(Default)]
pub struct State {
    /// Member id of this connection.
    pub id: Uuid,
    /// Views as they came: status, seqno, members.
    pub views: Vec<(ViewStatus, Seqno, i32)>,
    /// Times that the node was told to be in step.
    pub synced: usize,
    /// Committed write-sets: seqno and data.
    pub rows: Vec<(Seqno, String)>,
    /// Flags of the applied write-sets.
    pub applied_flags: Vec<u32>,
    /// Donations: bypass or not.
    pub donated: Vec<bool>,
    /// Applying a write-set with this data waits until the gate is opened.
    pub gate: Option<String>,
    /// Whether the joiner's script waits, too, before it takes its snapshot.
    pub script_waits: bool,
    /// Whether an applier stands at the gate.
    pub at_gate: bool,
    /// Breaches of the contract; a callback must not panic.
    pub failures: Vec<String>,
    /// The last seqno that entered commit order.
    last_entered: Seqno,
    /// What is applied, views included.
    pub position: Gtid,
}

/// What callbacks get as context.
pub struct App {
    pub name: String,
    wsrep: AtomicPtr<Wsrep>,
    state: Mutex<State>,
    pub changed: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Context of a recv() thread, or of a replay.
pub struct Applier {
    pub app: Arc<App>,
    /// In a replay the server enters commit order with the client's handle.
    pub replays: Option<*const WsHandle>,
}

impl App {
    /// A server without data; `wsrep` is its provider's table.
    pub fn new(name: &str, wsrep: *mut Wsrep) -> App {
        App {
            name: name.to_string(),
            wsrep: AtomicPtr::new(wsrep),
            state: Mutex::default(),
            changed: Condvar::new(),
            threads: Mutex::default(),
        }
    }

    /// The provider's functions.
    pub fn table(&self) -> *mut Wsrep {
        self.wsrep.load(Ordering::Relaxed)
    }

    /// What is visible.
    pub fn last_committed(&self) -> Gtid {
        let mut gtid = Gtid::UNDEFINED;
        assert_eq!(call!(self, last_committed_id, &mut gtid), WsrepStatus::OK);
        gtid
    }

    /// A test that has failed must not take the callbacks with it.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known, and wakes who waits for it.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Waits for a change.
    pub fn wait_for(&self, what: &str, fulfilled: impl FnMut(&State) -> bool) {
        assert!(self.comes(fulfilled), "{} waits for {what}", self.name);
    }

    /// Waits for a change, for a while. Returns false if it has not come.
    pub fn comes(&self, mut fulfilled: impl FnMut(&State) -> bool) -> bool {
        let state = self.state();
        let (_state, timeout) = self
            .changed
            .wait_timeout_while(state, TIMEOUT, |state| !fulfilled(state))
            .unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }

    /// Checks a rule of the contract.
    pub fn check(&self, rule: bool, breach: impl FnOnce() -> String) {
        if !rule {
            self.change(|state| state.failures.push(breach()));
        }
    }

    /// Something is inside commit order; `data`: it commits.
    pub fn enter(&self, seqno: Seqno, data: Option<String>) {
        let mut last = -1;
        self.change(|state| {
            last = std::mem::replace(&mut state.last_entered, seqno);
            state.position.seqno = seqno;
            state.rows.extend(data.map(|data| (seqno, data)));
        });
        self.check(last < seqno, || {
            format!("{seqno} in commit order after {last}")
        });
    }

    /// Waits for the threads of scripts.
    pub fn join_threads(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap());
        for thread in threads {
            let _ = thread.join();
        }
    }

    /// Runs a script in a thread.
    pub fn spawn(self: &Arc<Self>, body: impl FnOnce(Arc<App>) + Send + 'static) {
        let app = self.clone();
        let thread = std::thread::spawn(move || body(app));
        self.threads.lock().unwrap().push(thread);
    }

    /// The joiner's script: waits for the snapshot, takes it, tells the provider.
    pub fn receive(&self, request: &[u8]) {
        let deadline = Instant::now() + TIMEOUT;
        let snapshot = loop {
            let mut snapshots = SNAPSHOTS.lock().unwrap();
            if let Some(snapshot) = snapshots.as_mut().and_then(|all| all.remove(request)) {
                break snapshot;
            }
            drop(snapshots);
            if Instant::now() > deadline {
                return self.check(false, || "no snapshot came".into());
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let opened = self.comes(|state| !state.script_waits);
        self.check(opened, || "the gate stayed shut".into());
        let position = snapshot.position;
        self.change(|state| {
            (state.rows, state.position) = (snapshot.rows, position);
            state.last_entered = position.seqno;
        });
        let status = call!(self, sst_received, &position, ptr::null(), 0);
        self.check(status == WsrepStatus::OK, || {
            format!("sst_received: {status:?}")
        });
    }
}
