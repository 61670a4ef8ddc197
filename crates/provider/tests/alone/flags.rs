//! A server whose storage engines are up before its node connects. This program has the variables that tell so, as
//! MariaDB has.

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
    if std::env::var_os(IN_CHILD).is_some() {
        // It waits for the other founder.
        let server = Server::start("waits", "pc.bootstrap_expect=2").expect("init");
        let url = format!("{},127.0.0.1:{}", server.url(), free_port());
        plugins_are_initialized.store(1, Ordering::SeqCst);
        assert_eq!(server.try_connect(&url), WsrepStatus::OK);
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
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([this_test, "--exact", "--nocapture"])
        .env(IN_CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGTERM), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains(GOES_ON), "{told}");
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
