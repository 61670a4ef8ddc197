//! A start in plaintext is warned of once, and refused where encryption is required; with certificates it is taken, in each
//! spelling of an arbitrator. No server is needed: the arbitrator's start is that of every node.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use tempfile::TempDir;
use trireme_testbed::ports;

/// Options with a free port, and a short timeout.
fn with_port(options: &str) -> String {
    let port = ports::find_free(1).expect("free ports")[0].group;
    format!("base_port={port}; pc.wait_prim_timeout=PT0.1S; {options}")
}

/// An arbitrator that finds nobody, and gives up at once.
fn run(options: &str) -> Output {
    let options = with_port(options);
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

#[test]
fn an_arbitrator_takes_all_options_of_tls_in_each_spelling() {
    let dir = TempDir::new().expect("a temporary directory");
    let path = |name: &str| {
        dir.path()
            .join(name)
            .to_str()
            .expect("a path of ours")
            .to_owned()
    };
    let trireme = || Command::new(env!("CARGO_BIN_EXE_trireme"));
    let made = trireme()
        .args(["tls", "init", "--dir", &path("tls"), "garb"])
        .output();
    assert!(made.expect("the program can be started").status.success());
    std::fs::write(path("password"), "of no use here\n").expect("a file of ours");
    let file = |name: &str| path(&format!("tls/nodes/garb/{name}"));
    let options = format!(
        "socket.ssl=yes; socket.ssl_cert={}; socket.ssl_key={}; socket.ssl_ca={}; socket.ssl_password_file={}; \
         socket.ssl_cipher=TLS_AES_256_GCM_SHA384:AES256-SHA; socket.ssl_compression=no; socket.dynamic=no; \
         socket.checksum=2; repl.require_encryption=yes",
        file("cert.pem"),
        file("key.pem"),
        file("ca.pem"),
        path("password")
    );
    let ours = run(&options);
    let mut garbd = trireme();
    garbd.arg0("garbd").args([
        "-a",
        "gcomm://127.0.0.1:1",
        "-g",
        "g",
        "-o",
        &with_port(&options),
    ]);
    let config = format!(
        "address=\"gcomm://127.0.0.1:1\"\ngroup=g\noptions=\"{}\"\n",
        with_port(&options)
    );
    std::fs::write(path("garbd.cnf"), config).expect("a file of ours");
    let mut configured = trireme();
    configured.arg0("garbd").args(["--cfg", &path("garbd.cnf")]);
    let theirs =
        [garbd, configured].map(|mut command| command.output().expect("it can be started"));
    for output in [&ours, &theirs[0], &theirs[1]] {
        let text = said(output);
        assert!(
            text.contains("no primary component") && !text.contains(WARNING),
            "{text}"
        );
    }
    // Each file that is not there is named.
    for option in [
        "socket.ssl_cert",
        "socket.ssl_key",
        "socket.ssl_ca",
        "socket.ssl_crl",
        "socket.ssl_password_file",
    ] {
        let text = said(&run(&format!("{options}; {option}=/nowhere/file.pem")));
        assert!(
            text.contains(option) && text.contains("/nowhere/file.pem"),
            "{option}: {text}"
        );
        assert!(!text.contains("no primary component"), "{text}");
    }
}
