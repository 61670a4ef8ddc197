//! A cluster with a shared secret, and one that goes over to it, as their servers see it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use trireme_wsrep_abi::WsrepStatus;

use crate::AtEnd;
use crate::server::{SECRET as OLD, Server, logged, write_secret};
use crate::transaction::Transaction;

const NEW: &str = "the new secret of this cluster, 32+";

/// Runs `change` while both nodes write. No commit may fail: each has a key of its own. How many rows there are then.
fn under_load(a: &Server, b: &Server, name: &str, change: impl FnOnce()) -> usize {
    let (ended, committed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let write = |server: &Server, who: &str| {
        while !ended.load(Ordering::SeqCst) {
            let row = format!("{name}-{who}-{}", committed.load(Ordering::SeqCst));
            assert!(Transaction::new(server, &row, &row).run(), "{row}");
            committed.fetch_add(1, Ordering::SeqCst);
        }
    };
    thread::scope(|scope| {
        let _ends = AtEnd(|| ended.store(true, Ordering::SeqCst));
        scope.spawn(|| write(a, "a"));
        scope.spawn(|| write(b, "b"));
        change();
        thread::sleep(Duration::from_millis(200));
    });
    committed.into_inner()
}

/// How many members the last view has.
fn members(server: &Server) -> Option<i32> {
    let views = &server.state().views;
    views.last().map(|(_, _, members)| *members)
}

fn set(servers: &[&Server], text: &str) {
    for server in servers {
        assert_eq!(server.set_options(text), WsrepStatus::OK, "{text}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_cluster_goes_over_to_a_secret_and_changes_it_without_losing_a_commit() {
    let dir = tempfile::tempdir().unwrap();
    let file: PathBuf = dir.path().join("secret");
    write_secret(&file, &[OLD]);
    let [a, b] = ["a", "b"].map(|name| Server::start(name, "").expect("init"));
    Server::found(&[&a, &b]);
    let both = [&a, &b];
    assert_eq!(a.status("trireme_plaintext_links"), 1);
    assert_eq!(a.status("trireme_member_links"), 1);
    let mut rows = under_load(&a, &b, "over", || {
        let file = file.display();
        set(
            &both,
            &format!("repl.secret_file={file};socket.dynamic=yes"),
        );
        set(&both, "socket.dynamic=no");
    });
    for server in both {
        assert_eq!(server.status("trireme_plaintext_links"), 0);
    }
    rows += under_load(&a, &b, "new", || {
        for lines in [&[OLD, NEW][..], &[NEW, OLD], &[NEW]] {
            write_secret(&file, lines);
            set(&both, "socket.ssl_reload=1");
        }
    });
    for server in both {
        server.wait_for("all rows", |state| state.rows.len() >= rows);
        assert_eq!(server.state().rows.len(), rows);
    }
    // What does not do is refused, and changes nothing.
    write_secret(&file, &["short"]);
    assert_ne!(a.set_options("socket.ssl_reload=1"), WsrepStatus::OK);
    assert_ne!(a.set_options("socket.ssl=yes"), WsrepStatus::OK);
    assert_eq!(members(&a), Some(2));
}

#[test]
fn a_node_with_another_secret_stays_outside() {
    let dir = tempfile::tempdir().unwrap();
    let [ours, theirs] = [("ours", OLD), ("theirs", NEW)].map(|(name, line)| {
        let file = dir.path().join(name);
        write_secret(&file, &[line]);
        format!("repl.secret_file={}", file.display())
    });
    let a = Server::start("inside", &ours).expect("init");
    a.connect("gcomm://");
    let timeout = ";pc.wait_prim_timeout=PT1S";
    let b = Server::start("outside", &(theirs + timeout)).expect("init");
    assert_ne!(b.try_connect(&a.url()), WsrepStatus::OK);
    let says = |text: &str| logged(text).iter().any(|(_, line)| line.contains("TLS"));
    assert!(says("does not have the secret"), "the one that was called");
    assert!(
        says("does not have this node's secret"),
        "the one that called"
    );
    let c = Server::start("plain", "pc.wait_prim_timeout=PT1S").expect("init");
    assert_ne!(c.try_connect(&a.url()), WsrepStatus::OK);
    let d = Server::start("second", &ours).expect("init");
    d.connect(&a.url());
    assert_eq!(members(&a), Some(2));
}
