//! The server: one provider instance, the callbacks that it gets, the recv() threads that it has.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::net::TcpListener;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trireme_wsrep_abi::{
    Buf, CbStatus, Gtid, InitArgs, LogLevel, Seqno, StatsVar, TrxMeta, Uuid, VarType,
    ViewInfoHeader, ViewStatus, WsHandle, Wsrep, WsrepStatus, cstr_to_string, flag,
};

use crate::call;

unsafe extern "C" {
    fn wsrep_loader(wsrep: *mut Wsrep) -> c_int;
}

/// Whatever a test waits for takes less, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What every instance has logged: the callback has no context.
static LOG: Mutex<Vec<(LogLevel, String)>> = Mutex::new(Vec::new());
/// Snapshots on their way from donors to joiners, by the joiner's request.
static SNAPSHOTS: Mutex<Option<HashMap<Vec<u8>, Snapshot>>> = Mutex::new(None);

/// A database: what was committed, in the order of its commits.
#[derive(Clone, Default)]
struct Snapshot {
    position: Gtid,
    rows: Vec<(Seqno, String)>,
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
    /// Whether an applier stands at the gate.
    pub at_gate: bool,
    /// Breaches of the contract; a callback must not panic.
    pub failures: Vec<String>,
    /// The last seqno that entered commit order.
    last_entered: Seqno,
    position: Gtid,
}

/// What callbacks get as context.
pub struct App {
    name: String,
    wsrep: AtomicPtr<Wsrep>,
    state: Mutex<State>,
    changed: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Context of a recv() thread, or of a replay.
pub struct Applier {
    app: Arc<App>,
    /// In a replay the server enters commit order with the client's handle.
    replays: Option<*const WsHandle>,
}

/// A server with one provider instance.
pub struct Server {
    app: Arc<App>,
    _data_dir: tempfile::TempDir,
    pub port: u16,
    appliers: Mutex<Vec<JoinHandle<WsrepStatus>>>,
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}

/// Lines of the log, of all instances, that contain `text`.
pub fn logged(text: &str) -> Vec<(LogLevel, String)> {
    let log = LOG.lock().unwrap();
    log.iter()
        .filter(|(_, line)| line.contains(text))
        .cloned()
        .collect()
}

impl Server {
    /// Loads and initialises a provider.
    pub fn start(name: &str, options: &str) -> Result<Server, WsrepStatus> {
        Server::start_on(name, free_port(), options)
    }

    pub fn start_on(name: &str, port: u16, options: &str) -> Result<Server, WsrepStatus> {
        // SAFETY: all-zero is a valid table, and a valid `InitArgs`: NULL pointers and `None`.
        let (mut table, mut args): (Box<Wsrep>, InitArgs) =
            unsafe { (Box::new(std::mem::zeroed()), std::mem::zeroed()) };
        // SAFETY: room for the table.
        assert_eq!(unsafe { wsrep_loader(&mut *table) }, 0);
        let app = Arc::new(App {
            name: name.to_string(),
            wsrep: AtomicPtr::new(Box::into_raw(table)),
            state: Mutex::default(),
            changed: Condvar::new(),
            threads: Mutex::default(),
        });
        let data_dir = tempfile::tempdir().expect("a directory");
        let server = Server {
            app,
            _data_dir: data_dir,
            port,
            appliers: Mutex::default(),
        };
        let text = |text: &str| CString::new(text).expect("no NUL");
        let dir = text(server._data_dir.path().to_str().expect("UTF-8"));
        let options = text(&format!(
            "gmcast.listen_addr=tcp://127.0.0.1:{port};gcache.size=16M;{options}"
        ));
        let (name, address, incoming) = (
            text(name),
            text(&format!("127.0.0.1:{port}")),
            text("127.0.0.1:3306"),
        );
        args.app_ctx = Arc::as_ptr(&server.app).cast_mut().cast();
        args.node_name = name.as_ptr();
        args.node_address = address.as_ptr();
        args.node_incoming = incoming.as_ptr();
        args.data_dir = dir.as_ptr();
        args.options = options.as_ptr();
        args.proto_ver = 4;
        args.state_id = &Gtid::UNDEFINED;
        args.logger_cb = Some(log);
        args.connected_cb = Some(connected);
        args.view_cb = Some(view);
        args.sst_request_cb = Some(sst_request);
        args.apply_cb = Some(apply);
        args.sst_donate_cb = Some(sst_donate);
        args.synced_cb = Some(synced);
        match call!(server, init, &args) {
            WsrepStatus::OK => Ok(server),
            status => Err(status),
        }
    }

