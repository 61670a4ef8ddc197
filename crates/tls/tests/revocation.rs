//! Certificates that an authority has revoked (`socket.ssl_crl`). The lists are made by the program `openssl`.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{shake, verdict};
use trireme_tls::testing::{NOW, Party};
use trireme_tls::{Credentials, Files};

const CONFIG: &str = "[ca]\ndefault_ca = authority\n[authority]\ndatabase = index.txt\ndefault_md = sha256\ndefault_crl_days = 30\n";

/// Runs `openssl ca` for the authority in `dir`.
fn openssl_ca(dir: &Path, arguments: &[&str]) {
    let common = [
        "ca", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key",
    ];
    let output = Command::new("openssl")
        .args(common)
        .args(arguments)
        .current_dir(dir)
        .output();
    let output = output.expect("the program openssl");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A node of `ca` that trusts it, with a list of revocations.
fn node(ca: &Party, dir: &Path, name: &str) -> Files {
    Files {
        crl: dir.join("crl.pem").to_str().unwrap().to_owned(),
        ..ca.issue(name, NOW).files(ca, dir, name)
    }
}

#[test]
fn who_is_on_the_list_is_kept_out() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let ca = Party::authority("ca");
    ca.write(dir, "ca");
    fs::write(dir.join("ca.cnf"), CONFIG).unwrap();
    fs::write(dir.join("index.txt"), "").unwrap();
    let (one, other) = (node(&ca, dir, "one"), node(&ca, dir, "other"));
    let read = |files: &Files| Credentials::read(files).unwrap();
    // Nobody is on the first list.
    openssl_ca(dir, &["-gencrl", "-out", "crl.pem"]);
    let (near, far) = shake(&read(&one), &read(&other));
    near.unwrap();
    far.unwrap();
    openssl_ca(dir, &["-revoke", "other.pem"]);
    openssl_ca(dir, &["-gencrl", "-out", "crl.pem"]);
    let (acceptor, dialer) = shake(&read(&one), &read(&other));
    let text = acceptor.unwrap_err().to_string();
    assert!(
        text.contains("CN=other") && text.contains("socket.ssl_crl here"),
        "{text}"
    );
    let text = verdict(dialer).to_string();
    assert!(
        text.contains("certificate revoked") && text.contains("have a new one made"),
        "{text}"
    );
}

#[test]
fn without_a_list_of_the_authority_nobody_is_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (ca, elsewhere) = (Party::authority("ca"), Party::authority("elsewhere"));
    elsewhere.write(dir, "ca");
    fs::write(dir.join("ca.cnf"), CONFIG).unwrap();
    fs::write(dir.join("index.txt"), "").unwrap();
    openssl_ca(dir, &["-gencrl", "-out", "crl.pem"]);
    let (one, other) = (node(&ca, dir, "one"), node(&ca, dir, "other"));
    let (acceptor, dialer) = shake(
        &Credentials::read(&one).unwrap(),
        &Credentials::read(&other).unwrap(),
    );
    drop(acceptor);
    let text = dialer.unwrap_err().to_string();
    assert!(text.contains("have a new list made"), "{text}");
}
