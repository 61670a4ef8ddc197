//! Options that an operator sets while the node runs: what they change at once.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use trireme_wsrep_abi::{ViewStatus, WsrepStatus};

use crate::server::{Server, certificates, free_port, logged};
use crate::told::{told, waits_for};
use crate::transaction::Transaction;

const TIMEOUT: Duration = Duration::from_secs(30);
/// More than [`TIMEOUT`], so that no test waits for it.
const PATIENT: &str = "evs.suspect_timeout=PT2M;evs.inactive_timeout=PT2M";

fn pair(options: &str) -> [Server; 2] {
    ["first", "second"].map(|name| Server::start(name, options).expect("init"))
}

fn set(server: &Server, text: &str) {
    assert_eq!(server.set_options(text), WsrepStatus::OK, "{text}");
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < TIMEOUT, "in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn await_view(server: &Server, wanted: ViewStatus) {
    server.wait_for(&format!("{wanted:?}"), |state| {
        let last = state.views.last();
        last.is_some_and(|(status, ..)| *status == wanted)
    });
}

/// The node loses the other one, which is cut off for so long, and regains it.
fn lose_and_regain(node: &Server, other: &Server) {
    set(other, "gmcast.isolate=1");
    await_view(node, ViewStatus::NON_PRIMARY);
    set(other, "gmcast.isolate=0");
    await_view(node, ViewStatus::PRIMARY);
}

fn stops_writers(server: &Server) -> bool {
    server.status_text("flow_control_requested") == "true"
}

#[test]
fn the_queue_that_stops_the_writers_changes_at_once() {
    let [a, b] = &pair("");
    Server::found(&[a, b]);
    b.state().gate = Some("a row that takes long".into());
    assert!(Transaction::new(a, "slow", "a row that takes long").run());
    // Fewer than the default of gcs.fc_limit.
    for i in 0..10 {
        assert!(Transaction::new(a, &format!("{i}"), "a row").run());
    }
    b.wait_for("the applier", |state| state.at_gate);
    assert_eq!(b.status("flow_control_sent"), 0);
    set(b, "gcs.fc_limit=2");
    wait_until("a stop", || stops_writers(b));
    // Then only an empty queue ends the stop.
    set(b, "gcs.fc_factor=0");
    set(b, "gcs.fc_limit=100");
    thread::sleep(Duration::from_millis(300));
    assert!(stops_writers(b), "gcs.fc_factor has no effect");
    set(b, "gcs.fc_factor=1");
    wait_until("the end of the stop", || !stops_writers(b));
    b.open_gate();
    b.wait_for("all rows", |state| state.rows.len() == 11);
}

#[test]
fn the_time_that_the_others_may_be_silent_changes_at_once() {
    let [a, b] = &pair(PATIENT);
    Server::found(&[a, b]);
    set(a, "evs.suspect_timeout=PT1S");
    lose_and_regain(a, b);
}

/// connect() has read the options by then, and there is no connection yet that could be told.
#[test]
fn options_that_change_while_a_node_connects_are_in_force() {
    let [a, b] = &pair(PATIENT);
    a.connect("gcomm://");
    let line = format!("connecting to 'host' at {}", a.url());
    b.set_options_at(&line, "evs.suspect_timeout=PT1S;pc.weight=3");
    b.connect(&a.url());
    assert!(b.options().contains("evs.suspect_timeout = PT1S; "));
    wait_until("the weight", || b.votes() == "4");
    // So that it needs the other one for a majority.
    set(b, "pc.weight=1");
    lose_and_regain(b, a);
}

#[test]
fn a_node_that_is_not_connected_cannot_be_isolated() {
    let server = Server::start("closed", "").expect("init");
    for text in ["gmcast.isolate=1", "gmcast.isolate=0"] {
        assert_eq!(server.set_options(text), WsrepStatus::NODE_FAIL, "{text}");
    }
    assert!(!logged("gmcast.isolate: this node is not connected").is_empty());
    server.connect("gcomm://");
    set(&server, "gmcast.isolate=0");
}

/// Files on a share whose server is gone answer like this one: not at all.
#[test]
fn files_that_hang_hold_up_no_other_call() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start("patient", &certificates(dir.path())).expect("init");
    server.connect("gcomm://");
    let fifo = dir.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("coreutils").success());
    let answered = thread::scope(|scope| {
        let text = format!("socket.ssl_ca={}", fifo.display());
        let server = &server;
        let setter = scope.spawn(move || server.set_options(&text));
        // It can be opened as soon as the node reads it, and then the node waits for the first byte.
        let mut writer = None;
        wait_until("the node opens the file", || {
            let mut options = OpenOptions::new();
            let options = options.write(true).custom_flags(libc::O_NONBLOCK);
            writer = options.open(&fifo).ok();
            writer.is_some()
        });
        let (tell, told) = mpsc::channel();
        scope.spawn(move || {
            server.sync();
            let _ = tell.send((server.status("local_state"), server.options()));
        });
        let answered = told.recv_timeout(Duration::from_secs(5));
        drop(writer);
        assert_ne!(setter.join().unwrap(), WsrepStatus::OK, "an empty file");
        answered
    });
    let (local_state, options) = answered.expect("sync_wait, stats_get and options_get return");
    assert_eq!(local_state, 4);
    assert!(!options.contains("fifo"), "{options}");
}

#[test]
fn a_node_that_may_ignore_the_quorum_goes_on_alone() {
    let [a, b] = &pair("evs.suspect_timeout=PT1S");
    Server::found(&[a, b]);
    set(a, "pc.ignore_quorum=yes");
    set(b, "gmcast.isolate=1");
    await_view(b, ViewStatus::NON_PRIMARY);
    a.wait_for("a view of one", |state| {
        let last = state.views.last();
        last.is_some_and(|(status, _, members)| (*status, *members) == (ViewStatus::PRIMARY, 1))
    });
    assert!(Transaction::new(a, "key", "alone").run());
}

#[test]
fn a_leader_that_is_to_lead_no_more_hands_over() {
    let [a, b] = &pair("");
    Server::found(&[a, b]);
    assert_eq!(a.status("trireme_is_leader"), 1);
    set(a, "repl.leader=never");
    wait_until("another leader", || b.status("trireme_is_leader") == 1);
    assert!(Transaction::new(a, "key", "after").run());
    b.wait_for("the row", |state| state.rows.len() == 1);
}

#[test]
fn a_node_that_finds_nobody_is_told_an_address() {
    let [a, b] = &pair("");
    a.connect("gcomm://");
    thread::scope(|scope| {
        scope.spawn(|| b.connect(&format!("gcomm://127.0.0.1:{}", free_port())));
        told(b, "whom it looks for", waits_for("component"));
        set(b, &format!("gmcast.peer_addr={}", a.address()));
    });
    assert!(Transaction::new(a, "key", "for both").run());
    b.wait_for("the row", |state| state.rows.len() == 1);
}
