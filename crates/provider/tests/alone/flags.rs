//! A server whose storage engines are up, or that has started, before its node connects. This program has the variables
//! that tell so, as MariaDB has.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trireme_wsrep_abi::WsrepStatus;

use crate::server::{Server, free_port, logged};
use crate::{ALONE, AtEnd};

#[allow(non_upper_case_globals)]
mod variables {
    use super::AtomicU8;

    #[unsafe(no_mangle)]
    pub static plugins_are_initialized: AtomicU8 = AtomicU8::new(0);
    #[unsafe(no_mangle)]
    pub static mysqld_server_started: AtomicU8 = AtomicU8::new(0);
    #[unsafe(no_mangle)]
    pub static abort_loop: AtomicU8 = AtomicU8::new(0);
}
use variables::{abort_loop, mysqld_server_started, plugins_are_initialized};

/// With `wsrep_sst_method` mysqldump or skip. The server takes SIGTERM, and waits for its first view all the same.
#[test]
fn a_server_that_waits_with_its_data_open_ends_when_it_is_to_stop() {
    const IN_CHILD: &str = "TRIREME_TEST_WAITS_WITH_DATA";
    const GOES_ON: &str = "the server goes on";
    if let Ok(lacks) = std::env::var(IN_CHILD) {
        plugins_are_initialized.store(1, Ordering::SeqCst);
        let _servers = servers_that_lack(&lacks);
        // Once it has started it stops by itself.
        mysqld_server_started.store(1, Ordering::SeqCst);
        abort_loop.store(1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(500));
        println!("{GOES_ON}");
        mysqld_server_started.store(0, Ordering::SeqCst);
        thread::sleep(Duration::from_secs(60));
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let this_test = "flags::a_server_that_waits_with_its_data_open_ends_when_it_is_to_stop";
    for lacks in [FOUNDERS, COMPONENT, DONOR] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([this_test, "--exact", "--nocapture"])
            .env(IN_CHILD, lacks)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        let ended_by = output.status.signal();
        assert_eq!(ended_by, Some(libc::SIGTERM), "{lacks}: {output:?}");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains(GOES_ON), "{lacks}: {told}");
    }
}

const FOUNDERS: &str = "founders";
const COMPONENT: &str = "a component";
const DONOR: &str = "a donor";

/// A server that waits for these, and all others that it needs for that.
fn servers_that_lack(others: &str) -> Vec<Server> {
    let start = |options| Server::start("waits", options).expect("init");
    let nobody = format!("127.0.0.1:{}", free_port());
    let (server, url, members) = match others {
        FOUNDERS => {
            let server = start("pc.bootstrap_expect=2");
            let url = format!("{},{nobody}", server.url());
            (server, url, None)
        }
        COMPONENT => (start("pc.wait_prim=no"), format!("gcomm://{nobody}"), None),
        _ => {
            let member = Server::start("gives nothing", "gcs.stateless=yes").expect("init");
            member.connect("gcomm://");
            (start(""), member.url(), Some(member))
        }
    };
    assert_eq!(server.try_connect(&url), WsrepStatus::OK);
    if members.is_some() {
        server.add_applier();
    }
    members.into_iter().chain([server]).collect()
}

/// connect() in a thread of its own; None: it has not returned within 10 s.
fn connect_while(server: &Server, url: &str, meanwhile: impl FnOnce()) -> Option<WsrepStatus> {
    thread::scope(|scope| {
        let connects = scope.spawn(|| server.try_connect(url));
        meanwhile();
        let until = Instant::now() + Duration::from_secs(10);
        while !connects.is_finished() {
            if Instant::now() >= until {
                abort_loop.store(1, Ordering::SeqCst); // ends the wait
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
        connects.join().ok()
    })
}

/// A server that runs from here on, until the result is dropped.
fn runs() -> AtEnd<impl FnMut()> {
    mysqld_server_started.store(1, Ordering::SeqCst);
    AtEnd(|| {
        mysqld_server_started.store(0, Ordering::SeqCst);
        abort_loop.store(0, Ordering::SeqCst);
    })
}

/// The server began without `wsrep_cluster_address`. Before a first view it could neither stop nor disconnect.
#[test]
fn a_server_that_has_started_waits_within_connect() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let _runs = runs();
    let options = "pc.bootstrap_expect=2;pc.wait_prim_timeout=PT0.3S";
    let server = Server::start("started", options).expect("init");
    let url = format!("{},127.0.0.1:{}", server.url(), free_port());
    assert_eq!(
        connect_while(&server, &url, || ()),
        Some(WsrepStatus::NODE_FAIL)
    );
}

/// An operator has removed grastate.dat: at its start the server would wait until it reaches a peer.
#[test]
fn a_server_that_has_started_waits_for_a_peer_for_a_while_only() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display();
    let options = format!("base_dir={path};gcache.dir={path};pc.wait_prim_timeout=PT0.3S");
    let before = Server::start("before", &options).expect("init");
    let other = Server::start("other", "").expect("init");
    Server::found(&[&before, &other]);
    // Its last view has two members.
    assert_eq!(other.set_options("gmcast.isolate=1"), WsrepStatus::OK);
    drop((before, other));
    std::fs::remove_file(dir.path().join("grastate.dat")).unwrap();
    let _runs = runs();
    let server = Server::start("started", &options).expect("init");
    let url = format!("gcomm://127.0.0.1:{}", free_port());
    assert_eq!(
        connect_while(&server, &url, || ()),
        Some(WsrepStatus::NODE_FAIL)
    );
}

/// Its stop waits for the thread that sets `wsrep_cluster_address`.
#[test]
fn a_server_that_stops_or_disconnects_ends_the_wait_within_connect() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let _runs = runs();
    let server = Server::start("stops", "").expect("init");
    let url = format!("gcomm://127.0.0.1:{}", free_port());
    let waits = || thread::sleep(Duration::from_millis(300));
    let disconnected = connect_while(&server, &url, || {
        waits();
        server.disconnect();
    });
    assert_eq!(disconnected, Some(WsrepStatus::NODE_FAIL));
    let stopped = connect_while(&server, &url, || {
        waits();
        abort_loop.store(1, Ordering::SeqCst);
    });
    assert_eq!(stopped, Some(WsrepStatus::NODE_FAIL));
    assert_eq!(logged("the server stops, or disconnects").len(), 2);
}

/// `--wsrep-recover` would wait for the locks of its own parent, for a minute or more.
#[test]
fn a_server_with_its_data_open_is_not_asked_for_its_position() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let dir = tempfile::tempdir().unwrap();
    let crashed = "version: 2.1\nuuid: 37bb872a-ad73-11e6-819f-f3b71d9c5ada\nseqno: -1\n";
    std::fs::write(dir.path().join("grastate.dat"), crashed).unwrap();
    let options = format!(
        "base_dir={};pc.wait_prim_timeout=PT0.1S",
        dir.path().display()
    );
    let server = Server::start("crashed", &options).expect("init");
    let url = format!("gcomm://127.0.0.1:{}", free_port());
    let asked = || logged("asking the server's --wsrep-recover").len();
    let _resets = AtEnd(|| plugins_are_initialized.store(0, Ordering::SeqCst));
    plugins_are_initialized.store(1, Ordering::SeqCst);
    assert_eq!(server.try_connect(&url), WsrepStatus::NODE_FAIL);
    assert_eq!((asked(), logged("has its data open").len()), (0, 1));
    plugins_are_initialized.store(0, Ordering::SeqCst);
    assert_eq!(server.try_connect(&url), WsrepStatus::NODE_FAIL);
    assert_eq!(asked(), 1);
}
