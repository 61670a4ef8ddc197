//! Mistakes of users and what they are told.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use trireme_wsrep_abi::{LogLevel, WsrepStatus};

use crate::server::{Server, free_port, logged};
use crate::transaction::Transaction;

fn errors(text: &str) -> Vec<String> {
    let is_error = |(level, line)| (level == LogLevel::ERROR).then_some(line);
    logged(text).into_iter().filter_map(is_error).collect()
}

/// The lock of the data directory does not cover it.
#[test]
fn a_log_directory_belongs_to_one_server() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = format!("gcache.dir={}", dir.path().display());
    let server = Server::start("owner", &options).expect("init");
    let refused = Server::start("intruder", &options).err();
    assert_eq!(refused, Some(WsrepStatus::NODE_FAIL));
    let told = errors("keeps its write-set log in");
    assert!(
        told.iter()
            .any(|line| line.contains("directory of its own")),
        "{told:?}"
    );
    server.free();
    Server::start("successor", &options).expect("init");
}

#[test]
fn unknown_options_are_refused_and_change_nothing() {
    let refused = Server::start("errors", "pc.wieght=3").err();
    assert_eq!(refused, Some(WsrepStatus::NODE_FAIL));
    assert_eq!(errors("pc.wieght").len(), 1);

    let server = Server::start("errors", "pc.weight=3;evs.suspect_timeout=PT7S").expect("init");
    let before = server.options();
    assert!(before.contains("pc.weight = 3; ") && before.contains("evs.suspect_timeout = PT7S; "));
    for wrong in [
        "no.such=1",
        "gcs.fc_limit=17;no.such=1",
        "gcs.fc_limit=many",
        "gcache.size=1G",
        "nonsense",
    ] {
        assert_eq!(server.set_options(wrong), WsrepStatus::NODE_FAIL, "{wrong}");
        assert_eq!(server.options(), before, "{wrong}");
    }
    assert_eq!(server.set_options(&before), WsrepStatus::OK);
    assert_eq!(server.options(), before);
    assert_eq!(server.set_options("gcs.fc_limit=17"), WsrepStatus::OK);
    assert!(server.options().contains("gcs.fc_limit = 17; "));
}

/// A node that gives others an address beyond loopback, and encrypts nothing.
#[test]
fn plaintext_is_warned_of_once_per_start_and_can_be_refused() {
    let port = free_port();
    let options = format!("gmcast.listen_addr=tcp://0.0.0.0:{port};base_host=192.0.2.1");
    let server = Server::start_on("exposed", port, &options).expect("init");
    let nobody = format!(
        "gcomm://127.0.0.1:{}?pc.wait_prim_timeout=PT0.2S",
        free_port()
    );
    for _ in 0..2 {
        assert_eq!(server.try_connect(&nobody), WsrepStatus::NODE_FAIL);
    }
    let warnings = logged(&format!(
        "listens on 0.0.0.0:{port}, and is reached at 192.0.2.1"
    ));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].0, LogLevel::WARN);
    let before = server.options();
    let set = server.set_options("repl.require_encryption=yes");
    assert_eq!(set, WsrepStatus::NODE_FAIL);
    assert_eq!(server.options(), before);
    const REFUSAL: &str = "repl.require_encryption=yes, but nothing encrypts";
    assert_eq!(logged(REFUSAL).len(), 1);
    let refused = Server::start("exposed", "repl.require_encryption=yes").err();
    assert_eq!(refused, Some(WsrepStatus::NODE_FAIL));
    assert_eq!(errors(REFUSAL).len(), 1);
}

/// An operator in an outage must not believe that a command had an effect.
#[test]
fn a_command_to_a_connection_needs_one() {
    let server = Server::start("errors", "").expect("init");
    for command in ["pc.bootstrap=1", "gmcast.peer_addr=127.0.0.1:4567"] {
        assert_eq!(server.set_options(command), WsrepStatus::NODE_FAIL);
        let (name, _) = command.split_once('=').expect("a value");
        let lines = logged(&format!("{name}: this node is not connected"));
        assert_eq!(lines.len(), 1, "{lines:#?}");
    }
    let set = server.set_options("pc.bootstrap=1;gcs.fc_limit=77");
    assert_eq!(set, WsrepStatus::NODE_FAIL);
    assert!(server.options().contains("gcs.fc_limit = 77; "));
}

#[test]
fn a_bootstrap_of_a_primary_component_changes_nothing() {
    let server = Server::start("primary", "").expect("init");
    server.connect("gcomm://");
    let views = server.state().views.len();
    assert_eq!(server.set_options("pc.bootstrap=1"), WsrepStatus::OK);
    assert!(!logged("this node is in a primary component already").is_empty());
    assert!(Transaction::new(&server, "key", "row").run());
    assert_eq!(server.state().views.len(), views);
}

/// The node's replica id was lost: it is another one than in the view of its log.
#[test]
fn a_bootstrap_of_a_node_that_its_last_view_does_not_list_fails() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().display();
    let options = format!("base_dir={path};gcache.dir={path}");
    let before = Server::start("before", &options).expect("init");
    before.connect("gcomm://");
    assert!(Transaction::new(&before, "key", "row").run());
    drop(before);
    std::fs::remove_file(dir.path().join("trireme.gvwstate.dat")).expect("its promises");
    let server = Server::start("after", &options).expect("init");
    let nobody = format!("gcomm://127.0.0.1:{}", free_port());
    assert_eq!(server.try_connect(&nobody), WsrepStatus::OK);
    assert_eq!(server.set_options("pc.bootstrap=1"), WsrepStatus::NODE_FAIL);
    assert_eq!(logged("set it on a node that this view lists").len(), 1);
}

#[test]
fn a_failed_connect_can_be_followed_by_another() {
    let server = Server::start("errors", "").expect("init");
    let start = Instant::now();
    assert_eq!(
        server.try_connect("foo://127.0.0.1"),
        WsrepStatus::NODE_FAIL
    );
    assert_eq!(errors("foo://127.0.0.1").len(), 1);

    let nobody = format!(
        "gcomm://127.0.0.1:{}?pc.wait_prim_timeout=PT0.3S",
        free_port()
    );
    assert_eq!(server.try_connect(&nobody), WsrepStatus::NODE_FAIL);
    assert_eq!(errors(&nobody).len(), 1);

    let occupied = TcpListener::bind(("127.0.0.1", server.port)).expect("a free port");
    assert_eq!(server.try_connect("gcomm://"), WsrepStatus::NODE_FAIL);
    let lines = errors(&format!("127.0.0.1:{}", server.port));
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("in use"), "{lines:#?}");
    assert!(start.elapsed() < Duration::from_secs(5));
    drop(occupied);

    server.connect("gcomm://");
    assert!(Transaction::new(&server, "key", "row").run());
    assert_eq!(server.try_connect("gcomm://"), WsrepStatus::NODE_FAIL);
}