    pub fn table(&self) -> *mut Wsrep {
        self.app.wsrep.load(Ordering::Relaxed)
    }

    /// connect(), without recv() threads.
    pub fn try_connect(&self, url: &str) -> WsrepStatus {
        let url = CString::new(url).expect("no NUL");
        let (name, url) = (c"host".as_ptr(), url.as_ptr());
        call!(self, connect, name, url, c"".as_ptr(), false)
    }

    /// connect(); then one recv() thread until the node is in step, as a server has it during a state transfer, then
    /// two more.
    pub fn connect(&self, url: &str) {
        let synced = self.state().synced;
        assert_eq!(self.try_connect(url), WsrepStatus::OK);
        self.add_applier();
        self.wait_for("being in step", |state| state.synced > synced);
        self.add_applier();
        self.add_applier();
    }

    /// Founds a cluster of the servers: the first bootstraps, the others join it.
    pub fn found(servers: &[&Server]) {
        servers[0].connect("gcomm://");
        for joiner in &servers[1..] {
            joiner.connect(&servers[0].url());
        }
    }

    /// What others join this one with.
    pub fn url(&self) -> String {
        format!("gcomm://127.0.0.1:{}", self.port)
    }

    fn add_applier(&self) {
        let app = self.app.clone();
        let thread = std::thread::spawn(move || {
            let applier = Applier { app, replays: None };
            call!(applier.app, recv, ptr::from_ref(&applier).cast_mut().cast())
        });
        self.appliers.lock().unwrap().push(thread);
    }

    /// disconnect(); returns what the recv() threads returned.
    pub fn disconnect(&self) -> Vec<WsrepStatus> {
        assert_eq!(call!(self, disconnect), WsrepStatus::OK);
        let appliers = std::mem::take(&mut *self.appliers.lock().unwrap());
        appliers
            .into_iter()
            .map(|applier| applier.join().unwrap())
            .collect()
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.app.state()
    }

    pub fn wait_for(&self, what: &str, fulfilled: impl FnMut(&State) -> bool) {
        self.app.wait_for(what, fulfilled);
    }

    /// Lets the applier at the gate through.
    pub fn open_gate(&self) {
        self.state().gate = None;
        self.app.changed.notify_all();
    }

    /// A row of an own transaction, inside commit order.
    pub fn commit_row(&self, seqno: Seqno, data: &str) {
        self.app.enter(seqno, Some(data.to_string()));
    }

    /// An own write-set that only takes its place in commit order.
    pub fn pass(&self, seqno: Seqno) {
        self.app.enter(seqno, None);
    }

    /// Context for replay_trx().
    pub fn replayer(&self, handle: *const WsHandle) -> Applier {
        Applier {
            app: self.app.clone(),
            replays: Some(handle),
        }
    }

    pub fn last_committed(&self) -> Gtid {
        self.app.last_committed()
    }

    /// Waits until everything that is committed anywhere is visible here.
    pub fn sync(&self) -> Gtid {
        let mut gtid = Gtid::UNDEFINED;
        let status = call!(self, sync_wait, ptr::null_mut(), -1, &mut gtid);
        assert_eq!(status, WsrepStatus::OK);
        gtid
    }

    pub fn options(&self) -> String {
        let text = call!(self, options_get);
        // SAFETY: a C string that is the caller's to free.
        unsafe {
            let copy = cstr_to_string(text);
            libc::free(text.cast());
            copy
        }
    }

    pub fn set_options(&self, text: &str) -> WsrepStatus {
        let text = CString::new(text).expect("no NUL");
        call!(self, options_set, text.as_ptr())
    }

