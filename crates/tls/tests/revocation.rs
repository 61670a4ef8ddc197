//! Certificates that an authority has revoked (`socket.ssl_crl`). The lists are made by the program `openssl`.

mod common;

use std::path::Path;

use common::{shake, verdict};
use trireme_tls::testing::{NOW, Party, openssl_ca};
use trireme_tls::{Credentials, Files};

/// The authority's files, in the test's directory.
const CA: (&str, &str) = ("ca.pem", "ca.key");

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
    let (one, other) = (node(&ca, dir, "one"), node(&ca, dir, "other"));
    let read = |files: &Files| Credentials::read(files).unwrap();
    // Nobody is on the first list.
    openssl_ca(dir, CA, &["-gencrl", "-out", "crl.pem"]);
    let (near, far) = shake(&read(&one), &read(&other));
    near.unwrap();
    far.unwrap();
    openssl_ca(dir, CA, &["-revoke", "other.pem"]);
    openssl_ca(dir, CA, &["-gencrl", "-out", "crl.pem"]);
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
    openssl_ca(dir, CA, &["-gencrl", "-out", "crl.pem"]);
    let (one, other) = (node(&ca, dir, "one"), node(&ca, dir, "other"));
    let (acceptor, dialer) = shake(
        &Credentials::read(&one).unwrap(),
        &Credentials::read(&other).unwrap(),
    );
    drop(acceptor);
    let text = dialer.unwrap_err().to_string();
    assert!(text.contains("have a new list made"), "{text}");
}
