//! Peers whose certificates are revoked while they are connected.

mod common;

use std::io::IoSlice;
use std::path::Path;
use std::time::Duration;

use common::*;
use trireme_tls::testing::{NOW, Party, openssl_ca};
use trireme_tls::{Credentials, Files, Handshake, Progress, Role};
use trireme_transport::*;

fn read(files: &Files) -> Credentials {
    Credentials::read(files).unwrap()
}

fn of(files: &Files) -> Security {
    Security::new(read(files), true, false)
}

/// An authority, and the files of three nodes, which are in this directory.
fn authority(dir: &Path) -> [Files; 3] {
    let ca = Party::authority("ca");
    ca.write(dir, "ca");
    ["one", "two", "three"].map(|name| ca.issue(name, NOW).files(&ca, dir, name))
}

/// The first node's protection with a list that has the second node on it.
fn with_list(dir: &Path, files: &Files) -> Security {
    let ca = ("ca.pem", "ca.key");
    openssl_ca(dir, ca, &["-revoke", "two.pem"]);
    openssl_ca(dir, ca, &["-gencrl", "-out", "list.pem"]);
    of(&Files {
        crl: dir.join("list.pem").to_str().unwrap().to_owned(),
        ..files.clone()
    })
}

#[test]
fn a_new_list_ends_the_links_of_those_who_are_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let files = authority(dir.path());
    let a = Node::with(secure(&[], &of(&files[0])), identity(1));
    let b = Node::with(secure(&[&a.address], &of(&files[1])), identity(2));
    let c = Node::with(secure(&[&a.address], &of(&files[2])), identity(3));
    wait_meshed(&[&a, &b, &c]);
    // The same files again change nothing.
    a.lock().mesh.set_security(of(&files[0]));
    assert_eq!(a.linked(), [b.id, c.id]);
    a.lock().mesh.set_security(with_list(dir.path(), &files[0]));
    assert_eq!(a.linked(), [c.id]);
    let text = a.wait_rejected(RejectReason::Tls);
    let words = ["ended the connection with", "CN=two", "certificate revoked"];
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    // It calls again, and is called, in vain.
    let text = b.wait_rejected(RejectReason::Tls);
    assert!(text.contains("certificate revoked"), "{text}");
    assert_eq!((a.linked(), b.linked()), (vec![c.id], vec![c.id]));
    assert_eq!(a.send(c.id, b"still"), SendOutcome::Queued);
    assert_eq!(c.wait_frame(a.id), b"still");
}

#[test]
fn a_handshake_that_began_before_the_list_leads_to_no_link() {
    let dir = tempfile::tempdir().unwrap();
    let files = authority(dir.path());
    let listed = with_list(dir.path(), &files[0]);
    let mut patient = secure(&[], &of(&files[0]));
    patient.handshake_timeout_ms = 60_000;
    let a = Node::with(patient, identity(1));
    let tcp = a.call();
    tcp.set_nonblocking(true).unwrap();
    let begun = Handshake::new(&read(&files[1]), Role::Dialer, tcp).unwrap();
    let Progress::Waiting(mut begun) = begun.step().unwrap() else {
        panic!("a handshake without an answer");
    };
    // The node has answered, so this session has its former credentials.
    wait_until("an answer", || begun.socket_mut().peek(&mut [0]).is_ok());
    a.lock().mesh.set_security(listed);
    let mut session = loop {
        match begun.step().unwrap() {
            Progress::Done(session) => break session,
            Progress::Waiting(waiting) => begun = waiting,
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    session
        .write_vectored(&[IoSlice::new(&PREAMBLE)], PREAMBLE.len())
        .unwrap();
    let text = a.wait_rejected(RejectReason::Tls);
    assert!(text.contains("certificate revoked"), "{text}");
}