    /// A whole number among the status variables.
    pub fn status(&self, name: &str) -> i64 {
        let vars = call!(self, stats_get);
        // SAFETY: ended by a variable without name, and valid until it is freed.
        let value = unsafe { StatsVar::array(vars) }
            .iter()
            .find(|var| unsafe { CStr::from_ptr(var.name) }.to_str() == Ok(name))
            .map(|var| {
                assert_eq!(var.var_type, VarType::INT64);
                // SAFETY: the type says so.
                unsafe { var.value.int64 }
            });
        call!(self, stats_free, vars);
        value.expect("a known status variable")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // As the server's loader does it: twice. It leaves the cluster if that was forgotten.
        call!(self, free);
        call!(self, free);
        for applier in self.appliers.lock().unwrap().drain(..) {
            let _ = applier.join();
        }
        for thread in self.app.threads.lock().unwrap().drain(..) {
            let _ = thread.join();
        }
        // SAFETY: made by `Box::into_raw`; no thread of the provider is left.
        drop(unsafe { Box::from_raw(self.table()) });
        let failures = std::mem::take(&mut self.state().failures);
        if !std::thread::panicking() {
            assert!(failures.is_empty(), "{}: {failures:#?}", self.app.name);
        }
    }
}

impl App {
    fn table(&self) -> *mut Wsrep {
        self.wsrep.load(Ordering::Relaxed)
    }

    fn last_committed(&self) -> Gtid {
        let mut gtid = Gtid::UNDEFINED;
        assert_eq!(call!(self, last_committed_id, &mut gtid), WsrepStatus::OK);
        gtid
    }

