//! The server: one provider instance and its recv() threads.

use std::ffi::{CStr, CString, c_int};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use trireme_tls::testing::{NOW, Party};
pub use trireme_transport::testing::free_port;
use trireme_wsrep_abi::{
    Gtid, InitArgs, LogLevel, Seqno, StatsVar, VarType, WsHandle, Wsrep, WsrepStatus,
    cstr_to_string,
};

use super::app::{AT_LINE, App, Applier, LOG, State};
use super::{call, callbacks};

unsafe extern "C" {
    fn wsrep_loader(wsrep: *mut Wsrep) -> c_int;
}

/// A server with one provider instance.
pub struct Server {
    app: Arc<App>,
    _data_dir: tempfile::TempDir,
    ip: &'static str,
    pub port: u16,
    appliers: Mutex<Vec<JoinHandle<WsrepStatus>>>,
}

/// Where a server listens.
pub struct Place {
    /// An address of this machine.
    pub ip: &'static str,
    pub port: u16,
    /// What it tells the others if `ip` is 0.0.0.0.
    pub advertised_ip: &'static str,
}

impl Place {
    pub fn at(ip: &'static str, port: u16) -> Place {
        Place {
            ip,
            port,
            advertised_ip: ip,
        }
    }
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
        Server::start_at(name, Place::at("127.0.0.1", port), options)
    }

    /// The same at another address of this machine's, or one that tells the others a wrong one.
    pub fn start_at(name: &str, place: Place, options: &str) -> Result<Server, WsrepStatus> {
        let Place {
            ip,
            port,
            advertised_ip,
        } = place;
        // SAFETY: all-zero is a valid table, and a valid `InitArgs`: NULL pointers and `None`.
        let (mut table, mut args): (Box<Wsrep>, InitArgs) =
            unsafe { (Box::new(std::mem::zeroed()), std::mem::zeroed()) };
        // SAFETY: room for the table.
        assert_eq!(unsafe { wsrep_loader(&mut *table) }, 0);
        let app = Arc::new(App::new(name, Box::into_raw(table)));
        let data_dir = tempfile::tempdir().expect("a directory");
        let server = Server {
            app,
            _data_dir: data_dir,
            ip,
            port,
            appliers: Mutex::default(),
        };
        let text = |text: &str| CString::new(text).expect("no NUL");
        let dir = text(server._data_dir.path().to_str().expect("UTF-8"));
        let options = text(&format!(
            "gmcast.listen_addr=tcp://{ip}:{port};gcache.size=16M;{options}"
        ));
        let (name, address, incoming) = (
            text(name),
            text(&format!("{advertised_ip}:{port}")),
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
        callbacks::enter(&mut args);
        match call!(server, init, &args) {
            WsrepStatus::OK => Ok(server),
            status => Err(status),
        }
    }

    pub fn data_dir(&self) -> &Path {
        self._data_dir.path()
    }

    /// free(): nothing but the data directory is left.
    pub fn free(&self) {
        call!(self, free);
    }

    pub fn table(&self) -> *mut Wsrep {
        self.app.table()
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
        format!("gcomm://{}", self.address())
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        format!("{}:{}", self.ip, self.port)
    }

    /// A recv() thread.
    pub fn add_applier(&self) {
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

    /// Lets the applier at the gate through, and the script of the joiner.
    pub fn open_gate(&self) {
        let mut state = self.state();
        (state.gate, state.script_waits) = (None, false);
        drop(state);
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

    /// Sets options in the moment when this line is logged. One test at a time can do so.
    pub fn set_options_at(&self, line: &str, text: &str) {
        let text = CString::new(text).expect("no NUL");
        *AT_LINE.lock().unwrap() = Some((line.to_owned(), self.app.clone(), text));
    }

    /// `wsrep_cluster_weight`: the votes in force.
    pub fn votes(&self) -> String {
        self.status_var(c"cluster_weight", |var| {
            assert_eq!(var.var_type, VarType::STRING);
            // SAFETY: the type says so; a C string that lives as long as the list.
            unsafe { cstr_to_string(var.value.string) }
        })
    }

    /// A whole number among the status variables.
    pub fn status(&self, name: &str) -> i64 {
        let name = CString::new(name).expect("no NUL");
        self.status_var(&name, |var| {
            assert_eq!(var.var_type, VarType::INT64);
            // SAFETY: the type says so.
            unsafe { var.value.int64 }
        })
    }

    /// A number with decimals among the status variables.
    pub fn status_double(&self, name: &str) -> f64 {
        let name = CString::new(name).expect("no NUL");
        self.status_var(&name, |var| {
            assert_eq!(var.var_type, VarType::DOUBLE);
            // SAFETY: the type says so.
            unsafe { var.value.double }
        })
    }

    /// A status variable that is a text.
    pub fn status_text(&self, name: &str) -> String {
        let name = CString::new(name).expect("no NUL");
        self.status_var(&name, |var| {
            assert_eq!(var.var_type, VarType::STRING);
            // SAFETY: the type says so, and the text lives until `stats_free`.
            let text = unsafe { CStr::from_ptr(var.value.string) };
            text.to_string_lossy().into_owned()
        })
    }

    fn status_var<T>(&self, name: &CStr, read: impl Fn(&StatsVar) -> T) -> T {
        let vars = call!(self, stats_get);
        // SAFETY: ended by a variable without name, and valid until it is freed.
        let value = unsafe { StatsVar::array(vars) }
            .iter()
            .find(|var| unsafe { CStr::from_ptr(var.name) } == name)
            .map(read);
        call!(self, stats_free, vars);
        value.expect("a known status variable")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An applier of a test that has failed may stand there, and free() waits for it.
        self.open_gate();
        // As the server's loader does it: twice. It leaves the cluster if that was forgotten.
        call!(self, free);
        call!(self, free);
        for applier in self.appliers.lock().unwrap().drain(..) {
            let _ = applier.join();
        }
        self.app.join_threads();
        // SAFETY: made by `Box::into_raw`; no thread of the provider is left.
        drop(unsafe { Box::from_raw(self.table()) });
        let failures = std::mem::take(&mut self.state().failures);
        if !std::thread::panicking() {
            assert!(failures.is_empty(), "{}: {failures:#?}", self.app.name);
        }
    }
}

/// Options of nodes that share a certificate, whose files go into this directory.
pub fn certificates(dir: &Path) -> String {
    let ca = Party::authority("ca");
    let files = ca.issue("node", NOW).files(&ca, dir, "node");
    format!(
        "socket.ssl_cert={};socket.ssl_key={};socket.ssl_ca={}",
        files.cert, files.key, files.ca
    )
}

/// A secret of a cluster.
pub const SECRET: &str = "the old secret of this cluster, 32+";

/// Writes a secret file as an operator does: a reader never sees half of it.
pub fn write_secret(file: &Path, lines: &[&str]) {
    let next = file.with_extension("next");
    fs::write(&next, lines.join("\n")).unwrap();
    fs::set_permissions(&next, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&next, file).unwrap();
}
