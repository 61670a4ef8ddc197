//! A start in plaintext is warned of once, and refused where encryption is required. No server is needed: the arbitrator's
//! start is that of every node.

use std::net::TcpListener;
use std::process::{Command, Output};

/// An arbitrator that finds nobody, and gives up at once.
fn run(options: &str) -> Output {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = port.expect("a free port").port();
    let options = format!("base_port={port}; pc.wait_prim_timeout=PT0.1S; {options}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_trireme"));
    command.args([
        "arbitrator",
        "--address",
        "gcomm://127.0.0.1:1",
        "--group",
        "g",
    ]);
    let output = command.args(["--options", &options]).output();
    output.expect("the program can be started")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const WARNING: &str = "group traffic is plaintext";

#[test]
fn a_start_in_plaintext_beyond_loopback_is_warned_of_once() {
    let text = said(&run(""));
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(WARNING)).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(
        lines[0].to_lowercase().contains("warn") && lines[0].contains("trireme tls init"),
        "{text}"
    );
}

#[test]
fn a_start_on_loopback_is_not() {
    let text = said(&run("gmcast.listen_addr=tcp://127.0.0.1"));
    assert!(
        !text.contains(WARNING) && text.contains("no primary component"),
        "{text}"
    );
}

#[test]
fn plaintext_is_refused_where_encryption_is_required() {
    let output = run("repl.require_encryption=yes");
    let text = said(&output);
    assert!(!output.status.success());
    assert!(
        text.contains("repl.require_encryption=yes, but") && text.contains("socket.ssl_cert"),
        "{text}"
    );
    assert!(
        !text.contains("no primary component"),
        "it called somebody: {text}"
    );
}