    /// A test that has failed must not take the callbacks with it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    fn wait_for(&self, what: &str, mut fulfilled: impl FnMut(&State) -> bool) {
        let state = self.state();
        let (_state, timeout) = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| !fulfilled(state))
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "{} waits for {what}", self.name);
    }

    /// Checks a rule of the contract.
    fn check(&self, rule: bool, breach: impl FnOnce() -> String) {
        if !rule {
            self.change(|state| state.failures.push(breach()));
        }
    }

    /// Something is inside commit order; `data`: it commits.
    fn enter(&self, seqno: Seqno, data: Option<String>) {
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

    fn spawn(self: &Arc<Self>, body: impl FnOnce(Arc<App>) + Send + 'static) {
        let app = self.clone();
        let thread = std::thread::spawn(move || body(app));
        self.threads.lock().unwrap().push(thread);
    }

    /// The joiner's script: waits for the snapshot, takes it, tells the provider.
    fn receive(&self, request: &[u8]) {
        let deadline = Instant::now() + PATIENCE;
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

/// # Safety
/// `app_ctx` must be what `Server::start` gave to init().
unsafe fn app(app_ctx: *mut c_void) -> Arc<App> {
    // SAFETY: the caller's contract; the server outlives its provider.
    unsafe {
        Arc::increment_strong_count(app_ctx.cast::<App>());
        Arc::from_raw(app_ctx.cast::<App>())
    }
}

/// # Safety
/// `recv_ctx` must be an [`Applier`].
unsafe fn applier<'a>(recv_ctx: *mut c_void) -> &'a Applier {
    // SAFETY: the caller's contract.
    unsafe { &*recv_ctx.cast::<Applier>() }
}

unsafe extern "C" fn log(level: LogLevel, message: *const c_char) {
    // SAFETY: a C string.
    let line = unsafe { cstr_to_string(message) };
    LOG.lock().unwrap().push((level, line));
}

unsafe extern "C" fn connected(app_ctx: *mut c_void, view: *const ViewInfoHeader) -> CbStatus {
    // SAFETY: what init() got, and a view with its members right behind it.
    let (app, header, id) = unsafe {
        let app = app(app_ctx);
        let header = *view;
        let members = view.add(1).cast::<trireme_wsrep_abi::MemberInfo>();
        let index = usize::try_from(header.my_idx).unwrap_or(0);
        (app, header, (*members.add(index)).id)
    };
    app.check(
        header.status == ViewStatus::PRIMARY && (0..header.memb_num).contains(&header.my_idx),
        || format!("connected to {header:?}"),
    );
    app.change(|state| state.id = id);
    CbStatus::SUCCESS
}

unsafe extern "C" fn view(
    app_ctx: *mut c_void,
    recv_ctx: *mut c_void,
    view: *const ViewInfoHeader,
    _state: *const c_char,
    _state_len: usize,
) -> CbStatus {
    // SAFETY: what init() got, and a view.
    let (app, header) = unsafe { (app(app_ctx), *view) };
    app.check(!recv_ctx.is_null(), || "a view without recv_ctx".into());
    let seqno = header.state_id.seqno;
    if header.status == ViewStatus::PRIMARY {
        let committed = app.last_committed().seqno;
        app.check(committed < seqno, || {
            format!("{committed} is committed in view {seqno}")
        });
        app.enter(seqno, None);
        app.change(|state| state.position = header.state_id);
    }
    app.change(|state| state.views.push((header.status, seqno, header.memb_num)));
    CbStatus::SUCCESS
}

/// As MariaDB: a server that has its data already asks for nothing (IST only).
unsafe extern "C" fn sst_request(
    app_ctx: *mut c_void,
    request: *mut *mut c_void,
    request_len: *mut usize,
) -> CbStatus {
    // SAFETY: what init() got.
    let app = unsafe { app(app_ctx) };
    let text = format!("host\0{} {:p}", app.name, app_ctx).into_bytes();
    let is_running = app.state().position != Gtid::UNDEFINED;
    // SAFETY: room for the results; the provider frees the block.
    unsafe {
        (*request, *request_len) = (ptr::null_mut(), 0);
        if !is_running {
            let block = libc::malloc(text.len());
            ptr::copy_nonoverlapping(text.as_ptr(), block.cast(), text.len());
            (*request, *request_len) = (block, text.len());
        }
    }
    if !is_running {
        app.spawn(move |app| app.receive(&text));
    }
    CbStatus::SUCCESS
}

unsafe extern "C" fn sst_donate(
    app_ctx: *mut c_void,
    _recv_ctx: *mut c_void,
    request: *const Buf,
    gtid: *const Gtid,
    _state: *const Buf,
    bypass: bool,
) -> CbStatus {
    // SAFETY: what init() got; the arguments are valid during the call.
    let (app, request, position) = unsafe { (app(app_ctx), (*request).bytes().to_vec(), *gtid) };
    let snapshot = Snapshot {
        position,
        rows: app.state().rows.clone(),
    };
    let (own, committed) = (app.state().position, app.last_committed());
    app.check(own == position && committed == position, || {
        format!("asked to send {position} when {own} is applied, {committed} committed")
    });
    app.change(|state| state.donated.push(bypass));
    app.spawn(move |app| {
        let mut snapshots = SNAPSHOTS.lock().unwrap();
        snapshots.get_or_insert_default().insert(request, snapshot);
        drop(snapshots);
        let status = call!(app, sst_sent, &position, 0);
        app.check(status == WsrepStatus::OK, || {
            format!("sst_sent: {status:?}")
        });
    });
    CbStatus::SUCCESS
}

unsafe extern "C" fn synced(app_ctx: *mut c_void) -> CbStatus {
    // SAFETY: what init() got.
    unsafe { app(app_ctx) }.change(|state| state.synced += 1);
    CbStatus::SUCCESS
}

unsafe extern "C" fn apply(
    recv_ctx: *mut c_void,
    handle: *const WsHandle,
    flags: u32,
    data: *const Buf,
    meta: *const TrxMeta,
    _exit_loop: *mut bool,
) -> CbStatus {
    // SAFETY: an applier's context; the arguments are valid during the call.
    let (applier, data, meta) = unsafe { (applier(recv_ctx), (*data).bytes(), *meta) };
    let (app, seqno) = (&applier.app, meta.gtid.seqno);
    let data = String::from_utf8_lossy(data).into_owned();
    app.check(flags & !flag::MASK == 0 && meta.depends_on < seqno, || {
        format!("flags {flags:#x}, {meta:?}")
    });
    app.change(|state| {
        state.applied_flags.push(flags);
        state.at_gate |= state.gate.as_deref() == Some(data.as_str());
    });
    app.wait_for("the gate", |state| {
        state.gate.as_deref() != Some(data.as_str())
    });
    let handle = applier.replays.unwrap_or(handle);
    let entered = call!(app, commit_order_enter, handle, &meta);
    app.enter(seqno, (flags & flag::ROLLBACK == 0).then_some(data));
    let left = call!(app, commit_order_leave, handle, &meta, &Buf::EMPTY);
    app.check(
        (entered, left) == (WsrepStatus::OK, WsrepStatus::OK),
        || format!("commit order of {seqno}: {entered:?}, {left:?}"),
    );
    CbStatus::SUCCESS
}
